"""Settings of a training run: defaults, paths and error messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from excise.errors import ConfigError
from excise.trainer.setup.evaluation_config import load_evaluation
from excise.trainer.setup.training_config import Method, load_training

from .config_files import MINIMAL, write_config


def test_one_seed_applies_to_every_table_that_sets_none(input_folder: Path) -> None:
    def seeds(*changes: str) -> tuple[int, int, int]:
        settings = load_training(input_folder / "train.toml", changes)
        return settings.seed, settings.curriculum.seed, settings.loop.schedule.seed

    assert seeds() == (0, 0, 0)
    assert seeds("seed=3") == (3, 3, 3)
    assert seeds("seed=3", "curriculum.seed=1", "loop.schedule.batch=2") == (3, 1, 3)
    assert seeds("seed=3", "loop.schedule.seed=0") == (3, 3, 0)


def test_paths_are_relative_to_the_config_file(input_folder: Path) -> None:
    settings = load_training(input_folder / "train.toml")
    assert (settings.folder, settings.policy.model) == (input_folder / "runs/first", input_folder / "model")
    assert settings.method is Method.RL
    moved = load_training(input_folder / "train.toml", ["folder=elsewhere", "loop.schedule.batch=3"], method="rl")
    assert moved.folder == Path.cwd() / "elsewhere"
    assert moved.loop.schedule.batch == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[policy]\nmodel = 'm'\n", "folder: Field required"),
        (MINIMAL + "[learner]\nrow_token = 5\n", "learner.row_token: there is no such setting"),
        (MINIMAL + "[learner.loss]\nkapa = 1\n", "learner.loss.kapa: there is no such setting"),
        (MINIMAL + "[loop]\nsteps = 'x'\n", "loop.steps: Input should be a valid integer"),
        (MINIMAL + "[loop]\nsteps = 0\n", "loop.steps has to be above 0"),
        (MINIMAL + "[loop.schedule]\ngroup_size = 1\n", "group_size has to be 2 or more"),
        (MINIMAL + "[loop.schedule]\nstaleness = 9\n", "staleness has to be from 0 to drop_after"),
        (MINIMAL + "[teacher]\nprivileged = 'gold'\n", "needs \\[learner.lessons\\]"),
        ("method = 'sdft'\n" + MINIMAL, "sdft needs \\[sdft\\]"),
        (MINIMAL + "[loop]\nload_tries = 0\n", "loop.load_tries has to be above 0"),
        (MINIMAL + "[loop]\ntolerance = nan\n", "loop.tolerance has to be above 0"),
        (MINIMAL + "[loop]\nstep_deadline_s = nan\n", "loop.step_deadline_s has to be above 0"),
        (MINIMAL + "[loop.schedule]\nwindow = -1\n", "window has to be from 0 to 1"),
        (MINIMAL + "[loop.schedule]\nwindow = nan\n", "window has to be from 0 to 1"),
        (MINIMAL + "[loop.schedule]\nretries = -5\n", "retries has to be 0 or more"),
        (MINIMAL + "[loop.schedule]\nretry_delay_s = -1\n", "retry_delay_s has to be 0 or more"),
        (MINIMAL + "[engine]\nkind = 'vllm-server'\n[loop]\nload_deadline_s = 60\n", "engine.start_s \\(900 s\\)"),
        (MINIMAL + "[excise]\nnosuch = 1\n", "other.toml: excise.nosuch: there is no such setting"),
        ("excise = 3\n" + MINIMAL, "excise: Input should be"),
        ("engine = 3\n" + MINIMAL, "engine: Input should be"),
        (MINIMAL + "wrong", "not valid TOML"),
    ],
)
def test_errors_name_the_setting(input_folder: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_training(write_config(input_folder, text))
    with pytest.raises(ConfigError, match="cannot be read"):
        load_training(input_folder / "missing.toml")
    with pytest.raises(ConfigError, match="--set x"):
        load_training(input_folder / "train.toml", ["x"])


def test_errors_of_an_evaluation_name_the_setting(input_folder: Path) -> None:
    for text in ("excise = 3\n", "engine = 3\n", "[excise]\nnosuch = 1\n", "[engine]\nnosuch = 1\n"):
        with pytest.raises(ConfigError, match=r"other\.toml: (excise|engine)"):
            load_evaluation(write_config(input_folder, text))
    for override in ("eval.samples.x=1", "excise.out.x=1"):
        with pytest.raises(ConfigError, match=override.partition(".x")[0]):
            load_evaluation(write_config(input_folder, "[eval]\nsamples = 3\n[excise]\nout = 'set'\n"), [override])


def test_the_load_deadline_leaves_time_for_a_server_to_restart(input_folder: Path) -> None:
    for changes in ([], ["start_s=1800"], ["start_s=1801", "url=http://host:1"]):
        load_training(input_folder / "train.toml", ["engine.kind=vllm-server", *(f"engine.{item}" for item in changes)])
    slow = ["engine.kind=vllm-server", "engine.start_s=1801"]
    with pytest.raises(ConfigError, match=r"\(1800 s\) has to be engine.start_s"):
        load_training(input_folder / "train.toml", slow)
    load_training(input_folder / "train.toml", [*slow, "loop.load_tries=4"])
