"""Which test runs are forked from a process that has collected the whole suite, and from when on."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from excise.protocols import Start
from excise.types import TestRun


class RunStarts:
    """Chooses how the test runs of one repository begin; see :class:`excise.protocols.Start`.

    Collecting the suite, and running it once to see that all tests pass there, costs what one run of the suite does.
    Other forked runs pay again and again for their own test files. So it is done when these have paid as much, and
    never costs more than twice what a choice in hindsight would (the ski-rental rule).
    """

    def __init__(self, paths: Collection[str], suffixes: tuple[str, ...]) -> None:
        self.paths, self.suffixes = frozenset(paths), suffixes
        self.collecting_s: float | None = None
        """CPU seconds of collecting and running the whole suite; ``None`` until a run of all tests has shown it."""
        self.paid_s = 0.0
        """CPU seconds of the runs that could have been forked from a collected suite, besides those of their tests."""
        self.can_collect = True
        """Whether runs may be forked from a collected suite."""
        self.is_checked = False
        """Whether all trusted tests have passed in such a run."""
        self.refused: set[int] = set()
        """Hashes of edits that such a run refused: a second run with them would be refused, too."""

    def choose(self, edits: Mapping[str, bytes | None]) -> Start:
        """How a run with these edits begins, if it may be forked."""
        due = self.collecting_s is not None and self.paid_s >= self.collecting_s
        served = due and self.might_be_served(edits) and _hash_of(edits) not in self.refused
        return Start.COLLECTED if served else Start.FORKED

    def might_be_served(self, edits: Mapping[str, bytes | None]) -> bool:
        """Whether edits may change nothing but bodies of functions, as far as can be seen without reading them."""
        return self.can_collect and all(
            data is not None and path in self.paths and path.endswith(self.suffixes) for path, data in edits.items()
        )

    def note_refusal(self, edits: Mapping[str, bytes | None]) -> None:
        """Note that a run with these edits was refused, or lost, after it was to be forked from the collected suite."""
        self.refused.add(_hash_of(edits))

    def note(self, run: TestRun, start: Start, edits: Mapping[str, bytes | None], *, whole: bool) -> None:
        """Note what a finished run cost; ``whole``: it ran all tests."""
        if start is Start.FORKED and self.might_be_served(edits):
            self.paid_s += max(0.0, run.cpu_s - sum(result.duration_s for result in run.results))
        if start is not Start.COLLECTED and whole:
            self.collecting_s = run.cpu_s if self.collecting_s is None else min(self.collecting_s, run.cpu_s)

    def collect_now(self) -> None:
        """Collect the suite for the next run that may be served, whatever that costs."""
        self.collecting_s = 0.0


def _hash_of(edits: Mapping[str, bytes | None]) -> int:
    """A hash of edits; equal hashes of others cost a slower run."""
    return hash(frozenset(edits.items()))
