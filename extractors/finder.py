"""Finds features: symbols that belong together because the same tests, and only they, execute them.

Coverage proposes, execution decides. A feature's symbols are its entries (what tests use by name) and what only
the entries need: (executed by its tests) minus (executed by any other test) minus (executed at import or collection).
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import zip_longest

from excise.protocols import Codebase
from excise.types import CoverageMap, Feature, FeatureKind, Symbol, SymbolKind, content_id

TIERS = {
    FeatureKind.FUNCTION: 1,
    FeatureKind.METHOD: 1,
    FeatureKind.CLASS: 2,
    FeatureKind.MULTI: 3,
    FeatureKind.MODULE: 4,
    FeatureKind.CROSS_FILE: 5,
}
"""Rung of a removed feature; a stub of the same code is rung 0."""
MIN_LOC = 3
MAX_LOC = 800
MAX_CLUSTER = 8
MIN_TWIN_CHARS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the finder says about one repository."""

    features: tuple[Feature, ...]
    """In the order in which they should be tried."""
    num_symbols: int
    """Definitions outside tests, modules not counted."""
    num_covered: int
    """Those that a trusted test executes."""
    not_proposed: dict[str, int]
    """Reason to number of symbols passed over as entries."""


@dataclass(slots=True)
class _Ground:
    """What the search needs to look up again and again."""

    codebase: Codebase
    tests: dict[str, frozenset[str]]
    """Symbol to trusted tests that execute it."""
    at_import: frozenset[str]
    num_tests: int
    max_tests: int
    min_loc: int
    symbols: dict[str, Symbol] = field(default_factory=dict)
    twins: Counter[bytes] = field(default_factory=Counter)
    """How often the same code stands in the repository; short code is not counted."""

    def refuse(self, symbol: Symbol) -> str:
        """Why this symbol is no entry of a feature; empty if it is one."""
        tests = self.tests.get(symbol.symbol_id, frozenset())
        checks: tuple[tuple[str, Callable[[], bool]], ...] = (
            ("syntax_error", lambda: self.codebase.modules[symbol.path].has_error),
            ("not_covered", lambda: not tests),
            ("runs_at_import", lambda: bool(_callables(self, symbol.symbol_id) & self.at_import)),
            ("too_central", lambda: len(tests) > self.max_tests),
            ("used_by_others", lambda: self.is_used_by_others(symbol, tests)),
            ("has_twin", lambda: self.twins[_code_of(self.codebase, symbol)] > 1),
            ("special_name", lambda: _is_dunder(symbol.name)),
            ("private", lambda: not symbol.is_public),
            ("too_small", lambda: symbol.loc < self.min_loc),
            ("too_large", lambda: symbol.loc > MAX_LOC),
        )
        return next((reason for reason, applies in checks if applies()), "")

    def is_used_by_others(self, symbol: Symbol, tests: frozenset[str]) -> bool:
        """A class that many other tests may need: naming it (``isinstance``, an enum) runs no line of it."""
        if symbol.kind is not SymbolKind.CLASS:
            return False
        more: set[str] = set()
        for caller in self.codebase.callers(symbol.symbol_id):
            if caller in self.symbols and self.symbols[caller].is_callable:
                more |= self.tests.get(caller, frozenset())
        return len(more - tests) > 2 * len(tests) + 10

    def closed(self, entries: Iterable[str], tests: frozenset[str]) -> frozenset[str]:
        """The entries and the helpers that nothing else needs."""
        chosen = set(entries)
        families = {inner for symbol in chosen for inner in _inside(self, symbol)}
        todo = list(chosen)
        while todo:
            for callee in sorted(self.codebase.callees(todo.pop())):
                if callee not in chosen and callee not in families and self._belongs(callee, chosen | families, tests):
                    chosen.add(callee)
                    families |= _inside(self, callee)
                    todo.append(callee)
        return frozenset(chosen)

    def _belongs(self, symbol_id: str, chosen: set[str], tests: frozenset[str]) -> bool:
        symbol = self.symbols.get(symbol_id)
        if symbol is None or symbol.kind is SymbolKind.MODULE or _is_dunder(symbol.name) or symbol.is_public:
            return False
        mine = self.tests.get(symbol_id, frozenset())
        if not mine or not mine <= tests or _callables(self, symbol_id) & self.at_import:
            return False
        return all(caller in chosen for caller in self.codebase.callers(symbol_id))


def find_features(
    codebase: Codebase,
    coverage: CoverageMap,
    trusted: frozenset[str],
    *,
    tree: str,
    max_f2p_share: float,
    seed: int = 0,
    min_loc: int = MIN_LOC,
) -> Found:
    """All features worth trying, best mix first.

    ``trusted`` are the tests that pass in every baseline run, alone and in order. ``max_f2p_share`` is the largest
    share of them that one feature may need, ``min_loc`` the fewest lines of code of an entry. Equal input gives an
    equal answer.
    """
    ground = _ground(codebase, coverage, trusted, max_f2p_share, min_loc)
    reasons: Counter[str] = Counter()
    entries: list[Symbol] = []
    for symbol in ground.symbols.values():
        reason = ground.refuse(symbol)
        if reason and symbol.kind is not SymbolKind.MODULE:
            reasons[reason] += 1
        elif not reason:
            entries.append(symbol)
    made: dict[tuple[frozenset[str], FeatureKind], Feature] = {}
    for kind, symbols in _proposals(ground, entries):
        feature = _feature(ground, tree, kind, symbols)
        if feature is not None:
            made.setdefault((frozenset(feature.symbols), feature.kind), feature)
    counted = [s for s in ground.symbols.values() if s.kind is not SymbolKind.MODULE]
    return Found(
        features=tuple(_mixed(made.values(), seed)),
        num_symbols=len(counted),
        num_covered=sum(1 for s in counted if ground.tests.get(s.symbol_id)),
        not_proposed=dict(sorted(reasons.items())),
    )


def _ground(codebase: Codebase, coverage: CoverageMap, trusted: frozenset[str], share: float, min_loc: int) -> _Ground:
    symbols = {i: s for i, s in codebase.symbols().items() if not codebase.is_test(s.path)}
    tests = {
        symbol: frozenset(coverage.tests[n] for n in numbers if coverage.tests[n] in trusted)
        for symbol, numbers in coverage.by_symbol.items()
        if symbol in symbols
    }
    at_import = frozenset(coverage.at_import)
    most = max(1, int(len(trusted) * share))
    callables = (s for s in codebase.symbols().values() if s.is_callable)
    twins = Counter(code for symbol in callables if (code := _code_of(codebase, symbol)))
    return _Ground(codebase, tests, at_import, len(trusted), most, min_loc, symbols, twins)


def _code_of(codebase: Codebase, symbol: Symbol) -> bytes:
    """The body of a function without docstring and layout; empty where it is what anyone would write."""
    if not symbol.is_callable:
        return b""
    code = b" ".join(codebase.modules[symbol.path].source[symbol.code_start : symbol.end].split())
    return code if len(code) >= MIN_TWIN_CHARS else b""


def _proposals(ground: _Ground, entries: list[Symbol]) -> Iterable[tuple[FeatureKind, tuple[str, ...]]]:
    kinds = {
        SymbolKind.FUNCTION: FeatureKind.FUNCTION,
        SymbolKind.METHOD: FeatureKind.METHOD,
        SymbolKind.CLASS: FeatureKind.CLASS,
        SymbolKind.MODULE: FeatureKind.MODULE,
    }
    for symbol in entries:
        if symbol.kind is not SymbolKind.MODULE or _whole_module(ground, symbol):
            yield kinds[symbol.kind], (symbol.symbol_id,)
    for cluster in _clusters(ground, entries):
        paths = {ground.symbols[symbol].path for symbol in cluster}
        yield (FeatureKind.MULTI if len(paths) == 1 else FeatureKind.CROSS_FILE), cluster


def _whole_module(ground: _Ground, module: Symbol) -> bool:
    """A module is a feature if it holds code and importing it runs none of that."""
    name = module.path.rpartition("/")[2]
    return bool(_callables(ground, module.symbol_id)) and name not in {"__init__.py", "__main__.py", "setup.py"}


def _clusters(ground: _Ground, entries: list[Symbol]) -> Iterable[tuple[str, ...]]:
    """Groups of functions and classes that one group of tests (a test class, or a test file) has to itself."""
    groups: dict[str, set[str]] = defaultdict(set)
    for tests in ground.tests.values():
        for test in tests:
            for group in _groups_of(test):
                groups[group].add(test)
    own: dict[str, list[str]] = defaultdict(list)
    for symbol in entries:
        if symbol.kind in {SymbolKind.FUNCTION, SymbolKind.CLASS, SymbolKind.METHOD}:
            tests = ground.tests[symbol.symbol_id]
            for group in _groups_of(min(tests)):
                if tests <= groups[group]:
                    own[group].append(symbol.symbol_id)
    for group in sorted(own):
        cluster = _outermost(own[group])
        if 2 <= len(cluster) <= MAX_CLUSTER:
            yield tuple(sorted(cluster))
    yield from _call_pairs(ground, entries)


def _call_pairs(ground: _Ground, entries: list[Symbol]) -> Iterable[tuple[str, ...]]:
    """A function and the public ones that it calls, if the same tests reach them."""
    known = {symbol.symbol_id for symbol in entries if symbol.kind is SymbolKind.FUNCTION}
    for symbol in entries:
        if symbol.symbol_id in known:
            tests = ground.tests[symbol.symbol_id]
            near = [c for c in ground.codebase.callees(symbol.symbol_id) if c in known and ground.tests[c] <= tests]
            if near and len(near) < MAX_CLUSTER:
                yield tuple(sorted({symbol.symbol_id, *near}))


def _outermost(symbols: list[str]) -> list[str]:
    """Without methods whose class is in the list as well."""
    chosen = set(symbols)
    return [s for s in symbols if not any(s.startswith(f"{other}.") for other in chosen)]


def _groups_of(test: str) -> Iterable[str]:
    path, _, name = test.partition("::")
    yield path
    if "::" in name:
        yield f"{path}::{name.rpartition('::')[0]}"


def _feature(ground: _Ground, tree: str, kind: FeatureKind, entry: tuple[str, ...]) -> Feature | None:
    tests = frozenset(test for symbol in entry for test in ground.tests[symbol])
    chosen = ground.closed(entry, tests)
    if len(tests) > ground.max_tests or len(tests) >= ground.num_tests:
        return None
    symbols = tuple(sorted(chosen))
    if kind in {FeatureKind.FUNCTION, FeatureKind.METHOD} and len({ground.symbols[s].path for s in symbols}) > 1:
        kind = FeatureKind.CROSS_FILE
    families = frozenset().union(*(_inside(ground, s) for s in symbols))
    outside = {
        caller
        for symbol in symbols
        for caller in ground.codebase.callers(symbol)
        if caller not in families and not ground.codebase.is_test(caller.partition("::")[0])
    }
    records = [ground.symbols[s] for s in symbols]
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


def _inside(ground: _Ground, symbol_id: str) -> frozenset[str]:
    """The symbol and everything defined in it."""
    symbol = ground.symbols[symbol_id]
    if symbol.is_callable:
        return frozenset({symbol_id})
    inner = ground.codebase.modules[symbol.path].symbols
    return frozenset(s.symbol_id for s in inner if s.start >= symbol.start and s.end <= symbol.end)


def _callables(ground: _Ground, symbol_id: str) -> frozenset[str]:
    """The functions and methods of it: class and module bodies always run at import, what matters is these."""
    return frozenset(s for s in _inside(ground, symbol_id) if ground.symbols[s].is_callable)


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _mixed(features: Iterable[Feature], seed: int) -> Iterable[Feature]:
    """Interleave the kinds; inside a kind prefer code that is neither trivial nor huge, with a seeded shuffle."""
    by_kind: dict[FeatureKind, list[Feature]] = defaultdict(list)
    for feature in features:
        by_kind[feature.kind].append(feature)
    lanes = [sorted(by_kind[kind], key=lambda f: _rank(f, seed)) for kind in FeatureKind if by_kind[kind]]
    for row in zip_longest(*lanes):
        yield from (feature for feature in row if feature is not None)


def _rank(feature: Feature, seed: int) -> tuple[int, str]:
    small = feature.loc < 6
    crowded = len(feature.tests) > 60
    jitter = hashlib.sha256(f"{seed}:{feature.feature_id}".encode()).hexdigest()
    return (int(small) + int(crowded), jitter)
