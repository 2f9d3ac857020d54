"""What a run shows: a live table on a terminal, a line per step in a log, nothing when quiet. Always on stderr."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

LINE_EVERY_S = 60.0
"""A log says at least this often that the run is alive."""
SHOWN = (
    "pass@1", "pass@k", "reward", "tier", "zero_variance", "entropy", "mismatch_kl", "logprob_difference_fresh",
    "masked_positive", "masked_negative", "staleness", "infra_errors", "hacks", "hint_kl", "grad_norm",
    "learning_rate", "wait_s", "learn_s", "engine_idle", "engine_tokens_per_s",
)  # fmt: skip
"""Metrics that the table has, in order."""
_LINE = ("pass@1", "pass@k", "reward", "tier", "entropy", "mismatch_kl", "wait_s", "learn_s")
_BARS = " ▁▂▃▄▅▆▇█"


class Watch:
    """Tells of a run. Everything it is told is data, and shown as it stands."""

    def __init__(self, console: Console, *, steps: int, quiet: bool = False) -> None:
        self._console = console
        self._steps = steps
        self._quiet = quiet
        self._began = time.monotonic()
        self._status = "starting"
        self._step = 0
        self._history: dict[str, list[float]] = {}
        self._live = Live(console=console, refresh_per_second=2, transient=True) if console.is_terminal else None
        self._over = threading.Event()
        self._beat = threading.Thread(target=self._keep_telling, daemon=True)

    def __enter__(self) -> Watch:
        if self._live is not None and not self._quiet:
            self._live.start()
        self._beat.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._beat.join(timeout=5)
        if self._live is not None and not self._quiet:
            self._live.stop()

    def status(self, text: str) -> None:
        """What is going on right now."""
        self._status = text
        self._show()

    def step(self, step: int, metrics: Mapping[str, float]) -> None:
        """A step was made."""
        self._step = step
        for name, value in metrics.items():
            self._history.setdefault(name, []).append(value)
        self._show()
        if self._live is None:
            self._line(", ".join(f"{name} {metrics[name]:.4g}" for name in _LINE if name in metrics))

    def say(self, text: str) -> None:
        """Something that should stay on the screen."""
        if not self._quiet:
            self._console.print(Text(text), soft_wrap=True)

    def table(self) -> Group:
        """The whole view."""
        table = Table(box=None, pad_edge=False)
        table.add_column("metric")
        table.add_column("now", justify="right")
        table.add_column("mean of 10", justify="right")
        table.add_column("over time")
        for name in SHOWN:
            if values := self._history.get(name):
                recent = values[-10:]
                mean = sum(recent) / len(recent)
                table.add_row(name, f"{values[-1]:.4g}", f"{mean:.4g}", sparkline(values))
        head = Text(f"{self._clock()} step {self._step} of {self._steps}: {self._status}", style="bold")
        return Group(head, table)

    def _clock(self) -> str:
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        return f"{minutes:3d}:{seconds:02d}"

    def _line(self, text: str) -> None:
        if not self._quiet:
            self._console.print(Text(f"{self._clock()} step {self._step}: {text}"), soft_wrap=True)

    def _show(self) -> None:
        if self._live is not None and not self._quiet:
            self._live.update(self.table())

    def _keep_telling(self) -> None:
        while not self._over.wait(LINE_EVERY_S if self._live is None else 1.0):
            if self._live is not None:
                self._show()
            else:
                self._line(self._status)


def sparkline(values: list[float], width: int = 30) -> str:
    """The last values as a row of bars between their lowest and highest."""
    shown = values[-width:]
    low, high = min(shown), max(shown)
    spread = (high - low) or 1.0
    return "".join(_BARS[1 + round((value - low) / spread * (len(_BARS) - 2))] for value in shown)
