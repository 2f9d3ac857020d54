"""All parsed Go files of a repository, and the references between their symbols."""

from __future__ import annotations

import os
import posixpath
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from excise.extractors.go.analysis.parsed_file import GoModule, Reference, parse_file
from excise.system.deadline import check_deadline
from excise.types import Symbol, SymbolKind, joined

SUFFIX = ".go"
TEST_SUFFIX = "_test.go"
VENDOR_FOLDERS = frozenset({"vendor", "third_party", "_vendor"})
"""Names of folders in which projects keep copies of other projects."""
_CALLED_BY_GO = frozenset({"init", "main", "TestMain"})


class GoCodebase:
    """Implements :class:`excise.protocols.Codebase` for Go.

    Names are resolved within packages and through imports of the project's own packages. A method of an unknown
    object is a reference only if exactly one method of the repository has this name.
    """

    def __init__(
        self, modules: Mapping[str, GoModule], *, executable: Iterable[str] = (), import_paths: Iterable[str] = ()
    ) -> None:
        self.modules: Mapping[str, GoModule] = MappingProxyType(dict(modules))
        self.executable = frozenset(executable)
        self.import_paths = tuple(import_paths)
        """Import paths of the project's modules; the first is that of the main folder."""

    @classmethod
    def parse(cls, root: Path, paths: Iterable[str], *, import_paths: Iterable[str] = ()) -> GoCodebase:
        """Parse the Go files among ``paths`` (relative to ``root``); files that cannot be read are left out."""
        modules: dict[str, GoModule] = {}
        executable = []
        for path in sorted(set(paths)):
            check_deadline()
            file = root / path
            if path.endswith(SUFFIX) and file.is_file() and not file.is_symlink():
                modules[path] = parse_file(path, file.read_bytes())
                if os.access(file, os.X_OK):
                    executable.append(path)
        return cls(modules, executable=executable, import_paths=import_paths)

    @classmethod
    def from_texts(cls, files: Mapping[str, str], *, import_paths: Iterable[str] = ()) -> GoCodebase:
        """Make a codebase from the contents of files in memory, for tests."""
        modules = {path: parse_file(path, data.encode()) for path, data in files.items() if path.endswith(SUFFIX)}
        return cls(modules, import_paths=import_paths)

    # ------------------------------------------------------------------------------------ symbols
    @cached_property
    def _symbols(self) -> Mapping[str, Symbol]:
        return MappingProxyType({s.symbol_id: s for m in self.modules.values() for s in m.symbols})

    def symbols(self) -> Mapping[str, Symbol]:
        """Symbol id to symbol, tests included."""
        return self._symbols

    def is_test(self, path: str) -> bool:
        """Whether the file is one of tests, or data of tests."""
        return path.endswith(TEST_SUFFIX) or "testdata" in path.split("/")[:-1]

    def is_vendored(self, path: str) -> bool:
        """Whether the file belongs to a copy of another project."""
        return not VENDOR_FOLDERS.isdisjoint(path.split("/")[:-1])

    def is_removable(self, symbol_id: str) -> bool:
        """Whether a definition can be deleted alone: Go itself calls ``init`` and ``main``."""
        symbol = self._symbols[symbol_id]
        return symbol.qualname.partition("#")[0] not in _CALLED_BY_GO

    def compiled_name(self, symbol_id: str) -> str:
        """Package and name of a function, as ``verifiers/leaks/decoders/go_objects.py`` reads them."""
        symbol = self._symbols[symbol_id]
        if not symbol.is_callable or not self.import_paths:
            return ""
        path = [*self.import_paths[0].split("/"), *filter(None, posixpath.dirname(symbol.path).split("/"))]
        package = "/".join(path[-2:]) if len(path) > 2 else f"/{path[-1]}"
        return f"{package}.{symbol.qualname.partition('#')[0]}"

    def package_files(self, path: str) -> list[str]:
        """Paths of the files in the folder of a file, tests included."""
        return self._folders.get(posixpath.dirname(path), [])

    @cached_property
    def _folders(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for path in self.modules:
            found[posixpath.dirname(path)].append(path)
        return found

    def symbols_of_lines(self, path: str, lines: Iterable[int]) -> frozenset[str]:
        """Ids of the functions and methods that one of the lines belongs to."""
        module = self.modules.get(path)
        if module is None:
            return frozenset()
        wanted = set(lines)
        return frozenset(
            symbol.symbol_id
            for symbol in module.symbols
            if symbol.is_callable and any(symbol.start_line <= line <= symbol.end_line for line in wanted)
        )

    def is_one_liner(self, symbol_id: str) -> bool:  # noqa: ARG002
        """Importing a package executes no line of a function."""
        return False

    # ------------------------------------------------------------------------------------ references
    def callees(self, symbol_id: str) -> frozenset[str]:
        """Symbols that the body of this one refers to, as far as names can be resolved."""
        return self._graph[0].get(symbol_id, frozenset())

    def callers(self, symbol_id: str) -> frozenset[str]:
        """Symbols that refer to this one (module ids for references at the level of a file)."""
        return self._graph[1].get(symbol_id, frozenset())

    @cached_property
    def _graph(self) -> tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]]:
        callees: dict[str, set[str]] = defaultdict(set)
        callers: dict[str, set[str]] = defaultdict(set)
        for path, module in self.modules.items():
            packages = self._own_packages(module)
            for reference in module.references:
                owner = joined(path, reference.owner) if reference.owner else path
                for found in self._resolve(path, reference, packages):
                    if found != owner:
                        callees[owner].add(found)
                        callers[found].add(owner)
        return (
            {symbol: frozenset(found) for symbol, found in callees.items()},
            {symbol: frozenset(found) for symbol, found in callers.items()},
        )

    def _own_packages(self, module: GoModule) -> dict[str, str]:
        """Names under which a file uses packages of the project, to their folders."""
        found = {}
        for each in module.imports:
            folder = self.folder_of(each.path)
            if folder is not None:
                names = {self.modules[path].package for path in self._folders[folder] if not self.is_test(path)}
                found.update(dict.fromkeys({each.name} if each.name else names, folder))
        return found

    def folder_of(self, import_path: str) -> str | None:
        """Folder of a package of the project; ``None`` for other packages."""
        for base in self.import_paths:
            if import_path == base or import_path.startswith(f"{base}/"):
                folder = import_path[len(base) :].strip("/")
                return folder if folder in self._folders else None
        return None

    def _resolve(self, path: str, reference: Reference, packages: Mapping[str, str]) -> Iterable[str]:
        if not reference.qualifier:
            return self._by_folder[posixpath.dirname(path)].get(reference.name, ())
        if reference.qualifier in packages:
            return self._by_folder[packages[reference.qualifier]].get(reference.name, ())
        methods = self._methods.get(reference.name, [])
        return methods if len(methods) == 1 else ()

    @cached_property
    def _by_folder(self) -> dict[str, dict[str, list[str]]]:
        """Folder to name to the ids of the functions and types with that name."""
        found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for symbol in self._symbols.values():
            if symbol.kind in {SymbolKind.FUNCTION, SymbolKind.CLASS}:
                found[posixpath.dirname(symbol.path)][symbol.name].append(symbol.symbol_id)
        return found

    @cached_property
    def _methods(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for symbol in self._symbols.values():
            if symbol.kind is SymbolKind.METHOD:
                found[symbol.name].append(symbol.symbol_id)
        return found
