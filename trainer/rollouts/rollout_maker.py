"""One rollout around one sandbox: budgets, endings, the grade. What happens in the sandbox is somebody else's."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from excise.errors import EngineError, ExciseError
from excise.trainer.concurrency import Threads
from excise.trainer.interfaces import Arena, Desk, Engine, Making
from excise.trainer.loop.together import together
from excise.trainer.rollout_types import Ending, Generation, Group, Rollout, Sampling, Stop, Usage
from excise.trainer.rollouts.pulse import PULSE_S, Pulse
from excise.trainer.rollouts.rollout_settings import RolloutSettings
from excise.trainer.rollouts.trace import Trace
from excise.types import Grade
from excise.verifiers.grading.intake import MAX_DIFF_BYTES, storable

T = TypeVar("T")
Penalty = Callable[[Usage], float]
"""What a rollout's effort costs."""
SHOWN_CHARS = 64 << 10
"""What is kept of a diff that is too large for the grader."""
_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class Attempt:
    """What a rollout is made of while it is under way."""

    desk: Desk
    settings: RolloutSettings
    engine: Engine
    pulse: Pulse
    threads: Executor
    seed: int | None = None
    """Of the first answer; each further one has the next."""
    began: float = field(default_factory=time.monotonic)
    trace: Trace = field(default_factory=Trace)
    spent: dict[str, float] = field(default_factory=dict)
    """Field of :class:`Usage` to what was spent."""

    def spend(self, what: str, amount: float) -> None:
        """Write down what was spent."""
        self.spent[what] = self.spent.get(what, 0) + amount

    @property
    def left_s(self) -> float:
        """Seconds left."""
        return self.settings.time_s - (time.monotonic() - self.began)

    @property
    def sampled(self) -> int:
        """Tokens sampled so far."""
        return int(sum(self.spent.get(name, 0) for name in ("thinking", "calls", "final")))

    def room(self, longest: int) -> int:
        """Tokens that the next answer may have; 0 or less if it may have none."""
        context = self.engine.context_length - len(self.trace.ids)
        return min(longest, context, self.settings.max_tokens - self.sampled)

    async def in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        """Something that blocks, in the sandbox."""
        began = time.monotonic()
        try:
            return await asyncio.get_running_loop().run_in_executor(self.threads, work, *arguments)
        finally:
            self.spend("sandbox_s", time.monotonic() - began)

    async def sample(self, room: int, stop_ids: tuple[int, ...]) -> Generation | None:
        """An answer to the open segment; ``None`` if the time is up.

        Raises :class:`EngineError`, also if the time is up because the engine hangs.
        """
        if self.left_s <= 0:
            return None
        seed = None if self.seed is None else self.seed + len(self.trace.ids)
        sampling = Sampling(max_tokens=room, temperature=self.settings.temperature, stop_ids=stop_ids, seed=seed)
        began = time.monotonic()
        timer = asyncio.timeout(self.left_s)
        try:
            async with timer:
                (answer,) = await self.engine.generate([tuple(self.trace.ids)], sampling)
        except TimeoutError:
            if not timer.expired():
                raise
            await self.pulse.check(self.trace.ids, sampling)
            return None
        finally:
            self.spend("engine_s", time.monotonic() - began)
        if answer.stop is Stop.ABORTED:
            raise EngineError("The engine gave up in the middle of an answer.")
        return answer

    def hinted(self, detector: str, hint: str, ids: tuple[int, ...]) -> None:
        """Say what is wrong with the last answer; a hint longer than allowed is counted, and no lesson."""
        self.trace.hinted(detector, hint, ids if len(ids) <= self.settings.hint_tokens else ())


ALONE = Making()
"""Nothing is known, and nobody asks."""


class Work(Protocol):
    """What is done at a desk: :mod:`~excise.trainer.rollouts.agent` or :mod:`~excise.trainer.rollouts.single_turn`."""

    async def __call__(self, attempt: Attempt) -> Ending:
        """Do it; whatever is wrong with the model's answers is an ending, never an error."""
        ...


class Rollouts:
    """Makes groups of attempts at tasks, many at once; whatever fails in an attempt ends it alone, not the group."""

    def __init__(
        self,
        engine: Engine,
        arena: Arena,
        work: Work,
        settings: RolloutSettings,
        *,
        penalty: Penalty = lambda _: 0.0,
        pulse_s: float = PULSE_S,
    ) -> None:
        self.engine, self.arena, self.work, self.settings, self.penalty = engine, arena, work, settings, penalty
        self._pulse = Pulse(engine, pulse_s)
        self._threads = Threads(settings.at_once, "excise-desk")
        self._room = asyncio.Semaphore(settings.at_once)

    async def group(
        self, instance_id: str, size: int, *, group_id: str = "", seed: int | None = None, making: Making = ALONE
    ) -> Group:
        """``size`` attempts at one task; see :class:`excise.trainer.interfaces.RolloutMaker`."""
        group_id = group_id or f"g-{uuid.uuid4().hex[:16]}"
        seeds = [None if seed is None else (seed * 1000 + n) * 2**20 % 2**62 for n in range(size)]
        numbered = (self._unless_known(making, instance_id, group_id, n, one) for n, one in enumerate(seeds))
        return Group(group_id=group_id, instance_id=instance_id, rollouts=tuple(await together(numbered)))

    async def _unless_known(
        self, making: Making, instance_id: str, group_id: str, number: int, seed: int | None
    ) -> Rollout:
        known = making.known.get(f"{group_id}-{number}")
        if known is not None:
            return known
        made = await self.rollout(instance_id, group_id, number, seed, making.started)
        making.made(made)
        return made

    async def rollout(
        self,
        instance_id: str,
        group_id: str,
        number: int,
        seed: int | None = None,
        started: Callable[[], None] = lambda: None,
    ) -> Rollout:
        """One attempt; ``started`` is called once it has its place, which is another's while it is graded."""
        made = Rollout(
            rollout_id=f"{group_id}-{number}",
            group_id=group_id,
            instance_id=instance_id,
            segments=(),
            ending=Ending.INFRA,
        )
        attempt: Attempt | None = None
        try:
            async with self._room:
                started()
                began = time.monotonic()
                async with self.arena.open(instance_id) as desk:
                    attempt = Attempt(desk, self.settings, self.engine, self._pulse, self._threads, seed)
                    ending = await self.work(attempt)
                    diff = await attempt.in_thread(desk.diff)
                    flags = await attempt.in_thread(desk.flags)
            made = replace(made, ending=ending, diff=kept(diff), flags=flags)
            if diff.strip():
                began_grade = time.monotonic()
                made = self._graded(made, await self.arena.grade(instance_id, diff))
                attempt.spend("grade_s", time.monotonic() - began_grade)
        except Exception as error:
            if not isinstance(error, ExciseError | OSError | MemoryError):
                _LOG.exception("%s met with what nobody foresaw", made.rollout_id)
            made = replace(made, ending=Ending.INFRA, detail=storable(f"{type(error).__name__}: {error}"[:1000]))
        if attempt is None:
            return made
        attempt.trace.close()
        usage = _usage(attempt, time.monotonic() - began)
        return replace(made, segments=tuple(attempt.trace.segments), usage=usage, penalty=self.penalty(usage))

    def close(self) -> None:
        """End the threads; what still runs in a sandbox is not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _graded(self, made: Rollout, grade: Grade) -> Rollout:
        reward = grade.reward or self.settings.partial_credit * grade.partial
        return replace(made, grade=grade, task_reward=reward if grade.decided else 0.0)


def kept(diff: str) -> str:
    """What is stored of a diff: bytes that are no UTF-8 are escaped, and of one that no grader takes the beginning."""
    if len(diff.encode("utf-8", "surrogateescape")) <= MAX_DIFF_BYTES:
        return storable(diff)
    return f"{storable(diff[:SHOWN_CHARS])}\n[... larger than {MAX_DIFF_BYTES >> 20} MiB]\n"


def _usage(attempt: Attempt, wall_s: float) -> Usage:
    known: dict[str, Any] = {
        name: round(amount, 3) if name.endswith("_s") else int(amount) for name, amount in attempt.spent.items()
    }
    return Usage(**known, wall_s=round(wall_s, 3), num_turns=attempt.trace.num_turns)
