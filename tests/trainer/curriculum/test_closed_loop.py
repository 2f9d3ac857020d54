"""The closed loop without a model: levels rise as pass rates climb, and an interruption changes nothing."""

from __future__ import annotations

import copy
import json
from statistics import mean

import pytest

from excise.datasets.difficulty.rungs import Level, Rung, rung_of
from excise.trainer.curriculum.request_policy import RequestSettings
from excise.trainer.curriculum.task_pool import CurriculumSettings, TaskPool
from excise.types import Visibility

from . import simulated_learner

SETTINGS = CurriculumSettings(half_life=40, ask=RequestSettings(count=60, low_water=8, warm_up=8))
LOWEST = Rung(Level.LINE, Visibility.TESTS)
GROUPS = 500


def world() -> simulated_learner.World:
    made = simulated_learner.World(seed=3)
    made.stock(LOWEST, 60)
    return made


def pool(world: simulated_learner.World) -> TaskPool:
    return TaskPool(lambda: world.tasks, SETTINGS, world)


def run(pool: TaskPool, world: simulated_learner.World, groups: int) -> list[tuple[str, float]]:
    """Run ``groups`` groups, and return the task and the pass rate of each."""
    trace = []
    for _ in range(groups):
        chosen = pool.next_task()
        assert chosen is not None, pool.why_empty()
        group = world.attempt(chosen)
        pool.record(group)
        trace.append((chosen, mean(rollout.task_reward for rollout in group.rollouts)))
    return trace


def levels(world: simulated_learner.World, trace: list[tuple[str, float]]) -> list[int]:
    return [rung_of(world.tasks[task]).level.order for task, _ in trace]


def test_levels_rise_as_pass_rates_climb() -> None:
    at = world()
    pooled = pool(at)
    trace = run(pooled, at, GROUPS)
    found = levels(at, trace)
    quarters = [mean(found[start : start + GROUPS // 4]) for start in range(0, GROUPS, GROUPS // 4)]
    assert quarters == sorted(quarters)
    assert quarters[0] < 1.5
    assert quarters[-1] > 3
    rates = [rate for _, rate in trace[GROUPS // 4 :]]
    assert 0.2 < mean(rates) < 0.8, "what is drawn stays neither too easy nor too hard"
    assert len({task for task, _ in trace}) > 200


def test_requests_are_sent_above_the_set_point_and_climb() -> None:
    at = world()
    asked: list[tuple[float, int]] = []
    pooled = pool(at)
    for _ in range(GROUPS):
        before = len(at.requests)
        run(pooled, at, 1)
        if len(at.requests) > before:
            view = pooled.summary()
            asked.append((view["pass_rate"], int(view["num_suited"])))
    assert len(asked) >= 3
    assert all(rate > SETTINGS.ask.set_point or left < SETTINGS.ask.low_water for rate, left in asked)
    assert any(rate > SETTINGS.ask.set_point for rate, _ in asked)
    highest = [request.highest.order for _, request in at.requests.values()]
    assert highest[-1] > highest[0]


def test_a_learner_that_does_not_learn_gets_no_harder_tasks() -> None:
    at = world()
    at.skill = -1.0
    pooled = pool(at)
    for _ in range(40):
        chosen = pooled.next_task()
        assert chosen is not None
        pooled.record(simulated_learner.group(chosen, [True] * 2 + [False] * 6))
    assert not at.requests
    assert pooled.summary()["level"] == 0


@pytest.mark.slow
def test_an_interrupted_curriculum_continues_identically() -> None:
    at = world()
    whole = run(pool(at), at, GROUPS)
    other = world()
    first = pool(other)
    trace = run(first, other, 40)
    for cut in (90, 33, 120, 80):
        saved = json.dumps(first.state())
        later = copy.deepcopy(other)  # the world is not interrupted
        first = pool(later)
        first.restore(json.loads(saved))
        assert json.dumps(first.state()) == saved
        trace += run(first, later, cut)
        other = later
    trace += run(first, other, GROUPS - len(trace))
    assert trace == whole


def test_a_replayed_journal_finds_its_requests_and_their_tasks() -> None:
    """The replay marks no further rung as dry and sends no request twice, even if the generator has answered by now."""
    at = world()
    at.barren = frozenset({Visibility.TESTS, Visibility.SIGNATURE})
    whole = pool(at)
    run(whole, at, 10)
    saved, journal = json.dumps(whole.state()), []
    for _ in range(200):
        chosen = whole.next_task()
        assert chosen is not None
        journal.append(at.attempt(chosen))
        whole.record(journal[-1])
    asked = [request for _, request in at.requests.values()]
    came = [len(at.made(request) or ()) for request in asked]
    assert 0 in came, "some rungs are dry"
    assert any(came), "others are not"

    again = pool(at)
    again.restore(json.loads(saved))
    for group in journal:
        again.next_task(replayed=group.instance_id)
        again.record(group)
    chosen = whole.next_task()
    assert chosen == again.next_task()
    assert [request for _, request in at.requests.values()] == asked
    last = at.attempt(chosen)
    whole.record(last)
    again.record(last)
    before, after = whole.state()["asked"], again.state()["asked"]
    assert before["dry"].keys() == after["dry"].keys() != set()
    assert before | {"dry": None} == after | {"dry": None}


def test_another_seed_gives_another_order() -> None:
    at, other = world(), world()
    one = run(pool(at), at, 30)
    two = run(TaskPool(lambda: other.tasks, SETTINGS.model_copy(update={"seed": 1}), other), other, 30)
    assert [task for task, _ in one] != [task for task, _ in two]
