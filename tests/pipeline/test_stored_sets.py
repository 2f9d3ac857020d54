"""A task set of an earlier version is read, shown, proven again and graded with the same results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from excise.pipeline.services.task_grader import Grader
from excise.verifiers.certificate import seal_problem
from excise.verifiers.gates.all_gates import CLAIMS


def test_every_task_is_sealed_and_has_its_kit(stored: Any) -> None:
    taskset = stored.taskset
    assert len(taskset.ids()) == 8
    for instance_id in taskset.ids():
        assert seal_problem(taskset.certificate(instance_id), taskset.task(instance_id)) == ""
        assert taskset.is_intact(instance_id)
        assert taskset.kit(instance_id) is not None


def test_every_stored_verdict_belongs_to_a_row_of_todays_table(stored: Any) -> None:
    for instance_id in stored.taskset.ids():
        assert {verdict.gate for verdict in stored.taskset.certificate(instance_id).verdicts} == set(CLAIMS)


def test_a_stored_set_can_be_shown_and_queried(stored: Any, excise: Any) -> None:
    shown = excise("show", "--out", stored.out, stored.taskset.ids()[0])
    assert shown.returncode == 0, shown.stderr
    for claim in CLAIMS.values():
        assert claim.split()[0] in shown.stdout
    asked = excise("query", "--out", stored.out, "--json", "SELECT sum(num_passed) AS n FROM gates")
    assert asked.returncode == 0, asked.stderr
    assert json.loads(asked.stdout)[0]["n"] >= 8 * len(CLAIMS)


@pytest.mark.slow
def test_a_stored_set_is_graded_as_before(stored: Any) -> None:
    grader = Grader(stored.taskset, stored.settings)
    for task in (t for t in stored.taskset.tasks() if t.deleter == "remove"):
        gold, empty = grader.grade(task.instance_id, task.patch), grader.grade(task.instance_id, "")
        assert (gold.reward, gold.reward_tests, gold.decided) == (1, 1, True), gold
        assert (empty.reward, empty.decided) == (0, True), empty


@pytest.mark.slow
def test_a_stored_set_is_proven_again_from_its_files(stored: Any, excise: Any, tmp_path: Path) -> None:
    instance_id = stored.taskset.ids()[0]
    done = excise("verify", instance_id, "--out", stored.out, "--work", tmp_path / "work", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = json.loads(done.stdout)
    assert (row["instance_id"], row["ok"]) == (instance_id, True)
