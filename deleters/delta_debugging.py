"""Delta debugging: the largest part of a deletion that is still clean."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


def largest_clean(items: Sequence[T], is_clean: Callable[[frozenset[T]], bool], budget: int) -> frozenset[T]:
    """A large subset of ``items`` for which ``is_clean`` holds; empty if none was found.

    Asks at most ``budget`` times and never twice about the same subset; never about the empty one.
    Starts with everything; then takes out ever smaller pieces, as Zeller's ddmin does, until what is
    left is clean (or a single piece is); at last tries to put back each item that was left out. If
    every subset of a clean set is clean and the budget suffices, no single item can be added to the
    answer. The order of the questions depends only on the order of ``items``.
    """
    search = _Search(is_clean, budget)
    ordered = list(dict.fromkeys(items))
    kept = _first_clean(ordered, search)
    for item in ordered:
        if item not in kept and search.ask(kept | {item}):
            kept = kept | {item}
    return kept


class _Search(Generic[T]):
    def __init__(self, is_clean: Callable[[frozenset[T]], bool], budget: int) -> None:
        self._is_clean = is_clean
        self._left = budget
        self._known: dict[frozenset[T], bool] = {}

    def ask(self, subset: frozenset[T]) -> bool:
        """Whether the subset is clean; ``False`` once the budget is spent."""
        if subset not in self._known:
            if self._left <= 0 or not subset:
                return False
            self._left -= 1
            self._known[subset] = self._is_clean(subset)
        return self._known[subset]


def _first_clean(items: list[T], search: _Search[T]) -> frozenset[T]:
    everything = frozenset(items)
    size = len(items)
    while size:
        chunks = [frozenset(items[i : i + size]) for i in range(0, len(items), size)]
        for candidate in [*(everything - c for c in chunks), *chunks]:
            if search.ask(candidate):
                return candidate
        size = 0 if size == 1 else -(-size // 2)
    return frozenset()
