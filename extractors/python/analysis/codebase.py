"""All Python files of a repository, and who refers to what."""

from __future__ import annotations

import gc
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from excise.extractors.python.analysis.line_table import LineTable
from excise.extractors.python.analysis.module_names import ModuleNames
from excise.extractors.python.analysis.name_resolution import Entity, Resolver
from excise.extractors.python.analysis.parsed_file import PythonModule, Reference
from excise.extractors.python.analysis.parser import parse_module
from excise.extractors.python.analysis.suite_files import SuiteFiles
from excise.types import Symbol, SymbolKind

MANIFESTS = ("pyproject.toml", "setup.cfg")
"""Files beside the Python sources that can name code."""

_BUILTIN_ATTRIBUTES = frozenset(
    name for kind in (str, bytes, list, tuple, dict, set, int, float, complex, object, type) for name in dir(kind)
)


class PythonCodebase:
    """Implements :class:`excise.protocols.Codebase` for Python.

    Names are resolved through imports, re-exports, star imports, ``self``/``cls``/``super()`` and base
    classes. An attribute of an unknown object counts only if one method of the repository has that name.
    """

    def __init__(
        self,
        modules: Mapping[str, PythonModule],
        *,
        manifests: Mapping[str, bytes] | None = None,
        executable: Iterable[str] = (),
        collected: Iterable[str] = (),
        packages: Iterable[str] = (),
    ) -> None:
        self.modules: Mapping[str, PythonModule] = MappingProxyType(dict(modules))
        self.manifests: Mapping[str, bytes] = MappingProxyType(dict(manifests or {}))
        self.executable = frozenset(executable)
        self.names = ModuleNames(self.modules)
        self.resolver = Resolver(self.modules, self.names)
        self.suite = SuiteFiles(self.modules, self.resolver, collected, packages)
        self._tables: dict[str, LineTable] = {}

    def __reduce__(self) -> tuple[object, ...]:
        given = (dict(self.modules), dict(self.manifests), self.executable, self.suite.collected, self.suite.packages)
        return (_rebuild, given)

    @classmethod
    def parse(
        cls, root: Path, paths: Iterable[str], *, collected: Iterable[str] = (), packages: Iterable[str] = ()
    ) -> PythonCodebase:
        """Parse the files (paths inside ``root``); files that cannot be read are left out.

        ``collected``: those that tests were collected from; ``packages``: import names that are installed.
        """
        modules: dict[str, PythonModule] = {}
        executable: list[str] = []
        with _collector_paused():
            for path in sorted(set(paths)):
                source = _read(root / path) if path.endswith((".py", ".pyw")) else None
                if source is not None:
                    modules[path] = parse_module(path, source)
                    if os.access(root / path, os.X_OK):
                        executable.append(path)
        manifests = {name: data for name in MANIFESTS if (data := _read(root / name)) is not None}
        return cls(modules, manifests=manifests, executable=executable, collected=collected, packages=packages)

    @classmethod
    def from_texts(
        cls, files: Mapping[str, str | bytes], *, collected: Iterable[str] = (), packages: Iterable[str] = ()
    ) -> PythonCodebase:
        """A codebase from contents in memory."""
        data = {p: t.encode() if isinstance(t, str) else t for p, t in files.items()}
        modules = {p: parse_module(p, t) for p, t in sorted(data.items()) if p.endswith((".py", ".pyw"))}
        manifests = {p: t for p, t in data.items() if p in MANIFESTS}
        return cls(modules, manifests=manifests, collected=collected, packages=packages)

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

    def is_one_liner(self, symbol_id: str) -> bool:
        """Whether importing the module executes the line that holds the function's body."""
        symbol = self._symbols.get(symbol_id)
        return symbol is not None and symbol_id in self.modules[symbol.path].one_liners

    def symbols_of_lines(self, path: str, lines: Iterable[int]) -> frozenset[str]:
        """Ids of the symbols that own one of the lines: see :class:`LineTable`."""
        if path not in self.modules:
            return frozenset()
        if path not in self._tables:
            self._tables[path] = LineTable(self.modules[path])
        return self._tables[path].symbols_of(lines)

    # -------------------------------------------------------------------------------------- graph
    def callees(self, symbol_id: str) -> frozenset[str]:
        """Symbols that the body of this one refers to; for a class or module also what is inside it does."""
        found: set[str] = set()
        for inner in self._family(symbol_id):
            found |= self._edges.get(inner, set())
        return frozenset(found) - {symbol_id}

    def callers(self, symbol_id: str) -> frozenset[str]:
        """Symbols that refer to this one or to what is inside it, from outside of it."""
        family = self._family(symbol_id)
        found: set[str] = set()
        for inner in family:
            found |= self._reverse.get(inner, set())
        return frozenset(found) - family

    def _family(self, symbol_id: str) -> frozenset[str]:
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
        known: dict[tuple[str, str, str], frozenset[str]] = {}
        for path, module in self.modules.items():
            for ref in module.references:
                special = ref.via >= 0 or ref.chain.startswith("<")
                key = (path, ref.chain, ref.owner if special else ref.klass)
                if special or key not in known:
                    known[key] = self._targets(path, ref)
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

    def _targets(self, path: str, ref: Reference) -> frozenset[str]:
        prefixes = self.resolver.prefixes(path, ref)
        found: set[str] = set()
        for entity in prefixes[1:] if ref.chain.startswith("<") else prefixes:
            if entity is not None and entity.qualname:
                found |= self._group(self.resolver.follow(entity))
        if len(prefixes) <= ref.chain.count("."):
            unknown_object = not prefixes or (prefixes[-1] is not None and bool(prefixes[-1].qualname))
            name = ref.chain.rpartition(".")[2]
            if unknown_object and not self._external(path, ref) and name in self._unique_methods:
                found.add(self._unique_methods[name])
        return frozenset(found)

    def _external(self, path: str, ref: Reference) -> bool:
        """The chain starts at an imported name that is not ours: ``np.sum``."""
        root = ref.chain.partition(".")[0]
        return ref.via >= 0 or root in self.resolver.scope(path).imports

    def _group(self, entity: Entity) -> frozenset[str]:
        """Ids of the symbols of one name: overloads, property accessors and conditional definitions count together."""
        ids = self._groups.get(entity.id)
        return frozenset(ids) if ids else frozenset()

    @cached_property
    def _groups(self) -> dict[str, list[str]]:
        groups: dict[str, list[str]] = defaultdict(list)
        for symbol_id, symbol in self._symbols.items():
            groups[base_id(symbol)].append(symbol_id)
        return groups

    def group(self, symbol_id: str) -> tuple[str, ...]:
        """All symbols that share the name of this one (``f``, ``f#2`` …), itself included."""
        symbol = self._symbols[symbol_id]
        return tuple(self._groups[base_id(symbol)])

    @cached_property
    def _unique_methods(self) -> dict[str, str]:
        by_name: dict[str, set[str]] = defaultdict(set)
        for symbol in self._symbols.values():
            if symbol.kind is SymbolKind.METHOD and not self.is_test(symbol.path):
                by_name[symbol.name.partition("#")[0]].add(base_id(symbol))
        return {
            name: next(iter(ids))
            for name, ids in by_name.items()
            if len(ids) == 1 and name not in _BUILTIN_ATTRIBUTES and next(iter(ids)) in self._symbols
        }


def base_id(symbol: Symbol) -> str:
    """Symbol id without the ``#2`` of a later definition of the same name."""
    head, dot, last = symbol.qualname.rpartition(".")
    plain = f"{head}{dot}{last.partition('#')[0]}"
    return f"{symbol.path}::{plain}" if plain else symbol.path


def _rebuild(
    modules: dict[str, PythonModule],
    manifests: dict[str, bytes],
    executable: frozenset[str],
    collected: frozenset[str],
    packages: frozenset[str],
) -> PythonCodebase:
    return PythonCodebase(modules, manifests=manifests, executable=executable, collected=collected, packages=packages)


def _read(path: Path) -> bytes | None:
    """Bytes of a regular file; links are not followed (their target is a file of its own)."""
    try:
        return None if path.is_symlink() or not path.is_file() else path.read_bytes()
    except OSError:
        return None


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Millions of small records are made at once: the garbage collector would only look at them again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
