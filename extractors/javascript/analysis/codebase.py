"""All parsed JavaScript files of a repository, and the graph of references between their symbols."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from excise.extractors.javascript.analysis.declaration_files import (
    DECLARATIONS,
    described_modules,
    documented_declarations,
)
from excise.extractors.javascript.analysis.documented_methods import DocumentedType, documented_types
from excise.extractors.javascript.analysis.grammar import Offsets
from excise.extractors.javascript.analysis.module_links import Entity, ModuleLinks
from excise.extractors.javascript.analysis.parsed_file import DEFAULT, WHOLE, Export, JavaScriptModule, Reference
from excise.extractors.javascript.analysis.parser import parse_module
from excise.extractors.javascript.analysis.suite_files import is_test_file
from excise.protocols import Inherited
from excise.system.deadline import check_deadline
from excise.types import Symbol, SymbolKind, is_inside, joined, path_of, symbol_of_test

SUFFIXES = (".js", ".cjs", ".mjs", ".jsx", ".ts", ".tsx", ".mts", ".cts")
"""Suffixes of the files that are parsed."""
MANIFEST = "package.json"
DOCUMENTS = (".md", ".markdown", ".rst", ".adoc", ".txt")
"""Suffixes of documents."""
MAX_DOCUMENT = 1 << 20
"""Number of bytes of a document above which it is not read."""
_VENDOR_FOLDERS = frozenset({"vendor", "vendored", "third_party", "third-party", "node_modules", "bower_components"})
_COMMON = frozenset(
    {"push", "pop", "shift", "slice", "splice", "concat", "join", "map", "filter", "forEach", "reduce", "indexOf",
     "length", "toString", "valueOf", "call", "apply", "bind", "then", "catch", "finally", "get", "set", "has", "add",
     "delete", "clear", "keys", "values", "entries", "test", "exec", "match", "replace", "split", "trim", "on", "once",
     "emit", "write", "end", "close", "sort", "reverse", "find", "some", "every", "includes", "next", "constructor",
     "equal", "deepEqual", "error", "log", "name", "message", "parse", "stringify", "prototype", "default"}
)  # fmt: skip
"""Names of methods of built-in objects: a use on an unknown object says nothing."""


class JavaScriptCodebase:
    """Implements :class:`excise.protocols.Codebase` for JavaScript.

    Names are resolved through ``require``, ``import``, re-exports and ``this``. A property of an unknown object is a
    reference only if exactly one method of the repository has this name.
    """

    def __init__(
        self,
        modules: Mapping[str, JavaScriptModule],
        *,
        others: Mapping[str, bytes] | None = None,
        executable: Iterable[str] = (),
        tests: Iterable[str] = (),
    ) -> None:
        self.modules: Mapping[str, JavaScriptModule] = MappingProxyType(dict(modules))
        self.others: Mapping[str, bytes] = MappingProxyType(dict(others or {}))
        """Contents of the manifest and of type declarations (``.d.ts``)."""
        self.executable = frozenset(executable)
        self.tests = frozenset(tests)
        self._test_files = frozenset(path_of(test) for test in self.tests)
        self.links = ModuleLinks(self.modules, self.others.get(MANIFEST))
        self._offsets: dict[str, Offsets] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return (_unpickle, (dict(self.modules), dict(self.others), self.executable, self.tests))

    @classmethod
    def parse(cls, root: Path, paths: Iterable[str], *, tests: Iterable[str] = ()) -> JavaScriptCodebase:
        """Parse the files ``paths`` (relative to ``root``); files that cannot be read are left out.

        ``tests`` are the ids of the known tests.
        """
        modules: dict[str, JavaScriptModule] = {}
        others: dict[str, bytes] = {}
        executable: list[str] = []
        for path in sorted(set(paths)):
            check_deadline()
            is_other = path == MANIFEST or path.endswith((*DECLARATIONS, *DOCUMENTS))
            source = _read(root / path) if is_other or path.endswith(SUFFIXES) else None
            if source is None or (path.endswith(DOCUMENTS) and len(source) > MAX_DOCUMENT):
                continue
            if (root / path).stat().st_mode & 0o100:
                executable.append(path)
            if is_other:
                others[path] = source
            elif not _is_minified(source):
                modules[path] = parse_module(path, source)
        return cls(modules, others=others, executable=executable, tests=tests)

    @classmethod
    def from_texts(cls, files: Mapping[str, str | bytes], *, tests: Iterable[str] = ()) -> JavaScriptCodebase:
        """Make a codebase from the contents of files in memory, for tests; parameters as in :meth:`parse`."""
        data = {path: each.encode() if isinstance(each, str) else each for path, each in files.items()}
        parsed = [path for path in sorted(data) if path.endswith(SUFFIXES) and not path.endswith(DECLARATIONS)]
        modules = {path: parse_module(path, data[path]) for path in parsed}
        others = {path: each for path, each in data.items() if path not in modules}
        return cls(modules, others=others, tests=tests)

    # ------------------------------------------------------------------------------------ symbols
    @cached_property
    def _symbols(self) -> Mapping[str, Symbol]:
        return MappingProxyType({s.symbol_id: s for m in self.modules.values() for s in m.symbols})

    def symbols(self) -> Mapping[str, Symbol]:
        """Symbol id to symbol, tests included."""
        return self._symbols

    def is_test(self, path: str) -> bool:
        """Whether the file belongs to the tests (test files and their helpers)."""
        return path in self._test_files or is_test_file(path)

    def tests_of(self, path: str) -> frozenset[str]:
        """Ids of the known tests of a file."""
        return frozenset(test for test in self.tests if path_of(test) == path)

    def is_vendored(self, path: str) -> bool:
        """Whether the file belongs to a copy of another project."""
        return not _VENDOR_FOLDERS.isdisjoint(path.split("/")[:-1])

    def is_removable(self, symbol_id: str) -> bool:
        """Whether a definition can be deleted alone: constructors are called by the language itself."""
        symbol = self._symbols[symbol_id]
        return not (symbol.kind is SymbolKind.METHOD and symbol.name == "constructor")

    def compiled_name(self, symbol_id: str) -> str:
        """None: JavaScript is not compiled."""
        return ""

    def members(self, symbol_id: str) -> tuple[str, ...]:
        """Ids of the symbol and of all that belong to it: methods, functions inside it, functions of its prototype."""
        symbol = self._symbols[symbol_id]
        module = self.modules[symbol.path]
        if not symbol.qualname:
            return tuple(each.symbol_id for each in module.symbols)
        dotted = f"{symbol.qualname.partition('#')[0]}."
        inside = (s.symbol_id for s in module.symbols if s.qualname.startswith(dotted) or s.qualname == symbol.qualname)
        return tuple(inside)

    # ----------------------------------------------------------------------------------- coverage
    def symbols_of_function(self, path: str, start: int, end: int) -> frozenset[str]:
        """Ids of the symbols that a function belongs to, which V8 reports with offsets in UTF-16 units.

        These are the innermost symbol around it, and those that hold it. Empty for the code of the module itself.
        """
        module = self.modules.get(path)
        if module is None:
            return frozenset()
        offsets = self._offsets.setdefault(path, Offsets(module.source))
        first, last = offsets.to_byte(start), offsets.to_byte(end)
        around = [
            (span.end - span.start, name)
            for name, span in module.functions.items()
            if span.start <= first and last <= span.end
        ]
        if not around:
            return frozenset()
        name = min(around)[1]
        parts = name.split(".")
        holders = {".".join(parts[:n]) for n in range(1, len(parts))}
        known = {f"{path}::{each}" for each in holders} & self._symbols.keys()
        return frozenset({path, f"{path}::{name}", *known})

    # -------------------------------------------------------------------------------------- graph
    def definition_of_test(self, test_id: str) -> Symbol | None:
        """See :meth:`excise.protocols.Codebase.definition_of_test`."""
        return self.symbols().get(symbol_of_test(test_id))

    def inherited(self, symbol_id: str) -> Inherited | None:
        """The method of a class or interface above a method's own; in another file, the only one with that name. Else
        the declaration of a function in a ``.d.ts`` file that describes its module, or one that exports it."""
        symbol = self._symbols[symbol_id]
        owner, _, name = symbol.qualname.partition("#")[0].rpartition(".")
        pending, seen = self._supertypes(symbol.path, owner), set[str]()
        while pending:
            above, found = pending.pop(0)
            if f"{above}::{found.name}" in seen:
                continue
            seen.add(f"{above}::{found.name}")
            if words := found.methods.get(name):
                return Inherited(owner=f"{found.name}.{name}", text=words)
            pending += self._supertypes(above, found.name)
        return self._declared(symbol)

    def _declared(self, symbol: Symbol) -> Inherited | None:
        """The declaration of a function in a ``.d.ts`` file; that beside its own module before others."""
        *owner, name = _plain(symbol.qualname).split(".")
        for path in sorted(self.described_modules, key=lambda each: symbol.path not in self.described_modules[each]):
            documented = self._declarations.get(path, {})
            for module in sorted(self.described_modules[path]) if documented and len(owner) < 2 else ():
                first = self._exported_as(module, symbol.path, owner[0] if owner else name)
                for each in first:
                    if words := documented.get(".".join([each, name] if owner else [each])):
                        return Inherited(owner=path, text=words)
        return None

    def _exported_as(self, module: str, path: str, name: str) -> list[str]:
        """The names under which a module exports a definition of a file; as a whole, that of the definition."""
        own = f"{path}::{name}"
        exports = self.modules[module].exports
        found = [e.name for e in exports if e.name not in {WHOLE, DEFAULT} and own in self.exported_symbols(module, e)]
        is_exported = any(own in self._group(entity) for entity in self.links.exported(module, (name,)))
        is_whole = any(e.name in {WHOLE, DEFAULT} and own in self.exported_symbols(module, e) for e in exports)
        return [*found, *([name] if is_exported or is_whole else [])]

    @cached_property
    def described_modules(self) -> Mapping[str, frozenset[str]]:
        """Path of each declaration file to the modules that it describes, as far as this is known."""
        code = [path for path in self.modules if not self.is_test(path)]
        declarations = [path for path in self.others if path.endswith(DECLARATIONS)]
        return described_modules(code, declarations, self.links, self.others.get(MANIFEST, b""))

    @cached_property
    def _declarations(self) -> Mapping[str, Mapping[str, str]]:
        """Path of each declaration file to the documentation of what it declares."""
        return {path: documented_declarations(self.others[path]) for path in self.described_modules}

    def _supertypes(self, path: str, owner: str) -> list[tuple[str, DocumentedType]]:
        """(file, type) of what the class or interface ``owner`` of a file extends or implements."""
        own = next((each for each in self._types.get(path, ()) if each.name == owner), None)
        above: list[tuple[str, DocumentedType]] = []
        for name in own.supertypes if own is not None else ():
            known = [(file, each) for file, types in self._types.items() for each in types if each.name == name]
            near = [pair for pair in known if pair[0] == path]
            above += near[:1] or (known if len(known) == 1 else [])
        return above

    @cached_property
    def _types(self) -> dict[str, list[DocumentedType]]:
        """Path to the classes and interfaces of each file of the sources."""
        return {
            path: documented_types(module.source)
            for path, module in self.modules.items()
            if not self.is_test(path) and (b"class" in module.source or b"interface" in module.source)
        }

    def callees(self, symbol_id: str) -> frozenset[str]:
        """Symbols that this one and those inside it refer to."""
        if symbol_id not in self._symbols:
            return frozenset()
        members = self.members(symbol_id)
        return frozenset().union(*(self._edges.get(member, frozenset()) for member in members)) - {symbol_id}

    def callers(self, symbol_id: str) -> frozenset[str]:
        """Symbols outside this one that refer to it or to its members."""
        if symbol_id not in self._symbols:
            return frozenset()
        members = frozenset(self.members(symbol_id))
        return frozenset().union(*(self._reverse.get(member, frozenset()) for member in members)) - members

    @cached_property
    def _edges(self) -> Mapping[str, frozenset[str]]:
        edges: dict[str, set[str]] = defaultdict(set)
        for path, module in self.modules.items():
            check_deadline()
            for reference in module.references:
                owner = f"{path}::{reference.owner}" if reference.owner else path
                edges[owner] |= self.targets(path, reference)
        return {owner: frozenset(targets - {owner}) for owner, targets in edges.items()}

    @cached_property
    def _reverse(self) -> Mapping[str, frozenset[str]]:
        reverse: dict[str, set[str]] = defaultdict(set)
        for owner, targets in self._edges.items():
            for target in targets:
                reverse[target].add(owner)
        return {target: frozenset(owners) for target, owners in reverse.items()}

    def targets(self, path: str, reference: Reference) -> frozenset[str]:
        """Ids of the symbols that a reference is to."""
        found = self._resolved(path, reference)
        if found:
            return found
        name = reference.chain[-1]
        is_unknown = reference.chain[0] in {"", "this"} or len(reference.chain) > 1
        if is_unknown and name in self._unique_methods and not self.links.is_external(path, reference.chain[0]):
            return frozenset({self._unique_methods[name]})
        return frozenset()

    def _resolved(self, path: str, reference: Reference) -> frozenset[str]:
        chain = reference.chain
        if chain[0] == "this":
            owner = reference.owner
            while "." in owner:
                owner = owner.rpartition(".")[0]
                if len(chain) > 1 and f"{path}::{owner}.{chain[1]}" in self._symbols:
                    return self._group(Entity(path, (owner, chain[1])))
            return frozenset()
        owner = reference.owner
        while owner:
            if (inner := f"{path}::{owner}.{chain[0]}") in self._symbols and self._is_nested(inner):
                return frozenset({inner})
            owner = owner.rpartition(".")[0]
        found: set[str] = set()
        for entity in self.links.entities(path, chain):
            found |= self._group(entity)
        return frozenset(found)

    def symbols_of(self, entities: Iterable[Entity]) -> set[str]:
        """Ids of the symbols that entities are."""
        return {joined(entity.path, ".".join(entity.names)) for entity in entities} & self._symbols.keys()

    def exported_symbols(self, path: str, export: Export) -> set[str]:
        """Ids of the symbols behind an export of a file; those of the longest chain of names that is known."""
        found = self.symbols_of(self.links.behind(path, export))
        return {each for each in found if not any(o != each and is_inside(o, each) for o in found)}

    def _is_nested(self, symbol_id: str) -> bool:
        """Whether a symbol is a function within a function, which is called by its bare name there."""
        return self._symbols[symbol_id].kind is SymbolKind.FUNCTION

    def _group(self, entity: Entity) -> frozenset[str]:
        """Ids of the symbols with a name: several, of getters and setters, or of conditional definitions."""
        name = ".".join(entity.names)
        return frozenset(self._groups.get((entity.path, name), ()))

    def group(self, symbol_id: str) -> tuple[str, ...]:
        """Ids of all symbols with the name of this one (``f``, ``f#2`` …), itself included."""
        symbol = self._symbols[symbol_id]
        return tuple(self._groups.get((symbol.path, _plain(symbol.qualname)), (symbol_id,)))

    @cached_property
    def _groups(self) -> Mapping[tuple[str, str], list[str]]:
        groups: dict[tuple[str, str], list[str]] = defaultdict(list)
        for symbol_id, symbol in self._symbols.items():
            if symbol.qualname:
                groups[symbol.path, _plain(symbol.qualname)].append(symbol_id)
        return groups

    @cached_property
    def _unique_methods(self) -> Mapping[str, str]:
        by_name: dict[str, set[str]] = defaultdict(set)
        for symbol_id, symbol in self._symbols.items():
            if symbol.kind is SymbolKind.METHOD and not self.is_test(symbol.path):
                by_name[_plain(symbol.name)].add(symbol_id)
        return {name: next(iter(ids)) for name, ids in by_name.items() if len(ids) == 1 and name not in _COMMON}


def _plain(qualname: str) -> str:
    """A qualified name without the suffix ``#2`` of a second definition of the same name."""
    head, dot, last = qualname.rpartition(".")
    return f"{head}{dot}{last.partition('#')[0]}"


def _is_minified(source: bytes) -> bool:
    """Whether a file is a bundle for browsers: lines of thousands of bytes."""
    return len(source) > 5000 and len(source) / (source.count(b"\n") + 1) > 500


def _unpickle(
    modules: dict[str, JavaScriptModule], others: dict[str, bytes], executable: frozenset[str], tests: frozenset[str]
) -> JavaScriptCodebase:
    return JavaScriptCodebase(modules, others=others, executable=executable, tests=tests)


def _read(path: Path) -> bytes | None:
    """Bytes of a regular file; ``None`` for links, whose target is parsed under its own path, and unreadable files."""
    try:
        return None if path.is_symlink() or not path.is_file() else path.read_bytes()
    except OSError:
        return None
