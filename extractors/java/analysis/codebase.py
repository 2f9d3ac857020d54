"""All parsed Java files of a repository, and the references between their symbols."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

from excise.extractors.compiled_codebase import CompiledCodebase, Definition, read_modules
from excise.extractors.java.analysis.documented_methods import (
    CONVENTIONS,
    Shape,
    documented_methods,
    numbers_of_arguments,
    shape_of,
)
from excise.extractors.java.analysis.parsed_file import JavaImport, JavaModule, Member, Reference, parse_file
from excise.extractors.java.analysis.suite_files import SUFFIX, is_test_file
from excise.extractors.other_files import OtherFiles
from excise.protocols import Inherited
from excise.types import Symbol, SymbolKind, TestId, joined, path_of

_CALLED_BY_JAVA = frozenset({"main", "readObject", "writeObject", "readResolve", "writeReplace", "finalize"})


class JavaCodebase(CompiledCodebase[JavaModule]):
    """Implements :class:`excise.protocols.Codebase` for Java.

    Types are resolved within packages and through imports. A method of an object is resolved by the type that the file
    declares the object with; of an unknown one, it is a reference only if the methods of this name are all of one type.
    """

    vendor_folders = frozenset({"vendor", "third_party", "thirdparty", "shaded"})

    def __init__(
        self,
        modules: Mapping[str, JavaModule],
        *,
        executable: Iterable[str] = (),
        others: OtherFiles | None = None,
        tests: Iterable[str] = (),
    ) -> None:
        super().__init__(modules, executable, others)
        self._test_files = frozenset(path_of(test) for test in tests)

    @classmethod
    def parse(cls, root: Path, paths: Iterable[str], tests: Iterable[str] = ()) -> JavaCodebase:
        """Parse the Java files among ``paths`` (relative to ``root``); files that cannot be read are left out."""
        modules, executable, others = read_modules(root, paths, SUFFIX, parse_file)
        return cls(modules, executable=executable, others=others, tests=tests)

    @classmethod
    def from_texts(cls, files: Mapping[str, str], tests: Iterable[str] = ()) -> JavaCodebase:
        """Make a codebase from the contents of files in memory, for tests."""
        modules = {path: parse_file(path, data.encode()) for path, data in files.items() if path.endswith(SUFFIX)}
        others = OtherFiles(texts={path: data.encode() for path, data in files.items() if path not in modules})
        return cls(modules, others=others, tests=tests)

    # ------------------------------------------------------------------------------------ symbols
    def is_test(self, path: str) -> bool:
        """Whether a file belongs to the tests, by its path or since it defines a known test."""
        return path in self._test_files or is_test_file(path)

    def may_name(self, path: str, definition: Definition) -> bool:
        """Only its own file may name what is private."""
        return path == definition.path or not (isinstance(definition, Member) and definition.is_of_file)

    def is_removable(self, symbol_id: str) -> bool:
        """Whether a definition can be deleted alone: the virtual machine itself calls some methods by name."""
        name = self._symbols[symbol_id].name.partition("#")[0]
        return name not in _CALLED_BY_JAVA

    def compiled_name(self, symbol_id: str) -> str:
        """Binary name of the class, and the method, as ``verifiers/leaks/decoders/java_classes.py`` reads them."""
        symbol = self._symbols[symbol_id]
        if not symbol.is_callable:
            return ""
        package = self.modules[symbol.path].package
        *holders, name = symbol.qualname.partition("#")[0].split(".")
        binary = "$".join(holders)
        return f"{package.replace('.', '/')}/{binary}.{name}" if package else f"{binary}.{name}"

    def is_own(self, imported: JavaImport) -> bool:
        """Whether an import names a type of the project, or a member of one."""
        path = imported.path
        return path in self._types or path.rpartition(".")[0] in self._types

    def inherited(self, symbol_id: str) -> Inherited | None:
        """The method that this one overrides: of a type of the project, else a well-known one of Java's library."""
        symbol = self._symbols[symbol_id]
        shape = shape_of(symbol, self.modules[symbol.path].source) if symbol.is_callable else None
        if shape is None:
            return None
        for type_id in self._supertypes(symbol.holder_id):
            if words := self._documented.get((type_id, shape)):
                return Inherited(owner=f"{self._symbols[type_id].name}.{shape.name}", text=words)
        is_library = shape.name in CONVENTIONS and "Override" in symbol.decorators
        return Inherited(owner=shape.name, text="") if is_library else None

    @cached_property
    def _documented(self) -> dict[tuple[str, Shape], str]:
        """Type and shape of a method to its documentation."""
        return {
            (joined(path, name), shape): words
            for path, module in self.modules.items()
            if not self.is_test(path)
            for name, shape, words in documented_methods(module.source)
        }

    def test_symbol(self, test_id: str) -> Symbol | None:
        """The method of a test; ``None`` if its class inherits it."""
        test = TestId.parse(test_id)
        return self._symbols.get(joined(test.path, test.qualname))

    # ------------------------------------------------------------------------------------ references
    def references_of(self, module: JavaModule) -> Iterator[tuple[str, str]]:
        """See :meth:`CompiledCodebase.references_of`."""
        types = self._types_seen(module)
        for reference in module.references:
            for found in self._resolve(module, reference, types):
                yield reference.owner, found

    @cached_property
    def _types(self) -> dict[str, str]:
        """Qualified name of a type of the project to its id."""
        found: dict[str, str] = {}
        for module in self.modules.values():
            for symbol in module.symbols:
                if symbol.kind is SymbolKind.CLASS:
                    name = f"{module.package}.{symbol.qualname}" if module.package else symbol.qualname
                    found.setdefault(name, symbol.symbol_id)
        return found

    @cached_property
    def _packages(self) -> dict[str, dict[str, str]]:
        """Package to the simple names of its types to their ids."""
        found: dict[str, dict[str, str]] = defaultdict(dict)
        for name, symbol_id in self._types.items():
            package, _, simple = name.rpartition(".")
            found[package].setdefault(simple, symbol_id)
        return found

    def _types_seen(self, module: JavaModule) -> dict[str, str]:
        """Simple names under which a file sees types of the project, to their ids."""
        found = dict(self._packages.get(module.package, {}))
        for each in module.imports:
            if each.is_wildcard:
                found |= self._packages.get(each.path, {})
        for each in module.imports:
            path = each.path.rpartition(".")[0] if each.is_static and not each.is_wildcard else each.path
            if path in self._types:
                found[path.rpartition(".")[2]] = self._types[path]
        own = {s.name: s.symbol_id for s in module.symbols if s.kind is SymbolKind.CLASS}
        return found | own

    @cached_property
    def _methods(self) -> dict[str, dict[str, list[str]]]:
        """Name of a method to the ids of the types that define it, to its overloads there."""
        found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for symbol in self._symbols.values():
            if symbol.is_callable:
                found[symbol.name.partition("#")[0]][symbol.holder_id].append(symbol.symbol_id)
        return found

    @cached_property
    def _numbers_of_arguments(self) -> dict[str, range]:
        """Id of each method that has overloads to the numbers of arguments that it takes."""
        overloads: dict[str, list[Symbol]] = defaultdict(list)
        for by_type in self._methods.values():
            for found in by_type.values():
                if len(found) > 1:
                    for symbol_id in found:
                        overloads[path_of(symbol_id)].append(self._symbols[symbol_id])
        return {
            symbol.symbol_id: numbers
            for path, symbols in overloads.items()
            for symbol, numbers in numbers_of_arguments(symbols, self.modules[path].source)
        }

    def _resolve(self, module: JavaModule, reference: Reference, types: Mapping[str, str]) -> Iterator[str]:
        """What a reference means: of a call, only the overloads with as many parameters as it has arguments."""
        found = list(self._resolve_name(module, reference, types))
        numbers = self._numbers_of_arguments
        fitting = {each for each in found if reference.num_arguments in numbers.get(each, ())}
        yield from (each for each in found if not fitting or each in fitting or each not in numbers)

    def _resolve_name(self, module: JavaModule, reference: Reference, types: Mapping[str, str]) -> Iterator[str]:
        by_type = self._methods.get(reference.name, {})
        if not reference.qualifier:
            if reference.name in types:
                found = types[reference.name]
                yield found
                yield from by_type.get(found, ())
                return
            for holder in self._holders(module, reference.owner):
                if holder in by_type:
                    yield from by_type[holder]
                    return
            for each in module.imports:
                if each.is_static and (each.is_wildcard or each.name == reference.name):
                    path = each.path if each.is_wildcard else each.path.rpartition(".")[0]
                    yield from by_type.get(self._types.get(path, ""), ())
            return
        known = self._types_of(module, reference.qualifier, types)
        for name in known:
            for holder in (name, *self._supertypes(name)):
                if holder in by_type:
                    yield from by_type[holder]
                    return
        if not known and len(by_type) == 1:
            yield from next(iter(by_type.values()))

    def _types_of(self, module: JavaModule, qualifier: str, types: Mapping[str, str]) -> list[str]:
        """Ids of the types that a qualifier may stand for; empty if that is unknown."""
        if qualifier == "?":
            return []
        if qualifier in types:
            return [types[qualifier]]
        declared = module.types_of_names.get(qualifier, frozenset())
        return [types[name] for name in sorted(declared) if name in types]

    def _holders(self, module: JavaModule, owner: str) -> Iterator[str]:
        """Ids of the types around a definition, from inside, each with those that it inherits from."""
        parts = owner.partition("#")[0].split(".") if owner else []
        for size in range(len(parts), 0, -1):
            holder = joined(module.path, ".".join(parts[:size]))
            if holder in self._symbols and self._symbols[holder].kind is SymbolKind.CLASS:
                yield holder
                yield from self._supertypes(holder)

    def _supertypes(self, type_id: str) -> Iterator[str]:
        """Ids of the types of the project that a type inherits from."""
        seen, pending = {type_id}, [type_id]
        while pending:
            symbol = self._symbols[pending.pop()]
            module = self.modules[symbol.path]
            types = self._types_seen(module)
            for name in module.supertypes.get(symbol.qualname, ()):
                found = types.get(name, "")
                if found and found not in seen:
                    seen.add(found)
                    pending.append(found)
                    yield found
