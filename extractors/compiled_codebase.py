"""What the codebases of compiled languages share: symbols by id, by lines, and by who refers to whom."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Generic, NamedTuple, TypeVar

from excise.extractors.other_files import OtherFiles
from excise.protocols import Inherited, Module
from excise.system.deadline import check_deadline
from excise.types import Symbol, joined, symbol_of_test


class DefinitionKind(StrEnum):
    """What a definition defines."""

    FUNCTION = "function"
    TYPE = "type"
    VALUE = "value"
    """Constants and variables."""
    PART = "part"
    """What adds to types, such as an ``impl`` block."""


class Assignment(NamedTuple):
    """A statement of a function that does nothing but give a value to a name which the function does not use."""

    name: str
    """The name."""
    start: int
    """First byte of the statement's lines."""
    end: int
    """One past the last one."""
    uses: frozenset[str]
    """The names in it that the function has nowhere else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What can be taken out of a file: a definition with all that belongs to it."""

    path: str
    """File."""
    qualname: str
    """Qualified name, that of its symbol if it is one; unique in the file."""
    kind: DefinitionKind
    """What it defines."""
    names: frozenset[str]
    """The plain names by which other code refers to it; of a block, that of the trait that it implements."""
    start: int
    """First byte of its lines, with comments and attributes directly above it."""
    code: int
    """First byte of the definition itself."""
    end: int
    """One past the last byte, with the rest of the line."""
    uses: frozenset[str]
    """All names in it, but for those in definitions inside it."""
    head: frozenset[str]
    """Those of them that it uses without its body: what a stub of it uses."""
    holder: str = ""
    """Qualified name of the definition around it in the file."""
    about: frozenset[str] = frozenset()
    """Names of types without any of which it has no meaning: that of a method's receiver."""
    group: str = ""
    """What it goes with: definitions of one group are one thing, such as variants of a function for several systems."""
    assignments: tuple[Assignment, ...] = ()
    """Of a function: statements that mean nothing without what they give a value to."""
    is_private: bool = False
    """Whether code outside its package, crate or file cannot refer to it."""
    is_fixed: bool = False
    """Whether it cannot go alone: the language itself calls it, or what is around it must have it."""

    @property
    def key(self) -> str:
        """``path::qualname``: the id of its symbol, if it is one."""
        return joined(self.path, self.qualname)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledModule(Module):
    """A parsed file of a compiled language."""

    definitions: tuple[Definition, ...]
    """Its definitions in order; one that holds others comes before these."""


M = TypeVar("M", bound=CompiledModule)


class CompiledCodebase(ABC, Generic[M]):
    """A part of :class:`excise.protocols.Codebase`; a language resolves names and knows its tests."""

    vendor_folders: ClassVar[frozenset[str]] = frozenset()
    """Names of folders in which projects keep copies of other projects."""

    def __init__(self, modules: Mapping[str, M], executable: Iterable[str], others: OtherFiles | None = None) -> None:
        self.modules: Mapping[str, M] = MappingProxyType(dict(modules))
        self.executable = frozenset(executable)
        self.others = others or OtherFiles()
        """Files that are no source files of the language."""

    # ------------------------------------------------------------------------------------ symbols
    @cached_property
    def _symbols(self) -> Mapping[str, Symbol]:
        return MappingProxyType({s.symbol_id: s for m in self.modules.values() for s in m.symbols})

    def symbols(self) -> Mapping[str, Symbol]:
        """Symbol id to symbol, tests included."""
        return self._symbols

    @abstractmethod
    def is_test(self, path: str) -> bool:
        """See :meth:`excise.protocols.Codebase.is_test`."""

    @abstractmethod
    def is_removable(self, symbol_id: str) -> bool:
        """See :meth:`excise.protocols.Codebase.is_removable`."""

    @abstractmethod
    def compiled_name(self, symbol_id: str) -> str:
        """See :meth:`excise.protocols.Codebase.compiled_name`."""

    def scope_of(self, path: str) -> str:  # noqa: ARG002
        """The part of the project in which a name that a file gives means the same without its path."""
        return ""

    def qualifiers_of(self, path: str) -> frozenset[str]:  # noqa: ARG002
        """What other code may write before the name of a definition of a file: its package or module."""
        return frozenset()

    def may_name(self, path: str, definition: Definition) -> bool:  # noqa: ARG002
        """Whether a file may refer to a definition by its plain name."""
        return True

    def is_internal(self, definition: Definition) -> bool:  # noqa: ARG002
        """Whether only the project itself can refer to a definition that is not private."""
        return False

    def is_unused_function(
        self,
        definition: Definition,  # noqa: ARG002
        gone: Collection[str],  # noqa: ARG002
        stubs: Mapping[str, frozenset[str]],  # noqa: ARG002
    ) -> bool:
        """Whether nothing refers to a function but definitions that are gone, and bodies of stubs, though others have
        its name, too; ``False`` where the language does not tell them apart. ``stubs`` maps keys to names in heads."""
        return False

    def definitions(self) -> Iterator[Definition]:
        """All definitions, those of tests included."""
        for module in self.modules.values():
            yield from module.definitions

    def is_vendored(self, path: str) -> bool:
        """Whether the file belongs to a copy of another project."""
        return not self.vendor_folders.isdisjoint(path.split("/")[:-1])

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
        """Nothing of a function runs before it is called."""
        return False

    def definition_of_test(self, test_id: str) -> Symbol | None:
        """See :meth:`excise.protocols.Codebase.definition_of_test`."""
        return self.symbols().get(symbol_of_test(test_id))

    @abstractmethod
    def inherited(self, symbol_id: str) -> Inherited | None:
        """See :meth:`excise.protocols.Codebase.inherited`."""

    # ------------------------------------------------------------------------------------ references
    @abstractmethod
    def references_of(self, module: M) -> Iterator[tuple[str, str]]:
        """(name of the definition in the file, or ``""``; id of the symbol that it refers to) of all references."""

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
            for name, found in self.references_of(module):
                owner = joined(path, name) if name else path
                if found != owner:
                    callees[owner].add(found)
                    callers[found].add(owner)
        return (
            {symbol: frozenset(found) for symbol, found in callees.items()},
            {symbol: frozenset(found) for symbol, found in callers.items()},
        )


class ReadFiles(NamedTuple, Generic[M]):
    """The files of a repository."""

    modules: dict[str, M]
    """Path to parsed source file."""
    executable: list[str]
    """Paths of executable source files."""
    others: OtherFiles
    """The other files."""


def read_modules(root: Path, paths: Iterable[str], suffix: str, parse_file: Callable[[str, bytes], M]) -> ReadFiles[M]:
    """Parse the files among ``paths`` (relative to ``root``) with a suffix; the others are read when they are needed.

    Source files that cannot be read, and links, are left out.
    """
    modules: dict[str, M] = {}
    executable = []
    others = []
    for path in sorted(set(paths)):
        check_deadline()
        file = root / path
        if not path.endswith(suffix):
            others.append(path)
        elif file.is_file() and not file.is_symlink():
            modules[path] = parse_file(path, file.read_bytes())
            if os.access(file, os.X_OK):
                executable.append(path)
    return ReadFiles(modules, executable, OtherFiles(others, root))
