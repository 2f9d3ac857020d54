"""Finds features: symbols that are deleted together, from one function to a subsystem of several files.

A feature consists of entries (the symbols that it is proposed for) and of the private helpers that only the entries
use: no other test executes them, and neither does importing the modules or collecting the tests. Proposed are single
definitions, what one test class or one test file alone executes, and the concepts of
:mod:`excise.extractors.features.concepts`. Coverage only proposes features; the gates decide by running the tests
without them.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from math import ceil

from excise.extractors.features.concepts import ConceptFinder, ConceptLimits
from excise.extractors.features.feature_names import name_of, summary_of, words_of
from excise.extractors.features.search_index import MAX_LOC, FeatureLimits, SearchIndex, build_index
from excise.extractors.features.tiers import tier_of
from excise.protocols import Codebase, CodePath
from excise.system.deadline import check_deadline
from excise.types import (
    CoverageMap,
    Feature,
    FeatureKind,
    Symbol,
    SymbolKind,
    SymbolReport,
    content_id,
    holders_of_test,
    is_whole_file,
    joined,
    name_in_file,
    path_of,
    symbol_of_test,
)

FEW = 4
"""Number of symbols above which those of a file are related by it, if they are :data:`MOST_OF_FILE` of it."""
MOST_OF_FILE = 2 / 3
"""Share of the functions and methods of a file that tests execute."""
MAX_SHARED = 6
"""Number of callers up to which what two symbols call relates them."""
MANY_FILES = 10
"""Number of files with a word in the names of their definitions above which it relates none of different files."""
MAX_SYMBOLS = 60
"""Maximum number of functions and methods in a feature of several definitions."""
MIN_GROUP_LOC = 8
"""Minimum lines of code of a feature of several definitions."""
SAME = 0.8
"""Two features that have this share of their symbols in common are one; the first stays."""
PATH_EVERY = 6
"""Features of whole definitions for each path through a function."""
_BESIDE = frozenset(
    {"benchmark", "benchmarks", "bin", "ci", "demo", "demos", "doc", "docs", "example", "examples", "release", "script",
     "scripts", "tool", "tools"}
)  # fmt: skip
"""Main folders of programs that developers of a project use, and its users do not."""
_KINDS = {
    SymbolKind.FUNCTION: FeatureKind.FUNCTION,
    SymbolKind.METHOD: FeatureKind.METHOD,
    SymbolKind.CLASS: FeatureKind.CLASS,
    SymbolKind.MODULE: FeatureKind.MODULE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFeatures:
    """The features of one repository, and what became of each symbol."""

    features: tuple[Feature, ...]
    """Features in the order in which they should be tried."""
    symbols: tuple[SymbolReport, ...]
    """All definitions outside tests, without modules: the features that hold it, or the reason why none does."""

    def with_proposals(self, features: Sequence[Feature]) -> FoundFeatures:
        """The same with further features in front, which are also in the reports of their symbols."""
        holders = _holders({feature.feature_id: frozenset(feature.symbols) for feature in features})
        symbols = []
        for report in self.symbols:
            added = {holder for around in _around(report.symbol) for holder in holders.get(around, ())}
            held = replace(report, features=tuple(sorted({*report.features, *added})), reason="") if added else report
            symbols.append(held)
        return FoundFeatures(features=(*features, *self.features), symbols=tuple(symbols))

    @property
    def num_symbols(self) -> int:
        """Number of definitions outside tests, without modules."""
        return len(self.symbols)

    @property
    def num_covered(self) -> int:
        """Number of those that a trusted test executes."""
        return sum(1 for symbol in self.symbols if symbol.num_tests)

    @property
    def not_proposed(self) -> dict[str, int]:
        """Reason why symbols are in no feature, to the number of such symbols."""
        return dict(sorted(Counter(symbol.reason for symbol in self.symbols if symbol.reason).items()))


def find_features(
    codebase: Codebase,
    coverage: CoverageMap,
    trusted: frozenset[str],
    *,
    tree: str,
    limits: FeatureLimits,
    seed: int = 0,
    path: Callable[[Symbol], CodePath | None] = lambda _: None,
) -> FoundFeatures:
    """Find all features of a codebase; their kinds are interleaved.

    ``path`` is a path through a function that can go alone: one feature in :data:`PATH_EVERY` is such a path.
    ``trusted`` are the tests that pass in every baseline run, alone and in order; ``tree`` is the git tree hash that
    becomes part of the feature ids. Equal arguments give equal results.
    """
    index = build_index(codebase, coverage, trusted, limits)
    singles: list[Symbol] = []
    reasons: dict[str, str] = {}
    for symbol in index.symbols.values():
        check_deadline()
        if reason := index.single_reason(symbol):
            reasons[symbol.symbol_id] = reason
        else:
            singles.append(symbol)
    made = _FeatureSet()
    for entry, needed_by in _proposals(index, singles):
        check_deadline()
        feature = feature_of(index, tree, entry, needed_by)
        if feature is not None and (len(entry) == 1 or feature.loc >= MIN_GROUP_LOC):
            made.add(feature)
    kept = _without_halves(made.features)
    contents = {f.feature_id: frozenset(i for s in f.symbols for i in index.with_nested(s)) for f in kept}
    holders = _holders(contents)
    whole = _with_parents(kept, contents, holders)
    paths = sorted(_paths(index, tree, path), key=lambda f: _rank(f, seed))[: ceil(len(whole) / PATH_EVERY)]
    return FoundFeatures(
        features=tuple(_nested_last(_interleaved([*whole, *paths], seed), contents)),
        symbols=tuple(_reports(index, holders, reasons)),
    )


def _proposals(index: SearchIndex, singles: list[Symbol]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The entries of each proposed feature, and the symbols outside it that cannot work without it."""
    for symbol in singles:
        if symbol.kind is not SymbolKind.MODULE or _whole_module(index, symbol):
            alone = frozenset({symbol.symbol_id})
            whole = with_dependents(index, alone)
            family = _with_overloads(index, whole)
            if family != whole:
                whole = with_dependents(index, family)
            else:
                yield tuple(alone), tuple(sorted(whole - alone))
            if len(whole) > 1:
                yield tuple(sorted(whole)), ()
    parts = [symbol for symbol in index.symbols.values() if _is_part(index, symbol)]
    groups = _groups_of_tests(index, parts)
    if parts:
        limits = ConceptLimits(max_symbols=MAX_SYMBOLS, max_loc=MAX_LOC, max_tests=index.max_tests)
        groups = chain(ConceptFinder(index.codebase, parts, index.tests, limits).concepts(), groups)
    for group in groups:
        chosen = _without_copies(index, _with_overloads(index, frozenset(group)))
        if len(chosen) > 1:
            whole = with_dependents(index, chosen)
            for part in related_parts(index, whole):
                if len(part) > 1 and any(index.symbols[s].is_public for s in part):
                    yield tuple(sorted(part)), ()


def related_parts(index: SearchIndex, symbols: frozenset[str]) -> list[frozenset[str]]:
    """Symbols, divided so that those of a part are related by more than tests, through others of it perhaps.

    What relates two is a call, their class, a word of their names, code of the project that calls both, or that both
    call and few others do, and that one is a copy of the other. More than :data:`FEW` symbols that are most of a file
    are what it is about.
    """
    marks: dict[str, set[str]] = defaultdict(set)
    if len(symbols) > FEW:
        inside = {function for symbol in symbols for function in index.callables(symbol)}
        functions = {function for function in inside if index.tests.get(function)}
        for path, number in Counter(map(path_of, functions)).items():
            if number > FEW and number >= MOST_OF_FILE * index.num_executed[path]:
                marks[f"file {path}"].update(symbol for symbol in symbols if path_of(symbol) == path)
    for symbol in symbols:
        for mark in _relations(index, symbol, symbols):
            marks[mark].add(symbol)
    parts: list[frozenset[str]] = []
    left = set(symbols)
    while left:
        part, grown = {min(left)}, set[str]()
        while part != grown:
            grown = set(part)
            part = part.union(*(group for group in marks.values() if group & part))
        parts.append(frozenset(part))
        left -= part
    return parts


def _relations(index: SearchIndex, symbol_id: str, chosen: Collection[str]) -> Iterator[str]:
    """What relates a symbol to others of which the same is told; ``chosen`` are those of its feature."""
    symbol, codebase = index.symbols[symbol_id], index.codebase
    for each in {symbol_id, *index.with_nested(symbol_id)}:
        yield each
        yield from index.twins(index.symbols[each])
        yield from (c for c in codebase.callees(each) if c in chosen or len(codebase.callers(c)) <= MAX_SHARED)
        callers = (c for c in codebase.callers(each) if not is_whole_file(c))  # a file that names both tells nothing
        yield from (c for c in callers if not codebase.is_test(path_of(c)))
    for holder in (symbol_id, symbol.holder_id):  # a class, and those that it is made of
        kind = index.symbols.get(holder)
        if kind is not None and kind.kind is SymbolKind.CLASS:
            yield from (f"class {word}" for word in re.findall(r"\b[A-Z]\w*", kind.signature))
    for word in words_of(symbol.name):  # one of many files relates what is in the same one
        yield f"word {word}" if index.num_files_of(word) <= MANY_FILES else f"word {word} of {symbol.path}"


def with_dependents(index: SearchIndex, symbols: frozenset[str]) -> frozenset[str]:
    """The symbols with their dependents, classes in place of all their methods, and the types that only they use.

    The symbols alone, if that is too much for one task.
    """
    whole = _with_classes(index, index.with_callers(symbols))
    if whole == symbols and len(symbols) == 1:
        return symbols
    whole |= _types_of(index, whole)
    functions = {s for symbol in whole for s in index.callables(symbol)}
    loc = sum(index.symbols[s].loc for s in whole)
    return whole if len(functions) <= MAX_SYMBOLS and loc <= MAX_LOC else symbols


def _whole_module(index: SearchIndex, module: Symbol) -> bool:
    """Whether a module is a feature: it defines functions, and is no ``__init__``, ``__main__`` or ``setup``."""
    name = module.path.rpartition("/")[2]
    return bool(index.callables(module.symbol_id)) and name not in {"__init__.py", "__main__.py", "setup.py"}


def _is_part(index: SearchIndex, symbol: Symbol) -> bool:
    """Whether a function or method can be one of several that are deleted together."""
    return symbol.is_callable and index.codebase.is_removable(symbol.symbol_id) and not index.part_reason(symbol)


def _groups_of_tests(index: SearchIndex, parts: list[Symbol]) -> Iterator[tuple[str, ...]]:
    """Functions and methods that one test class or one test file alone executes."""
    own: dict[str, list[str]] = defaultdict(list)
    for symbol in parts:
        tests = index.tests[symbol.symbol_id]
        for group in frozenset.intersection(*(frozenset(_groups_of(test)) for test in tests)):
            own[group].append(symbol.symbol_id)
    for group in sorted(own):
        if len(own[group]) <= MAX_SYMBOLS:
            yield tuple(sorted(own[group]))


def _groups_of(test: str) -> Iterator[str]:
    """The test file and the test class that a test belongs to."""
    path, *classes = holders_of_test(test)
    yield path
    yield from classes[-1:]


def _with_overloads(index: SearchIndex, symbols: frozenset[str]) -> frozenset[str]:
    """The symbols with all overloads of the methods of which they have more than one, if tests execute them."""
    chosen = Counter(filter(None, (_method(index.symbols[symbol]) for symbol in symbols)))
    return symbols | {
        each.symbol_id
        for holder, name in (method for method, number in chosen.items() if number > 1)
        if holder in index.symbols
        for each in map(index.symbols.__getitem__, index.callables(holder))
        if _method(each) == (holder, name) and _is_part(index, each)
    }


def _method(symbol: Symbol) -> tuple[str, str] | None:
    """Id of the class of a method, and the name that its overloads share."""
    is_method = symbol.is_callable and "." in symbol.qualname
    return (symbol.holder_id, symbol.name.partition("#")[0]) if is_method else None


def _without_copies(index: SearchIndex, symbols: frozenset[str]) -> frozenset[str]:
    """The symbols without those whose copies would stay."""
    while copied := {s for s in symbols if not symbols.issuperset(index.twins(index.symbols[s]))}:
        symbols = symbols - copied
    return symbols


def _with_classes(index: SearchIndex, symbols: frozenset[str]) -> frozenset[str]:
    """Put a class in place of its methods, if all that tests execute are chosen and little else is in it."""
    heads = {s.holder_id for i in symbols if "." in (s := index.symbols[i]).qualname}
    for head in sorted(heads, key=len):
        cls = index.symbols.get(head)
        if cls is None or index.part_reason(cls):
            continue
        inside = index.callables(head)
        covered = {s for s in inside if index.tests.get(s)}
        missing = {s for s in covered - symbols if index.codebase.is_removable(s)}
        if not missing and 2 * len(covered) >= len(inside):
            symbols = (symbols - inside) | {head}
    return symbols


def _types_of(index: SearchIndex, symbols: frozenset[str]) -> frozenset[str]:
    """Classes without code of their own (exceptions, enums, records) that only these symbols and their tests name."""
    nested = {inner for symbol in symbols for inner in index.with_nested(symbol)}
    tests = {symbol_of_test(test) for test in index.tests_of(symbols)}
    found: set[str] = set()
    for callee in sorted({c for s in symbols for c in index.codebase.callees(s)} - nested):
        symbol = index.symbols.get(callee)
        if symbol is not None and symbol.kind is SymbolKind.CLASS and not index.callables(callee):
            callers = index.codebase.callers(callee)
            if callers <= nested | tests and not index.codebase.is_vendored(symbol.path):
                found.add(callee)
    return frozenset(found)


class _FeatureSet:
    """Features that were found, without repetitions."""

    def __init__(self) -> None:
        self.features: list[Feature] = []
        self._holders: dict[str, list[frozenset[str]]] = defaultdict(list)

    def add(self, feature: Feature) -> None:
        """Add a feature, unless it is nearly the same as one that was found."""
        mine = frozenset(feature.symbols)
        if any(is_same(mine, other) for symbol in mine for other in self._holders[symbol]):
            return
        self.features.append(feature)
        for symbol in mine:
            self._holders[symbol].append(mine)


def _without_halves(features: Sequence[Feature]) -> list[Feature]:
    """The features without groups that are more than half of another one of their file with the same tests."""
    groups: dict[tuple[str, ...], list[frozenset[str]]] = defaultdict(list)
    for feature in (each for each in features if each.kind is FeatureKind.MULTI):
        groups[feature.tests].append(frozenset(feature.symbols))

    def is_half(each: Feature) -> bool:
        return any(group > {*each.symbols} and len(group) < 2 * len(each.symbols) for group in groups[each.tests])

    return [each for each in features if each.kind is not FeatureKind.MULTI or not is_half(each)]


def is_same(mine: frozenset[str], other: frozenset[str]) -> bool:
    """Whether the symbols of two features are nearly the same."""
    smaller, larger = sorted((len(mine), len(other)))
    return smaller >= SAME * larger and len(mine & other) >= SAME * len(mine | other)


def feature_of(
    index: SearchIndex, tree: str, entry: tuple[str, ...], needed_by: tuple[str, ...] = ()
) -> Feature | None:
    """The feature of these entries and their helpers; ``None`` if it is too large or too many tests execute it."""
    tests = index.tests_of(entry)
    symbols = tuple(sorted(index.closure(entry, tests)))
    if len(tests) > index.max_tests or len(tests) >= index.num_tests:
        return None
    records = [index.symbols[s] for s in symbols]
    loc = sum(s.loc for s in records)
    if loc > MAX_LOC:
        return None
    kind = _kind(index, entry, symbols)
    nested = frozenset().union(*(index.with_nested(s) for s in symbols))
    outside = {
        caller
        for symbol in symbols
        for caller in index.codebase.callers(symbol)
        if caller not in nested and not index.codebase.is_test(path_of(caller))
    }
    return Feature(
        feature_id=content_id("feature", tree, kind, list(symbols)),
        kind=kind,
        tier=tier_of(records),
        entry=tuple(s for s in entry if index.symbols[s].is_public) or entry,
        symbols=symbols,
        tests=tuple(sorted(tests)),
        fan_in=len(outside),
        num_mentions=sum(1 for s in outside if s in index.symbols and index.symbols[s].is_callable),
        loc=loc,
        complexity=sum(s.complexity for s in records),
        name=name_of(records),
        summary=summary_of(records),
        needed_by=needed_by,
    )


def _paths(index: SearchIndex, tree: str, path: Callable[[Symbol], CodePath | None]) -> Iterator[Feature]:
    """A feature for each path through a function that has a docstring and that more than one test executes."""
    for symbol in index.symbols.values():
        check_deadline()
        tests = index.tests.get(symbol.symbol_id, frozenset())
        if len(tests) < 2 or not symbol.docstring or index.codebase.is_vendored(symbol.path):
            continue
        if (found := path(symbol)) is not None:
            yield Feature(
                feature_id=content_id("path", tree, symbol.symbol_id, found.text),
                kind=_KINDS[symbol.kind],
                tier=0,
                entry=(symbol.symbol_id,),
                symbols=(symbol.symbol_id,),
                tests=tuple(sorted(tests)),
                loc=found.loc,
                complexity=1,
                name=f"{symbol.qualname}: {found.name}",
                summary=summary_of([symbol]),
                changed=((symbol.symbol_id, found.text),),
            )


def _around(symbol_id: str) -> Iterator[str]:
    """The ids of a symbol, of those around it, and of its module."""
    path, parts = path_of(symbol_id), name_in_file(symbol_id).split(".")
    yield path
    yield from (joined(path, ".".join(parts[:end])) for end in range(1, len(parts) + 1))


def _kind(index: SearchIndex, entry: tuple[str, ...], symbols: tuple[str, ...]) -> FeatureKind:
    if len({index.symbols[s].path for s in symbols}) > 1:
        return FeatureKind.CROSS_FILE
    return FeatureKind.MULTI if len(entry) > 1 else _KINDS[index.symbols[entry[0]].kind]


def _with_parents(
    features: list[Feature], contents: dict[str, frozenset[str]], holders: dict[str, list[str]]
) -> list[Feature]:
    """The features, each with the smallest one that contains it."""
    order = {f.feature_id: (len(contents[f.feature_id]), f.loc, f.feature_id) for f in features}
    found = []
    for feature in features:
        mine = contents[feature.feature_id]
        around = [other for other in holders[min(mine)] if contents[other] > mine]
        found.append(replace(feature, parent_feature_id=min(around, key=order.__getitem__, default="")))
    return found


def _holders(contents: dict[str, frozenset[str]]) -> dict[str, list[str]]:
    """Symbol id to the ids of the features that hold it."""
    holders: dict[str, list[str]] = defaultdict(list)
    for feature_id, symbols in contents.items():
        for symbol in symbols:
            holders[symbol].append(feature_id)
    return holders


def _reports(index: SearchIndex, holders: dict[str, list[str]], reasons: dict[str, str]) -> Iterator[SymbolReport]:
    for symbol_id, symbol in index.symbols.items():
        if symbol.kind is not SymbolKind.MODULE:
            features_of = tuple(sorted(holders.get(symbol_id, ())))
            yield SymbolReport(
                symbol=symbol_id,
                kind=symbol.kind,
                loc=symbol.loc,
                num_tests=len(index.tests.get(symbol_id, ())),
                features=features_of,
                reason="" if features_of else reasons.get(symbol_id, "too_many_tests"),
            )


def _interleaved(features: Iterable[Feature], seed: int) -> Iterable[Feature]:
    """One feature of each kind in turn, paths after the others; within a kind by :func:`_rank`."""
    by_kind: dict[FeatureKind | None, list[Feature]] = defaultdict(list)
    for feature in features:
        by_kind[None if feature.changed else feature.kind].append(feature)
    kinds = [kind for kind in (*FeatureKind, None) if by_kind.get(kind)]
    by_rank = [sorted(by_kind[kind], key=lambda f: _rank(f, seed)) for kind in kinds]
    for row in zip_longest(*by_rank):
        yield from (feature for feature in row if feature is not None)


def _nested_last(features: Iterable[Feature], contents: Mapping[str, frozenset[str]]) -> list[Feature]:
    """The features, those last that are in an earlier one, or hold one, and those of programs beside the project: the
    first tasks are about different code of what users have."""
    first, last = list[Feature](), list[Feature]()
    holders: dict[str, list[frozenset[str]]] = defaultdict(list)
    for feature in features:
        mine = contents.get(feature.feature_id, frozenset())
        if any(mine <= other or other <= mine for symbol in mine for other in holders[symbol]):
            last.append(feature)
            continue
        first.append(feature)
        for symbol in mine:
            holders[symbol].append(mine)
    return sorted([*first, *last], key=lambda feature: all(map(_is_beside, feature.symbols)))


def _is_beside(symbol_id: str) -> bool:
    folder, slash, _ = path_of(symbol_id).partition("/")
    return bool(slash) and folder.lower() in _BESIDE


def _rank(feature: Feature, seed: int) -> tuple[int, str]:
    """Sort key: features of few lines, of many tests, or that code which stays mentions come last, all others in a
    seeded random order."""
    drawbacks = (feature.loc < 6, len(feature.tests) > 60, feature.num_mentions > 0)
    random_order = hashlib.sha256(f"{seed}:{feature.feature_id}".encode()).hexdigest()
    return (sum(drawbacks), random_order)
