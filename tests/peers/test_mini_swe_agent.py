"""mini-swe-agent's batch run on an exported folder, with its own deterministic model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import Run

pytestmark = pytest.mark.peers


def scripted(*commands: str) -> dict[str, Any]:
    """The configuration of a model that runs these commands."""
    outputs = [
        {"role": "assistant", "content": "", "extra": {"actions": [{"command": command}], "cost": 0.0, "timestamp": 0}}
        for command in commands
    ]
    return {"model": {"model_class": "minisweagent.models.test_models.DeterministicModel", "outputs": outputs}}


def test_a_scripted_agent_solves_a_task(
    run_peer: Run, exported: Callable[[str], Path], prepared: Any, stored: Any, excise: Any, tmp_path: Path
) -> None:
    folder = exported("mini-swe-agent")
    task = stored.taskset.tasks()[0]
    model = scripted(
        f"git apply <<'PATCH'\n{task.patch}PATCH",
        "ls / /testbed tests; cat /proc/net/dev",
        "git add -A && git diff --cached > /tmp/patch.txt && cat /tmp/patch.txt | wc -l",
        "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat /tmp/patch.txt",
    )
    (tmp_path / "model.yaml").write_text(yaml.safe_dump(model))
    arguments = ["--subset", folder / "tasks", "--split", "train", "-o", tmp_path / "runs", "-c", "swebench.yaml"]
    arguments += ["-c", folder / "bubblewrap.yaml", "-c", tmp_path / "model.yaml", "--filter", task.instance_id]
    done = run_peer("data", "mini-extra", "swebench", *arguments, cwd=folder, MSWEA_COST_TRACKING="ignore_errors")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    predictions = json.loads((tmp_path / "runs/preds.json").read_text())
    assert list(predictions) == [task.instance_id]
    trajectory = (tmp_path / "runs" / task.instance_id / f"{task.instance_id}.traj.json").read_text()
    assert "test_base.py" in trajectory, "tests that are not hidden are there"
    assert "test_walk.py" not in json.loads(trajectory)["messages"][5]["content"], "hidden ones are not"
    answer = tmp_path / "answer.diff"
    answer.write_text(predictions[task.instance_id]["model_patch"])
    graded = excise("grade", task.instance_id, "--out", stored.out, "--cache", stored.cache, "--diff", answer)
    assert (graded.returncode, "reward 1" in graded.stdout) == (0, True), graded.stdout + graded.stderr
