"""What ends an attempt that is nobody's fault, or that nobody foresaw; no sandbox, no model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from excise.datasets.rollouts import write_rollouts
from excise.datasets.store import Store
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
    """A sandbox with a given diff, and an arena that remembers the diffs it graded."""

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


class Model:
    """An engine that answers after ``wait_s(longest answer)`` seconds."""

    name, context_length, needs_checkpoint_names, version = "slow", 100, False, 0

    def __init__(self, wait_s: Callable[[int], float]) -> None:
        self.wait_s = wait_s
        self.asked: list[int] = []

    async def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[Generation]:
        self.asked.append(sampling.max_tokens)
        await asyncio.sleep(self.wait_s(sampling.max_tokens))
        return [Generation(ids=(1,), logprobs=(0.0,), versions=(0,), stop=Stop.END) for _ in prompts]


async def asking(attempt: Attempt) -> Ending:
    attempt.recorder.add_context(PromptTokens((1,), (2,)))
    return Ending.TIME if await attempt.sample(10, (0,)) is None else Ending.FINISHED


async def nothing(attempt: Attempt) -> Ending:
    return Ending.FINISHED


def made(
    work: AttemptMode, size: int = 4, *, place: FakeArena | None = None, engine: Any = None, **settings: Any
) -> Group:
    async def go() -> Group:
        rollouts = TaskRolloutMaker(
            engine, place or FakeArena(), work, RolloutSettings(**settings), heartbeat_timeout_s=0.3
        )  # type: ignore[arg-type]
        try:
            return await asyncio.wait_for(rollouts.group("t", size, group_id="g"), 20)
        finally:
            rollouts.close()

    return asyncio.run(go())


def test_an_engine_that_hangs_says_nothing_about_the_model() -> None:
    engine = Model(lambda _: 3600.0)
    group = made(asking, engine=engine, time_s=0.2)
    assert {rollout.ending for rollout in group.rollouts} == {Ending.INFRA}
    assert group.valid_rollouts == ()
    assert "does not answer: not one token" in group.rollouts[0].detail
    assert engine.asked == [10] * 4 + [1], "they share one question"


def test_a_model_that_is_slow_is_out_of_time() -> None:
    engine = Model(lambda longest: 0.01 if longest == 1 else 3600.0)
    group = made(asking, engine=engine, time_s=0.2)
    assert {rollout.ending for rollout in group.rollouts} == {Ending.TIME}
    assert len(group.valid_rollouts) == 4
    assert 1 in engine.asked


def test_what_nobody_foresaw_ends_one_attempt(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Attempt] = []

    async def work(attempt: Attempt) -> Ending:
        seen.append(attempt)
        if len(seen) == 1:
            raise KeyError("caf\udce9")
        return Ending.FINISHED

    group = made(work)
    assert sorted(rollout.ending for rollout in group.rollouts) == [Ending.FINISHED] * 3 + [Ending.INFRA]
    assert "KeyError: 'caf\\udce9'" in {rollout.detail for rollout in group.rollouts}
    assert "Traceback" in caplog.text


def test_a_group_that_cannot_be_made_leaves_nothing_running() -> None:
    """The penalty is the user's, and is not forgiven."""
    place = FakeArena()

    async def go() -> None:
        async def work(attempt: Attempt) -> Ending:
            if place.num_open == 4:
                return Ending.FINISHED
            await asyncio.sleep(30)
            return Ending.FINISHED

        def penalty(_: object) -> float:
            raise ZeroDivisionError

        rollouts = TaskRolloutMaker(None, place, work, RolloutSettings(), penalty=penalty)  # type: ignore[arg-type]
        with pytest.raises(ZeroDivisionError):
            await rollouts.group("t", 4)
        assert place.num_open == 0
        rollouts.close()

    asyncio.run(asyncio.wait_for(go(), 20))


def test_cancelling_a_group_is_not_an_ending() -> None:
    place = FakeArena()

    async def go() -> None:
        rollouts = TaskRolloutMaker(Model(lambda _: 30.0), place, asking, RolloutSettings())  # type: ignore[arg-type]
        running = asyncio.create_task(rollouts.group("t", 4))
        await asyncio.sleep(0.05)
        assert place.num_open == 4
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert place.num_open == 0
        rollouts.close()

    asyncio.run(asyncio.wait_for(go(), 20))


def test_bytes_that_are_no_text_reach_the_grader_and_can_be_stored(tmp_path: Path) -> None:
    diff = b"+caf\xe9 \xc3\xa9\n".decode("utf-8", "surrogateescape")
    place = FakeArena(diff)
    group = made(nothing, 1, place=place)
    assert place.graded == [diff]
    assert group.rollouts[0].diff == "+caf\\udce9 é\n"
    journal = Journal(tmp_path / "journal")
    journal.start_file()
    journal.write(Finished(number=0, group=group))
    assert journal.since(0) == [Finished(number=0, group=group)]
    with Store(tmp_path / "out").writer() as writer:
        writer.publish()
    write_rollouts(tmp_path / "out", "run", 1, rollout_rows("run", 1, [group], lambda ids: ""))


def test_of_a_diff_that_no_grader_takes_the_beginning_is_kept() -> None:
    place = FakeArena("+" + "x" * MAX_DIFF_BYTES)
    rollout: Rollout = made(nothing, 1, place=place).rollouts[0]
    assert SHOWN_CHARS < len(rollout.diff) < SHOWN_CHARS + 100
    assert rollout.grade == WRONG
    fits = "+" + "x" * (MAX_DIFF_BYTES - 1)
    assert made(nothing, 1, place=FakeArena(fits)).rollouts[0].diff == fits
