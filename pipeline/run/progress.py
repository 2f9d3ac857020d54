"""Shows the progress of a run on stderr: a live table on a terminal, plain lines elsewhere, nothing when quiet.

Names and reasons are untrusted and may look like rich's markup (``pypi:uvicorn[standard]``, ``[/x]``), so they are
printed through :func:`literal`.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from excise.config import Settings
from excise.datasets.storage.manifest import SnapshotReport
from excise.datasets.storage.near_duplicates import NearDuplicate
from excise.pipeline.run.source_state import SourceState
from excise.types import Task

LINE_EVERY_S = 20.0
"""Seconds between two summaries if stderr is no terminal."""
SHOWN_SYMBOLS = 3
"""Removed symbols of a task that are printed."""
OTHER_WORK_S = 4.0
"""What the rest of a source's work takes, in seconds for each run of its suite: a dozen for each source."""
SHOWN_LINES = 12
"""Lines of the first task's statement that are printed."""
MAX_DETAIL = 300
"""Maximum number of characters of the reason why a source is refused, in the table at the end."""
MAX_NOTE = 400
"""Maximum number of characters of a note."""
MAX_NEAR_DUPLICATES = 10
"""Near-duplicates that are printed after a run."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_STAGES = ("waiting", "fetch", "environment", "model", "baseline", "coverage", "find", "propose", "prove", "done")


def literal(text: str, style: str = "") -> Text:
    """Return untrusted text without interpretation of markup, and with control characters replaced."""
    return Text(_CONTROL.sub("�", text), style=style)


class Progress:
    """A listener of :func:`excise.pipeline.run.graph.run`."""

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        self.console = console
        self.quiet = quiet
        self.began = time.monotonic()
        self._live = Live(console=console, refresh_per_second=4, transient=True) if console.is_terminal else None
        self._last = 0.0
        self._states: Sequence[SourceState] = ()
        self._reported: dict[str, str] = {}
        self._tasks: set[str] = set()
        """Ids of tasks that were printed."""
        self._told: set[str] = set()
        """Names of the sources of which was told what tests they lack."""
        self._ended = threading.Event()
        self._heartbeat = threading.Thread(target=self._repeat, daemon=True)

    def __enter__(self) -> Progress:
        if self._live is not None and not self.quiet:
            self._live.start()
        self._heartbeat.start()
        return self

    def _repeat(self) -> None:
        """Show the state at regular intervals, even if nothing changes."""
        while not self._ended.wait(LINE_EVERY_S):
            self._show()

    def _show(self) -> None:
        if self.quiet or not self._states:
            return
        if self._live is not None:
            self._live.update(self.table(self._states))
        elif time.monotonic() - self._last > LINE_EVERY_S:
            self._last = time.monotonic()
            self._line(self.summary(self._states))

    def note(self, text: str) -> None:
        """Print a message for the user, whatever happens beside it."""
        if not self.quiet:
            self._line(text)

    def _line(self, text: str) -> None:
        self.console.print(literal(f"{self.clock()} {text}"), soft_wrap=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._heartbeat.join()
        if self._live is not None and not self.quiet:
            self._live.stop()

    def __call__(self, states: Sequence[SourceState]) -> None:
        """Show what changed."""
        self._states = states
        for state in states:
            stage = "done" if state.done else state.running_stage
            if self._reported.get(state.name, "") != stage:
                self._reported[state.name] = stage
                self._tell_of_tests(state)
                if not self.quiet and self._live is None:
                    self._line(f"{state.name}: {self.describe(state)}")
            for instance_id in state.tasks.keys() - self._tasks:
                self._show_task(state.tasks[instance_id])
        self._show()

    def _show_task(self, task: Task) -> None:
        """Print a line for a new task; the beginning of its statement too if it is the run's first."""
        is_first = not self._tasks
        self._tasks.add(task.instance_id)
        if self.quiet:
            return
        size = f"{task.difficulty.loc} lines removed, {len(task.fail_to_pass)} tests fail without them"
        more = len(task.removed) - SHOWN_SYMBOLS
        removed = ", ".join(task.removed[:SHOWN_SYMBOLS]) + (f" and {more} more" if more > 0 else "")
        self._line(f"{'first task: ' if is_first else ''}{task.instance_id}: {removed} ({size})")
        if is_first:
            lines = [line for line in task.problem_statement.splitlines() if line.strip()]
            shown = [*lines[:SHOWN_LINES], *(["…"] if len(lines) > SHOWN_LINES else [])]
            for line in shown:
                self.console.print(literal(f"    | {line}"), soft_wrap=True)

    def _tell_of_tests(self, state: SourceState) -> None:
        """Print once how many test files of a project cannot be used."""
        if state.prepared is None or state.prepared.baseline is None or state.name in self._told:
            return
        self._told.add(state.name)
        lost = [f"{path}: {error}" for path, error in sorted(state.prepared.baseline.uncollected.items())]
        lost += [line for line in state.prepared.environment.recipe.evidence if ": left out, since" in line]
        if lost:
            files = "file of tests" if len(lost) == 1 else "files of tests"
            text = f"{state.name}: {len(lost)} {files} cannot be used (`excise env` lists them), first {lost[0]}"
            self.note(text.partition("\n")[0][:MAX_NOTE])

    def clock(self) -> str:
        """Minutes and seconds since the start."""
        seconds = int(time.monotonic() - self.began)
        return f"[{seconds // 60:02d}:{seconds % 60:02d}]"

    def describe(self, state: SourceState) -> str:
        """Describe the state of one source in a few words."""
        if state.failure is not None:
            return f"refused at {state.failure.stage}: {state.failure.reason}"
        if state.stage == "done":
            return f"done, {state.num_tasks} tasks of {state.tried} candidates tried"
        if state.running_stage == "prove" and state.proposed is not None:
            return f"{len(state.proposed.features)} features proposed"
        return state.running_stage

    def summary(self, states: Sequence[SourceState]) -> str:
        """Summarise all sources in one line, with an estimate of the remaining time."""
        tasks, tried = sum(s.num_tasks for s in states), sum(s.tried for s in states)
        done = sum(s.done for s in states)
        line = f"{done}/{len(states)} sources done, {tasks} tasks, {tried} candidates tried"
        left = self.time_left(states)
        return (f"{line}, about {left} left" if left else line) + self.longest_running(states)

    def longest_running(self, states: Sequence[SourceState]) -> str:
        """Describe the source whose running stage was started first; empty if no stage is running."""
        begun = [state for state in states if state.num_running and not state.done]
        if not begun:
            return ""
        state = min(begun, key=lambda s: s.running_since)
        return f"; {state.name} at {state.running_stage} for {time.monotonic() - state.running_since:.0f} s"

    def time_left(self, states: Sequence[SourceState]) -> str:
        """Estimate the remaining time from the share of finished work; empty before a tenth is finished, and before
        the first task or the end of a source, since stages differ by a factor of a hundred between projects.

        A source counts for what one run of its suite takes, and for what its other work takes with any suite.
        """
        if not any(state.done or state.num_tasks for state in states):
            return ""
        suites = {s.name: s.prepared.baseline.suite_s() for s in states if s.prepared and s.prepared.baseline}
        usual = sum(suites.values()) / max(1, len(suites))
        weights = [OTHER_WORK_S + suites.get(state.name, usual) for state in states]
        finished = sum(weight * self.progress_of(s) for weight, s in zip(weights, states, strict=True))
        share = finished / max(1.0, sum(weights))
        passed = time.monotonic() - self.began
        if share < 0.1 or share >= 1:
            return ""
        minutes = passed * (1 - share) / share / 60
        return f"{minutes:.0f} min" if minutes >= 1.5 else f"{60 * minutes:.0f} s"

    def progress_of(self, state: SourceState) -> float:
        """Estimate the share of one source's work that is finished, from 0 to 1."""
        if state.done:
            return 1.0
        if state.stage == "prove":
            total = state.limit or state.tried + len(state.pending)
            return 0.4 + 0.6 * min(1.0, (state.num_tasks if state.limit else state.tried) / max(1, total))
        return 0.08 * _STAGES.index(state.stage)

    def table(self, states: Sequence[SourceState]) -> Table:
        """The live view: one row a source, its counts from left to right."""
        table = Table(title=literal(self.summary(states)), title_justify="left", box=None, pad_edge=False)
        for name in ("source", "stage", "tests", "passing", "covered", "features", "tried", "tasks"):
            table.add_column(name, justify="left" if name in {"source", "stage"} else "right")
        for state in states:
            report = state.report()
            queued = state.stage != "waiting" and not state.num_running and not state.done
            stage = literal(f"{state.stage} (queued)" if queued else state.stage)
            stage = literal(state.failure.reason, "red") if state.failure else stage
            numbers = [report.num_tests, report.num_passing, report.num_covered, report.num_features]
            table.add_row(literal(state.name), stage, *(str(n or "") for n in [*numbers, state.tried, state.num_tasks]))
        return table


def funnel(states: Sequence[SourceState]) -> Table:
    """Return the table printed at the end of a run: one row per source, with counts of each step and of rejections."""
    table = Table(box=None, pad_edge=False)
    for name in (
        "source",
        "tests",
        "passing",
        "flaky",
        "defs",
        "covered",
        "features",
        "tried",
        "tasks",
        "refused, and why",
    ):
        table.add_column(name, justify="left" if name in {"source", "refused, and why"} else "right")
    for state in states:
        report = state.report()
        counts = report.rejected or ({} if state.num_tasks else report.not_proposed)
        why = ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items(), key=lambda i: -i[1]))
        if state.failure is not None:
            why = f"{state.failure.reason}: {_shortened(' '.join(state.failure.detail.split()))}"
        numbers = (
            report.num_tests, report.num_passing, report.num_flaky, report.num_symbols, report.num_covered,
            report.num_features, report.num_candidates, report.num_valid,
        )  # fmt: skip
        table.add_row(literal(state.name), *map(str, numbers), literal(why))
    return table


def _shortened(text: str) -> str:
    """A text that fits into a cell; what is cut is in the view ``rejections``."""
    return text if len(text) <= MAX_DETAIL else f"{text[: MAX_DETAIL - 1]}…"


def result_text(states: Sequence[SourceState], out: Path, report: SnapshotReport | None = None) -> str:
    """Describe the result: the changes of a refresh, and the numbers of tasks and sources."""
    changes = ""
    if report is not None:
        came = f"{len(report.came)} came, {len(report.changed)} changed, {len(report.went)} went"
        changes = f"{came}, {report.unchanged} unchanged.\n"
    tasks, giving = sum(state.num_tasks for state in states), sum(state.num_tasks > 0 for state in states)
    return f"{changes}{tasks} tasks in {out} from {giving} of {len(states)} sources."


def near_duplicates_text(found: Sequence[NearDuplicate]) -> str:
    """Name new tasks that are almost the same as earlier ones, up to :data:`MAX_NEAR_DUPLICATES`."""
    lines = [f"{len(found)} new tasks are near-duplicates of earlier ones (view near_duplicates):"]
    lines += [
        f"  {entry.instance_id} of {entry.near_duplicate_of} ({entry.similarity:.2f})"
        for entry in found[:MAX_NEAR_DUPLICATES]
    ]
    return "\n".join([*lines, *(["  …"] if len(found) > MAX_NEAR_DUPLICATES else [])])


def limits_text(settings: Settings) -> str:
    """Describe the limits on the number of tasks; empty without limits."""
    own = [f"{source.limit} of {source.spec}" for source in settings.sources if source.limit]
    common = [f"{settings.limit} tasks per source"] if settings.limit else []
    limits = f"At most {', '.join([*common, *own])} (--limit)." if common or own else ""
    return " ".join([*([limits] if limits else []), *([f"{settings.total} tasks in all."] if settings.total else [])])
