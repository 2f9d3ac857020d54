"""The whole pipeline on a repository that stage 0 cannot install, with a scripted model, and its tasks proved again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from excise.config import load
from excise.datasets.taskset import TaskSet
from excise.pipeline.stages.model_stage import BEYOND_A_MODEL, may_mend, without_varying_parts
from excise.types import Rejection, WorkerOutcome

from ..agents.scripted_server import ScriptedServer, calls
from ..envs.lookup_script import FINISH, GENERATE, INSTALL, MOCK, PROPOSE, REPO, bash

pytestmark = pytest.mark.slow  # a whole run

CONFIG = """
limit = 1
workers = 1
[verdict]
gold_runs = 1
starved_runs = 0
baseline_runs = 2
test_timeout_s = 5.0
suite_timeout_s = 120.0
memory_mb = 512
disk_mb = 256
[model]
model = "scripted"
base_url = "{url}"
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, excise) -> tuple[Path, dict, int]:
    """One run: its folder, its result, and how often the model was asked."""
    folder = tmp_path_factory.mktemp("model")
    script = [PROPOSE, bash(INSTALL, GENERATE), calls(("write_mock", MOCK)), FINISH]
    with ScriptedServer(script) as server:
        (folder / "excise.toml").write_text(CONFIG.format(url=server.url))
        done = excise("generate", REPO, "-c", folder / "excise.toml", "-o", folder / "out",
                      "--cache", folder / "cache", "--json")  # fmt: skip
        assert "Traceback" not in done.stderr
        assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout), len(server.requests)


def test_a_repository_that_stage_0_refuses_makes_tasks(made) -> None:
    folder, result, asked = made
    assert (result["tasks"], asked) == (1, 4)
    taskset = TaskSet.open(folder / "out")
    for instance_id in taskset.ids():
        task = taskset.task(instance_id)
        environment, _ = taskset.environment(task.env_id)
        assert environment.stage == "model"
        assert environment.recipe.commands == (INSTALL, GENERATE)
        tests = {*task.fail_to_pass, *task.pass_to_pass}
        assert tests
        assert set(environment.mocked) == {"tests/test_remote.py::test_fetch", "tests/test_remote.py::test_fetch_twice"}
        assert not tests & set(environment.mocked)


def test_its_tasks_are_proved_again_from_the_recipe_alone(made, excise, tmp_path: Path) -> None:
    folder, _, _ = made
    done = excise("verify", "-o", folder / "out", "--all", "--work", tmp_path / "work", "--json")
    assert done.returncode == 0, done.stdout + done.stderr


def test_only_failures_that_a_model_could_fix_are_given_to_it() -> None:
    row = Rejection(repo="x", stage="environment", subject="x", reason="import_error", detail="")
    on, off = load(overrides=["model.model=m"], environ={}), load(environ={})
    assert may_mend(on, "environment", row)
    assert may_mend(on, "baseline", row)
    assert not may_mend(off, "environment", row)
    assert not may_mend(on, "model", row)
    assert not may_mend(on, "coverage", row)
    lost = Rejection(**{name: getattr(row, name) for name in ("repo", "stage", "subject", "reason", "detail")},
                     worker_outcome=WorkerOutcome.INFRA_ERROR)  # fmt: skip
    assert not may_mend(on, "environment", lost)
    for reason in BEYOND_A_MODEL:
        other = Rejection(repo="x", stage="environment", subject="x", reason=reason, detail="")
        assert not may_mend(on, "environment", other)


def test_varying_parts_are_removed_from_a_failure_message() -> None:
    first, second = ("took 12.5s in /tmp/abc1 at 0x7f00aa11bb", "took 3s in /tmp/xyz at 0x7f00aa11cc")
    assert without_varying_parts(first) == without_varying_parts(second) == "took some time in /tmp/... at 0x"
