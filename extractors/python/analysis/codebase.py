"""All parsed Python files of a repository, and the graph of references between their symbols."""

from __future__ import annotations

import gc
import os
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from excise.extractors.other_files import OtherFiles, read_regular
from excise.extractors.python.analysis.module_names import ModuleNames
from excise.extractors.python.analysis.name_resolution import Entity, Resolver
from excise.extractors.python.analysis.parsed_file import PythonModule, Reference
from excise.extractors.python.analysis.parser import parse_module
from excise.extractors.python.analysis.special_methods import is_removable
from excise.extractors.python.analysis.suite_files import SuiteFiles
from excise.protocols import Inherited
from excise.system.deadline import check_deadline
from excise.types import Symbol, SymbolKind, TestId, joined, without_parameter

VENDOR_FOLDERS = frozenset(
    {"_vendor", "_vendored", "vendored", "_vendored_packages", "third_party", "extern", "_extern"}
)
"""Names of folders in which projects keep copies of other projects."""
MANIFESTS = ("pyproject.toml", "setup.cfg")
"""Names of the manifest files that may declare entry points."""

BUILTIN_ATTRIBUTES = frozenset(
    name for kind in (str, bytes, list, tuple, dict, set, int, float, complex, object, type) for name in dir(kind)
)
"""Attributes that objects of any type, or of a common one, have."""


class PythonCodebase:
    """Implements :class:`excise.protocols.Codebase` for Python.

    Names are resolved through imports, re-exports, star imports, ``self``/``cls``/``super()`` and base classes. An
    attribute of an unknown object is a reference only if exactly one method of the repository has this name.
    """

    def __init__(
        self,
        modules: Mapping[str, PythonModule],
        *,
        manifests: Mapping[str, bytes] | None = None,
        executable: Iterable[str] = (),
        collected: Iterable[str] = (),
        packages: Iterable[str] = (),
        others: OtherFiles | None = None,
    ) -> None:
        self.modules: Mapping[str, PythonModule] = MappingProxyType(dict(modules))
        self.manifests: Mapping[str, bytes] = MappingProxyType(dict(manifests or {}))
        self.executable = frozenset(executable)
        self.others = others or OtherFiles()
        """Files that are no Python."""
        self.names = ModuleNames(self.modules)
        self.resolver = Resolver(self.modules, self.names)
        self.suite = SuiteFiles(self.modules, self.resolver, collected, packages)
        self._tables: dict[str, LineTable] = {}

    def __reduce__(self) -> tuple[object, ...]:
        arguments = (
            dict(self.modules), dict(self.manifests), self.executable, self.suite.collected, self.suite.packages,
            self.others,
        )  # fmt: skip
        return (_unpickle, arguments)

    @classmethod
    def parse(
        cls, root: Path, paths: Iterable[str], *, collected: Iterable[str] = (), packages: Iterable[str] = ()
    ) -> PythonCodebase:
        """Parse the files ``paths`` (relative to ``root``); files that cannot be read are left out.

        ``collected`` are the files that tests were collected from, ``packages`` the import names that the project
        installs: both tell test files from library code.
        """
        modules: dict[str, PythonModule] = {}
        executable: list[str] = []
        paths = set(paths)
        with _without_garbage_collection():
            for path in sorted(paths):
                check_deadline()
                source = read_regular(root / path) if path.endswith((".py", ".pyw")) else None
                if source is not None:
                    modules[path] = parse_module(path, source)
                    if os.access(root / path, os.X_OK):
                        executable.append(path)
        declaring = {*MANIFESTS, *(path for path in paths if _is_manifest(path))}
        manifests = {path: data for path in sorted(declaring) if (data := read_regular(root / path)) is not None}
        others = OtherFiles((path for path in paths if path not in modules), root)
        return cls(
            modules, manifests=manifests, executable=executable, collected=collected, packages=packages, others=others
        )

    @classmethod
    def from_texts(
        cls, files: Mapping[str, str | bytes], *, collected: Iterable[str] = (), packages: Iterable[str] = ()
    ) -> PythonCodebase:
        """Make a codebase from the contents of files in memory, for tests; parameters as in :meth:`parse`."""
        data = {p: t.encode() if isinstance(t, str) else t for p, t in files.items()}
        modules = {p: parse_module(p, t) for p, t in sorted(data.items()) if p.endswith((".py", ".pyw"))}
        manifests = {p: t for p, t in data.items() if _is_manifest(p)}
        others = OtherFiles(texts={p: t for p, t in data.items() if p not in modules})
        return cls(modules, manifests=manifests, collected=collected, packages=packages, others=others)

    # ------------------------------------------------------------------------------------ symbols
    @cached_property
    def _symbols(self) -> Mapping[str, Symbol]:
        return MappingProxyType({s.symbol_id: s for m in self.modules.values() for s in m.symbols})

    def symbols(self) -> Mapping[str, Symbol]:
        """Symbol id to symbol, tests included."""
        return self._symbols

    def is_test(self, path: str) -> bool:
        """Whether the file belongs to the tests (test files, conftest, their helpers)."""
        return self.suite.holds(path)

    def is_vendored(self, path: str) -> bool:
        """Whether the file belongs to a copy of another project."""
        return not VENDOR_FOLDERS.isdisjoint(path.split("/")[:-1])

    def is_removable(self, symbol_id: str) -> bool:
        """Whether a definition can be deleted alone: Python itself calls some special methods."""
        symbol = self._symbols[symbol_id]
        return not symbol.qualname or is_removable(symbol.name)

    def compiled_name(self, symbol_id: str) -> str:  # noqa: ARG002
        """None: byte code is recognised by the names in it."""
        return ""

    def is_one_liner(self, symbol_id: str) -> bool:
        """Whether the function's body begins on the line of its ``def``, which importing the module executes."""
        symbol = self._symbols.get(symbol_id)
        return symbol is not None and symbol_id in self.modules[symbol.path].one_liners

    def symbols_of_lines(self, path: str, lines: Iterable[int]) -> frozenset[str]:
        """Ids of the symbols that one of the lines belongs to; see :class:`LineTable`."""
        if path not in self.modules:
            return frozenset()
        if path not in self._tables:
            self._tables[path] = LineTable(self.modules[path])
        return self._tables[path].symbols_of(lines)

    # -------------------------------------------------------------------------------------- graph
    def inherited(self, symbol_id: str) -> Inherited | None:  # noqa: ARG002
        """See :meth:`excise.protocols.Codebase.inherited`."""
        return None

    def definition_of_test(self, test_id: str) -> Symbol | None:
        """See :meth:`excise.protocols.Codebase.definition_of_test`."""
        test = TestId.parse(without_parameter(test_id))
        return self._symbols.get(joined(*self.place_of(test.path, test.names))) if test.names else None

    def place_of(self, path: str, names: Sequence[str]) -> tuple[str, str]:
        """The file and qualified name of what the names lead to from a file: it may be inherited or imported."""
        plain = path, ".".join(names)
        if path not in self.modules or joined(*plain) in self._symbols:
            return plain
        entity = self.resolver.member(path, names)
        return (entity.path, entity.qualname) if entity is not None else plain

    def callees(self, symbol_id: str) -> frozenset[str]:
        """Symbols that this one refers to; for a class or module, references of its members included."""
        found: set[str] = set()
        for inner in self._with_members(symbol_id):
            found |= self._edges.get(inner, set())
        return frozenset(found) - {symbol_id}

    def callers(self, symbol_id: str) -> frozenset[str]:
        """Symbols outside this one that refer to it or to its members."""
        members = self._with_members(symbol_id)
        found: set[str] = set()
        for inner in members:
            found |= self._reverse.get(inner, set())
        return frozenset(found) - members

    def _with_members(self, symbol_id: str) -> frozenset[str]:
        symbol = self._symbols.get(symbol_id)
        if symbol is None:
            return frozenset()
        if symbol.is_callable:
            return frozenset({symbol_id})
        inside = (s for s in self.modules[symbol.path].symbols if s.start >= symbol.start and s.end <= symbol.end)
        everything = symbol.kind is SymbolKind.MODULE
        return frozenset({symbol_id, *(s.symbol_id for s in inside if everything or s.qualname)})

    @cached_property
    def _edges(self) -> dict[str, set[str]]:
        edges: dict[str, set[str]] = defaultdict(set)
        known: dict[tuple[str, str, str, bool], frozenset[str]] = {}
        for path, module in self.modules.items():
            check_deadline()
            for ref in module.references:
                special = ref.via >= 0 or ref.chain.startswith("<")
                key = (path, ref.chain, ref.owner if special else ref.klass, ref.is_assigned)
                if special or key not in known:
                    known[key] = self.targets(path, ref)
                owner = f"{path}::{ref.owner}" if ref.owner else path
                edges[owner] |= known[key]
        for owner, targets in edges.items():
            targets.discard(owner)
        return edges

    @cached_property
    def _reverse(self) -> dict[str, set[str]]:
        reverse: dict[str, set[str]] = defaultdict(set)
        for owner, targets in self._edges.items():
            for target in targets:
                reverse[target].add(owner)
        return reverse

    def targets(self, path: str, ref: Reference) -> frozenset[str]:
        """Ids of the symbols that a reference in a file is one to."""
        prefixes = self.resolver.prefixes(path, ref)
        found: set[str] = set()
        for entity in prefixes[1:] if ref.chain.startswith("<") else prefixes:
            if entity is not None and entity.qualname:
                found |= self._group(self.resolver.follow(entity))
        if len(prefixes) <= ref.chain.count("."):
            unknown_object = not prefixes or (prefixes[-1] is not None and bool(prefixes[-1].qualname))
            name = ref.chain.rpartition(".")[2]
            if unknown_object and not self._external(path, ref) and name in self._unique_methods:
                found.update(self._groups[self._unique_methods[name]])
        accessors = {each for each in found & self._accessors if not self._is_set_by(ref, each)}
        return frozenset(found - accessors)

    @cached_property
    def _accessors(self) -> frozenset[str]:
        """Ids of the setters and deleters of properties."""
        return frozenset(symbol_id for symbol_id, symbol in self._symbols.items() if is_accessor(symbol))

    def _is_set_by(self, ref: Reference, accessor: str) -> bool:
        """Whether a reference that leads to a property calls its setter or deleter, and does not only read it."""
        name = self._symbols[accessor].name.partition("#")[0]
        return ref.is_assigned and ref.chain.rpartition(".")[2] == name

    def _external(self, path: str, ref: Reference) -> bool:
        """Whether the chain starts at a name imported from outside the repository, such as ``np.sum``."""
        root = ref.chain.partition(".")[0]
        return ref.via >= 0 or root in self.resolver.scope(path).imports

    def _group(self, entity: Entity) -> frozenset[str]:
        """Ids of all symbols with the same name: overloads, property accessors and conditional definitions."""
        ids = self._groups.get(entity.id)
        return frozenset(ids) if ids else frozenset()

    @cached_property
    def _groups(self) -> dict[str, list[str]]:
        groups: dict[str, list[str]] = defaultdict(list)
        for symbol_id, symbol in self._symbols.items():
            groups[base_id(symbol)].append(symbol_id)
        return groups

    def group(self, symbol_id: str) -> tuple[str, ...]:
        """Ids of the symbols that go when this one goes: all of its name (``f``, ``f#2`` …), itself included.

        The setter and the deleter of a property can go alone.
        """
        symbol = self._symbols[symbol_id]
        return (symbol_id,) if is_accessor(symbol) else tuple(self._groups[base_id(symbol)])

    @cached_property
    def _unique_methods(self) -> dict[str, str]:
        by_name: dict[str, set[str]] = defaultdict(set)
        for symbol in self._symbols.values():
            if symbol.kind is SymbolKind.METHOD and not self.is_test(symbol.path):
                by_name[symbol.name.partition("#")[0]].add(base_id(symbol))
        return {
            name: next(iter(ids))
            for name, ids in by_name.items()
            if len(ids) == 1 and name not in BUILTIN_ATTRIBUTES and next(iter(ids)) in self._symbols
        }


def _is_manifest(path: str) -> bool:
    return path.rpartition("/")[2] in MANIFESTS or is_generated_manifest(path)


def is_generated_manifest(path: str) -> bool:
    """Whether a file of an archive is what building it made of the entry points of a manifest."""
    return path.endswith(".egg-info/entry_points.txt")


def base_id(symbol: Symbol) -> str:
    """Symbol id without the suffix ``#2`` of a second definition of the same name."""
    head, dot, last = symbol.qualname.rpartition(".")
    plain = f"{head}{dot}{last.partition('#')[0]}"
    return f"{symbol.path}::{plain}" if plain else symbol.path


def is_accessor(symbol: Symbol) -> bool:
    """Whether a method is the setter or the deleter of a property, which others can read without it."""
    return any(each.endswith((".setter", ".deleter")) for each in symbol.decorators)


def _unpickle(
    modules: dict[str, PythonModule],
    manifests: dict[str, bytes],
    executable: frozenset[str],
    collected: frozenset[str],
    packages: frozenset[str],
    others: OtherFiles,
) -> PythonCodebase:
    return PythonCodebase(
        modules, manifests=manifests, executable=executable, collected=collected, packages=packages, others=others
    )


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Switch the garbage collector off: it would traverse millions of records of which it can free none."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class LineTable:
    """Lookup of the symbols that a line of one file belongs to, by bisection.

    A function has the lines from ``body_line`` to its end: its decorators and ``def`` line run at import and belong to
    the surrounding symbol. A class has all its lines, those of its methods included, and the module has every line.
    """

    def __init__(self, module: PythonModule) -> None:
        ranges = [(_first_line(s), s.end_line, s.symbol_id) for s in module.symbols]
        self._starts = sorted({1, *(r[0] for r in ranges if r[0]), *(r[1] + 1 for r in ranges if r[0])})
        owners: list[set[str]] = [set() for _ in self._starts]
        for first, last, symbol_id in ranges:
            if first:
                for i in range(bisect_right(self._starts, first) - 1, bisect_right(self._starts, last)):
                    owners[i].add(symbol_id)
        self._owners = [frozenset(o) for o in owners]

    def symbols_of(self, lines: Iterable[int]) -> frozenset[str]:
        """Ids of all symbols that one of the lines (1-based) belongs to."""
        segments = {bisect_right(self._starts, line) - 1 for line in lines if line > 0}
        return frozenset().union(*(self._owners[i] for i in segments))


def _first_line(symbol: Symbol) -> int:
    """The first line that belongs to the symbol; 0 if none does."""
    if symbol.kind is SymbolKind.MODULE:
        return 1
    if symbol.kind is SymbolKind.CLASS:
        return symbol.start_line
    return symbol.body_line
