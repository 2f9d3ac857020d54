"""What the search for features knows of a codebase: which tests execute each symbol, and which can be deleted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from excise.extractors.features.feature_names import words_of
from excise.extractors.features.local_names import with_numbered_names
from excise.extractors.languages import scan_rules_of
from excise.extractors.scanned_code import without_comments
from excise.protocols import Codebase
from excise.system.deadline import check_deadline
from excise.types import CoverageMap, Symbol, SymbolKind

MIN_LOC = 3
"""Minimum lines of code of a single definition, unless the caller sets another: shorter ones make trivial tasks."""
_EXAMPLE_FOLDERS = frozenset({"example", "examples", "demo", "demos", "sample", "samples"})
"""Folders of a repository with what shows how to use the project."""
MAX_LOC = 800
"""Maximum lines of code of a feature: more is too much for one task."""
MIN_TWIN_CHARS = 80
"""Minimum length of a function body, with white space folded, for the search for copies: short bodies may be equal by
chance. Where comments and local names are left out of the comparison, they do not count, nor do comments here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureLimits:
    """Sizes of the features that are proposed."""

    max_f2p_share: float
    """Largest share of the trusted tests that may execute one feature."""
    min_loc: int = MIN_LOC
    """Minimum lines of code of a single definition."""


@dataclass(slots=True, kw_only=True)
class SearchIndex:
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
    """Minimum lines of code of a single definition."""
    symbols: dict[str, Symbol] = field(default_factory=dict)
    """Ids to symbols, without those of tests."""
    num_executed: Counter[str] = field(default_factory=Counter)
    """Path to the number of functions and methods in it that a trusted test executes."""
    files_of_words: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Word to the files with a definition that has it in its name."""
    by_body: dict[bytes, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Body of a function, as it is and with local names numbered, to the ids of the functions with this body, tests
    included; short bodies are left out."""
    bodies: dict[str, tuple[bytes, ...]] = field(default_factory=dict)
    """Id of a function to its keys in :attr:`by_body`."""

    def single_reason(self, symbol: Symbol) -> str:
        """The reason why this symbol alone is no feature; empty if it is one."""
        checks: tuple[tuple[str, Callable[[], bool]], ...] = (
            ("has_twin", lambda: self.has_copy_outside(symbol)),
            ("special_name", lambda: is_dunder(symbol.name)),
            ("private", lambda: not symbol.is_public),
            ("too_small", lambda: symbol.loc < self.min_loc),
        )
        return self.part_reason(symbol) or next((reason for reason, applies in checks if applies()), "")

    def part_reason(self, symbol: Symbol) -> str:
        """The reason why this symbol cannot even be deleted together with others; empty if it can."""
        tests = self.tests.get(symbol.symbol_id, frozenset())
        checks: tuple[tuple[str, Callable[[], bool]], ...] = (
            ("syntax_error", lambda: self.codebase.modules[symbol.path].has_error),
            ("vendored", lambda: self.codebase.is_vendored(symbol.path)),
            ("example", lambda: symbol.path.partition("/")[0].lower() in _EXAMPLE_FOLDERS),
            ("no_code", lambda: symbol.is_callable and not symbol.loc),
            ("not_covered", lambda: not tests),
            ("runs_at_import", lambda: bool(self.callables(symbol.symbol_id) & self.at_import)),
            ("too_central", lambda: len(tests) > self.max_tests),
            ("used_by_others", lambda: self.is_used_by_others(symbol, tests)),
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

    def has_copy_outside(self, symbol: Symbol) -> bool:
        """Whether the body of this function, or of one inside this class or module, is that of another outside it."""
        inside = self.callables(symbol.symbol_id)
        return any(not inside.issuperset(self.twins(self.symbols[s])) for s in inside)

    def num_files_of(self, word: str) -> int:
        """Number of files with a definition that has a word in its name."""
        return len(self.files_of_words.get(word, ()))

    def twins(self, symbol: Symbol) -> list[str]:
        """Ids of all functions with the body of this one, but for comments and local names, itself included; empty if
        it is short."""
        return list(dict.fromkeys(i for body in self.bodies.get(symbol.symbol_id, ()) for i in self.by_body[body]))

    def closure(self, entries: Iterable[str], tests: frozenset[str]) -> frozenset[str]:
        """Return the entries and all private helpers that nothing else uses."""
        chosen = set(entries)
        nested = {inner for symbol in chosen for inner in self.with_nested(symbol)}
        queue = list(chosen)
        while queue:
            check_deadline()
            for callee in sorted(self.codebase.callees(queue.pop())):
                if callee not in chosen and callee not in nested and self._is_helper(callee, chosen | nested, tests):
                    chosen.add(callee)
                    nested |= self.with_nested(callee)
                    queue.append(callee)
        return frozenset(chosen)

    def _is_helper(self, symbol_id: str, chosen: set[str], tests: frozenset[str]) -> bool:
        symbol = self.symbols.get(symbol_id)
        if symbol is None or symbol.kind is SymbolKind.MODULE or is_dunder(symbol.name) or symbol.is_public:
            return False
        own_tests = self.tests.get(symbol_id, frozenset())
        if not own_tests or not own_tests <= tests or self.callables(symbol_id) & self.at_import:
            return False
        return all(caller in chosen for caller in self.codebase.callers(symbol_id))

    def with_callers(self, symbols: Iterable[str]) -> frozenset[str]:
        """Return the symbols and what cannot work without them: functions that only their tests execute, and such that
        no test executes and that call nothing else of the project."""
        chosen = set(symbols)
        tests = self.tests_of(chosen)
        nested = {inner for symbol in chosen for inner in self.with_nested(symbol)}
        queue = sorted(chosen)
        while queue:
            check_deadline()
            for caller in sorted(self.codebase.callers(queue.pop()) - nested):
                found = self._dependent(caller, nested, tests)
                if found and found not in nested:
                    chosen.add(found)
                    nested |= self.with_nested(found)
                    queue.append(found)
        return frozenset(s for s in chosen if not any(s != o and s in self.with_nested(o) for o in chosen))

    def _dependent(self, caller: str, nested: set[str], tests: frozenset[str]) -> str:
        """The caller, or its class if it is a constructor, if it has to go with what it calls; else an empty id."""
        symbol = self.symbols.get(caller)
        if symbol is None or not symbol.is_callable or self.codebase.is_vendored(symbol.path):
            return ""
        if not self.codebase.is_removable(caller):
            caller = symbol.holder_id
            symbol = self.symbols.get(caller)
            if symbol is None or symbol.kind is not SymbolKind.CLASS or self.is_used_by_others(symbol, tests):
                return ""
        inside = self.callables(caller)
        own = self.tests_of(inside)
        if inside & self.at_import or not own <= tests:
            return ""
        callees = {s for s in self.codebase.callees(caller) if s in self.symbols and self.symbols[s].is_callable}
        return caller if own or callees <= nested | inside else ""

    def tests_of(self, symbols: Iterable[str]) -> frozenset[str]:
        """The trusted tests that execute at least one of the symbols."""
        return frozenset().union(*(self.tests.get(symbol, frozenset()) for symbol in symbols))

    def with_nested(self, symbol_id: str) -> frozenset[str]:
        """Ids of the symbol and of everything defined in it."""
        symbol = self.symbols[symbol_id]
        if symbol.is_callable:
            return frozenset({symbol_id})
        inner = self.codebase.modules[symbol.path].symbols
        return frozenset(s.symbol_id for s in inner if s.start >= symbol.start and s.end <= symbol.end)

    def callables(self, symbol_id: str) -> frozenset[str]:
        """Ids of the functions and methods in a symbol; the bodies of classes and modules always run at import."""
        return frozenset(s for s in self.with_nested(symbol_id) if self.symbols[s].is_callable)


def build_index(
    codebase: Codebase, coverage: CoverageMap, trusted: frozenset[str], limits: FeatureLimits
) -> SearchIndex:
    """The index of a codebase; ``trusted`` are the tests that count."""
    symbols = {i: s for i, s in codebase.symbols().items() if not codebase.is_test(s.path)}
    tests = {
        symbol: frozenset(coverage.tests[n] for n in numbers if coverage.tests[n] in trusted)
        for symbol, numbers in coverage.by_symbol.items()
        if symbol in symbols
    }
    index = SearchIndex(
        codebase=codebase,
        tests=tests,
        at_import=frozenset(coverage.at_import),
        num_tests=len(trusted),
        max_tests=max(1, int(len(trusted) * limits.max_f2p_share)),
        min_loc=limits.min_loc,
        symbols=symbols,
        num_executed=Counter(symbols[s].path for s, executing in tests.items() if executing and symbols[s].is_callable),
    )
    for symbol in symbols.values():
        for word in words_of(symbol.name):
            index.files_of_words[word].add(symbol.path)
    for symbol in codebase.symbols().values():
        check_deadline()
        index.bodies[symbol.symbol_id] = tuple(_bodies(codebase, symbol))
        for body in index.bodies[symbol.symbol_id]:
            index.by_body[body].append(symbol.symbol_id)
    return index


def is_dunder(name: str) -> bool:
    """Whether a name begins and ends with two underscores."""
    return name.startswith("__") and name.endswith("__")


def _bodies(codebase: Codebase, symbol: Symbol) -> Iterator[bytes]:
    """The body of a function without its docstring: with white space folded, and without comments and with its local
    names numbered; each only if it is not too short to compare."""
    if not symbol.is_callable:
        return
    code = codebase.modules[symbol.path].source[symbol.code_start : symbol.end]
    if len(folded := b" ".join(code.split())) >= MIN_TWIN_CHARS:
        yield folded
        bare = without_comments(code, scan_rules_of(symbol.path))
        if len(b" ".join(bare.split())) >= MIN_TWIN_CHARS:
            yield b"%" + with_numbered_names(bare, symbol)
