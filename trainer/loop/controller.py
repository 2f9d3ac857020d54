"""The training loop: takes batches from the queue, makes optimizer steps, loads the weights into the engine.

It is one asyncio loop; blocking calls run in one thread beside it, and every wait has a deadline. A run that ends by
itself or is stopped writes a checkpoint. After a kill or an error, the last checkpoint and the journal written since
restore everything except attempts in progress, which are made again.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from excise.errors import EngineError, TrainingError
from excise.trainer.concurrency import BackgroundWorker
from excise.trainer.interfaces import Curriculum, Engine, RolloutMaker
from excise.trainer.loop.checkpoints import Checkpoints, RunState
from excise.trainer.loop.group_queue import GroupQueue, GroupRules
from excise.trainer.loop.learner import Learner
from excise.trainer.loop.queue_state import Batch, QueueCounts, QueueState, ScheduleSettings
from excise.trainer.loop.run_journal import Journal, Stepped
from excise.trainer.reporting.engine_metrics import MeteredEngine
from excise.trainer.reporting.metrics import (
    MetricsWriter,
    group_metrics,
    model_flops,
    plot_progress,
    read_metrics,
    staleness,
)
from excise.trainer.reporting.progress_display import ProgressDisplay
from excise.trainer.rollout_types import Group, Sampling, Stop

if TYPE_CHECKING:
    import torch

CHECK_ANSWERS = 4
"""Number of answers sampled to compare engine and trainer before the first step."""
CHECK_TOKENS = 48
"""Number of tokens of each of these answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSettings:
    """``[loop]``: number of steps, checkpoints, deadlines and reports."""

    steps: Annotated[int, Field(gt=0)] = 100
    """Optimizer steps of the whole run, including those before a resume."""
    schedule: ScheduleSettings = field(default_factory=ScheduleSettings)
    """Batch size, staleness, retries."""
    checkpoint_every: Annotated[int, Field(gt=0)] = 10
    """Steps between checkpoints; all later results are in the journal."""
    keep: Annotated[int, Field(gt=0)] = 2
    """Number of checkpoints to keep."""
    tolerance: Annotated[float, Field(gt=0)] = 0.05
    """Largest mean difference of log-probabilities between engine and trainer at the start, in nats."""
    step_deadline_s: Annotated[float, Field(gt=0)] = 3600.0
    """Timeout in seconds of one optimizer step, and of writing one checkpoint."""
    load_deadline_s: Annotated[float, Field(gt=0)] = 600.0
    """Seconds to wait for the engine to accept weights, in each try."""
    load_tries: Annotated[int, Field(gt=0)] = 3
    """Number of tries to load weights into the engine."""
    patience_s: Annotated[float, Field(ge=0)] = 3600.0
    """Seconds to wait for requested tasks when no task is left. Without a pending request the run ends at once."""
    empty_batches: Annotated[int, Field(gt=0)] = 3
    """Batch deadlines in a row without a single finished group after which the run fails."""
    measure_after: bool = False
    """Also measure the divergence from the teacher after each step (costs one more forward pass)."""
    peak_tflops: Annotated[float, Field(ge=0)] = 0.0
    """Peak performance of this machine in TFLOP/s, for the metric ``mfu``; 0 omits the metric."""
    tensorboard: bool = True
    """Write TensorBoard events."""
    tracker: Literal["", "wandb", "trackio"] = ""
    """Also send metrics to this tracker, configured by its own variables (``WANDB_MODE=offline``, for example)."""

    @property
    def max_idle_s(self) -> float:
        """Longest time in seconds for which rank 0 may have no command for the other ranks."""
        waits = self.schedule.batch_deadline_s * self.empty_batches, self.patience_s, self.step_deadline_s
        return max(waits) + self.load_deadline_s * self.load_tries + 60.0


class RunEnd(StrEnum):
    """Why a run ended."""

    STEPS = "steps"
    """All steps were made."""
    EXHAUSTED = "exhausted"
    """No task is left, and none arrived."""
    STOPPED = "stopped"
    """A signal arrived, or :meth:`Controller.stop` was called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComponents:
    """The components of a run."""

    learner: Learner
    """The policy and its optimizer."""
    engine: MeteredEngine
    """The engine that samples; all components use it through this wrapper, so that its metrics are complete."""
    maker: RolloutMaker
    """Makes groups of rollouts."""
    curriculum: Curriculum
    """Chooses tasks."""
    rules: GroupRules = field(default_factory=GroupRules)
    """Rules for the use of finished groups."""
    tier_of: Callable[[str], float | None] | None = None
    """Instance id to the difficulty of a task (the height of its rung), for metrics."""
    store_rollouts: Callable[[int, Sequence[Group]], None] | None = None
    """Stores the groups that were settled up to a step: (step, groups)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogprobDifference:
    """Difference between the log-probabilities that engine and trainer give the same tokens, in nats."""

    mean: float
    """Mean absolute difference."""
    largest: float
    """Largest absolute difference."""
    num_tokens: int
    """Number of tokens compared."""


async def measure_logprob_difference(
    engine: Engine,
    learner: Learner,
    worker: BackgroundWorker,
    *,
    deadline_s: float = 600.0,
) -> LogprobDifference:
    """Sample some answers and compare the engine's log-probabilities with the trainer's.

    The prompts are the first ids of the vocabulary; any prompt would do. Raises :class:`TrainingError` after the
    deadline, or if the engine gives no answer.
    """
    prompts = [list(range(1, 9 + number)) for number in range(CHECK_ANSWERS)]
    temperature = learner.settings.temperature
    sampling = Sampling(max_tokens=CHECK_TOKENS, temperature=temperature, seed=0)
    try:
        answers = await asyncio.wait_for(engine.generate(prompts, sampling), deadline_s)
    except TimeoutError:
        raise TrainingError(f"The engine gave no answer in {deadline_s:.0f} s.", reason="engine_slow") from None
    answered = [(p, a) for p, a in zip(prompts, answers, strict=True) if a.ids and a.stop is not Stop.ABORTED]
    if not answered:
        raise TrainingError("The engine gives no answers; its own log says why.", reason="engine_silent")
    ids = [[*prompt, *answer.ids] for prompt, answer in answered]
    ours = await worker.start(learner.score, ids, temperature, deadline_s=deadline_s, what="Comparing")
    differences = [
        abs(mine - theirs)
        for (prompt, answer), scored in zip(answered, ours, strict=True)
        for mine, theirs in zip(scored[len(prompt) :], answer.logprobs, strict=True)
    ]
    return LogprobDifference(
        mean=sum(differences) / len(differences), largest=max(differences), num_tokens=len(differences)
    )


def require_agreement(difference: LogprobDifference, tolerance: float) -> None:
    """Raise :class:`TrainingError` if the mean difference is above ``tolerance``."""
    if not difference.mean <= tolerance:  # also true for nan
        raise TrainingError(
            f"Engine and trainer disagree: log-probabilities of {difference.num_tokens} sampled tokens differ by "
            f"{difference.mean:.4f} on average and {difference.largest:.4f} at most; {tolerance} on average is "
            "allowed. Do both have the same weights, number format and temperature, and does the engine cut nothing "
            "off (top-p, top-k)?",
            reason="engine_disagrees",
        )


class Controller:
    """Runs the training loop in one run folder."""

    def __init__(
        self, components: RunComponents, settings: LoopSettings, folder: Path, display: ProgressDisplay
    ) -> None:
        self.step = 0
        """Optimizer steps made; also the version of the weights."""
        self._components, self._settings, self._folder, self._display = components, settings, folder, display
        self._checkpoints = Checkpoints(folder / "checkpoints", keep=settings.keep, ranks=components.learner.ranks)
        self._journal = Journal(folder / "journal")
        self._worker = BackgroundWorker()
        self._queue: GroupQueue
        self._metrics: MetricsWriter
        self._saved_step = -1
        self._stopping = False
        self._recovered = False
        self._seconds_after_step: dict[str, float] = {}
        """Metrics of loading weights and writing a checkpoint after the last step, reported with the next step."""

    async def run(self, *, resume: bool = False) -> RunEnd:
        """Train until the run ends. Without ``resume`` the folder must not contain a run.

        Raises :class:`TrainingError` if the run cannot start or continue; everything finished is on the disk.
        """
        self._checkpoints.recover()
        exists = self._checkpoints.steps() or self._journal.since(0)
        if exists and not resume:
            raise TrainingError(
                f"{self._folder} holds a run already: go on with --resume, or choose another folder.", reason="exists"
            )
        self._queue = GroupQueue(
            self._components.maker,
            self._components.curriculum,
            self._journal,
            self._settings.schedule,
            self._components.rules,
        )
        try:
            with self._handled_signals():
                await self._recover()
                return await self._train()
        finally:
            await self._queue.close()
            if hasattr(self, "_metrics"):
                self._metrics.close()
                plot_progress(
                    read_metrics(self._folder / "metrics.jsonl"), self._folder / "progress.svg", self._folder.name
                )

    def stop(self) -> None:
        """End the run after the current operation."""
        self._stopping = True
        self._queue.stop()
        self._display.status("stopping")

    @property
    def num_running(self) -> int:
        """Number of running groups."""
        return self._queue.num_running

    async def _recover(self) -> None:
        """Restore the state of the last run of this folder, or start a new one; then load and check the engine."""
        steps = self._checkpoints.steps()
        if not steps and self._journal.first_number() > 1:
            raise TrainingError(
                f"{self._folder} has a journal, but not the checkpoint that it goes on from. Put checkpoints/ back, or "
                "choose another folder to begin anew.",
                reason="checkpoint",
            )
        state = RunState(step=0, queue=QueueState())
        if steps:
            self._display.status(f"reading the checkpoint of step {steps[-1]}")
            state = await self._blocking(
                self._checkpoints.load, steps[-1], self._components.learner, what="Reading the checkpoint"
            )
            self._components.curriculum.restore(state.curriculum)
            self._queue.restore(state.queue)
        self.step = self._queue.version = self._saved_step = state.step
        self._metrics = MetricsWriter(
            self._folder, tensorboard=self._settings.tensorboard, tracker=self._settings.tracker, after=self.step
        )
        events = self._journal.since(state.journal)
        self._journal.start_file()
        for step, groups in self._queue.replay(events):
            self._display.status(f"making step {step} again")
            await self._learn(groups, {}, self._queue.counts)
            assert self.step == step, "the journal contains every step"
        if self.step > self._saved_step:
            await self._save()
        await self._load_engine()
        self._display.status("comparing engine and trainer")
        difference = await measure_logprob_difference(
            self._components.engine, self._components.learner, self._worker, deadline_s=self._settings.load_deadline_s
        )
        self._display.message(
            f"Engine and trainer are {difference.mean:.1e} nats apart on average, {difference.largest:.1e} at most."
        )
        require_agreement(difference, self._settings.tolerance)
        self._queue.start_waiting()
        self._recovered = True

    async def _train(self) -> RunEnd:
        empty = 0
        end = RunEnd.STEPS
        while self.step < self._settings.steps:
            self._display.status("waiting for rollouts")
            started = time.monotonic()
            batch = await self._queue.next_batch()
            if self._stopping:
                self._queue.put_back(batch)
                end = RunEnd.STOPPED
                break
            if batch.groups:
                empty = 0
                await self._step(batch, started)
            elif self._queue.num_running:
                empty += 1
                self._require_groups(empty)
            elif not await self._wait_for_tasks():
                end = RunEnd.STOPPED if self._stopping else RunEnd.EXHAUSTED
                why = self._components.curriculum.why_empty()
                if end is RunEnd.EXHAUSTED and self.step == 0:
                    raise TrainingError(f"There was nothing to train on. {why}", reason="no_groups")
                self._display.message(why)
                break
        self._queue.stop()
        await self._store(self.step + 1, self._queue.counts.settled)
        if self._saved_step != self.step:  # later results are in the journal
            await self._save()
        return end

    async def _step(self, batch: Batch, wait_started: float) -> None:
        self._journal.write(Stepped(step=self.step + 1, numbers=batch.numbers))
        counts, self._queue.counts = self._queue.counts, QueueCounts()
        await self._learn(batch.groups, {"wait_s": time.monotonic() - wait_started}, counts)
        started = time.monotonic()
        await self._load_engine()
        self._seconds_after_step = {"load_s": time.monotonic() - started}
        self._queue.release_batch()
        if self.step % self._settings.checkpoint_every == 0 and self.step < self._settings.steps:
            started = time.monotonic()
            await self._save()
            self._seconds_after_step["checkpoint_s"] = time.monotonic() - started

    async def _learn(self, groups: Sequence[Group], timings: dict[str, float], counts: QueueCounts) -> None:
        """Make one optimizer step, write its metrics, and store the rollouts of groups settled since the last step."""
        self._display.status(f"training on {len(groups)} groups")
        learner, started = self._components.learner, time.monotonic()
        metrics = await self._blocking(learner.step, groups, self.step, what="A step")
        metrics |= (
            timings
            | self._seconds_after_step
            | staleness(groups, self.step)
            | group_metrics(counts.settled, self._components.tier_of)
        )
        metrics |= {"replaced": float(counts.replaced), "failures": float(counts.failed), "lost": float(counts.lost)}
        metrics["batch_groups"] = float(len(groups))
        if self._settings.measure_after and "hint_kl" in metrics:
            metrics["hint_kl_after"] = await self._blocking(learner.lesson_kl, groups, what="Measuring lessons")
        self.step += 1
        self._queue.version = self.step
        metrics["step_s"] = time.monotonic() - started + timings.get("wait_s", 0.0)
        if self._settings.peak_tflops:
            flops = model_flops(sum(p.numel() for p in learner.model.parameters()), metrics["trained_tokens"])
            metrics["mfu"] = flops / (metrics["step_s"] * 1e12 * self._settings.peak_tflops)
        metrics |= self._components.engine.take_metrics()
        metrics |= {f"pool/{name}": value for name, value in self._components.curriculum.summary().items()}
        self._metrics.write(self.step, metrics)
        await self._store(self.step, counts.settled)
        self._display.step(self.step, metrics)

    async def _store(self, step: int, groups: Sequence[Group]) -> None:
        """Store rollouts. Those settled after the last step get the number of the next step."""
        if self._components.store_rollouts is not None and groups:
            await self._blocking(self._components.store_rollouts, step, groups, what="Storing rollouts")

    async def _load_engine(self) -> None:
        """Load the weights into the engine. Raises :class:`TrainingError` if it does not accept them."""
        self._display.status("handing weights to the engine")
        engine, learner = self._components.engine, self._components.learner
        gathered: list[tuple[str, torch.Tensor]] = []
        if learner.ranks.world_size > 1:  # gathered from all ranks once, not in each try
            gathered = await self._blocking(_on_cpu, learner.weights, what="Putting the weights together")
        for attempt in range(1, self._settings.load_tries + 1):
            weights = iter(gathered) if gathered else learner.weights()
            named = learner.with_checkpoint_names(weights) if engine.needs_checkpoint_names else weights
            loading = asyncio.ensure_future(engine.load(named, self.step))
            waiting = asyncio.ensure_future(asyncio.wait([loading], timeout=self._settings.load_deadline_s))
            done, _ = await (self._queue.run_beside(waiting) if self._recovered else waiting)
            if not done:
                loading.cancel()
                problem = f"not done in {self._settings.load_deadline_s:.0f} s"
            elif isinstance(error := loading.exception(), EngineError):
                problem = str(error)
            else:
                return loading.result()
            self._display.message(f"The engine did not take the weights ({problem}), attempt {attempt}.")
            await asyncio.sleep(min(5.0, attempt))
        raise TrainingError(f"The engine does not take new weights: {problem}", reason="engine_gone")

    async def _save(self) -> None:
        self._display.status("writing a checkpoint")
        queue = self._queue.state()
        state = RunState(
            step=self.step,
            queue=queue,
            curriculum=self._components.curriculum.state(),
            journal=self._journal.start_file(),
        )
        await self._blocking(self._checkpoints.save, self._components.learner, state, what="Writing a checkpoint")
        self._saved_step = self.step
        self._journal.drop_before(min(self._checkpoints.read(step).journal for step in self._checkpoints.steps()))

    async def _blocking(self, function: Callable[..., Any], *arguments: Any, what: str) -> Any:
        work = self._worker.start(function, *arguments, deadline_s=self._settings.step_deadline_s, what=what)
        return await (self._queue.run_beside(work) if self._recovered else work)

    async def _wait_for_tasks(self) -> bool:
        """Wait for requested tasks. Returns whether one arrived and its group was started."""
        until = time.monotonic() + self._settings.patience_s
        while not self._stopping and self._components.curriculum.has_pending_requests and time.monotonic() < until:
            self._display.status("no task is left; waiting for those that were asked for")
            await asyncio.sleep(min(1.0, max(0.0, until - time.monotonic())))
            if self._queue.start_more():
                return True
        return False

    def _require_groups(self, empty: int) -> None:
        """Raise :class:`TrainingError` after too many batch deadlines in a row without any group."""
        if empty >= self._settings.empty_batches:
            last = f" The last failure: {self._queue.last_failure}." if self._queue.last_failure else ""
            raise TrainingError(
                f"Not one group to learn from in {empty} times {self._settings.schedule.batch_deadline_s:.0f} s."
                + last,
                reason="no_groups",
            )

    @contextlib.contextmanager
    def _handled_signals(self) -> Iterator[None]:
        """Install signal handlers: the first SIGTERM or SIGINT ends the run cleanly, the second one at once."""
        loop = asyncio.get_running_loop()
        handled = (signal.SIGTERM, signal.SIGINT)

        def on_signal() -> None:
            self.stop()
            for number in handled:
                loop.remove_signal_handler(number)

        try:
            for number in handled:
                loop.add_signal_handler(number, on_signal)
        except (RuntimeError, ValueError, NotImplementedError):
            pass  # only the main thread can handle signals; there, the caller stops the run
        try:
            yield
        finally:
            with contextlib.suppress(RuntimeError, ValueError, NotImplementedError):
                for number in handled:
                    loop.remove_signal_handler(number)


def _on_cpu(weights: Callable[[], Iterable[tuple[str, torch.Tensor]]]) -> list[tuple[str, torch.Tensor]]:
    return [(name, tensor.cpu()) for name, tensor in weights()]
