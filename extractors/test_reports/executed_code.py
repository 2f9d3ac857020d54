"""What tests executed, as reports of runs in the sandbox tell it: places in code, each of which is named once.

A report is data from an untrusted process: what is malformed in it is left out.
"""

from __future__ import annotations

from collections.abc import Mapping

from excise.types import ExecutedCode


class Executed:
    """Collects the ``lines`` entries of one pass over the tests; of ``other`` passes of the run, it has the indexes."""

    def __init__(self, other: Executed | None = None) -> None:
        self.by_test: dict[str, tuple[int, ...]] = {}
        """Test id to the indexes of the places that it executed."""
        self.at_import: set[int] = set()
        """Indexes of the places that imports and the collection executed."""
        self.warm_up = ""
        """See :attr:`ExecutedCode.warm_up`."""
        self._index: dict[tuple[str, int], int] = other._index if other else {}
        self._numbered: list[int] = other._numbered if other else []

    def add(self, entry: Mapping[str, object]) -> None:
        """Take an entry. Its process numbers the places anew; one that it was forked from has numbered the first."""
        first, new, numbers = entry.get("first"), entry.get("new"), entry.get("places")
        if not (isinstance(first, int) and isinstance(new, list) and isinstance(numbers, list)):
            return
        known = self._numbered
        known[max(0, first) :] = [self._place(each) for each in new]
        found = {known[n] for n in numbers if isinstance(n, int) and 0 <= n < len(known)}
        if test := str(entry.get("id") or ""):
            self.by_test[test] = tuple(sorted(found.union(self.by_test.get(test, ()))))
        else:
            self.at_import |= found

    def _place(self, place: object) -> int:
        sound = isinstance(place, list) and list(map(type, place)) == [str, int]
        path, line = place if isinstance(place, list) and sound else ("", 0)
        return self._index.setdefault((path, line), len(self._index))

    def code(self) -> ExecutedCode:
        """Everything collected until now."""
        return ExecutedCode(
            places=tuple(self._index),
            at_import=tuple(sorted(self.at_import)),
            by_test=dict(self.by_test),
            warm_up=self.warm_up,
        )
