"""``excise verify``: it needs only the files of a set, and names each difference."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from excise.config import Settings, VerdictSettings, load
from excise.datasets.taskset import TaskSet
from excise.pipeline.services.map_tasks import EnvironmentProblem, rebuild
from excise.pipeline.services.verify import verify_task
from excise.protocols import GateReport
from excise.types import Environment, GateOutcome, Status
from excise.verifiers.candidate import Candidate
from excise.verifiers.gates.pass_to_pass_passes import PassToPassPasses
from excise.verifiers.stored_tasks import candidate_of
from excise.verifiers.workbench import Workbench


@pytest.fixture
def settings(shapes, tmp_path: Path) -> Settings:
    """Settings with the set and an empty cache."""
    return load(environ={}, out=shapes.out, cache=tmp_path / "work")


def test_every_task_is_proven_again_from_nothing(shapes, excise, tmp_path: Path) -> None:
    ids = shapes.taskset.ids()[:2]
    done = excise("verify", *ids, "nowhere__0", "--out", shapes.out, "--work", tmp_path / "work", "--json")
    assert (done.returncode, done.stdout) == (2, ""), "a task that is not there is a mistake of the caller"
    assert "No task 'nowhere__0'" in done.stderr
    done = excise("verify", *ids, "--out", shapes.out, "--work", tmp_path / "work", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(done.stdout)
    assert [row["instance_id"] for row in rows] == list(ids)
    assert {row["ok"] for row in rows} == {True}
    for row in rows:
        certified = {verdict.gate for verdict in shapes.taskset.certificate(row["instance_id"]).verdicts}
        assert {verdict["gate"] for verdict in row["verdicts"]} == certified


def test_the_settings_of_the_certificate_count_unless_others_are_given(shapes) -> None:
    known = shapes.taskset.certificate(shapes.taskset.ids()[0]).settings
    assert VerdictSettings().merged_with(known) == shapes.settings.verdict != VerdictSettings()
    assert VerdictSettings(gold_runs=7).merged_with(known | {"from_the_future": 1}).gold_runs == 7


def test_only_the_tests_of_the_task_judge_it(shapes, bench: Workbench) -> None:
    task = shapes.taskset.task(shapes.taskset.ids()[0])
    statuses = {**bench.baseline.statuses, "tests/test_lucky.py::test_passes_in_order_only": Status.PASSED}
    lucky = replace(bench.prepared, baseline=replace(bench.baseline, statuses=statuses), coverage=None)
    again = candidate_of(Workbench(lucky, bench.settings, bench.sandbox), task)
    assert {v.outcome for v in PassToPassPasses().check(again).verdicts} == {GateOutcome.PASSED}


@pytest.mark.parametrize("failures", [1, 2])
def test_a_task_whose_tests_failed_once_is_proven_again(
    shapes, bench: Workbench, monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    task, seen = shapes.taskset.task(shapes.taskset.ids()[0]), []
    check = PassToPassPasses.check

    def late(self: PassToPassPasses, candidate: Candidate) -> GateReport:
        report = check(self, candidate)
        seen.append(candidate)
        if len(seen) > failures:
            return report
        return GateReport(verdicts=[replace(v, outcome=GateOutcome.FAILED, detail="late") for v in report.verdicts])

    monkeypatch.setattr(PassToPassPasses, "check", late)
    found = verify_task(shapes.settings, bench, task)
    assert len(seen) == 2
    assert seen[0] is not seen[1]
    assert (found.ok, found.gate) == ((True, "") if failures == 1 else (False, "g6_p2p_pass"))
    assert found.detail == ("g6_p2p_pass failed once: late" if found.ok else "late")


def with_lock(monkeypatch: pytest.MonkeyPatch, change: dict[str, str]) -> None:
    """Sets whose environments were locked to other versions."""
    kept = TaskSet.environment

    def environment(self: TaskSet, env_id: str) -> tuple[Environment, object]:
        made, baseline = kept(self, env_id)
        lock = tuple(change.get(line.partition("==")[0], line) for line in made.lock)
        return replace(made, lock=lock, hashes={}), baseline

    monkeypatch.setattr(TaskSet, "environment", environment)


def test_a_lock_that_cannot_be_installed_is_not_replaced(
    settings: Settings, shapes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_lock(monkeypatch, {"iniconfig": "iniconfig==0.0.0.1"})
    answer = rebuild(settings, shapes.taskset.task(shapes.taskset.ids()[0]))
    assert isinstance(answer, EnvironmentProblem)
    assert (answer.step, answer.reason) == ("environment", "resolve_conflict")
    assert "iniconfig" in answer.detail


def test_an_environment_that_differs_from_the_lock_proves_nothing(
    settings: Settings, shapes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_lock(monkeypatch, {"iniconfig": "iniconfig"})
    answer = rebuild(settings, shapes.taskset.task(shapes.taskset.ids()[0]))
    assert isinstance(answer, EnvironmentProblem)
    assert (answer.step, answer.reason) == ("environment", "unreproducible")
