"""Joins symbols into concepts: nested groups of symbols that belong together, from pairs to whole subsystems.

How much two symbols belong together is their affinity: calls, tests in common, the same class or file, words that
their names share. Groups are joined in the order of their affinity (agglomerative clustering). It is divided by the
affinity that the less connected of the two has to all others, so that a helper joins its only caller before two callers
join each other, and lowered where few tests execute both.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from excise.extractors.features.feature_names import words_of
from excise.protocols import Codebase
from excise.system.deadline import check_deadline
from excise.types import Symbol, joined

CALL, SAME_CLASS, SAME_FILE, SAME_TESTS, SAME_WORDS = 3.0, 1.0, 0.3, 2.0, 1.5
"""Affinity of two symbols. The last two are multiplied by the share of tests or words that they have in common; words
and tests count for symbols that one of the other three relates, or that exactly the same tests execute."""
MIN_AFFINITY = 0.06
"""Minimum relative affinity of two groups that are joined."""
MAX_MEMBERS = 300
"""Number of functions above which being in the same class or file relates nothing: pairs grow with its square."""
NEAREST = 12
"""Number of the nearest neighbours of a symbol that count; others count if it is among their nearest."""
MIN_GROWTH = 1.6
"""A group that is less than this many times as long as one inside it is no concept of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConceptLimits:
    """Sizes that no concept exceeds."""

    max_symbols: int
    """Number of functions and methods."""
    max_loc: int
    """Lines of code."""
    max_tests: int
    """Number of tests that execute at least one of the symbols."""


@dataclass(slots=True)
class _Group:
    """A group of symbols while concepts are joined."""

    symbols: tuple[str, ...]
    tests: int
    """Bit n is set if test n executes one of the symbols."""
    loc: int
    affinity: dict[int, float]
    """Number of another group to the affinity to it."""
    concept_loc: int = 0
    """Lines of the longest concept inside."""

    def total(self) -> float:
        """Affinity to all other groups."""
        return sum(self.affinity.values())


class ConceptFinder:
    """Joins symbols into concepts; deterministic."""

    def __init__(
        self,
        codebase: Codebase,
        symbols: Sequence[Symbol],
        tests: Mapping[str, frozenset[str]],
        limits: ConceptLimits,
    ) -> None:
        """``symbols``: functions and methods that can be deleted; ``tests``: symbol id to the tests that execute it."""
        symbols = sorted(symbols, key=lambda symbol: symbol.symbol_id)
        self._limits = limits
        numbers = {test: n for n, test in enumerate(sorted(frozenset().union(*tests.values())))}
        self._groups = {
            n: _Group((s.symbol_id,), sum(1 << numbers[t] for t in tests[s.symbol_id]), s.loc, {})
            for n, s in enumerate(symbols)
        }
        self._relate(codebase, symbols, tests)
        self._keep_nearest()
        self._queue: list[tuple[float, int, int, int]] = []
        for n, group in self._groups.items():
            for other in group.affinity:
                if n < other:
                    self._push(n, other)

    def concepts(self) -> Iterator[tuple[str, ...]]:
        """The ids of each concept's symbols; a concept comes after those inside it."""
        number = len(self._groups)
        while self._queue:
            check_deadline()
            _, _, one, other = heapq.heappop(self._queue)
            if one not in self._groups or other not in self._groups:
                continue
            joined = self._joined(number, one, other)
            if len(joined.symbols) > 1 and joined.loc >= MIN_GROWTH * joined.concept_loc:
                joined.concept_loc = joined.loc
                yield tuple(sorted(joined.symbols))
            number += 1

    def _relate(self, codebase: Codebase, symbols: Sequence[Symbol], tests: Mapping[str, frozenset[str]]) -> None:
        number = {s.symbol_id: n for n, s in enumerate(symbols)}
        pairs: dict[tuple[int, int], float] = defaultdict(float)
        for symbol in symbols:
            for callee in codebase.callees(symbol.symbol_id):
                if callee in number and callee != symbol.symbol_id:
                    pairs[_pair(number[symbol.symbol_id], number[callee])] += CALL
        for key_of, amount in ((_class_of, SAME_CLASS), (_file_of, SAME_FILE)):
            for members in _grouped((key_of(s), number[s.symbol_id]) for s in symbols):
                for one, other in combinations(members, 2) if len(members) <= MAX_MEMBERS else ():
                    pairs[one, other] += amount
        for members in _grouped((str(sorted(tests[s.symbol_id])), number[s.symbol_id]) for s in symbols):
            for one, other in pairwise(members):
                pairs.setdefault((one, other), 0.0)
        words = [frozenset(words_of(s.name)) for s in symbols]
        for (one, other), related in pairs.items():
            a, b = self._groups[one], self._groups[other]
            share = (a.tests & b.tests).bit_count() / (a.tests | b.tests).bit_count()
            alike = len(words[one] & words[other]) / max(len(words[one] | words[other]), 1)
            affinity = related + SAME_TESTS * share + SAME_WORDS * alike
            if affinity > SAME_FILE:  # the file alone is no reason
                a.affinity[other] = b.affinity[one] = affinity

    def _keep_nearest(self) -> None:
        """Forget all but the nearest neighbours of each symbol: many weak relations would outweigh the strong ones."""
        nearest = {
            (n, other)
            for n, group in self._groups.items()
            for other in heapq.nsmallest(NEAREST, group.affinity, key=lambda o: (-group.affinity[o], o))
        }
        for n, group in self._groups.items():
            group.affinity = {o: a for o, a in group.affinity.items() if (n, o) in nearest or (o, n) in nearest}

    def _push(self, one: int, other: int) -> None:
        a, b = self._groups[one], self._groups[other]
        in_common = (a.tests & b.tests).bit_count() / (a.tests | b.tests).bit_count()
        relative = a.affinity[other] / min(a.total(), b.total()) * (1 + in_common) / 2
        limits = self._limits
        if relative >= MIN_AFFINITY and (
            len(a.symbols) + len(b.symbols) <= limits.max_symbols
            and a.loc + b.loc <= limits.max_loc
            and (a.tests | b.tests).bit_count() <= limits.max_tests
        ):
            heapq.heappush(self._queue, (-relative, a.loc + b.loc, one, other))

    def _joined(self, number: int, one: int, other: int) -> _Group:
        a, b = self._groups.pop(one), self._groups.pop(other)
        others = {*a.affinity, *b.affinity} - {one, other}
        affinity = {n: a.affinity.get(n, 0.0) + b.affinity.get(n, 0.0) for n in others}
        longest = max(a.concept_loc, b.concept_loc)
        joined = _Group(a.symbols + b.symbols, a.tests | b.tests, a.loc + b.loc, affinity, longest)
        self._groups[number] = joined
        for n in sorted(affinity):
            neighbour = self._groups[n].affinity
            neighbour.pop(one, None)
            neighbour.pop(other, None)
            neighbour[number] = affinity[n]
            self._push(n, number)
        return joined


def _pair(one: int, other: int) -> tuple[int, int]:
    return (one, other) if one < other else (other, one)


def _class_of(symbol: Symbol) -> str:
    """Id of the class of a method; empty for a function."""
    head = symbol.qualname.rpartition(".")[0]
    return joined(symbol.path, head) if head else ""


def _file_of(symbol: Symbol) -> str:
    return symbol.path


def _grouped(keyed: Iterable[tuple[str, int]]) -> list[list[int]]:
    """The numbers of each key that is not empty, ascending."""
    found: dict[str, list[int]] = defaultdict(list)
    for key, number in keyed:
        if key:
            found[key].append(number)
    return list(found.values())
