"""How much of the machine computes."""

from __future__ import annotations

import os
from pathlib import Path

STATISTICS = Path("/proc/stat")


class BusyCores:
    """Measures the mean number of cores that were not idle since the last call. Waiting for a disk is no idleness."""

    def __init__(self, statistics: Path = STATISTICS) -> None:
        self._statistics = statistics
        self._last = self._ticks()

    def __call__(self) -> float | None:
        """Return the number of cores; ``None`` where the kernel does not tell, or less than a tick has passed."""
        before, self._last = self._last, self._ticks()
        if before is None or self._last is None:
            return None
        idle, total = (now - then for now, then in zip(self._last, before, strict=True))
        return (os.cpu_count() or 1) * (1 - idle / total) if total > 0 else None

    def _ticks(self) -> tuple[int, int] | None:
        """Idle ticks and all ticks of all cores since the machine started."""
        try:
            first = self._statistics.read_text(encoding="ascii").partition("\n")[0]
            ticks = [int(field) for field in first.split()[1:9]]
        except (OSError, ValueError):
            return None
        return (ticks[3], sum(ticks)) if len(ticks) == 8 else None
