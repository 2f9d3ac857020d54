"""Progress of a run on stderr: a live table on a terminal, one line per step in a log, nothing when quiet."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

HEARTBEAT_S = 60.0
"""Seconds between the log lines that show that the run is alive."""
TABLE_METRICS = (
    "pass@1", "pass@k", "reward", "tier", "zero_variance", "entropy", "mismatch_kl", "logprob_difference_fresh",
    "masked_positive", "masked_negative", "staleness", "infra_errors", "hacks", "hint_kl", "grad_norm",
    "learning_rate", "wait_s", "learn_s", "engine_idle", "engine_tokens_per_s",
)  # fmt: skip
"""Metrics in the live table, in order."""
_LINE_METRICS = ("pass@1", "pass@k", "reward", "tier", "entropy", "mismatch_kl", "wait_s", "learn_s")
_BARS = " ▁▂▃▄▅▆▇█"


class ProgressDisplay:
    """Shows the progress of a run. Texts are printed literally, without markup."""

    def __init__(self, console: Console, *, steps: int, quiet: bool = False) -> None:
        self._console = console
        self._steps = steps
        self._quiet = quiet
        self._started = time.monotonic()
        self._status = "starting"
        self._step = 0
        self._history: dict[str, list[float]] = {}
        self._live = Live(console=console, refresh_per_second=2, transient=True) if console.is_terminal else None
        self._stopped = threading.Event()
        self._heartbeat = threading.Thread(target=self._refresh_until_stopped, daemon=True)

    def __enter__(self) -> ProgressDisplay:
        if self._live is not None and not self._quiet:
            self._live.start()
        self._heartbeat.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._heartbeat.join(timeout=5)
        if self._live is not None and not self._quiet:
            self._live.stop()

    def status(self, text: str) -> None:
        """Set the description of the current activity."""
        self._status = text
        self._refresh()

    def step(self, step: int, metrics: Mapping[str, float]) -> None:
        """Show the metrics of a finished step."""
        self._step = step
        for name, value in metrics.items():
            self._history.setdefault(name, []).append(value)
        self._refresh()
        if self._live is None:
            self._line(", ".join(f"{name} {metrics[name]:.4g}" for name in _LINE_METRICS if name in metrics))

    def message(self, text: str) -> None:
        """Print a message that stays on the screen."""
        if not self._quiet:
            self._console.print(Text(text), soft_wrap=True)

    def table(self) -> Group:
        """The contents of the live display."""
        table = Table(box=None, pad_edge=False)
        table.add_column("metric")
        table.add_column("now", justify="right")
        table.add_column("mean of 10", justify="right")
        table.add_column("over time")
        for name in TABLE_METRICS:
            if values := self._history.get(name):
                recent = values[-10:]
                mean = sum(recent) / len(recent)
                table.add_row(name, f"{values[-1]:.4g}", f"{mean:.4g}", sparkline(values))
        head = Text(f"{self._elapsed()} step {self._step} of {self._steps}: {self._status}", style="bold")
        return Group(head, table)

    def _elapsed(self) -> str:
        minutes, seconds = divmod(int(time.monotonic() - self._started), 60)
        return f"{minutes:3d}:{seconds:02d}"

    def _line(self, text: str) -> None:
        if not self._quiet:
            self._console.print(Text(f"{self._elapsed()} step {self._step}: {text}"), soft_wrap=True)

    def _refresh(self) -> None:
        if self._live is not None and not self._quiet:
            self._live.update(self.table())

    def _refresh_until_stopped(self) -> None:
        while not self._stopped.wait(HEARTBEAT_S if self._live is None else 1.0):
            if self._live is not None:
                self._refresh()
            else:
                self._line(self._status)


def sparkline(values: list[float], width: int = 30) -> str:
    """The last values as a row of bars, scaled between their lowest and highest."""
    shown = values[-width:]
    low, high = min(shown), max(shown)
    spread = (high - low) or 1.0
    return "".join(_BARS[1 + round((value - low) / spread * (len(_BARS) - 2))] for value in shown)
