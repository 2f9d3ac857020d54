"""Files of weights that are written for an engine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from excise.errors import EngineError
from excise.system.process_identity import owned_temporary_folder
from excise.trainer.engines.weight_files import WeightFiles, shapes_of
from excise.trainer.loop.learner import Learner, LearnerSettings

from ..byte_model import byte_model


def saved(folder: Path, *, tied: bool) -> Any:
    model = byte_model()
    if tied:
        model.config.tie_word_embeddings = True
        model.tie_weights()
    model.save_pretrained(folder)
    return model


def weights_of(model: Any) -> list[Any]:
    return [(name, parameter.detach()) for name, parameter in model.named_parameters()]


@pytest.mark.parametrize("tied", [False, True])
def test_written_files_hold_the_given_weights(tmp_path: Path, tied: bool) -> None:
    model = saved(tmp_path / "model", tied=tied)
    assert ("lm_head.weight" in shapes_of(tmp_path / "model")) is not tied
    files = WeightFiles(tmp_path / "model", tmp_path)
    written = [files.write(weights_of(model), version) for version in range(1, 5)]
    found = load_file(written[-1] / "model.safetensors")
    assert found.keys() == {name for name, _ in model.named_parameters()}
    assert all((found[name] == tensor).all() for name, tensor in weights_of(model))
    if tied:
        files.write(model.state_dict().items(), 5)
    files.delete_old()
    assert [path.exists() for path in written] == [False, False, not tied, True]
    with pytest.raises(EngineError, match="missing"):
        files.write(weights_of(model)[1:], 6)
    files.close()
    assert not any(path.exists() for path in written)


@pytest.mark.parametrize("full_precision", [False, True])
def test_weights_have_the_number_format_of_the_models_files(tmp_path: Path, full_precision: bool) -> None:
    model = byte_model()
    model.to(torch.bfloat16).save_pretrained(tmp_path / "model")
    trained = [(name, tensor.float() + 1e-3) for name, tensor in weights_of(model)]
    files = WeightFiles(tmp_path / "model", tmp_path, full_precision=full_precision)
    found = load_file(files.write(trained, 1) / "model.safetensors")
    files.close()
    kind = torch.float32 if full_precision else torch.bfloat16
    assert {tensor.dtype for tensor in found.values()} == {kind}
    assert all(torch.equal(found[name], tensor.to(kind)) for name, tensor in trained)


def test_experts_are_written_under_the_names_of_the_model_files(tmp_path: Path) -> None:
    model = byte_model(kind="mixture")
    model.save_pretrained(tmp_path / "model")
    learner = Learner(model, torch.optim.SGD(model.parameters(), lr=0.0), LearnerSettings())
    files = WeightFiles(tmp_path / "model", tmp_path)
    with pytest.raises(EngineError, match="has no weight"):
        files.write(learner.weights(), 1)
    found = load_file(files.write(learner.with_checkpoint_names(learner.weights()), 2) / "model.safetensors")
    known = load_file(tmp_path / "model" / "model.safetensors")
    assert found.keys() == known.keys()
    assert any(".experts.3." in name for name in found)
    assert all(torch.equal(found[name], known[name]) for name in known)
    files.close()


def test_files_of_a_killed_trainer_are_removed(tmp_path: Path) -> None:
    saved(tmp_path / "model", tied=False)
    call = f"owned_temporary_folder('weights', {str(tmp_path)!r})"
    code = f"from excise.system.process_identity import owned_temporary_folder; print({call})"
    left = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    alive = owned_temporary_folder("weights", str(tmp_path))
    assert os.path.isdir(left)
    WeightFiles(tmp_path / "model", tmp_path).close()
    assert not os.path.isdir(left)
    assert os.path.isdir(alive)


def test_a_folder_without_readable_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="no safetensors"):
        shapes_of(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"x")
    with pytest.raises(EngineError, match="cannot be read"):
        shapes_of(tmp_path)
