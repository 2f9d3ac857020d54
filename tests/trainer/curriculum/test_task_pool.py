"""The task pool: which tasks are drawn, retired, quarantined and requested."""

from __future__ import annotations

import json
from collections import Counter
from statistics import mean

import pytest

from excise.datasets.difficulty.measures import measures_of
from excise.datasets.difficulty.pass_rate_model import PassRateModel, Predictor
from excise.datasets.difficulty.rungs import Level, Rung
from excise.trainer.curriculum.task_pool import CurriculumSettings, TaskPool, TaskStatus
from excise.trainer.rollout_types import Ending, Group
from excise.types import Task, Visibility

from . import simulated_learner

STUB = Rung(Level.STUB, Visibility.DOCSTRING)
CLASS = Rung(Level.CLASS, Visibility.DOCSTRING)


def tasks(*rungs: Rung) -> dict[str, Task]:
    return {(made := simulated_learner.task(number, rung)).instance_id: made for number, rung in enumerate(rungs)}


def pool(*rungs: Rung, **settings: object) -> TaskPool:
    known = tasks(*rungs)
    return TaskPool(lambda: known, CurriculumSettings.model_validate(settings))


def test_a_task_is_trained_on_once_by_default() -> None:
    pooled = pool(STUB, STUB)
    given = {pooled.next_task(), pooled.next_task()}
    assert given == {"t00000", "t00001"}
    assert pooled.next_task() is None, "both are under way"
    pooled.record(simulated_learner.group("t00000", [True, False]))
    assert pooled.status("t00000") is TaskStatus.USED
    assert pooled.next_task() is None
    assert pooled.why_empty() == "No task can be given: 1 open, 1 used, 1 under way."


def test_max_visits_allows_more_groups_per_task() -> None:
    pooled = pool(STUB, max_visits=2)
    for expected in (TaskStatus.OPEN, TaskStatus.USED):
        assert pooled.next_task() == "t00000"
        pooled.record(simulated_learner.group("t00000", [True, False]))
        assert pooled.status("t00000") is expected


def test_a_group_without_signal_does_not_count_as_a_visit() -> None:
    pooled = pool(STUB)
    assert pooled.next_task() == "t00000"
    pooled.record(simulated_learner.group("t00000", [False] * 4))
    assert pooled.summary()["num_replaced"] == 1
    assert pooled.next_task() == "t00000"


def test_a_task_that_is_always_passed_is_retired() -> None:
    pooled = pool(STUB)
    groups = 0
    while pooled.next_task():
        pooled.record(simulated_learner.group("t00000", [True] * 8))
        groups += 1
    assert pooled.status("t00000") is TaskStatus.RETIRED
    assert groups == 4, "24 of 24 is not sure enough, 32 of 32 is"


def test_tasks_that_are_never_passed_are_quarantined() -> None:
    pooled = pool(STUB, CLASS, quarantine_after=16)
    while task := pooled.next_task():
        pooled.record(simulated_learner.group(task, [False] * 8))
    assert pooled.quarantined() == ("t00000", "t00001")
    assert "2 quarantined" in pooled.why_empty()


def test_infrastructure_failures_mark_a_task_as_broken_and_leave_its_pass_rate() -> None:
    pooled = pool(STUB)
    groups = 0
    while task := pooled.next_task():
        pooled.record(simulated_learner.group(task, [False] * 8, ending=Ending.INFRA))
        groups += 1
    assert groups == 3
    assert pooled.status("t00000") is TaskStatus.BROKEN
    assert pooled.posterior("t00000").mean == pooled.prior(measures_of(simulated_learner.task(0, STUB)))
    assert pooled.quarantined() == ("t00000",)


def test_an_empty_pool_gives_the_reason() -> None:
    pooled = pool()
    assert pooled.next_task() is None
    assert "no task at all" in pooled.why_empty()


def test_tasks_with_middling_pass_rates_are_drawn_most_often() -> None:
    known = tasks(*[STUB] * 3)
    pooled = TaskPool(lambda: known, CurriculumSettings(max_visits=10_000, half_life=1e9, quarantine_after=10_000))
    for task, share in (("t00000", 0), ("t00001", 4), ("t00002", 7)):
        for _ in range(3):
            pooled.record(simulated_learner.group(task, [number < share for number in range(8)]))
    saved = pooled.state()
    counts: Counter[str | None] = Counter()
    for seed in range(600):
        pooled.restore(saved)
        pooled._rng.seed(seed)
        counts[pooled.next_task()] += 1
    means = {task: pooled.posterior(task).mean for task in known}
    weights = {task: m * (1 - m) + 0.02 for task, m in means.items()}
    for task, weight in weights.items():
        assert counts[task] / 600 == pytest.approx(weight / sum(weights.values()), abs=0.06)
    assert counts["t00001"] > counts["t00002"] > counts["t00000"]


def test_new_tasks_start_with_the_pass_rate_of_their_rung() -> None:
    known = tasks(STUB, STUB, CLASS, CLASS)
    pooled = TaskPool(lambda: known)
    for _ in range(5):
        pooled.record(simulated_learner.group("t00000", [True] * 7 + [False]))
        pooled.record(simulated_learner.group("t00002", [True] + [False] * 7))
    new = {"t00004": simulated_learner.task(4, STUB), "t00005": simulated_learner.task(5, CLASS)}
    known.update(new)
    assert pooled.next_task() is not None
    assert pooled.posterior("t00004").mean == pytest.approx(0.85, abs=0.05)
    assert pooled.posterior("t00005").mean == pytest.approx(0.15, abs=0.05)


def test_removed_tasks_are_not_drawn() -> None:
    known = tasks(STUB, STUB)
    pooled = TaskPool(lambda: known)
    del known["t00001"]
    assert pooled.next_task() == "t00000"
    assert pooled.next_task() is None
    pooled.restore(pooled.state())
    assert pooled.next_task() is None


def test_a_group_of_a_removed_task_is_ignored() -> None:
    known = tasks(STUB, STUB)
    pooled = TaskPool(lambda: known)
    saved = pooled.state()
    gone = known.pop("t00001")
    resumed = TaskPool(lambda: known)
    resumed.restore(saved)
    resumed.record(simulated_learner.group(gone.instance_id, [True, False]))
    assert resumed.summary()["pass_rate"] == 0
    assert resumed.next_task() == "t00000"


def test_a_task_whose_group_never_finishes_is_drawn_again() -> None:
    pooled = pool(*[STUB] * 3, forget_after=2)
    first = pooled.next_task()
    assert [pooled.next_task() for _ in range(3)][-1] == first


def test_a_replay_draws_the_journaled_tasks_from_a_changed_pool() -> None:
    known = tasks(*[STUB] * 20)
    pooled = TaskPool(lambda: known)
    drawn = [pooled.next_task() for _ in range(8)]
    later = known | {(made := simulated_learner.task(number, CLASS)).instance_id: made for number in range(20, 60)}
    resumed = TaskPool(lambda: later)
    assert [resumed.next_task(replayed=task) for task in drawn] == drawn
    assert resumed.state()["begun"] == pooled.state()["begun"]
    assert resumed.state()["random"] == pooled.state()["random"]
    assert {resumed.next_task() for _ in range(52)} == later.keys() - set(drawn), (
        "tasks in progress are not drawn again"
    )


def test_a_task_whose_groups_are_lost_is_broken() -> None:
    pooled = pool(STUB)
    for _ in range(3):
        task = pooled.next_task()
        assert task
        pooled.record(Group(group_id="g", instance_id=task, rollouts=()))
    assert pooled.status("t00000") is TaskStatus.BROKEN


def test_a_state_of_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match="format 99"):
        pool(STUB).restore({"format": 99})
    pool(STUB).restore(pool(STUB).state() | {"format": 2})


def test_an_empty_pool_sends_requests_before_its_warm_up() -> None:
    at = simulated_learner.World(barren=frozenset(Visibility))
    at.stock(STUB, 1)
    pooled = TaskPool(lambda: at.tasks, CurriculumSettings(), at)
    assert pooled.next_task()
    assert pooled.next_task() is None
    assert not at.requests, "one is under way"
    pooled.record(simulated_learner.group("t00000", [True] * 4 + [False] * 4))
    assert pooled.next_task() is None
    assert len(at.requests) == 1
    assert pooled.has_pending_requests
    assert pooled.next_task() is None
    assert len(at.requests) == 1
    while pooled.next_task() is None and pooled.has_pending_requests:
        at.made_of |= {request_id: [] for request_id in at.requests}
        assert len(at.requests) < 50
    assert not pooled.has_pending_requests, "nothing came of any rung"
    sent = at.asked(0)
    assert len({(request.lowest, request.visibility) for request in sent}) == len(sent) > 3


@pytest.mark.parametrize(("count", "dry"), [(7, True), (8, False)])
def test_only_tasks_that_can_be_tried_count_as_results_of_a_request(count: int, dry: bool) -> None:
    at = simulated_learner.World()
    at.stock(STUB, 1)
    pooled = TaskPool(lambda: at.tasks, CurriculumSettings(), at)
    pooled.next_task()
    pooled.record(simulated_learner.group("t00000", [True, False]))
    assert pooled.next_task() is None
    (first,) = at.asked(0)
    at.made_of[first.request_id] = [*at.stock(CLASS, count), *(f"held out {n}" for n in range(30))]
    assert pooled.next_task() is not None
    assert pooled.next_task() is not None
    pooled.record(simulated_learner.group("t00001", [True, False]))
    assert bool(pooled.state()["asked"]["dry"]) is dry


def test_a_pool_without_a_generator_sends_no_requests() -> None:
    known = tasks(*[STUB] * 30)
    pooled = TaskPool(lambda: known)
    for task in list(known):
        pooled.record(simulated_learner.group(task, [True] * 8))
    assert not pooled.has_pending_requests
    assert pooled.summary()["num_requests"] == 0
    assert mean(pooled.posterior(task).mean for task in known) > 0.9


def test_a_pool_begins_with_what_attempts_of_others_tell() -> None:
    known = tasks(STUB)
    hard = PassRateModel(shared=Predictor(level=-2.0), abilities={"somebody": 4.0})
    plain, told = TaskPool(lambda: known), TaskPool(lambda: known, prior=hard)
    assert told.posterior("t00000").mean < plain.posterior("t00000").mean
    state = json.loads(json.dumps(told.state()))
    restored = TaskPool(lambda: known)
    restored.restore(state)
    assert restored.posterior("t00000") == told.posterior("t00000"), "a resumed run keeps its prior"
    for pooled in (told, restored):
        pooled.record(simulated_learner.group("t00000", [True] * 8))
    assert restored.posterior("t00000") == told.posterior("t00000")
