"""The commands that compare, join and tidy sets, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from excise.datasets.storage.store import Store
from excise.datasets.taskset import TaskSet


@pytest.fixture
def two_nights(stored, excise, tmp_path: Path) -> Path:
    """A set of two snapshots: the second one lacks a project's tasks."""
    out = tmp_path / "set"
    joined = excise("merge", stored.out, "--out", out, "--json")
    assert joined.returncode == 0, joined.stderr
    assert len(json.loads(joined.stdout)["report"]["came"]) == 8
    with Store(out).writer() as writer:
        for name in writer.names():
            writer.drop_repo(name)
        writer.publish()
    return out


def test_earlier_states_diffs_and_removal(two_nights: Path, excise) -> None:
    count = "SELECT count(*) AS n FROM tasks"
    answers = [excise("query", count, "--out", two_nights, "--as-of", number, "--json").stdout for number in "12"]
    assert [json.loads(answer) for answer in answers] == [[{"n": 8}], [{"n": 0}]]
    instance_id = TaskSet.open(two_nights, "1").ids()[0]
    assert instance_id in excise("show", instance_id, "--out", two_nights, "--as-of", "1").stdout
    unknown = excise("show", instance_id, "--out", two_nights, "--as-of", "7")
    assert (unknown.returncode, "no snapshot 7. Kept are: 1 (" in unknown.stderr) == (2, True)
    found = excise("diff", "1", "--out", two_nights)
    assert "tasks: 0 added, 8 removed, 0 changed, 0 unchanged" in found.stdout
    assert f"  - {instance_id}" in found.stdout
    planned = excise(
        "gc", "--out", two_nights, "--keep", "1", "--grace-hours", "100000", "--dry-run"
    )  # files may be old
    assert "1 snapshots and 0 archives and kits would be removed" in planned.stdout
    done = json.loads(excise("gc", "--out", two_nights, "--keep", "1", "--grace-hours", "0", "--json").stdout)
    assert (done["kept"], done["removed"], done["num_blobs"]) == ([2], [1], 9)


def test_compaction_of_a_set_that_has_nothing_to_join(stored, excise, tmp_path: Path) -> None:
    excise("merge", stored.out, "--out", tmp_path / "set")
    done = json.loads(excise("compact", "--out", tmp_path / "set", "--json").stdout)
    assert done["files_before"] == done["files_after"]
    missing = excise("compact", "--out", tmp_path / "nothing")
    assert (missing.returncode, "holds no task set yet" in missing.stderr) == (1, True)
