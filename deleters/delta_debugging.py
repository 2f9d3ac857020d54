"""Delta debugging: find a large subset with a property, here a part of a deletion that breaks no other test."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


def largest_clean(
    items: Sequence[T],
    is_clean: Callable[[frozenset[T]], bool],
    budget: int,
    blamed: Callable[[frozenset[T]], frozenset[T]] = lambda _: frozenset(),
) -> frozenset[T]:
    """A large subset of ``items`` for which ``is_clean`` holds; empty if none was found.

    ``is_clean`` is called at most ``budget`` times, never twice for one subset, and never for the empty set. The search
    begins with all items. As long as ``blamed`` says which of those just tried are why they were not clean, it leaves
    these out; then it leaves out smaller and smaller chunks, as in Zeller's ddmin, until the rest (or one
    chunk alone) is clean. At the end it tries to add each item that was left out. If every subset of a clean set is
    clean and the budget suffices, no single item can be added to the result. The order of the calls depends only on the
    order of ``items``.
    """
    search = _Search(is_clean, budget)
    ordered = list(dict.fromkeys(items))
    left = _without_blamed(frozenset(ordered), search, blamed)
    kept = _first_clean([item for item in ordered if item in left], search) or _first_clean(ordered, search)
    for item in ordered:
        if item not in kept and search.check(kept | {item}):
            kept = kept | {item}
    return kept


class _Search(Generic[T]):
    def __init__(self, is_clean: Callable[[frozenset[T]], bool], budget: int) -> None:
        self._is_clean = is_clean
        self._left = budget
        self._known: dict[frozenset[T], bool] = {}

    def check(self, subset: frozenset[T]) -> bool:
        """Whether the subset is clean, cached; ``False`` once the budget is spent."""
        if subset not in self._known:
            if self._left <= 0 or not subset:
                return False
            self._left -= 1
            self._known[subset] = self._is_clean(subset)
        return self._known[subset]


def _without_blamed(
    items: frozenset[T], search: _Search[T], blamed: Callable[[frozenset[T]], frozenset[T]]
) -> frozenset[T]:
    while items and not search.check(items):
        blame = blamed(items) & items
        if not blame:
            break
        items -= blame
    return items


def _first_clean(items: list[T], search: _Search[T]) -> frozenset[T]:
    everything = frozenset(items)
    size = len(items)
    while size:
        chunks = [frozenset(items[i : i + size]) for i in range(0, len(items), size)]
        for candidate in [*(everything - c for c in chunks), *chunks]:
            if search.check(candidate):
                return candidate
        size = 0 if size == 1 else -(-size // 2)
    return frozenset()
