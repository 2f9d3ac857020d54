"""Checks of a model folder before a run loads it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from excise.errors import ConfigError
from excise.pipeline.cli.main import app
from excise.trainer.setup.model_folder import require_model


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:1000])


@pytest.mark.parametrize(
    ("file", "harm", "said"),
    [
        ("model.safetensors", _cut, "model.safetensors: these weights cannot be read"),
        ("model.safetensors", Path.unlink, "no weights in it"),
        ("model.safetensors.index.json", lambda path: path.write_text("{}"), "index.json: cannot be read"),
        ("config.json", lambda path: path.write_text("3"), "config.json: no model that can be used"),
        ("config.json", lambda path: path.write_text('{"model_type": "nothing"}'), "config.json: no model that"),
        ("tokenizer.json", lambda path: path.write_text("{"), "no tokenizer can be loaded"),
        ("tokenizer*", Path.unlink, "no tokenizer in it"),
    ],
)
def test_a_broken_model_is_refused_without_loading_it(
    input_folder: Path, tmp_path: Path, file: str, harm: Callable[[Path], object], said: str
) -> None:
    model = shutil.copytree(input_folder / "model", tmp_path / "model")
    if file.endswith("index.json"):
        (model / "model.safetensors").rename(model / file)
    for path in list(model.glob(file)):
        harm(path)
    with pytest.raises(ConfigError, match=said) as caught:
        require_model(model)
    assert "\n" not in str(caught.value)
    done = CliRunner().invoke(
        app, ["eval", str(input_folder / "train.toml"), "--model", str(model), "--out", str(tmp_path)]
    )
    assert (done.exit_code, str(caught.value) in done.stderr) == (2, True)


def test_weights_in_several_files_are_all_checked(input_folder: Path, tmp_path: Path) -> None:
    model = shutil.copytree(input_folder / "model", tmp_path / "model")
    (model / "model.safetensors").rename(model / "part-1.safetensors")
    (model / "model.safetensors.index.json").write_text('{"weight_map": {"a": "part-1.safetensors"}}')
    assert require_model(model) == require_model(input_folder / "model")
    (model / "model.safetensors.index.json").write_text('{"weight_map": {"a": "part-1.safetensors", "b": "part-2"}}')
    with pytest.raises(ConfigError, match="part-2: these weights cannot be read"):
        require_model(model)
