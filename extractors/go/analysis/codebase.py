"""All parsed Go files of a repository, and the references between their symbols."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

from excise.extractors.compiled_codebase import CompiledCodebase, Definition, read_modules
from excise.extractors.go.analysis.interfaces import CONVENTIONS, Shape, documented_methods, shape_of
from excise.extractors.go.analysis.parsed_file import GoModule, Reference, is_exported, parse_file
from excise.extractors.other_files import OtherFiles
from excise.protocols import Inherited
from excise.types import SymbolKind

SUFFIX = ".go"
TEST_SUFFIX = "_test.go"
_CALLED_BY_GO = frozenset({"init", "main", "TestMain"})


class GoCodebase(CompiledCodebase[GoModule]):
    """Implements :class:`excise.protocols.Codebase` for Go.

    Names are resolved within packages and through imports of the project's own packages. A method of an unknown
    object is a reference only if exactly one method of the repository has this name.
    """

    vendor_folders = frozenset({"vendor", "third_party", "_vendor"})

    def __init__(
        self,
        modules: Mapping[str, GoModule],
        *,
        executable: Iterable[str] = (),
        others: OtherFiles | None = None,
        import_paths: Iterable[str] = (),
    ) -> None:
        super().__init__(modules, executable, others)
        self.import_paths = tuple(import_paths)
        """Import paths of the project's modules; the first is that of the main folder."""

    @classmethod
    def parse(cls, root: Path, paths: Iterable[str], *, import_paths: Iterable[str] = ()) -> GoCodebase:
        """Parse the Go files among ``paths`` (relative to ``root``); files that cannot be read are left out."""
        modules, executable, others = read_modules(root, paths, SUFFIX, parse_file)
        return cls(modules, executable=executable, others=others, import_paths=import_paths)

    @classmethod
    def from_texts(cls, files: Mapping[str, str], *, import_paths: Iterable[str] = ()) -> GoCodebase:
        """Make a codebase from the contents of files in memory, for tests."""
        modules = {path: parse_file(path, data.encode()) for path, data in files.items() if path.endswith(SUFFIX)}
        others = OtherFiles(texts={path: data.encode() for path, data in files.items() if path not in modules})
        return cls(modules, others=others, import_paths=import_paths)

    # ------------------------------------------------------------------------------------ symbols
    def is_test(self, path: str) -> bool:
        """Whether the file is one of tests, or data of tests."""
        return path.endswith(TEST_SUFFIX) or "testdata" in path.split("/")[:-1]

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

    def may_name(self, path: str, definition: Definition) -> bool:
        """Only files of its package may name what begins with a small letter."""
        return self.scope_of(path) == self.scope_of(definition.path) or any(map(is_exported, definition.names))

    def scope_of(self, path: str) -> str:
        """The package: the folder."""
        return posixpath.dirname(path)

    def qualifiers_of(self, path: str) -> frozenset[str]:
        """The name of the package."""
        return frozenset({self.modules[path].package})

    def package_files(self, path: str) -> list[str]:
        """Paths of the files in the folder of a file, tests included."""
        return self._folders.get(posixpath.dirname(path), [])

    @cached_property
    def _folders(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for path in self.modules:
            found[posixpath.dirname(path)].append(path)
        return found

    def inherited(self, symbol_id: str) -> Inherited | None:
        """The method of an interface of the project, else of a well-known one, with the same name and types."""
        symbol = self._symbols[symbol_id]
        shape = shape_of(symbol, self.modules[symbol.path].source) if symbol.kind is SymbolKind.METHOD else None
        if shape is None:
            return None
        known = self._interface_methods.get(shape)
        if known is None and shape in CONVENTIONS:
            return Inherited(owner=shape.name, text="")
        return known

    @cached_property
    def _interface_methods(self) -> dict[Shape, Inherited]:
        found: dict[Shape, Inherited] = {}
        for path, module in self.modules.items():
            if b"interface" in module.source and not self.is_test(path):
                for name, shape, words in documented_methods(module.source):
                    found.setdefault(shape, Inherited(owner=f"{name}.{shape.name}", text=words))
        return found

    # ------------------------------------------------------------------------------------ references
    def references_of(self, module: GoModule) -> Iterator[tuple[str, str]]:
        """See :meth:`CompiledCodebase.references_of`."""
        packages = self._own_packages(module)
        others = {name for each in module.imports for name in each.used_names} - packages.keys()
        for reference in module.references:
            if reference.qualifier not in others:
                for found in self._resolve(module.path, reference, packages):
                    yield reference.owner, found

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
