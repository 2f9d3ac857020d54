"""The controller: groups come in, steps are made, the engine gets the new weights, everything is kept.

One asyncio loop; what blocks runs in one thread beside it. Every wait has a deadline. A run that ends by itself, or is
asked to, writes a checkpoint; after a kill or an error, the last checkpoint and the journal behind it bring everything
back but the rollouts that were in flight, and those begin again.
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
from typing import TYPE_CHECKING, Any, Literal

from excise.errors import EngineError, TrainingError
from excise.trainer.interfaces import Curriculum, RolloutMaker
from excise.trainer.loop.agreement import measure, require
from excise.trainer.loop.checkpoints import Checkpoints, RunState
from excise.trainer.loop.group_queue import GroupQueue, Worth
from excise.trainer.loop.learner import Learner
from excise.trainer.loop.queue_state import Batch, QueueState, ScheduleSettings, Tally
from excise.trainer.loop.run_journal import Journal, Stepped
from excise.trainer.loop.worker import Worker
from excise.trainer.reporting.engine_metrics import MeteredEngine
from excise.trainer.reporting.metrics import MetricsWriter, group_metrics, model_flops, read_metrics, staleness
from excise.trainer.reporting.picture import draw
from excise.trainer.reporting.progress_display import Watch
from excise.trainer.rollout_types import Group

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSettings:
    """How long, how often, how patient."""

    steps: int = 100
    """Optimizer steps of the whole run, those before a resume included."""
    schedule: ScheduleSettings = field(default_factory=ScheduleSettings)
    """Groups."""
    checkpoint_every: int = 10
    """Steps; what is between two of them is in the journal."""
    keep: int = 2
    """Checkpoints."""
    tolerance: float = 0.05
    """Largest mean difference between log-probabilities of engine and trainer, in nats."""
    step_deadline_s: float = 3600.0
    """For one optimizer step, and for writing one checkpoint."""
    load_deadline_s: float = 600.0
    """For handing weights to the engine once."""
    load_tries: int = 3
    """How often that is tried."""
    patience_s: float = 3600.0
    """Longest wait for tasks that have been asked for, once none is left. Without a request, the run ends at once."""
    empty_batches: int = 3
    """That many deadlines in a row without a single group end the run."""
    measure_after: bool = False
    """Also measure the divergence from the teacher after each step (one more pass)."""
    peak_tflops: float = 0.0
    """Of this machine, for ``mfu``; 0 leaves it out."""
    tensorboard: bool = True
    """Write TensorBoard events."""
    tracker: Literal["", "wandb", "trackio"] = ""
    """Also tell one of these, as its own variables and settings say (``WANDB_MODE=offline``, for example)."""

    @property
    def silence_s(self) -> float:
        """Longest that rank 0 may have nothing for the others to do."""
        waits = self.schedule.batch_deadline_s * self.empty_batches, self.patience_s, self.step_deadline_s
        return max(waits) + self.load_deadline_s * self.load_tries + 60.0


class End(StrEnum):
    """Why a run ended."""

    STEPS = "steps"
    """All steps are made."""
    EXHAUSTED = "exhausted"
    """No task is left, and none came."""
    STOPPED = "stopped"
    """Somebody asked for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a run is made of."""

    learner: Learner
    """The policy."""
    engine: MeteredEngine
    """Samples; its users have this same object."""
    maker: RolloutMaker
    """Makes groups."""
    curriculum: Curriculum
    """Chooses tasks."""
    worth: Worth = lambda group: group.has_signal
    """Whether a group fills a place in a batch."""
    lessons: Worth | None = None
    """Whether a group that does not goes along."""
    prepare: Callable[[Group], Group] | None = None
    """Done to finished groups (the effort penalty)."""
    tier_of: Callable[[str], float | None] | None = None
    """Rung of a task."""
    keep_rollouts: Callable[[int, Sequence[Group]], None] | None = None
    """Stores the groups that were settled up to a step."""


class Loop:
    """One run in one folder."""

    def __init__(self, parts: Parts, settings: LoopSettings, folder: Path, watch: Watch) -> None:
        self.step = 0
        self._parts, self._settings, self._folder, self._watch = parts, settings, folder, watch
        self._checkpoints = Checkpoints(folder / "checkpoints", keep=settings.keep, ranks=parts.learner.ranks)
        self._journal = Journal(folder / "journal")
        self._worker = Worker()
        self._queue: GroupQueue
        self._metrics: MetricsWriter
        self._saved = -1
        self._stopping = False
        self._recovered = False
        self._spent: dict[str, float] = {}
        """Seconds of what came behind the last step, for the next one's metrics."""

    async def run(self, *, resume: bool = False) -> End:
        """Train. Raises :class:`TrainingError` if it cannot begin or go on; what is finished is kept.

        Without ``resume`` the folder must not hold a run.
        """
        self._checkpoints.mend()
        begun = self._checkpoints.steps() or self._journal.since(0)
        if begun and not resume:
            raise TrainingError(
                f"{self._folder} holds a run already: go on with --resume, or choose another folder.", reason="exists"
            )
        self._queue = GroupQueue(
            self._parts.maker,
            self._parts.curriculum,
            self._journal,
            self._settings.schedule,
            worth=self._parts.worth,
            lessons=self._parts.lessons,
            prepare=self._parts.prepare,
        )
        try:
            with self._signals():
                await self._recover()
                return await self._train()
        finally:
            await self._queue.close()
            if hasattr(self, "_metrics"):
                self._metrics.close()
                draw(read_metrics(self._folder / "metrics.jsonl"), self._folder / "progress.svg", self._folder.name)

    def stop(self) -> None:
        """End after what is being done right now."""
        self._stopping = True
        self._queue.stop()
        self._watch.status("stopping")

    @property
    def num_running(self) -> int:
        """Groups that are being made."""
        return self._queue.num_running

    async def _recover(self) -> None:
        """Back to where the last run of this folder was, or to the beginning."""
        steps = self._checkpoints.steps()
        if not steps and self._journal.first() > 1:
            raise TrainingError(
                f"{self._folder} has a journal, but not the checkpoint that it goes on from. Put checkpoints/ back, or "
                "choose another folder to begin anew.",
                reason="checkpoint",
            )
        state = RunState(step=0, queue=QueueState())
        if steps:
            self._watch.status(f"reading the checkpoint of step {steps[-1]}")
            state = await self._blocking(
                self._checkpoints.load, steps[-1], self._parts.learner, what="Reading the checkpoint"
            )
            self._parts.curriculum.restore(state.curriculum)
            self._queue.restore(state.queue)
        self.step = self._queue.version = self._saved = state.step
        self._metrics = MetricsWriter(
            self._folder, tensorboard=self._settings.tensorboard, tracker=self._settings.tracker, after=self.step
        )
        events = self._journal.since(state.journal)
        self._journal.begin()
        for step, groups in self._queue.replay(events):
            self._watch.status(f"making step {step} again")
            await self._learn(groups, {}, self._queue.tally)
            assert self.step == step, "the journal has every step"
        if self.step > self._saved:
            await self._save()
        await self._load_engine()
        self._watch.status("comparing engine and trainer")
        found = await measure(
            self._parts.engine, self._parts.learner, self._worker, deadline_s=self._settings.load_deadline_s
        )
        self._watch.say(f"Engine and trainer are {found.mean:.1e} nats apart on average, {found.largest:.1e} at most.")
        require(found, self._settings.tolerance)
        self._queue.start_again()
        self._recovered = True

    async def _train(self) -> End:
        empty = 0
        end = End.STEPS
        while self.step < self._settings.steps:
            self._watch.status("waiting for rollouts")
            began = time.monotonic()
            batch = await self._queue.batch()
            if self._stopping:
                self._queue.put_back(batch)
                end = End.STOPPED
                break
            if batch.groups:
                empty = 0
                await self._step(batch, began)
            elif self._queue.num_running:
                empty += 1
                self._require_patience(empty)
            elif not await self._new_tasks():
                end = End.STOPPED if self._stopping else End.EXHAUSTED
                why = self._parts.curriculum.why_empty()
                if end is End.EXHAUSTED and self.step == 0:
                    raise TrainingError(f"There was nothing to train on. {why}", reason="no_groups")
                self._watch.say(why)
                break
        self._queue.stop()
        await self._keep(self.step + 1, self._queue.tally.settled)
        if self._saved != self.step:  # what came since is in the journal
            await self._save()
        return end

    async def _step(self, batch: Batch, began: float) -> None:
        self._journal.write(Stepped(step=self.step + 1, numbers=batch.numbers))
        tally, self._queue.tally = self._queue.tally, Tally()
        await self._learn(batch.groups, {"wait_s": time.monotonic() - began}, tally)
        began = time.monotonic()
        await self._load_engine()
        self._spent = {"load_s": time.monotonic() - began}
        self._queue.release()
        if self.step % self._settings.checkpoint_every == 0 and self.step < self._settings.steps:
            began = time.monotonic()
            await self._save()
            self._spent["checkpoint_s"] = time.monotonic() - began

    async def _learn(self, groups: Sequence[Group], known: dict[str, float], tally: Tally) -> None:
        """One step, its metrics, its rollouts."""
        self._watch.status(f"training on {len(groups)} groups")
        learner, began = self._parts.learner, time.monotonic()
        metrics = await self._blocking(learner.step, groups, self.step, what="A step")
        metrics |= (
            known | self._spent | staleness(groups, self.step) | group_metrics(tally.settled, self._parts.tier_of)
        )
        metrics |= {"replaced": float(tally.replaced), "failures": float(tally.failed), "lost": float(tally.lost)}
        metrics["batch_groups"] = float(len(groups))
        if self._settings.measure_after and "hint_kl" in metrics:
            metrics["hint_kl_after"] = await self._blocking(learner.lesson_kl, groups, what="Measuring lessons")
        self.step += 1
        self._queue.version = self.step
        metrics["step_s"] = time.monotonic() - began + known.get("wait_s", 0.0)
        if self._settings.peak_tflops:
            done = model_flops(sum(p.numel() for p in learner.model.parameters()), metrics["trained_tokens"])
            metrics["mfu"] = done / (metrics["step_s"] * 1e12 * self._settings.peak_tflops)
        metrics |= self._parts.engine.reading()
        metrics |= {f"pool/{name}": value for name, value in self._parts.curriculum.summary().items()}
        self._metrics.write(self.step, metrics)
        await self._keep(self.step, tally.settled)
        self._watch.step(self.step, metrics)

    async def _keep(self, step: int, groups: Sequence[Group]) -> None:
        """Store rollouts; those after the last step with the next one's number, which has them if the run goes on."""
        if self._parts.keep_rollouts is not None and groups:
            await self._blocking(self._parts.keep_rollouts, step, groups, what="Storing rollouts")

    async def _load_engine(self) -> None:
        """Hand the weights over. Raises :class:`TrainingError` if the engine does not take them."""
        self._watch.status("handing weights to the engine")
        engine, learner = self._parts.engine, self._parts.learner
        whole: list[tuple[str, torch.Tensor]] = []
        if learner.ranks.world > 1:  # all ranks put them together, once, however often the engine is tried
            whole = await self._blocking(_on_this_machine, learner.weights, what="Putting the weights together")
        for attempt in range(1, self._settings.load_tries + 1):
            weights = iter(whole) if whole else learner.weights()
            given = learner.as_saved(weights) if engine.reads_files else weights
            loading = asyncio.ensure_future(engine.load(given, self.step))
            waiting = asyncio.ensure_future(asyncio.wait([loading], timeout=self._settings.load_deadline_s))
            done, _ = await (self._queue.attend(waiting) if self._recovered else waiting)
            if not done:
                loading.cancel()
                problem = f"not done in {self._settings.load_deadline_s:.0f} s"
            elif isinstance(error := loading.exception(), EngineError):
                problem = str(error)
            else:
                return loading.result()
            self._watch.say(f"The engine did not take the weights ({problem}), attempt {attempt}.")
            await asyncio.sleep(min(5.0, attempt))
        raise TrainingError(f"The engine does not take new weights: {problem}", reason="engine_gone")

    async def _save(self) -> None:
        self._watch.status("writing a checkpoint")
        queue = self._queue.state()
        state = RunState(
            step=self.step, queue=queue, curriculum=self._parts.curriculum.state(), journal=self._journal.begin()
        )
        await self._blocking(self._checkpoints.save, self._parts.learner, state, what="Writing a checkpoint")
        self._saved = self.step
        self._journal.drop_before(min(self._checkpoints.read(step).journal for step in self._checkpoints.steps()))

    async def _blocking(self, function: Callable[..., Any], *arguments: Any, what: str) -> Any:
        work = self._worker.start(function, *arguments, deadline_s=self._settings.step_deadline_s, what=what)
        return await (self._queue.attend(work) if self._recovered else work)

    async def _new_tasks(self) -> bool:
        """Whether a task came of those that were asked for."""
        until = time.monotonic() + self._settings.patience_s
        while not self._stopping and self._parts.curriculum.is_waiting and time.monotonic() < until:
            self._watch.status("no task is left; waiting for those that were asked for")
            await asyncio.sleep(min(1.0, max(0.0, until - time.monotonic())))
            if self._queue.more():
                return True
        return False

    def _require_patience(self, empty: int) -> None:
        if empty >= self._settings.empty_batches:
            last = f" The last failure: {self._queue.last_failure}." if self._queue.last_failure else ""
            raise TrainingError(
                f"Not one group to learn from in {empty} times {self._settings.schedule.batch_deadline_s:.0f} s."
                + last,
                reason="no_groups",
            )

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """A first SIGTERM or SIGINT ends the run cleanly, a second one at once."""
        loop = asyncio.get_running_loop()
        handled = (signal.SIGTERM, signal.SIGINT)

        def first() -> None:
            self.stop()
            for number in handled:
                loop.remove_signal_handler(number)

        try:
            for number in handled:
                loop.add_signal_handler(number, first)
        except (RuntimeError, ValueError, NotImplementedError):
            pass  # not in the main thread: whoever owns that stops the run
        try:
            yield
        finally:
            with contextlib.suppress(RuntimeError, ValueError, NotImplementedError):
                for number in handled:
                    loop.remove_signal_handler(number)


def _on_this_machine(weights: Callable[[], Iterable[tuple[str, torch.Tensor]]]) -> list[tuple[str, torch.Tensor]]:
    return [(name, tensor.cpu()) for name, tensor in weights()]
