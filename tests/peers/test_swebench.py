"""SWE-bench's own commands on an exported task repository, and its grading of real runs of the exported scripts."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from excise.datasets.exports.checkout_script import ARCHIVE, SCRIPT
from excise.datasets.exports.swebench import image_of
from excise.pipeline.peers.sandbox_server import opened
from excise.protocols import Session

from .conftest import Run
from .slim_base import build_images

pytestmark = pytest.mark.peers

GRADE = """
import json, sys
from datasets import load_dataset
from swebench.harness.grading import get_eval_report
from swebench.harness.utils import make_test_spec
data, *logs = sys.argv[1:]
rows = {row["instance_id"]: row for row in load_dataset("parquet", data_files=data, split="train", cache_dir="cache")}
found = {}
for log in logs:
    name, instance_id = log.split("/")[-1].removesuffix(".log").split("-")
    spec = make_test_spec(rows[instance_id])
    prediction = {"instance_id": instance_id, "model_patch": rows[instance_id]["patch"], "model_name_or_path": name}
    found[name + "-" + instance_id] = get_eval_report(spec, prediction, log, True)[instance_id]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def folder(exported: Callable[[str], Path], prepared: Any) -> Path:
    return exported("swebench")


@pytest.fixture(scope="module")
def data(run_peer: Run, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Parquet file that SWE-bench compiles."""
    out = tmp_path_factory.mktemp("data")
    checked = run_peer("data", "swebench", "dataset", "check", folder, cwd=out)
    assert (checked.returncode, "looks well formed" in checked.stdout) == (0, True), checked.stdout
    built = run_peer("data", "swebench", "dataset", "build", folder, "--out", out, cwd=out)
    assert built.returncode == 0, built.stdout + built.stderr
    (found,) = out.rglob("*.parquet")
    return found


def run_script(session: Session, task: Path, solution: bytes) -> bytes:
    """The log of ``eval.sh`` after the checkout was unpacked and a solution applied, as SWE-bench does it."""
    session.put(f"/testbed/{ARCHIVE}", (task / "checkout.tar.gz").read_bytes())
    session.put(f"/testbed/{SCRIPT}", (task / "checkout.sh").read_bytes())
    session.put("/tmp/eval.sh", (task / "eval.sh").read_bytes())
    unpacked = session.exec(["sh", f"/testbed/{SCRIPT}"], timeout_s=60)
    assert unpacked.rc == 0, unpacked.stderr
    if solution:
        assert session.exec(["git", "apply", "--verbose", "-"], timeout_s=60, stdin=solution).rc == 0
    return session.exec(["/bin/bash", "-c", "bash /tmp/eval.sh 2>&1"], timeout_s=300).stdout


def test_real_runs_are_graded(run_peer: Run, folder: Path, data: Path, stored: Any, tmp_path: Path) -> None:
    (image,) = [path for path in (folder / "images").iterdir() if path.is_dir()]
    chosen = stored.taskset.tasks()[:3]
    logs = []
    for task in chosen:
        for name, solution in (("gold", task.patch.encode()), ("noop", b"")):
            with opened(stored.settings, image, None) as session:
                log = run_script(session, folder / "tasks" / task.instance_id, solution)
            logs.append(tmp_path / f"{name}-{task.instance_id}.log")
            logs[-1].write_bytes(log)
    done = run_peer("data", "python", "-c", GRADE, data, *logs, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    for task in chosen:
        gold, noop = found[f"gold-{task.instance_id}"], found[f"noop-{task.instance_id}"]
        assert (gold["resolved"], noop["resolved"], noop["patch_successfully_applied"]) == (True, False, True)
        assert len(noop["tests_status"]["FAIL_TO_PASS"]["failure"]) == len(task.fail_to_pass)
        assert noop["tests_status"]["PASS_TO_PASS"]["failure"] == []


@pytest.mark.docker
@pytest.mark.usefixtures("docker_host")
def test_evaluated_in_containers(run_peer: Run, folder: Path, data: Path, stored: Any, tmp_path: Path) -> None:
    """SWE-bench's evaluation in real containers; it builds images with Buildx, which this engine may lack."""
    task = stored.taskset.tasks()[0]
    (tmp_path / "base").mkdir()
    build_images(folder, tmp_path / "base", stored.taskset.environment(task.env_id)[0].recipe.python)
    instance = folder / "tasks" / task.instance_id
    command = ["docker", "build", "--quiet", "--tag", image_of(task.instance_id), str(instance)]
    subprocess.run(command, check=True, capture_output=True, env=os.environ)
    for name, patch, resolved in (("gold", task.patch, 1), ("broken", task.patch.replace("+def ", "+def x"), 0)):
        prediction = {"instance_id": task.instance_id, "model_name_or_path": name, "model_patch": patch}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(prediction) + "\n")
        done = run_peer(
            "data",
            "swebench",
            "eval",
            data,
            "-p",
            tmp_path / f"{name}.jsonl",
            "--run-id",
            name,
            "-j",
            "1",
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        report = json.loads(next(tmp_path.glob(f"*{name}*.json")).read_text())
        assert (report["resolved_instances"], report["error_instances"]) == (resolved, 0), report
