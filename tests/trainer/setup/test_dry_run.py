"""The plan that a dry run prints, and the tasks that a run can train on."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest
from typer.testing import CliRunner

from excise.errors import ConfigError
from excise.pipeline.cli.main import app
from excise.trainer.setup.dry_run import trainable_tasks
from excise.trainer.setup.training_config import load_training
from excise.types import Task

from .config_files import MINIMAL, write_config


def task_of(instance_id: str, deleter: str, symbol: str, repo: str) -> Task:
    """A task with these fields; all others are empty."""
    names = (field.name for field in fields(Task))
    return Task(**dict.fromkeys(names, "") | {
        "instance_id": instance_id, "deleter": deleter, "removed": (symbol,), "repo": repo, "language": "python",
    })  # fmt: skip


def test_a_dry_run_prints_the_plan_and_writes_nothing(input_folder: Path) -> None:
    config = write_config(
        input_folder, MINIMAL + "[sdft]\ndemonstrations = 'shown.jsonl'\n[learner.lessons]\nweight = 0.5\n"
    )
    done = CliRunner().invoke(app, ["train", str(config), "--dry-run", "--method", "sdft", "--json"])
    assert done.exit_code == 0
    plan = json.loads(done.stdout)
    assert plan["demonstrations"] == 2
    assert plan["method"] == "sdft"
    assert "qwen3" in plan["model"]
    assert plan["lessons"].startswith("weight 0.5 from a teacher (ema")
    assert not (input_folder / "runs").exists()
    lines = CliRunner().invoke(app, ["train", str(config), "--dry-run", "--method", "sdft"]).stdout.splitlines()
    assert len(lines) == len(plan)


@pytest.mark.parametrize("dry", [["--dry-run"], []])
def test_a_run_without_model_or_tasks_is_refused(input_folder: Path, dry: list[str]) -> None:
    done = CliRunner().invoke(app, ["train", str(input_folder / "train.toml"), *dry])
    assert (done.exit_code, "needs a task set" in done.stderr) == (2, True)
    config = write_config(input_folder, MINIMAL.replace('"model"', '"nothing"'))
    done = CliRunner().invoke(app, ["train", str(config), *dry])
    assert (done.exit_code, "no model here" in done.stderr) == (2, True)


def test_the_plan_counts_the_trainable_tasks(input_folder: Path) -> None:
    made = {f"t{n}": task_of(f"t{n}", "stub" if n < 4 else "remove", f"m{n}.py::f", f"p{n % 2}") for n in range(6)}
    config = write_config(input_folder, MINIMAL + "[excise]\nout = 'set'\n")

    def found(*changes: str, tests_only: tuple[str, ...] = ()) -> list[str]:
        return sorted(trainable_tasks(load_training(config, changes), made, tests_only))

    function, one_held = "eval.mode=function", 'eval.held_out.projects=["p0"]'
    assert found() == sorted(made)
    assert found(function) == ["t0", "t1", "t2", "t3"]
    assert found(function, one_held) == ["t1", "t3"]
    without = ("curriculum.tests_only=false", function)
    assert found(*without, one_held, tests_only=("t1", "t2")) == ["t3"]
    assert found("eval.mode=line") == [], "no task fits the mode, but the generator can be asked for some"
    assert found(*without, tests_only=("t0", "t1", "t2", "t3")) == []
    with pytest.raises(ConfigError, match="held out"):
        found(function, one_held, 'eval.held_out.projects=["p0", "p1"]')
    with pytest.raises(ConfigError, match="tests_only = true"):
        found(*without, tests_only=tuple(made))
    made.clear()
    with pytest.raises(ConfigError, match="has no task"):
        found()
