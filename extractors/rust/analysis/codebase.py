"""All parsed Rust files of a repository, and the references between their symbols."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

from excise.extractors.compiled_codebase import CompiledCodebase, Definition, DefinitionKind, read_modules
from excise.extractors.other_files import OtherFiles
from excise.extractors.rust.analysis.parsed_file import Reference, RustModule, parse_file
from excise.extractors.rust.analysis.traits import CONVENTIONS, documented_functions
from excise.protocols import Inherited
from excise.types import Symbol, SymbolKind, joined

SUFFIX = ".rs"
TEST_FOLDERS = frozenset({"tests", "benches", "examples"})
"""Folders of the main folder that hold no sources of the crate itself."""
_CALLED_BY_RUST = frozenset({"main", "drop"})
_LINKED = re.compile(rb"\b(?:no_mangle|export_name|wasm_bindgen)\b")
"""Attributes of what other languages call, whatever module it is in."""


class RustCodebase(CompiledCodebase[RustModule]):
    """Implements :class:`excise.protocols.Codebase` for Rust.

    Names are resolved by the name alone, within the file first; of several definitions elsewhere, by the type or
    module before ``::``. A method of an unknown value is a reference if at most three methods have its name.
    """

    vendor_folders = frozenset({"vendor", "third_party"})

    def __init__(
        self,
        modules: Mapping[str, RustModule],
        *,
        executable: Iterable[str] = (),
        others: OtherFiles | None = None,
        tests: Iterable[str] = (),
        names: Iterable[str] = (),
    ) -> None:
        super().__init__(modules, executable, others)
        self.tests = frozenset(tests)
        """Ids of tests that were run, those which macros define included."""
        self.crate = next(iter(names), "").replace("-", "_")
        """Name of the crate in code; empty if it is not known."""

    @classmethod
    def parse(
        cls, root: Path, paths: Iterable[str], *, tests: Iterable[str] = (), names: Iterable[str] = ()
    ) -> RustCodebase:
        """Parse the Rust files among ``paths`` (relative to ``root``); files that cannot be read are left out."""
        modules, executable, others = read_modules(root, paths, SUFFIX, parse_file)
        return cls(modules, executable=executable, others=others, tests=tests, names=names)

    @classmethod
    def from_texts(cls, files: Mapping[str, str], *, names: Iterable[str] = ()) -> RustCodebase:
        """Make a codebase from the contents of files in memory, for tests."""
        modules = {path: parse_file(path, data.encode()) for path, data in files.items() if path.endswith(SUFFIX)}
        others = OtherFiles(texts={path: data.encode() for path, data in files.items() if path not in modules})
        return cls(modules, others=others, names=names)

    # ------------------------------------------------------------------------------------ symbols
    def is_test(self, path: str) -> bool:
        """Whether the file is in a folder of tests, or a module that only tests have."""
        return path.partition("/")[0] in TEST_FOLDERS or path in self._test_files

    def qualifiers_of(self, path: str) -> frozenset[str]:
        """The name of the crate, and that of the module, as files are named."""
        name = posixpath.basename(path.removesuffix("/mod.rs")).removesuffix(SUFFIX)
        return frozenset(filter(None, (self.crate, name)))

    def may_name(self, path: str, definition: Definition) -> bool:
        """What is private in a test module of the sources has a name in its file, and in the modules in this.

        Elsewhere only where macros, or files that are parts of others, bring it.
        """
        is_module = self.is_test(definition.path) and definition.path.partition("/")[0] not in TEST_FOLDERS
        if not (is_module and definition.is_private) or path == definition.path or self._shares_names:
            return True
        return path.startswith(f"{definition.path.removesuffix(SUFFIX).removesuffix('/mod')}/")

    def is_internal(self, definition: Definition) -> bool:
        """Whether a definition of a module is in one that is not public, and not exported again."""
        is_exported = definition.path in self._public_files or not definition.names.isdisjoint(self._exports)
        above = self.modules[definition.path].source[definition.start : definition.code]
        return not (definition.holder or is_exported or _LINKED.search(above))

    @cached_property
    def _exports(self) -> frozenset[str]:
        return frozenset().union(*(module.exports for module in self.modules.values()))

    @cached_property
    def _public_files(self) -> frozenset[str]:
        """The files of public modules, and those that no other file declares."""
        declared = [
            (path, each, module_paths(path, each.names, each.path))
            for path, module in self.modules.items()
            for each in module.module_files
        ]
        below = {file for _, _, files in declared for file in files}
        exported = {file for _, each, files in declared if each.names[-1] in self._exports for file in files}
        pending = [path for path in self.modules if path not in below or path in exported]
        found = set(pending)
        for path in pending:
            inside = {file for holder, each, files in declared if holder == path and each.is_public for file in files}
            pending += inside - found
            found |= inside
        return frozenset(found)

    def is_unused_function(
        self, definition: Definition, gone: Collection[str], stubs: Mapping[str, frozenset[str]]
    ) -> bool:
        """See :meth:`CompiledCodebase.is_unused_function`; of functions outside of types."""
        if definition.holder or definition.kind is not DefinitionKind.FUNCTION:
            return False
        (name,) = definition.names
        return not any(
            self._may_be(path, reference, definition)
            for path, reference in self._references_by_name.get(name, ())
            if not self.is_test(path)
            and (owner := joined(path, reference.owner) if reference.owner else path) not in gone
            and owner != definition.key
            and name in stubs.get(owner, definition.names)
        )

    def _may_be(self, path: str, reference: Reference, function: Definition) -> bool:
        """Whether a reference with the name of a function outside of types can be one to it."""
        if reference.qualifier == ".":
            return False
        others = [s for s in self._by_name.get(reference.name, ()) if s.symbol_id != function.key]
        if reference.qualifier == "":
            near = (s for s in others if s.path == path and s.kind is SymbolKind.FUNCTION)
            module = self._module_around(path, reference.owner)
            return path == function.path or all(s.qualname.rpartition(".")[0] != module for s in near)
        of_others = {_holder_name(s) for s in others}.union(*(self.qualifiers_of(s.path) for s in others))
        own = self.qualifiers_of(function.path) | self._names_by_path.get(function.path, frozenset())
        is_alias = re.search(rf"\bas\s+{re.escape(reference.qualifier)}\b".encode(), self.modules[path].source)
        return is_alias is not None or reference.qualifier not in of_others - own - {self.crate, ""}

    def _module_around(self, path: str, owner: str) -> str:
        """The module of a file that has a function or type, as qualified names have it; empty for the file itself."""
        symbol = self._symbols.get(joined(path, owner)) if owner else None
        around = owner.rpartition(".")[0]
        return around.rpartition(".")[0] if symbol is not None and symbol.kind is SymbolKind.METHOD else around

    @cached_property
    def _names_by_path(self) -> dict[str, frozenset[str]]:
        """The files of modules with an attribute ``path`` to the names of these modules."""
        found: dict[str, frozenset[str]] = defaultdict(frozenset)
        for path, module in self.modules.items():
            for each in (file for file in module.module_files if file.path):
                for file in module_paths(path, each.names, each.path):
                    found[file] |= {each.names[-1]}
        return found

    @cached_property
    def _references_by_name(self) -> dict[str, list[tuple[str, Reference]]]:
        found: dict[str, list[tuple[str, Reference]]] = defaultdict(list)
        for path, module in self.modules.items():
            for reference in module.references:
                found[reference.name].append((path, reference))
        return found

    @cached_property
    def _shares_names(self) -> bool:
        """Whether macros of one file may be used in others, or files be parts of others."""
        return any(
            re.search(rb"\bmacro_use\b|\binclude\s*!|#\s*\[\s*path\b", each.source) for each in self.modules.values()
        )

    @cached_property
    def _test_files(self) -> frozenset[str]:
        found: set[str] = set()
        pending = [path for path in self.modules if path.partition("/")[0] not in TEST_FOLDERS]
        for path in pending:
            for each in self.modules[path].module_files:
                if each.is_test or path in found:
                    new = [p for p in module_paths(path, each.names, each.path) if p in self.modules and p not in found]
                    found.update(new)
                    pending += new
        return frozenset(found)

    def is_removable(self, symbol_id: str) -> bool:
        """Whether a definition can be emptied: Rust itself calls some, and runs others while it compiles."""
        symbol = self._symbols[symbol_id]
        if symbol.path == "build.rs":
            return False
        name = symbol.name.partition("#")[0]
        return name not in _CALLED_BY_RUST and symbol.qualname not in self.modules[symbol.path].fixed

    def compiled_name(self, symbol_id: str) -> str:
        """Crate, type and name of a function, as ``verifiers/leaks/decoders/rust_objects.py`` reads them."""
        symbol = self._symbols[symbol_id]
        if not symbol.is_callable or not self.crate:
            return ""
        parts = symbol.qualname.partition("#")[0].split(".")
        return "::".join((self.crate, *parts[-2:]))

    def inherited(self, symbol_id: str) -> Inherited | None:
        """The function of the trait that the block around a method implements: of the crate, or a well-known one. Else
        the type, if its documentation names the trait or the function of another crate's that it implements."""
        symbol = self._symbols[symbol_id]
        definitions = {each.qualname: each for each in self.modules[symbol.path].definitions}
        own = definitions.get(symbol.qualname)
        block = definitions.get(own.holder) if own is not None else None
        if block is None or block.kind is not DefinitionKind.PART or not block.names:
            return None
        (trait,), name = block.names, symbol.name.partition("#")[0]
        if words := self._trait_functions.get((trait, name)):
            return Inherited(owner=f"{trait}::{name}", text=words)
        if trait in self._by_name:
            return None
        return Inherited(owner=f"{trait}::{name}", text="") if trait in CONVENTIONS else self._by_type(symbol, trait)

    def _by_type(self, method: Symbol, trait: str) -> Inherited | None:
        """What the documentation of a method's type says of a trait, or of the method by its name."""
        owner = _holder_name(method)
        types = [s for s in self._by_name.get(owner, ()) if s.kind is SymbolKind.CLASS]
        near = [s for s in types if s.path == method.path] or types
        words = near[0].docstring if len(near) == 1 else ""
        is_told = re.search(rf"\b(?:{re.escape(trait)}|{re.escape(method.name.partition('#')[0])})\b", words)
        return Inherited(owner=owner, text=words, is_of_type=True) if is_told else None

    @cached_property
    def _trait_functions(self) -> dict[tuple[str, str], str]:
        """Trait and function to its documentation."""
        return {
            (trait, name): words
            for path, module in self.modules.items()
            if b"trait" in module.source and not self.is_test(path)
            for trait, name, words in documented_functions(module.source)
        }

    # ------------------------------------------------------------------------------------ references
    def references_of(self, module: RustModule) -> Iterator[tuple[str, str]]:
        """See :meth:`CompiledCodebase.references_of`."""
        for reference in module.references:
            for found in self._resolve(module.path, reference):
                yield reference.owner, found

    def _resolve(self, path: str, reference: Reference) -> Iterator[str]:
        found = self._by_name.get(reference.name, ())
        if reference.qualifier == ".":
            methods = [s for s in found if s.kind is SymbolKind.METHOD]
            yield from (s.symbol_id for s in methods if len(methods) <= _MAX_METHODS)
            return
        qualifier = reference.qualifier
        if qualifier == "Self":
            qualifier = reference.owner.rpartition(".")[0].rpartition(".")[2]
        if qualifier not in {"", "self", "crate", "super", "?", self.crate}:
            of = [s for s in found if qualifier in {_holder_name(s), posixpath.basename(s.path)[: -len(SUFFIX)]}]
            yield from (s.symbol_id for s in of)
            return
        plain = [s for s in found if s.kind is not SymbolKind.METHOD]
        near = [s for s in plain if s.path == path]
        yield from (s.symbol_id for s in near or plain)

    @cached_property
    def _by_name(self) -> dict[str, list[Symbol]]:
        found: dict[str, list[Symbol]] = defaultdict(list)
        for symbol in self._symbols.values():
            if symbol.qualname:
                found[symbol.name.partition("#")[0]].append(symbol)
        return found


_MAX_METHODS = 3


def _holder_name(symbol: Symbol) -> str:
    return symbol.qualname.rpartition(".")[0].rpartition(".")[2]


def module_paths(path: str, names: tuple[str, ...], explicit: str = "") -> list[str]:
    """Where the file of a module may be that a file declares under these names; ``explicit`` is its attribute ``path``.

    A file ``a.rs`` has its modules in ``a/``; ``lib.rs``, ``main.rs``, ``mod.rs`` and roots of tests beside themselves.
    """
    folder, file = posixpath.split(path)
    is_root = file in {"lib.rs", "main.rs", "mod.rs"} or folder in TEST_FOLDERS
    base = folder if is_root else posixpath.join(folder, file[: -len(SUFFIX)])
    if explicit:
        return [posixpath.normpath(posixpath.join(base if len(names) > 1 else folder, *names[:-1], explicit))]
    plain = posixpath.join(base, *names)
    return [plain + SUFFIX, posixpath.join(plain, "mod.rs")]
