"""All parsed Java files of a repository, and the references between their symbols."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from excise.extractors.java.analysis.parsed_file import JavaModule, Reference, parse_file
from excise.extractors.java.analysis.suite_files import SUFFIX, is_test_file
from excise.system.deadline import check_deadline
from excise.types import Symbol, SymbolKind, TestId, joined, path_of

VENDOR_FOLDERS = frozenset({"vendor", "third_party", "thirdparty", "shaded"})
"""Names of folders in which projects keep copies of other projects."""
_CALLED_BY_JAVA = frozenset({"main", "readObject", "writeObject", "readResolve", "writeReplace", "finalize"})


class JavaCodebase:
    """Implements :class:`excise.protocols.Codebase` for Java.

    Types are resolved within packages and through imports. A method of an object is resolved by the type that the file
    declares the object with; of an unknown one, it is a reference only if the methods of this name are all of one type.
    """

    def __init__(
        self, modules: Mapping[str, JavaModule], *, executable: Iterable[str] = (), tests: Iterable[str] = ()
    ) -> None:
        self.modules: Mapping[str, JavaModule] = MappingProxyType(dict(modules))
        self.executable = frozenset(executable)
        self._test_files = frozenset(path_of(test) for test in tests)

    @classmethod
    def parse(cls, root: Path, paths: Iterable[str], tests: Iterable[str] = ()) -> JavaCodebase:
        """Parse the Java files among ``paths`` (relative to ``root``); files that cannot be read are left out."""
        modules: dict[str, JavaModule] = {}
        executable = []
        for path in sorted(set(paths)):
            check_deadline()
            file = root / path
            if path.endswith(SUFFIX) and file.is_file() and not file.is_symlink():
                modules[path] = parse_file(path, file.read_bytes())
                if os.access(file, os.X_OK):
                    executable.append(path)
        return cls(modules, executable=executable, tests=tests)

    @classmethod
    def from_texts(cls, files: Mapping[str, str], tests: Iterable[str] = ()) -> JavaCodebase:
        """Make a codebase from the contents of files in memory, for tests."""
        modules = {path: parse_file(path, data.encode()) for path, data in files.items() if path.endswith(SUFFIX)}
        return cls(modules, tests=tests)

    # ------------------------------------------------------------------------------------ symbols
    @cached_property
    def _symbols(self) -> Mapping[str, Symbol]:
        return MappingProxyType({s.symbol_id: s for m in self.modules.values() for s in m.symbols})

    def symbols(self) -> Mapping[str, Symbol]:
        """Symbol id to symbol, tests included."""
        return self._symbols

    def is_test(self, path: str) -> bool:
        """Whether a file belongs to the tests, by its path or since it defines a known test."""
        return path in self._test_files or is_test_file(path)

    def is_vendored(self, path: str) -> bool:
        """Whether a file belongs to a copy of another project."""
        return not VENDOR_FOLDERS.isdisjoint(path.split("/")[:-1])

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

    def symbols_of_lines(self, path: str, lines: Iterable[int]) -> frozenset[str]:
        """Ids of the methods and constructors that one of the lines belongs to."""
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
        """Loading a class executes no line of a method."""
        return False

    def test_symbol(self, test_id: str) -> Symbol | None:
        """The method of a test; ``None`` if its class inherits it."""
        test = TestId.parse(test_id)
        return self._symbols.get(joined(test.path, test.qualname))

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
            types = self._types_seen(module)
            for reference in module.references:
                owner = joined(path, reference.owner) if reference.owner else path
                for found in self._resolve(module, reference, types):
                    if found != owner:
                        callees[owner].add(found)
                        callers[found].add(owner)
        return (
            {symbol: frozenset(found) for symbol, found in callees.items()},
            {symbol: frozenset(found) for symbol, found in callers.items()},
        )

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

    def _resolve(self, module: JavaModule, reference: Reference, types: Mapping[str, str]) -> Iterator[str]:
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
