"""verifiers' own validation of an exported taskset: the gold patch is right, and doing nothing is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import Run

pytestmark = pytest.mark.peers


@pytest.mark.parametrize("grader", ["sandbox", "excise"])
def test_gold_and_noop(
    run_peer: Run, exported: Callable[[str], Path], prepared: Any, stored: Any, tmp_path: Path, grader: str
) -> None:
    folder = exported("verifiers")
    (module,) = [path.name for path in folder.iterdir() if path.is_dir() and path.name.startswith("excise_")]
    count = 3 if grader == "sandbox" else 1
    arguments = ["--taskset.containers", "false", "--runtime.type", "subprocess", "--no-rich"]
    arguments += ["--select.limit", str(count), "-o", str(tmp_path)]
    arguments += ["--taskset.grader", grader, "--taskset.task-set", str(stored.out)]
    done = run_peer("verifiers", "vf-validate", module, *arguments, cwd=folder)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    summary = json.loads(next(tmp_path.rglob("summary.json")).read_text())
    assert summary["outcomes"]["valid"] == count, done.stdout[-3000:]
    for check in ("gold", "noop"):
        assert summary["checks"][check]["valid"] == count
    rows = [json.loads(line) for line in next(tmp_path.rglob("results.jsonl")).read_text().splitlines()]
    assert {row["noop"]["rewards"]["solved"] for row in rows} == {0.0}
