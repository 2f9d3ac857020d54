"""A certificate is bound to its task: a change of either is detected before anything is run."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from excise.config import Settings
from excise.datasets.taskset import TaskSet
from excise.pipeline.services.map_tasks import TaskOperation, map_tasks
from excise.pipeline.services.verify import unverified, verify_task
from excise.types import Certificate, Status, from_json, to_json
from excise.verifiers.certificate import seal_problem, sealed


@pytest.fixture
def pair(stored):
    instance_id = stored.taskset.ids()[0]
    return stored.taskset.task(instance_id), stored.taskset.certificate(instance_id)


def test_a_published_certificate_is_sealed(pair) -> None:
    task, certificate = pair
    assert len(certificate.digest) == len(certificate.task_hash) == 64
    assert seal_problem(certificate, task) == ""
    assert seal_problem(from_json(Certificate, to_json(certificate)), task) == ""
    assert sealed(certificate, task) == certificate, "sealing depends on nothing but the content"


@pytest.mark.parametrize(
    "change",
    [
        lambda c: replace(c, flake_rate=0.5),
        lambda c: replace(c, tools=c.tools | {"pytest": "0"}),
        lambda c: replace(c, verdicts=c.verdicts[1:]),
        lambda c: replace(c, verdicts=(replace(c.verdicts[0], statuses={"t": Status.PASSED}), *c.verdicts[1:])),
        lambda c: replace(c, settings=c.settings | {"gold_runs": 1}),
        lambda c: replace(c, task_hash="0" * 64),
        lambda c: replace(c, digest="0" * 64),
        lambda c: replace(c, digest=""),
    ],
)
def test_every_change_breaks_the_seal(pair, change) -> None:
    task, certificate = pair
    assert seal_problem(change(certificate), task)


def test_the_certificate_of_another_task_is_invalid(stored) -> None:
    first, second = stored.taskset.ids()[:2]
    said = seal_problem(stored.taskset.certificate(first), stored.taskset.task(second))
    assert "another task" in said
    task = stored.taskset.task(first)
    assert seal_problem(stored.taskset.certificate(first), replace(task, problem_statement="Do nothing."))


def test_verify_runs_nothing_for_a_broken_certificate(stored, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = TaskSet.certificate
    monkeypatch.setattr(TaskSet, "certificate", lambda self, i: replace(kept(self, i), flake_rate=0.25))
    settings: Settings = stored.settings.model_copy(update={"cache": tmp_path / "nothing"})
    ids = stored.taskset.ids()[:2]
    answers = map_tasks(settings, stored.taskset, ids, TaskOperation(work=verify_task, failed=unverified))
    assert [(a.ok, a.gate, a.reason) for a in answers] == [(False, "files", "certificate_differs")] * 2
    assert not (tmp_path / "nothing").exists()


def test_the_evidence_names_every_gate_and_has_the_statuses(pair) -> None:
    _, certificate = pair
    by_gate = {verdict.gate: verdict for verdict in certificate.verdicts}
    assert {"g1_baseline", "g5_f2p_fail", "g7_gold", "g9_leaks", "g11_recovery"} <= set(by_gate)
    assert by_gate["g5_f2p_fail"].statuses
    for gate in ("g5_f2p_fail", "g6_p2p_pass", "g7_gold", "g8_empty"):
        assert len(by_gate[gate].evidence["statuses_sha256"]) == 64
    assert json.loads(to_json(certificate))["tools"]["git"]
