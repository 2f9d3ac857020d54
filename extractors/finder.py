"""Finds features: groups of symbols that the same tests execute, and no other test.

A feature consists of entries (the public symbols that it is proposed for) and of the private helpers that only the
entries use: no other test executes them, and neither does importing the modules or collecting the tests.
Coverage only proposes features; the gates decide by running the tests without them.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import zip_longest

from excise.protocols import Codebase
from excise.system.deadline import check_deadline
from excise.types import CoverageMap, Feature, FeatureKind, Symbol, SymbolKind, content_id

TIERS = {
    FeatureKind.FUNCTION: 1,
    FeatureKind.METHOD: 1,
    FeatureKind.CLASS: 2,
    FeatureKind.MULTI: 3,
    FeatureKind.MODULE: 4,
    FeatureKind.CROSS_FILE: 5,
}
"""Kind of a removed feature to its difficulty tier; a stub of the same code is tier 0."""
MIN_LOC = 3
"""Minimum lines of code of an entry, unless the caller sets another: shorter functions make trivial tasks."""
MAX_LOC = 800
"""Maximum lines of code of an entry: larger ones are too much for one task."""
MAX_CLUSTER = 8
"""Maximum number of entries of one feature."""
MIN_TWIN_CHARS = 80
"""Minimum length of a function body, with white space folded, for the search for copies: short bodies may be equal by
chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureLimits:
    """Sizes of the features that are proposed."""

    max_f2p_share: float
    """Largest share of the trusted tests that may execute one feature."""
    min_loc: int = MIN_LOC
    """Minimum lines of code of an entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFeatures:
    """The features of one repository, and counts of the symbols that were considered."""

    features: tuple[Feature, ...]
    """Features in the order in which they should be tried."""
    num_symbols: int
    """Number of definitions outside tests, without modules."""
    num_covered: int
    """Number of those that a trusted test executes."""
    not_proposed: dict[str, int]
    """Reason why a symbol is no entry, to the number of such symbols."""


@dataclass(slots=True)
class _SearchIndex:
    """Lookup tables of one search."""

    codebase: Codebase
    tests: dict[str, frozenset[str]]
    """Symbol id to the trusted tests that execute it."""
    at_import: frozenset[str]
    """Ids of the symbols that run while modules are imported or tests collected."""
    num_tests: int
    """Number of trusted tests."""
    max_tests: int
    """Maximum number of tests that may execute one feature."""
    min_loc: int
    """Minimum lines of code of an entry."""
    symbols: dict[str, Symbol] = field(default_factory=dict)
    """Ids to symbols, without those of tests."""
    body_counts: Counter[bytes] = field(default_factory=Counter)
    """Body of a function to the number of functions with this body; short bodies are left out."""

    def refusal_reason(self, symbol: Symbol) -> str:
        """The reason why this symbol is no entry of a feature; empty if it is one."""
        tests = self.tests.get(symbol.symbol_id, frozenset())
        checks: tuple[tuple[str, Callable[[], bool]], ...] = (
            ("syntax_error", lambda: self.codebase.modules[symbol.path].has_error),
            ("vendored", lambda: self.codebase.is_vendored(symbol.path)),
            ("not_covered", lambda: not tests),
            ("runs_at_import", lambda: bool(_callables(self, symbol.symbol_id) & self.at_import)),
            ("too_central", lambda: len(tests) > self.max_tests),
            ("used_by_others", lambda: self.is_used_by_others(symbol, tests)),
            ("has_twin", lambda: self.body_counts[_body_text(self.codebase, symbol)] > 1),
            ("special_name", lambda: _is_dunder(symbol.name)),
            ("private", lambda: not symbol.is_public),
            ("too_small", lambda: symbol.loc < self.min_loc),
            ("too_large", lambda: symbol.loc > MAX_LOC),
        )
        return next((reason for reason, applies in checks if applies()), "")

    def is_used_by_others(self, symbol: Symbol, tests: frozenset[str]) -> bool:
        """Whether a class is used by the callers of many other tests.

        Coverage does not show this: naming a class (``isinstance``, an enum) executes none of its lines.
        """
        if symbol.kind is not SymbolKind.CLASS:
            return False
        tests_of_callers: set[str] = set()
        for caller in self.codebase.callers(symbol.symbol_id):
            if caller in self.symbols and self.symbols[caller].is_callable:
                tests_of_callers |= self.tests.get(caller, frozenset())
        return len(tests_of_callers - tests) > 2 * len(tests) + 10

    def closure(self, entries: Iterable[str], tests: frozenset[str]) -> frozenset[str]:
        """Return the entries and all private helpers that nothing else uses."""
        chosen = set(entries)
        nested = {inner for symbol in chosen for inner in _with_nested(self, symbol)}
        queue = list(chosen)
        while queue:
            check_deadline()
            for callee in sorted(self.codebase.callees(queue.pop())):
                if callee not in chosen and callee not in nested and self._is_helper(callee, chosen | nested, tests):
                    chosen.add(callee)
                    nested |= _with_nested(self, callee)
                    queue.append(callee)
        return frozenset(chosen)

    def _is_helper(self, symbol_id: str, chosen: set[str], tests: frozenset[str]) -> bool:
        symbol = self.symbols.get(symbol_id)
        if symbol is None or symbol.kind is SymbolKind.MODULE or _is_dunder(symbol.name) or symbol.is_public:
            return False
        own_tests = self.tests.get(symbol_id, frozenset())
        if not own_tests or not own_tests <= tests or _callables(self, symbol_id) & self.at_import:
            return False
        return all(caller in chosen for caller in self.codebase.callers(symbol_id))


def find_features(
    codebase: Codebase,
    coverage: CoverageMap,
    trusted: frozenset[str],
    *,
    tree: str,
    limits: FeatureLimits,
    seed: int = 0,
) -> FoundFeatures:
    """Find all features of a codebase; their kinds are interleaved.

    ``trusted`` are the tests that pass in every baseline run, alone and in order; ``tree`` is the git tree hash that
    becomes part of the feature ids. Equal arguments give equal results.
    """
    index = _build_index(codebase, coverage, trusted, limits)
    reasons: Counter[str] = Counter()
    entries: list[Symbol] = []
    for symbol in index.symbols.values():
        check_deadline()
        reason = index.refusal_reason(symbol)
        if reason and symbol.kind is not SymbolKind.MODULE:
            reasons[reason] += 1
        elif not reason:
            entries.append(symbol)
    made: dict[tuple[frozenset[str], FeatureKind], Feature] = {}
    for kind, symbols in _proposals(index, entries):
        check_deadline()
        feature = _feature(index, tree, kind, symbols)
        if feature is not None:
            made.setdefault((frozenset(feature.symbols), feature.kind), feature)
    counted = [s for s in index.symbols.values() if s.kind is not SymbolKind.MODULE]
    return FoundFeatures(
        features=tuple(_interleaved(made.values(), seed)),
        num_symbols=len(counted),
        num_covered=sum(1 for s in counted if index.tests.get(s.symbol_id)),
        not_proposed=dict(sorted(reasons.items())),
    )


def _build_index(
    codebase: Codebase, coverage: CoverageMap, trusted: frozenset[str], limits: FeatureLimits
) -> _SearchIndex:
    symbols = {i: s for i, s in codebase.symbols().items() if not codebase.is_test(s.path)}
    tests = {
        symbol: frozenset(coverage.tests[n] for n in numbers if coverage.tests[n] in trusted)
        for symbol, numbers in coverage.by_symbol.items()
        if symbol in symbols
    }
    callables = (s for s in codebase.symbols().values() if s.is_callable)
    return _SearchIndex(
        codebase,
        tests,
        at_import=frozenset(coverage.at_import),
        num_tests=len(trusted),
        max_tests=max(1, int(len(trusted) * limits.max_f2p_share)),
        min_loc=limits.min_loc,
        symbols=symbols,
        body_counts=Counter(body for symbol in callables if (body := _body_text(codebase, symbol))),
    )


def _body_text(codebase: Codebase, symbol: Symbol) -> bytes:
    """The body of a function without its docstring, white space folded; empty if it is too short to compare."""
    if not symbol.is_callable:
        return b""
    code = b" ".join(codebase.modules[symbol.path].source[symbol.code_start : symbol.end].split())
    return code if len(code) >= MIN_TWIN_CHARS else b""


def _proposals(index: _SearchIndex, entries: list[Symbol]) -> Iterable[tuple[FeatureKind, tuple[str, ...]]]:
    kinds = {
        SymbolKind.FUNCTION: FeatureKind.FUNCTION,
        SymbolKind.METHOD: FeatureKind.METHOD,
        SymbolKind.CLASS: FeatureKind.CLASS,
        SymbolKind.MODULE: FeatureKind.MODULE,
    }
    for symbol in entries:
        if symbol.kind is not SymbolKind.MODULE or _whole_module(index, symbol):
            yield kinds[symbol.kind], (symbol.symbol_id,)
    for cluster in _clusters(index, entries):
        paths = {index.symbols[symbol].path for symbol in cluster}
        yield (FeatureKind.MULTI if len(paths) == 1 else FeatureKind.CROSS_FILE), cluster


def _whole_module(index: _SearchIndex, module: Symbol) -> bool:
    """Whether a module is a feature: it defines functions, and is no ``__init__``, ``__main__`` or ``setup``."""
    name = module.path.rpartition("/")[2]
    return bool(_callables(index, module.symbol_id)) and name not in {"__init__.py", "__main__.py", "setup.py"}


def _clusters(index: _SearchIndex, entries: list[Symbol]) -> Iterable[tuple[str, ...]]:
    """Groups of functions and classes that are executed by one test class or one test file alone."""
    groups: dict[str, set[str]] = defaultdict(set)
    for tests in index.tests.values():
        check_deadline()
        for test in tests:
            for group in _groups_of(test):
                groups[group].add(test)
    own: dict[str, list[str]] = defaultdict(list)
    for symbol in entries:
        if symbol.kind in {SymbolKind.FUNCTION, SymbolKind.CLASS, SymbolKind.METHOD}:
            tests = index.tests[symbol.symbol_id]
            for group in _groups_of(min(tests)):
                if tests <= groups[group]:
                    own[group].append(symbol.symbol_id)
    for group in sorted(own):
        cluster = _outermost(own[group])
        if 2 <= len(cluster) <= MAX_CLUSTER:
            yield tuple(sorted(cluster))
    yield from _call_pairs(index, entries)


def _call_pairs(index: _SearchIndex, entries: list[Symbol]) -> Iterable[tuple[str, ...]]:
    """Each function with the public functions that it calls, if no other tests execute those."""
    known = {symbol.symbol_id for symbol in entries if symbol.kind is SymbolKind.FUNCTION}
    for symbol in entries:
        if symbol.symbol_id in known:
            tests = index.tests[symbol.symbol_id]
            called = [c for c in index.codebase.callees(symbol.symbol_id) if c in known and index.tests[c] <= tests]
            if called and len(called) < MAX_CLUSTER:
                yield tuple(sorted({symbol.symbol_id, *called}))


def _outermost(symbols: list[str]) -> list[str]:
    """The symbols without methods whose class is in the list as well."""
    chosen = set(symbols)
    return [s for s in symbols if not any(s.startswith(f"{other}.") for other in chosen)]


def _groups_of(test: str) -> Iterable[str]:
    """The test file and the test class that a test belongs to."""
    path, _, name = test.partition("::")
    yield path
    if "::" in name:
        yield f"{path}::{name.rpartition('::')[0]}"


def _feature(index: _SearchIndex, tree: str, kind: FeatureKind, entry: tuple[str, ...]) -> Feature | None:
    tests = frozenset(test for symbol in entry for test in index.tests[symbol])
    chosen = index.closure(entry, tests)
    if len(tests) > index.max_tests or len(tests) >= index.num_tests:
        return None
    symbols = tuple(sorted(chosen))
    if kind in {FeatureKind.FUNCTION, FeatureKind.METHOD} and len({index.symbols[s].path for s in symbols}) > 1:
        kind = FeatureKind.CROSS_FILE
    nested = frozenset().union(*(_with_nested(index, s) for s in symbols))
    outside = {
        caller
        for symbol in symbols
        for caller in index.codebase.callers(symbol)
        if caller not in nested and not index.codebase.is_test(caller.partition("::")[0])
    }
    records = [index.symbols[s] for s in symbols]
    return Feature(
        feature_id=content_id("feature", tree, kind, list(symbols)),
        kind=kind,
        tier=TIERS[kind],
        entry=entry,
        symbols=symbols,
        tests=tuple(sorted(tests)),
        fan_in=len(outside),
        loc=sum(s.loc for s in records),
        complexity=sum(s.complexity for s in records),
    )


def _with_nested(index: _SearchIndex, symbol_id: str) -> frozenset[str]:
    """Ids of the symbol and of everything defined in it."""
    symbol = index.symbols[symbol_id]
    if symbol.is_callable:
        return frozenset({symbol_id})
    inner = index.codebase.modules[symbol.path].symbols
    return frozenset(s.symbol_id for s in inner if s.start >= symbol.start and s.end <= symbol.end)


def _callables(index: _SearchIndex, symbol_id: str) -> frozenset[str]:
    """Ids of the functions and methods in a symbol; the bodies of classes and modules always run at import."""
    return frozenset(s for s in _with_nested(index, symbol_id) if index.symbols[s].is_callable)


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _interleaved(features: Iterable[Feature], seed: int) -> Iterable[Feature]:
    """One feature of each kind in turn; within a kind by :func:`_rank`."""
    by_kind: dict[FeatureKind, list[Feature]] = defaultdict(list)
    for feature in features:
        by_kind[feature.kind].append(feature)
    by_rank = [sorted(by_kind[kind], key=lambda f: _rank(f, seed)) for kind in FeatureKind if by_kind[kind]]
    for row in zip_longest(*by_rank):
        yield from (feature for feature in row if feature is not None)


def _rank(feature: Feature, seed: int) -> tuple[int, str]:
    """Sort key: features of few lines or many tests come last, all others in a seeded random order."""
    is_small = feature.loc < 6
    has_many_tests = len(feature.tests) > 60
    random_order = hashlib.sha256(f"{seed}:{feature.feature_id}".encode()).hexdigest()
    return (int(is_small) + int(has_many_tests), random_order)
