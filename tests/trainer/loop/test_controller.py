"""Complete runs with a tiny model: learning, resuming, and faults of groups, engine and curriculum."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from excise.errors import EngineError, SandboxError, TrainingError
from excise.trainer.interfaces import GroupProgress, RolloutMaker
from excise.trainer.loop.controller import LoopSettings, RunEnd
from excise.trainer.reporting.metrics import read_metrics
from excise.trainer.rollout_types import Ending, Group

from ..tiny_run import QUICK, RandomTasks, TinyRun, same


@pytest.mark.slow
def test_the_reward_rises(tmp_path: Path) -> None:
    """The share of the rewarded token rises from chance to most of the answer."""
    began = time.process_time()
    settings = replace(QUICK, steps=28, checkpoint_every=100, schedule=replace(QUICK.schedule, batch=6, group_size=12))
    run = TinyRun(tmp_path / "run", settings, lr=0.01)
    assert run.run() is RunEnd.STEPS
    rows = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert [row["step"] for row in rows] == list(range(1, 29))
    first = sum(row["reward"] for row in rows[:3]) / 3
    last = sum(row["reward"] for row in rows[-3:]) / 3
    assert first < 0.2
    assert last > 0.6
    assert all(row["logprob_difference_fresh"] < 1e-4 for row in rows)
    assert time.process_time() - began < 60


def test_a_resumed_run_ends_with_the_weights_of_an_uninterrupted_one(tmp_path: Path) -> None:
    whole = TinyRun(tmp_path / "whole", replace(QUICK, steps=7))
    whole.run()
    first = TinyRun(tmp_path / "parts", replace(QUICK, steps=3))
    first.run()
    second = TinyRun(
        tmp_path / "parts", replace(QUICK, steps=7), seed=5
    )  # other weights and random states, which the checkpoint replaces
    second.run(resume=True)
    assert same(second.weights(), whole.weights())
    assert second.tasks.state() == whole.tasks.state()


def quick(**schedule: Any) -> LoopSettings:
    return replace(QUICK, steps=2, schedule=replace(QUICK.schedule, retry_delay_s=0.0, **schedule))


class FaultyMaker:
    """A rollout maker with faults: each keyword is a kind of fault, with the numbers of the groups that have it."""

    def __init__(self, maker: RolloutMaker, **faults: set[int]) -> None:
        self.maker, self.faults = maker, faults
        self.tries: dict[int, int] = {}
        self.num_cancelled = 0

    def has(self, fault: str, number: int) -> bool:
        return number in self.faults.get(fault, ())

    async def group(self, instance_id: str, size: int, *, group_id: str, seed: int, progress: GroupProgress) -> Group:
        number = int(group_id[1:])
        self.tries[number] = self.tries.get(number, 0) + 1
        progress.on_start()
        if self.has("fails_once", number) and self.tries[number] == 1:
            raise EngineError("The engine fell over.")
        if self.has("fails", number):
            raise SandboxError("No sandbox.")
        if self.has("hangs", number):
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                self.num_cancelled += 1
                if self.has("ignores_cancel", number):
                    await asyncio.sleep(3600)
                raise
        group = await self.maker.group(instance_id, size, group_id=group_id, seed=seed, progress=progress)
        if self.has("no_variance", number):
            group = replace(group, rollouts=tuple(replace(r, task_reward=0.0) for r in group.rollouts))
        if self.has("one_lost", number):
            first, *rest = group.rollouts
            group = replace(group, rollouts=(replace(first, ending=Ending.INFRA), *rest))
        if self.has("all_lost", number):
            group = replace(group, rollouts=tuple(replace(r, ending=Ending.INFRA) for r in group.rollouts))
        return group


def with_faults(**faults: set[int]) -> Callable[[RolloutMaker], FaultyMaker]:
    return lambda maker: FaultyMaker(maker, **faults)


@pytest.mark.slow
def test_groups_without_variance_are_replaced(tmp_path: Path) -> None:
    run = TinyRun(tmp_path / "run", quick(), wrap=with_faults(no_variance={0, 2, 3}, one_lost={1}))
    assert run.run() is RunEnd.STEPS
    rows = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert [row["batch_groups"] for row in rows] == [4, 4]
    assert rows[0]["replaced"] >= 3
    assert rows[0]["zero_variance"] == pytest.approx(rows[0]["replaced"] / rows[0]["groups"])
    assert rows[0]["infra_errors"] == pytest.approx(1 / (6 * rows[0]["groups"]))
    assert len(run.tasks.seen) == sum(row["groups"] for row in rows)


def test_a_failing_group_is_retried_and_then_given_up(tmp_path: Path) -> None:
    run = TinyRun(tmp_path / "run", quick(retries=1), wrap=with_faults(fails_once={1}, fails={2}, all_lost={3}))
    assert run.run() is RunEnd.STEPS
    maker = run.components.maker
    assert isinstance(maker, FaultyMaker)
    assert maker.tries[1] == 2
    assert maker.tries[2] >= 2
    assert maker.tries[3] >= 2
    assert maker.tries[0] == 1
    rows = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert rows[0]["lost"] == 2
    assert rows[0]["failures"] == 1 + maker.tries[2] + maker.tries[3]
    recorded = {name: earned for name, earned in run.tasks.seen if name in ("g000002", "g000003")}
    assert recorded == {"g000002": 0, "g000003": 0}, "lost groups are recorded, too"


@pytest.mark.parametrize("ignoring", [set(), {1}])
def test_a_hanging_group_is_given_up(tmp_path: Path, ignoring: set[int]) -> None:
    began = time.monotonic()
    run = TinyRun(
        tmp_path / "run", quick(group_deadline_s=0.5, retries=0), wrap=with_faults(hangs={1}, ignores_cancel=ignoring)
    )
    assert run.run() is RunEnd.STEPS
    assert isinstance(run.components.maker, FaultyMaker)
    assert run.components.maker.num_cancelled >= 1
    assert time.monotonic() - began < 120


def test_a_run_that_runs_out_of_tasks_trains_on_a_partial_batch_and_ends(tmp_path: Path) -> None:
    """The tasks end within the second batch."""
    run = TinyRun(tmp_path / "run", replace(quick(), steps=9), tasks=RandomTasks(["t3"], most=6))
    assert run.run() is RunEnd.EXHAUSTED
    rows = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert rows[-1]["batch_groups"] < 4
    assert sum(row["batch_groups"] + row["replaced"] for row in rows) == 6
    assert run.checkpoint_steps()[-1] == len(rows)


def test_a_batch_past_its_deadline_is_trained_on_partially_filled(tmp_path: Path) -> None:
    settings = quick(batch_deadline_s=3.0, group_deadline_s=30.0, staleness=1, window=0.5)
    run = TinyRun(tmp_path / "run", replace(settings, steps=1), wrap=with_faults(hangs={0, *range(3, 50)}))
    assert run.run() is RunEnd.STEPS
    (row,) = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert 0 < row["batch_groups"] <= 2
    assert row["wait_s"] >= 3


def test_a_run_without_a_finished_group_fails(tmp_path: Path) -> None:
    settings = replace(quick(batch_deadline_s=0.3), empty_batches=2)
    run = TinyRun(tmp_path / "run", settings, wrap=with_faults(hangs=set(range(100))))
    with pytest.raises(TrainingError, match="Not one group"):
        run.run()


def test_the_run_waits_for_requested_tasks(tmp_path: Path) -> None:
    tasks = RandomTasks(["t3"], most=4)
    tasks.has_pending_requests = True
    run = TinyRun(tmp_path / "run", quick(), tasks=tasks)
    threading.Timer(4, setattr, (tasks, "most", 8)).start()
    assert run.run() is RunEnd.STEPS
    assert 4 < len(run.tasks.seen) <= 8


def test_the_run_ends_when_requests_end_or_patience_is_over(tmp_path: Path) -> None:
    tasks = RandomTasks(["t3"], most=4)
    tasks.has_pending_requests = True
    timer = threading.Timer(4, setattr, (tasks, "has_pending_requests", False))
    timer.start()
    kept: dict[int, list[Group]] = {}
    run = TinyRun(
        tmp_path / "over", quick(), tasks=tasks, store_rollouts=lambda step, groups: kept.update({step: groups})
    )
    assert run.run() is RunEnd.EXHAUSTED
    assert not timer.is_alive(), "the run waited until the request had ended"
    assert sum(map(len, kept.values())) == len(run.tasks.seen) == 4, "groups without a step are stored, too"
    assert "All 4 were drawn" in (tmp_path / "over.log").read_text()
    tasks = RandomTasks(["t3"], most=4)
    tasks.has_pending_requests = True
    assert TinyRun(tmp_path / "late", replace(quick(), patience_s=2), tasks=tasks).run() is RunEnd.EXHAUSTED


def test_a_dead_engine_ends_the_run_and_a_resume_repeats_no_group(tmp_path: Path) -> None:
    settings = replace(quick(), steps=3, load_tries=2, checkpoint_every=100)
    run = TinyRun(tmp_path / "run", settings)
    step = run.learner.step

    def breaks(groups: Any, version: int) -> Any:
        run.engine.broken = version == 1
        return step(groups, version)

    run.learner.step = breaks  # type: ignore[method-assign]
    with pytest.raises(TrainingError, match="does not take new weights: The engine is gone"):
        run.run()
    again = TinyRun(tmp_path / "run", settings)
    assert again.run(resume=True) is RunEnd.STEPS
    whole = TinyRun(tmp_path / "whole", settings)
    whole.run()
    assert same(again.weights(), whole.weights())
    assert set(again.maker.calls).isdisjoint(run.maker.calls)


def test_a_step_past_its_deadline_ends_the_run(tmp_path: Path) -> None:
    run = TinyRun(tmp_path / "run", replace(quick(), step_deadline_s=1.0))
    run.learner.step = lambda *_: time.sleep(5)  # type: ignore[assignment,method-assign,return-value]
    with pytest.raises(TrainingError, match="A step took longer than 1 s"):
        run.run()


def test_an_engine_with_other_weights_than_the_trainer_ends_the_run(tmp_path: Path) -> None:
    run = TinyRun(tmp_path / "run")
    load = run.engine.load

    async def wrong(weights: Any, version: int) -> None:
        await load(((name, tensor * 1.5) for name, tensor in weights), version)

    run.engine.load = wrong  # type: ignore[method-assign]
    with pytest.raises(TrainingError, match="Engine and trainer disagree"):
        run.run()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_run_with_a_checkpoint(tmp_path: Path, number: signal.Signals) -> None:
    run = TinyRun(tmp_path / "run", replace(quick(), steps=1000, checkpoint_every=1000))
    step = run.learner.step

    def step_with_signal(groups: Any, version: int) -> Any:
        if version == 2:
            os.kill(os.getpid(), number)
        return step(groups, version)

    run.learner.step = step_with_signal  # type: ignore[method-assign]
    assert run.run() is RunEnd.STOPPED
    (kept,) = run.checkpoint_steps()
    assert kept >= 3
    again = TinyRun(tmp_path / "run", replace(quick(), steps=kept + 1))
    assert again.run(resume=True) is RunEnd.STEPS


def test_groups_that_are_too_stale_are_dropped(tmp_path: Path) -> None:
    """A group with older tokens than allowed is not trained on, even if the batch waited for it."""

    class Slow(FaultyMaker):
        async def group(
            self, instance_id: str, size: int, *, group_id: str, seed: int, progress: GroupProgress
        ) -> Group:
            group = await super().group(instance_id, size, group_id=group_id, seed=seed, progress=progress)
            if group_id == "g000002":
                await asyncio.sleep(3)
            return group

    settings = replace(quick(staleness=2, window=0.5, drop_after=1), steps=8)
    run = TinyRun(tmp_path / "run", settings, wrap=lambda maker: Slow(maker))
    assert run.run() is RunEnd.STEPS
    rows = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert max(row["staleness_max"] for row in rows) <= 1


def test_the_number_of_groups_in_flight_is_bounded(tmp_path: Path) -> None:
    seen: list[int] = []

    class Counting(FaultyMaker):
        async def group(self, *arguments: Any, **rest: Any) -> Group:
            seen.append(run.controller.num_running)
            return await super().group(*arguments, **rest)

    run = TinyRun(tmp_path / "run", replace(quick(staleness=1), steps=3), wrap=lambda maker: Counting(maker))
    run.run()
    assert max(seen) <= 8


def test_a_run_without_tasks_fails(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="nothing to train on"):
        TinyRun(tmp_path / "run", quick(), tasks=RandomTasks([], most=0)).run()
