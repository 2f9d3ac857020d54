"""Endings of attempts when the engine, the penalty or the attempt itself fails. No sandbox and no model are used."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from excise.datasets.queries.rollouts import write_rollouts
from excise.datasets.storage.store import Store
from excise.trainer.loop.run_journal import Finished, Journal
from excise.trainer.reporting.rollout_rows import rollout_rows
from excise.trainer.rollout_types import Ending, Generation, Group, Rollout, Sampling, Stop
from excise.trainer.rollouts.chat import PromptTokens
from excise.trainer.rollouts.rollout_maker import SHOWN_CHARS, Attempt, AttemptMode, TaskRolloutMaker
from excise.trainer.rollouts.rollout_settings import RolloutSettings
from excise.types import Grade, WorkerOutcome
from excise.verifiers.grading.intake import MAX_DIFF_BYTES

WRONG = Grade(
    instance_id="t", worker_outcome=WorkerOutcome.OK, decided=True, reward=0.0, reward_tests=0.0, reward_calls=None,
    partial=0.0,
)  # fmt: skip


class FakeArena:
    """A fake arena that records the diffs it grades, and in one the sandbox that it opens, with a given diff."""

    task: Any = None
    session: Any = None

    def __init__(self, handed_in: str = "") -> None:
        self.handed_in, self.num_open = handed_in, 0
        self.graded: list[str] = []

    def diff(self) -> str:
        return self.handed_in

    def flags(self) -> tuple[str, ...]:
        return ()

    def tasks(self) -> dict[str, Any]:
        return {}

    @asynccontextmanager
    async def open(self, instance_id: str) -> AsyncIterator[FakeArena]:
        self.num_open += 1
        try:
            yield self
        finally:
            self.num_open -= 1

    async def grade(self, instance_id: str, diff: str) -> Grade:
        self.graded.append(diff)
        return WRONG


class SlowEngine:
    """An engine that answers after ``wait_s(max_tokens)`` seconds."""

    name, context_length, needs_checkpoint_names, version = "slow", 100, False, 0

    def __init__(self, wait_s: Callable[[int], float]) -> None:
        self.wait_s = wait_s
        self.asked: list[int] = []

    async def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[Generation]:
        self.asked.append(sampling.max_tokens)
        await asyncio.sleep(self.wait_s(sampling.max_tokens))
        return [Generation(ids=(1,), logprobs=(0.0,), versions=(0,), stop=Stop.END) for _ in prompts]


async def ask_once(attempt: Attempt) -> Ending:
    attempt.recorder.add_context(PromptTokens((1,), (2,)))
    return Ending.TIME if await attempt.sample(10, (0,)) is None else Ending.FINISHED


async def finish_at_once(attempt: Attempt) -> Ending:
    return Ending.FINISHED


def make_group(
    work: AttemptMode, size: int = 4, *, arena: FakeArena | None = None, engine: Any = None, **settings: Any
) -> Group:
    async def go() -> Group:
        rollouts = TaskRolloutMaker(
            engine, arena or FakeArena(), work, RolloutSettings(**settings), heartbeat_timeout_s=0.3
        )  # type: ignore[arg-type]
        try:
            return await asyncio.wait_for(rollouts.group("t", size, group_id="g"), 20)
        finally:
            rollouts.close()

    return asyncio.run(go())


def test_a_hanging_engine_is_an_infrastructure_failure() -> None:
    engine = SlowEngine(lambda _: 3600.0)
    group = make_group(ask_once, engine=engine, time_s=0.2)
    assert {rollout.ending for rollout in group.rollouts} == {Ending.INFRA}
    assert group.valid_rollouts == ()
    assert "does not answer: not one token" in group.rollouts[0].detail
    assert engine.asked == [10] * 4 + [1], "all attempts share one heartbeat request"


def test_a_slow_model_runs_out_of_time() -> None:
    engine = SlowEngine(lambda longest: 0.01 if longest == 1 else 3600.0)
    group = make_group(ask_once, engine=engine, time_s=0.2)
    assert {rollout.ending for rollout in group.rollouts} == {Ending.TIME}
    assert len(group.valid_rollouts) == 4
    assert 1 in engine.asked


def test_an_unexpected_exception_ends_only_one_attempt(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Attempt] = []

    async def work(attempt: Attempt) -> Ending:
        seen.append(attempt)
        if len(seen) == 1:
            raise KeyError("caf\udce9")
        return Ending.FINISHED

    group = make_group(work)
    assert sorted(rollout.ending for rollout in group.rollouts) == [Ending.FINISHED] * 3 + [Ending.INFRA]
    assert "KeyError: 'caf\\udce9'" in {rollout.detail for rollout in group.rollouts}
    assert "Traceback" in caplog.text


def test_a_failing_penalty_fails_the_group_and_closes_its_sandboxes() -> None:
    """Exceptions of the penalty, which the user gives, are raised."""
    arena = FakeArena()

    async def go() -> None:
        async def work(attempt: Attempt) -> Ending:
            if arena.num_open == 4:
                return Ending.FINISHED
            await asyncio.sleep(30)
            return Ending.FINISHED

        def penalty(_: object) -> float:
            raise ZeroDivisionError

        rollouts = TaskRolloutMaker(None, arena, work, RolloutSettings(), penalty=penalty)  # type: ignore[arg-type]
        with pytest.raises(ZeroDivisionError):
            await rollouts.group("t", 4)
        assert arena.num_open == 0
        rollouts.close()

    asyncio.run(asyncio.wait_for(go(), 20))


def test_cancelling_a_group_raises_and_closes_its_sandboxes() -> None:
    arena = FakeArena()

    async def go() -> None:
        rollouts = TaskRolloutMaker(SlowEngine(lambda _: 30.0), arena, ask_once, RolloutSettings())  # type: ignore[arg-type]
        running = asyncio.create_task(rollouts.group("t", 4))
        await asyncio.sleep(0.05)
        assert arena.num_open == 4
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert arena.num_open == 0
        rollouts.close()

    asyncio.run(asyncio.wait_for(go(), 20))


def test_undecodable_bytes_of_a_diff_reach_the_grader_and_are_stored(tmp_path: Path) -> None:
    diff = b"+caf\xe9 \xc3\xa9\n".decode("utf-8", "surrogateescape")
    arena = FakeArena(diff)
    group = make_group(finish_at_once, 1, arena=arena)
    assert arena.graded == [diff]
    assert group.rollouts[0].diff == "+caf\\udce9 é\n"
    journal = Journal(tmp_path / "journal")
    journal.start_file()
    journal.write(Finished(number=0, group=group))
    assert journal.since(0) == [Finished(number=0, group=group)]
    with Store(tmp_path / "out").writer() as writer:
        writer.publish()
    write_rollouts(tmp_path / "out", "run", 1, rollout_rows("run", 1, [group], lambda ids: ""))


def test_a_diff_too_large_for_the_grader_is_kept_truncated() -> None:
    arena = FakeArena("+" + "x" * MAX_DIFF_BYTES)
    rollout: Rollout = make_group(finish_at_once, 1, arena=arena).rollouts[0]
    assert SHOWN_CHARS < len(rollout.diff) < SHOWN_CHARS + 100
    assert rollout.grade == WRONG
    fits = "+" + "x" * (MAX_DIFF_BYTES - 1)
    assert make_group(finish_at_once, 1, arena=FakeArena(fits)).rollouts[0].diff == fits
