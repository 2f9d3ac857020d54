"""Makes rollouts: opens a sandbox, lets the model work in it within its budgets, and has the result graded.

How the model works at a task is an :class:`AttemptMode`: with tools (``agent.py``) or in one answer
(``single_turn.py``).
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from excise.errors import EngineError, ExciseError
from excise.trainer.concurrency import DaemonThreadPool, gather_or_cancel
from excise.trainer.interfaces import Arena, Engine, GroupProgress, TaskSandbox
from excise.trainer.rollout_types import Ending, Generation, Group, Rollout, Sampling, Segment, Stop, Turn, Usage
from excise.trainer.rollouts.chat import PromptTokens
from excise.trainer.rollouts.rollout_settings import RolloutSettings
from excise.types import Grade
from excise.verifiers.grading.intake import MAX_DIFF_BYTES, storable

T = TypeVar("T")
Penalty = Callable[[Usage], float]
"""The effort penalty of a rollout that used these resources."""
SHOWN_CHARS = 64 << 10
"""Number of characters that are stored of a diff that is too large to be graded."""
HEARTBEAT_TIMEOUT_S = 60.0
"""Seconds within which a working engine samples one token."""
HEARTBEAT_PROMPT_TOKENS = 16
"""Tokens of the context that a heartbeat sends as its prompt."""
_LOG = logging.getLogger(__name__)


class EngineHeartbeat:
    """Checks that an engine still answers, by asking for one token. Concurrent checks share one request."""

    def __init__(self, engine: Engine, timeout_s: float = HEARTBEAT_TIMEOUT_S) -> None:
        self._engine, self._timeout_s = engine, timeout_s
        self._request: asyncio.Task[str] | None = None

    async def check(self, context: Sequence[int], sampling: Sampling) -> None:
        """Raise :class:`EngineError` if the engine samples no token after the beginning of ``context``."""
        if self._request is None or self._request.done():
            one_token = replace(sampling, max_tokens=1)
            self._request = asyncio.create_task(self._problem(tuple(context[:HEARTBEAT_PROMPT_TOKENS]), one_token))
        if problem := await asyncio.shield(self._request):
            raise EngineError(f"The engine does not answer: {problem}")

    async def _problem(self, prompt: tuple[int, ...], sampling: Sampling) -> str:
        """A sentence that says why the engine does not answer; empty if it does."""
        try:
            async with asyncio.timeout(self._timeout_s):
                (answer,) = await self._engine.generate([prompt], sampling)
        except TimeoutError:
            return f"not one token within {self._timeout_s:.0f} s."
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return "it gave up." if answer.stop is Stop.ABORTED else ""


class SegmentRecorder:
    """Records what a model read and sampled as the segments of one rollout; a segment only grows at its end."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        """Closed segments."""
        self.num_turns = 0
        """Number of answers in all segments."""
        self._open_segment()

    def _open_segment(self) -> None:
        self.ids: list[int] = []
        """Tokens of the open segment."""
        self._sampled: list[bool] = []
        self._logprobs: list[float] = []
        self._versions: list[int] = []
        self._turns: list[Turn] = []
        self._prompt_end = 0

    def add_context(self, prompt: PromptTokens) -> None:
        """Append tokens that were not sampled, up to the next answer."""
        self._append(prompt.body)
        self._prompt_end = len(self.ids)
        self._append(prompt.generation)

    def add_answer(self, answer: Generation, *, calls: int = 0, thinking: int = 0) -> None:
        """Append a sampled answer; ``calls`` is its number of tool calls, ``thinking`` that of its thinking tokens."""
        start = len(self.ids)
        self.ids += answer.ids
        self._sampled += [True] * len(answer.ids)
        self._logprobs += answer.logprobs
        self._versions += answer.versions
        self.num_turns += 1
        turn = Turn(
            start=start, end=len(self.ids), stop=answer.stop, calls=calls, thinking=thinking,
            prompt_end=self._prompt_end,
        )  # fmt: skip
        self._turns.append(turn)

    def add_hint(self, detector: str, hint: str, hint_ids: Sequence[int]) -> None:
        """Attach a detector's hint to the last answer."""
        last = self._turns[-1]
        self._turns[-1] = replace(last, detector=detector, hint=hint, hint_ids=tuple(hint_ids))

    def close_segment(self, *, is_summary: bool = False) -> None:
        """End the open segment after its last answer and open a new one.

        A segment without an answer is dropped: it has no token with a loss.
        """
        if self._turns:
            end = self._turns[-1].end
            self.segments.append(
                Segment(
                    ids=tuple(self.ids[:end]),
                    sampled=tuple(self._sampled[:end]),
                    logprobs=tuple(self._logprobs[:end]),
                    versions=tuple(self._versions[:end]),
                    turns=tuple(self._turns),
                    is_summary=is_summary,
                )
            )
        self._open_segment()

    def _append(self, ids: Sequence[int]) -> None:
        self.ids += ids
        self._sampled += [False] * len(ids)
        self._logprobs += [0.0] * len(ids)
        self._versions += [-1] * len(ids)


@dataclass(slots=True)
class Attempt:
    """The state of one attempt while it runs."""

    sandbox: TaskSandbox
    settings: RolloutSettings
    engine: Engine
    heartbeat: EngineHeartbeat
    threads: Executor
    """Runs the blocking calls of the sandbox."""
    seed: int | None = None
    """Seed of the first answer; later answers add the length of their context."""
    started: float = field(default_factory=time.monotonic)
    recorder: SegmentRecorder = field(default_factory=SegmentRecorder)
    used: dict[str, float] = field(default_factory=dict)
    """Name of a field of :class:`Usage` to the amount used so far."""

    def record_usage(self, name: str, amount: float) -> None:
        """Add to the amount used of one resource, a field of :class:`Usage`."""
        self.used[name] = self.used.get(name, 0) + amount

    @property
    def seconds_left(self) -> float:
        """Seconds until the rollout's time limit."""
        return self.settings.time_s - (time.monotonic() - self.started)

    @property
    def num_sampled(self) -> int:
        """Number of tokens sampled so far."""
        return int(sum(self.used.get(name, 0) for name in ("thinking", "calls", "final")))

    def token_budget(self, longest: int) -> int:
        """Maximum number of tokens of the next answer, at most ``longest``; 0 or less if there is no room for one."""
        context = self.engine.context_length - len(self.recorder.ids)
        return min(longest, context, self.settings.max_tokens - self.num_sampled)

    async def run_blocking(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a blocking function of the sandbox in a thread; its time counts as ``sandbox_s``."""
        started = time.monotonic()
        try:
            return await asyncio.get_running_loop().run_in_executor(self.threads, function, *arguments)
        finally:
            self.record_usage("sandbox_s", time.monotonic() - started)

    async def sample(self, max_tokens: int, stop_ids: tuple[int, ...]) -> Generation | None:
        """Sample the next answer after the open segment; ``None`` if the time limit is reached.

        Raises :class:`EngineError` if the engine fails, or if it is the reason why the time limit was reached.
        """
        if self.seconds_left <= 0:
            return None
        seed = None if self.seed is None else self.seed + len(self.recorder.ids)
        sampling = Sampling(max_tokens=max_tokens, temperature=self.settings.temperature, stop_ids=stop_ids, seed=seed)
        started = time.monotonic()
        timer = asyncio.timeout(self.seconds_left)
        try:
            async with timer:
                (answer,) = await self.engine.generate([tuple(self.recorder.ids)], sampling)
        except TimeoutError:
            if not timer.expired():
                raise
            await self.heartbeat.check(self.recorder.ids, sampling)
            return None
        finally:
            self.record_usage("engine_s", time.monotonic() - started)
        if answer.stop is Stop.ABORTED:
            raise EngineError("The engine gave up in the middle of an answer.")
        return answer

    def add_hint(self, detector: str, hint: str, ids: tuple[int, ...]) -> None:
        """Attach a hint to the last answer; a hint above the limit is counted but has no tokens, so no lesson."""
        self.recorder.add_hint(detector, hint, ids if len(ids) <= self.settings.hint_tokens else ())


class AttemptMode(Protocol):
    """How a model attempts a task: ``Agent`` (with tools) or ``SingleTurn`` (one answer)."""

    async def __call__(self, attempt: Attempt) -> Ending:
        """Work at the attempt's task. A fault of the model is an ending, never an exception."""
        ...


class TaskRolloutMaker:
    """Makes groups of attempts at tasks, up to ``settings.at_once`` attempts at a time.

    Implements :class:`excise.trainer.interfaces.RolloutMaker`. A failure ends the attempt that it occurs in, not its
    group.
    """

    def __init__(
        self,
        engine: Engine,
        arena: Arena,
        mode: AttemptMode,
        settings: RolloutSettings,
        *,
        penalty: Penalty = lambda _: 0.0,
        heartbeat_timeout_s: float = HEARTBEAT_TIMEOUT_S,
    ) -> None:
        self.engine, self.arena, self.mode, self.settings, self.penalty = engine, arena, mode, settings, penalty
        self._heartbeat = EngineHeartbeat(engine, heartbeat_timeout_s)
        self._threads = DaemonThreadPool(settings.at_once, "excise-sandbox")
        self._slots = asyncio.Semaphore(settings.at_once)

    async def group(
        self,
        instance_id: str,
        size: int,
        *,
        group_id: str = "",
        seed: int | None = None,
        progress: GroupProgress | None = None,
    ) -> Group:
        """Make ``size`` attempts at one task; see :class:`excise.trainer.interfaces.RolloutMaker`."""
        progress = progress or GroupProgress()
        group_id = group_id or f"g-{uuid.uuid4().hex[:16]}"

        async def attempt(number: int) -> Rollout:
            rollout_id = f"{group_id}-{number}"
            if rollout_id in progress.finished_attempts:
                return progress.finished_attempts[rollout_id]
            own_seed = None if seed is None else (seed * 1000 + number) * 2**20 % 2**62
            empty = Rollout(
                rollout_id=rollout_id, group_id=group_id, instance_id=instance_id, segments=(), ending=Ending.INFRA
            )
            rollout = await self._attempt(empty, own_seed, progress.on_start)
            progress.on_attempt(rollout)
            return rollout

        rollouts = await gather_or_cancel(attempt(number) for number in range(size))
        return Group(group_id=group_id, instance_id=instance_id, rollouts=tuple(rollouts))

    async def _attempt(self, rollout: Rollout, seed: int | None, on_start: Callable[[], None]) -> Rollout:
        """Run one attempt and fill in ``rollout``, which has only ids. Its slot is released before grading."""
        attempt: Attempt | None = None
        try:
            async with self._slots:
                on_start()
                started = time.monotonic()
                async with self.arena.open(rollout.instance_id) as sandbox:
                    attempt = Attempt(sandbox, self.settings, self.engine, self._heartbeat, self._threads, seed)
                    ending = await self.mode(attempt)
                    diff = await attempt.run_blocking(sandbox.diff)
                    flags = await attempt.run_blocking(sandbox.flags)
            rollout = replace(rollout, ending=ending, diff=stored_diff(diff), flags=flags)
            if diff.strip():
                grading_started = time.monotonic()
                rollout = self._with_grade(rollout, await self.arena.grade(rollout.instance_id, diff))
                attempt.record_usage("grade_s", time.monotonic() - grading_started)
        except Exception as error:
            if not isinstance(error, ExciseError | OSError | MemoryError):
                _LOG.exception("unexpected error in attempt %s", rollout.rollout_id)
            rollout = replace(rollout, ending=Ending.INFRA, detail=storable(f"{type(error).__name__}: {error}"[:1000]))
        if attempt is None:
            return rollout
        attempt.recorder.close_segment()
        usage = _usage(attempt, time.monotonic() - started)
        segments = tuple(attempt.recorder.segments)
        return replace(rollout, segments=segments, usage=usage, penalty=self.penalty(usage))

    def close(self) -> None:
        """Shut down the threads, without waiting for commands that still run in a sandbox."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _with_grade(self, rollout: Rollout, grade: Grade) -> Rollout:
        reward = grade.reward or self.settings.partial_credit * grade.partial
        return replace(rollout, grade=grade, task_reward=reward if grade.decided else 0.0)


def stored_diff(diff: str) -> str:
    """A diff as it is stored: invalid UTF-8 escaped, and only the beginning of one that is too large to be graded."""
    if len(diff.encode("utf-8", "surrogateescape")) <= MAX_DIFF_BYTES:
        return storable(diff)
    return f"{storable(diff[:SHOWN_CHARS])}\n[... larger than {MAX_DIFF_BYTES >> 20} MiB]\n"


def _usage(attempt: Attempt, wall_s: float) -> Usage:
    amounts: dict[str, Any] = {
        name: round(amount, 3) if name.endswith("_s") else int(amount) for name, amount in attempt.used.items()
    }
    return Usage(**amounts, wall_s=round(wall_s, 3), num_turns=attempt.recorder.num_turns)
