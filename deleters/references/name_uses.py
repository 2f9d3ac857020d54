"""Where names are used at import time and by import statements: an index over a whole codebase."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from posixpath import dirname
from typing import NamedTuple
from weakref import WeakKeyDictionary

from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.analysis.name_resolution import Entity
from excise.extractors.python.analysis.parsed_file import Import, Phase, Reference
from excise.types import SymbolKind


class Lost(NamedTuple):
    """A binding that no longer exists: a module-level name, ``Class.attr``, or a module (empty name)."""

    path: str
    qualname: str

    @property
    def name(self) -> str:
        """The name under which it is looked up."""
        return self.qualname.rpartition(".")[2]


class UseIndex:
    """Finds what depends on a binding while modules are imported."""

    def __init__(self, codebase: PythonCodebase) -> None:
        self.codebase = codebase
        self.resolver = codebase.resolver

    @cached_property
    def _references(self) -> dict[str, list[tuple[str, Reference]]]:
        found: dict[str, list[tuple[str, Reference]]] = defaultdict(list)
        for path, module in self.codebase.modules.items():
            for ref in module.references:
                if ref.phase is not Phase.LAZY and ref.via < 0:
                    for part in set(ref.chain.split(".")):
                        found[part].append((path, ref))
        return found

    @cached_property
    def _imports(self) -> dict[str, list[tuple[str, Import]]]:
        found: dict[str, list[tuple[str, Import]]] = defaultdict(list)
        for path, module in self.codebase.modules.items():
            for record in module.imports:
                for name in {record.name, *record.module.split(".")}:
                    found[name].append((path, record))
        return found

    @cached_property
    def imported(self) -> frozenset[str]:
        """Paths that some other file imports, at any place."""
        found: set[str] = set()
        for path, module in self.codebase.modules.items():
            for record in module.imports:
                source = self.resolver.module_of(path, record)
                entity = self.resolver.imported(path, record) if record.name != "*" else None
                found.update(e.path for e in (source, entity) if e is not None and e.path != path)
                found.update(self._parents(path, record))
        return frozenset(found)

    def _parents(self, path: str, record: Import) -> Iterator[str]:
        parts = record.module.split(".")
        for count in range(1, len(parts)):
            found = self.codebase.names.absolute(".".join(parts[:count]), path) if not record.level else None
            if found:
                yield found

    def is_script(self, path: str) -> bool:
        """A file that is run but never imported: set-up code, examples, benchmarks, build tools."""
        return (
            path not in self.imported
            and not self.codebase.is_test(path)
            and dirname(path) not in self.codebase.names.packages
        )

    def is_loose_test_file(self, path: str) -> bool:
        """A file in a test folder that nothing imports and pytest does not collect by name (for type checkers)."""
        name = path.rpartition("/")[2]
        collected = name.startswith("test") or name.endswith(("_test.py", "_tests.py")) or name == "conftest.py"
        return self.codebase.is_test(path) and not collected and path not in self.imported

    # -------------------------------------------------------------------------------------- uses
    def references_to(self, lost: Lost) -> Iterator[tuple[str, Reference]]:
        """References outside of function bodies whose chain passes through the lost binding."""
        for path, ref in self._references.get(lost.name or self._module_name(lost.path), ()):
            if self._passes_through(path, ref, lost):
                yield path, ref

    def _passes_through(self, path: str, ref: Reference, lost: Lost) -> bool:
        parts = ref.chain.split(".")
        inside = "." not in lost.qualname and bool(lost.qualname)
        if inside and path == lost.path and parts[0] == lost.qualname and not self._shadowed(path, ref, parts[0]):
            return True
        target = Entity(lost.path, lost.qualname)
        prefixes = self.resolver.prefixes(path, ref)
        if target in prefixes:
            return True
        if not inside:
            return False
        module = Entity(lost.path, "")
        return any(e == module and parts[i + 1 : i + 2] == [lost.qualname] for i, e in enumerate(prefixes))

    def _shadowed(self, path: str, ref: Reference, name: str) -> bool:
        return bool(ref.klass) and self.resolver.scope(path).has_member(ref.klass, name, ref.start)

    def importers_of(self, lost: Lost) -> Iterator[tuple[str, Import]]:
        """Import clauses outside of functions that need the lost binding."""
        if "." in lost.qualname:
            return
        module = Entity(lost.path, "")
        name = lost.qualname or self._module_name(lost.path)
        candidates = [*self._imports.get(name, ())]
        if not lost.qualname:
            candidates += [c for c in self._imports.get("*", ()) if c not in candidates]
            candidates += self._relative_to(lost.path)
        for path, record in dict.fromkeys(candidates):
            if self.at_import(path, record) and self._needs(path, record, lost, module):
                yield path, record

    def _relative_to(self, path: str) -> list[tuple[str, Import]]:
        """``from . import x``: clauses that do not spell the module's name."""
        return self._imports.get("", []) if path.endswith("__init__.py") else []

    def _needs(self, path: str, record: Import, lost: Lost, module: Entity) -> bool:
        source = self.resolver.module_of(path, record)
        if lost.qualname:
            return record.name == lost.qualname and source == module
        if source == module:
            return True
        return record.name not in {"", "*"} and self.resolver.imported(path, record) == module

    def at_import(self, path: str, record: Import) -> bool:
        """Whether an import clause stands outside of functions."""
        return not record.owner or self.resolver.scope(path).kinds.get(record.owner) is SymbolKind.CLASS

    def star_importers(self, path: str) -> Iterator[str]:
        """Files that import everything from a file, other than from itself."""
        for importer, record in self._imports.get("*", ()):
            if self.resolver.module_of(importer, record) == Entity(path, "") and importer != path:
                yield importer

    def is_named_from(self, path: str, name: str) -> bool:
        """Whether some other file imports a name from a file, at any place."""
        module = Entity(path, "")
        return any(
            record.name == name and importer != path and self.resolver.module_of(importer, record) == module
            for importer, record in self._imports.get(name, ())
        )

    def attribute_reads(self, path: str, name: str) -> Iterator[tuple[str, Reference]]:
        """References of other files, inside functions too, that reach a name as ``module.name``."""
        module = Entity(path, "")
        for other, ref in self._attribute_uses.get(name, ()):
            if other != path:
                prefixes = self.resolver.prefixes(other, ref)
                parts = ref.chain.split(".")
                if any(e == module and parts[i + 1 : i + 2] == [name] for i, e in enumerate(prefixes)):
                    yield other, ref

    @cached_property
    def _attribute_uses(self) -> dict[str, list[tuple[str, Reference]]]:
        found: dict[str, list[tuple[str, Reference]]] = defaultdict(list)
        for path, module in self.codebase.modules.items():
            for ref in module.references:
                root, _, rest = ref.chain.partition(".")
                if rest and root and not root.startswith("<"):
                    for part in set(rest.split(".")):
                        found[part].append((path, ref))
        return found

    def _module_name(self, path: str) -> str:
        return self.codebase.names.name_of(path).rpartition(".")[2]


_INDICES: WeakKeyDictionary[PythonCodebase, UseIndex] = WeakKeyDictionary()


def use_index(codebase: PythonCodebase) -> UseIndex:
    """The index of a codebase, made once."""
    if codebase not in _INDICES:
        _INDICES[codebase] = UseIndex(codebase)
    return _INDICES[codebase]
