"""The pool's rules, one at a time, and the arithmetic below them."""

from __future__ import annotations

import random
from collections import Counter
from statistics import mean

import numpy as np
import pytest
import simulated_learner

from excise.trainer.curriculum.pass_rates import Beta, DecayedCounts, Predictor, fitted, incomplete_beta
from excise.trainer.curriculum.request_policy import PoolStatus, RequestPolicy, RequestSettings
from excise.trainer.curriculum.rungs import Level, Rung, all_rungs, rung_from, rung_of
from excise.trainer.curriculum.task_pool import CurriculumSettings, TaskPool, TaskStatus
from excise.trainer.curriculum.task_request import TaskRequest
from excise.trainer.rollout_types import Ending, Group
from excise.types import Task, Visibility, from_json, to_json

STUB = Rung(Level.STUB, Visibility.DOCSTRING)
CLASS = Rung(Level.CLASS, Visibility.DOCSTRING)


def tasks(*rungs: Rung) -> dict[str, Task]:
    return {(made := simulated_learner.task(number, rung)).instance_id: made for number, rung in enumerate(rungs)}


def pool(*rungs: Rung, **settings: object) -> TaskPool:
    known = tasks(*rungs)
    return TaskPool(lambda: known, CurriculumSettings.model_validate(settings))


# --------------------------------------------------------------------------------------------- rungs
def test_rungs_are_in_order_and_have_names() -> None:
    rungs = all_rungs()
    assert list(rungs) == sorted(rungs, key=lambda rung: rung.order)
    assert rungs[0].key == "line/tests"
    assert [rung_from(rung.key) for rung in rungs] == list(rungs)
    assert [rung_of(simulated_learner.task(0, rung)) for rung in rungs] == list(rungs)


# ---------------------------------------------------------------------------------------- posteriors
@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.3, 2.5), (12.0, 3.0), (200.0, 20.0)])
def test_the_incomplete_beta_function_is_the_integral(a: float, b: float) -> None:
    u = (np.arange(400_000) + 0.5) / 400_000
    x = u**4 / (u**4 + (1 - u) ** 4)  # crowded at both ends, where the density may be infinite
    slope = 4 * u**3 * (1 - u) ** 3 / (u**4 + (1 - u) ** 4) ** 2
    density = x ** (a - 1) * (1 - x) ** (b - 1) * slope
    for rate in (0.02, 0.4, 0.77, 0.95):
        expected = density[x < rate].sum() / density.sum()
        assert incomplete_beta(a, b, rate) == pytest.approx(expected, abs=2e-4)
        assert Beta(a, b).below(Beta(a, b).quantile(rate)) == pytest.approx(rate, abs=1e-4)


def test_observations_fade() -> None:
    record = DecayedCounts()
    record.add(4, 4, now=10, half_life=5)
    record.add(2, 0, now=15, half_life=5)
    assert (record.passed, record.failed) == (4.0, 2.0)
    assert record.decayed(25, half_life=5) == (1.0, 0.5)


def test_predictions_find_what_the_data_say() -> None:
    truth = Predictor(bias=2.0, level=-0.9, visibility=-0.2, size=-0.5)
    rng = random.Random(0)
    rows = []
    for rung in all_rungs():
        for loc in (3, 10, 60):
            passed = sum(rng.random() < truth.rate(rung, loc) for _ in range(200))
            rows.append((rung, loc, float(passed), 200.0 - passed))
    found = fitted(rows)
    for name in ("bias", "level", "visibility", "size"):
        assert getattr(found, name) == pytest.approx(getattr(truth, name), abs=0.15)
    assert fitted([]) == Predictor()


def test_a_prediction_without_data_falls_with_every_step() -> None:
    rates = [Predictor().rate(Rung(level, Visibility.DOCSTRING)) for level in Level]
    assert rates == sorted(rates, reverse=True)
    assert Predictor().rate(STUB, 100) < Predictor().rate(STUB, 5)


# ---------------------------------------------------------------------------------------------- pool
def test_a_task_is_trained_on_once_by_default() -> None:
    pooled = pool(STUB, STUB)
    given = {pooled.next_task(), pooled.next_task()}
    assert given == {"t00000", "t00001"}
    assert pooled.next_task() is None, "both are under way"
    pooled.record(simulated_learner.group("t00000", [True, False]))
    assert pooled.status("t00000") is TaskStatus.USED
    assert pooled.next_task() is None
    assert pooled.why_empty() == "No task can be given: 1 open, 1 used, 1 under way."


def test_more_visits_where_they_are_wanted() -> None:
    pooled = pool(STUB, max_visits=2)
    for expected in (TaskStatus.OPEN, TaskStatus.USED):
        assert pooled.next_task() == "t00000"
        pooled.record(simulated_learner.group("t00000", [True, False]))
        assert pooled.status("t00000") is expected


def test_a_group_without_signal_is_no_visit() -> None:
    pooled = pool(STUB)
    assert pooled.next_task() == "t00000"
    pooled.record(simulated_learner.group("t00000", [False] * 4))
    assert pooled.summary()["num_replaced"] == 1
    assert pooled.next_task() == "t00000"


def test_what_is_always_passed_is_retired() -> None:
    pooled = pool(STUB)
    groups = 0
    while pooled.next_task():
        pooled.record(simulated_learner.group("t00000", [True] * 8))
        groups += 1
    assert pooled.status("t00000") is TaskStatus.RETIRED
    assert groups == 4, "24 of 24 is not sure enough, 32 of 32 is"


def test_what_is_never_passed_is_quarantined_and_named() -> None:
    pooled = pool(STUB, CLASS, quarantine_after=16)
    while task := pooled.next_task():
        pooled.record(simulated_learner.group(task, [False] * 8))
    assert pooled.quarantined() == ("t00000", "t00001")
    assert "2 quarantined" in pooled.why_empty()


def test_a_broken_sandbox_says_nothing_and_does_not_go_on_for_ever() -> None:
    pooled = pool(STUB)
    groups = 0
    while task := pooled.next_task():
        pooled.record(simulated_learner.group(task, [False] * 8, ending=Ending.INFRA))
        groups += 1
    assert groups == 3
    assert pooled.status("t00000") is TaskStatus.BROKEN
    assert pooled.posterior("t00000").mean == pooled.prior(STUB, 10)
    assert pooled.quarantined() == ("t00000",)


def test_an_empty_pool_says_so() -> None:
    pooled = pool()
    assert pooled.next_task() is None
    assert "no task at all" in pooled.why_empty()


def test_the_middling_are_drawn_most_often() -> None:
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


def test_new_tasks_start_with_what_is_known_of_their_rung() -> None:
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


def test_tasks_that_are_gone_are_not_drawn() -> None:
    known = tasks(STUB, STUB)
    pooled = TaskPool(lambda: known)
    del known["t00001"]
    assert pooled.next_task() == "t00000"
    assert pooled.next_task() is None
    pooled.restore(pooled.state())
    assert pooled.next_task() is None


def test_a_group_of_a_task_that_is_gone_does_no_harm() -> None:
    known = tasks(STUB, STUB)
    pooled = TaskPool(lambda: known)
    saved = pooled.state()
    gone = known.pop("t00001")
    resumed = TaskPool(lambda: known)
    resumed.restore(saved)
    resumed.record(simulated_learner.group(gone.instance_id, [True, False]))
    assert resumed.summary()["pass_rate"] == 0
    assert resumed.next_task() == "t00000"


def test_a_group_that_never_comes_back_is_given_up() -> None:
    pooled = pool(*[STUB] * 3, forget_after=2)
    first = pooled.next_task()
    assert [pooled.next_task() for _ in range(3)][-1] == first


def test_a_journal_is_followed_whatever_there_is_to_draw_from_by_now() -> None:
    known = tasks(*[STUB] * 20)
    pooled = TaskPool(lambda: known)
    drawn = [pooled.next_task() for _ in range(8)]
    later = known | {(made := simulated_learner.task(number, CLASS)).instance_id: made for number in range(20, 60)}
    resumed = TaskPool(lambda: later)
    assert [resumed.next_task(replayed=task) for task in drawn] == drawn
    assert resumed.state()["begun"] == pooled.state()["begun"]
    assert resumed.state()["random"] == pooled.state()["random"]
    assert {resumed.next_task() for _ in range(52)} == later.keys() - set(drawn), "what is under way is not drawn again"


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


# ------------------------------------------------------------------------------------------ requests
def view(now: int, rate: float, level: float, suited: int = 0) -> PoolStatus:
    return PoolStatus(now=now, rate=rate, level=level, rates={STUB: rate}, num_suited=suited, predictor=Predictor())


def test_requests_are_json_and_say_what_fits() -> None:
    request = TaskRequest(lowest=Level.EXPRESSION, highest=Level.FUNCTION, pass_rate=(0.2, 0.6))
    assert from_json(TaskRequest, to_json(request)) == request
    assert from_json(TaskRequest, '{"lowest": "line", "highest": "stub"}').count == 32
    assert request.fits(Level.STUB, 10) == (0.2 <= Predictor().rate(STUB, 10) <= 0.6)
    assert not request.fits(Level.CLASS, 10)
    assert not request.fits(Level.LINE, 2)
    assert not request.fits(Level.STUB, 100_000)
    again = TaskRequest(lowest=Level.EXPRESSION, highest=Level.FUNCTION, pass_rate=(0.2, 0.6))
    assert (
        again.request_id == request.request_id != TaskRequest(lowest=Level.EXPRESSION, highest=Level.CLASS).request_id
    )


def test_nothing_is_asked_below_the_set_point_or_where_there_is_enough() -> None:
    sent: list[TaskRequest] = []
    asker = RequestPolicy(RequestSettings(), sent.append)
    assert asker.consider(view(20, rate=0.5, level=2, suited=100)) is None
    assert asker.consider(view(20, rate=0.9, level=2, suited=100)) is None
    assert asker.consider(view(2, rate=0.9, level=2)) is None, "too early to tell"
    assert asker.consider(view(20, rate=0.9, level=2)) is not None
    assert len(sent) == 1
    assert sent[0].lowest.order >= 2


def test_nothing_above_what_a_mode_can_try_is_asked_for() -> None:
    sent: list[TaskRequest] = []
    asker = RequestPolicy(RequestSettings(patience=10, highest=Level.EXPRESSION), sent.append)
    for now in range(20, 1000, 10):
        asker.consider(view(now, rate=0.9, level=0), num_made=0)
    assert {request.highest for request in sent} == {Level.EXPRESSION, Level.LINE}


def test_one_request_is_open_at_a_time_and_dry_rungs_are_left_alone_for_a_while() -> None:
    sent: list[TaskRequest] = []
    asker = RequestPolicy(RequestSettings(patience=10), sent.append)
    assert asker.consider(view(20, rate=0.9, level=2))
    assert asker.consider(view(25, rate=0.9, level=2)) is None
    assert asker.open is sent[0]
    assert asker.consider(view(30, rate=0.9, level=2), num_made=7)
    first, second = sent
    assert (first.lowest, first.highest, first.visibility) != (second.lowest, second.highest, second.visibility)
    while asker.consider(view(30, rate=0.9, level=2), num_made=0):
        assert len(sent) < 30
    assert asker.open is None, "every rung was asked for in vain"
    assert asker.consider(view(69, rate=0.9, level=2)) is None
    again = asker.consider(view(70, rate=0.9, level=2))
    assert again
    assert (again.lowest, again.highest, again.visibility) == (first.lowest, first.highest, first.visibility)


def test_a_request_is_open_until_the_generator_is_done() -> None:
    sent: list[TaskRequest] = []
    asker = RequestPolicy(RequestSettings(patience=10, count=4), sent.append)
    first = asker.consider(view(20, rate=0.9, level=2))
    assert first
    assert asker.consider(view(1000, rate=0.9, level=2)) is None, "it is still at work"
    second = asker.consider(view(1001, rate=0.9, level=2), num_made=1)
    assert second
    assert (second.lowest, second.highest) == (first.lowest, first.highest), "some came: there may be more"


def test_where_all_is_too_hard_any_task_of_the_easiest_rung_is_asked_for() -> None:
    sent: list[TaskRequest] = []
    asker = RequestPolicy(RequestSettings(highest=Level.EXPRESSION), sent.append)
    easiest = Rung(Level.LINE, Visibility.TESTS)
    weak = Predictor(bias=-4.0)
    seen = PoolStatus(now=20, rate=0.0, level=0, rates={easiest: 0.0}, num_suited=0, predictor=weak)
    asked = asker.consider(seen)
    assert asked
    assert (asked.lowest, asked.highest, asked.visibility) == (Level.LINE, Level.LINE, Visibility.TESTS)
    assert asked.fits(Level.LINE, 50)


def test_an_empty_pool_asks_before_it_has_seen_much() -> None:
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
def test_what_comes_of_a_request_counts_if_it_can_be_tried(count: int, dry: bool) -> None:
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


def test_an_open_request_is_made_again_after_a_resume() -> None:
    sent: list[TaskRequest] = []
    asker = RequestPolicy(RequestSettings(), sent.append)
    asker.consider(view(20, rate=0.9, level=2))
    later: list[TaskRequest] = []
    resumed = RequestPolicy(RequestSettings(), later.append)
    resumed.restore(asker.state())
    assert later == sent
    assert resumed.state() == asker.state()
    assert resumed.consider(view(21, rate=0.9, level=2)) is None


def test_the_pool_without_a_generator_asks_nobody() -> None:
    known = tasks(*[STUB] * 30)
    pooled = TaskPool(lambda: known)
    for task in list(known):
        pooled.record(simulated_learner.group(task, [True] * 8))
    assert not pooled.has_pending_requests
    assert pooled.summary()["num_requests"] == 0
    assert mean(pooled.posterior(task).mean for task in known) > 0.9
