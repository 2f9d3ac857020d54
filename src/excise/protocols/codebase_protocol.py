"""The parsed files of a repository and the references between their symbols."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from excise.types import Symbol


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One parsed source file."""

    path: str
    """Path inside the repository."""
    source: bytes
    """Content of the file."""
    symbols: tuple[Symbol, ...]
    """Definitions in order of ``start``; the first is the module itself."""
    has_error: bool = False
    """Whether the file has a syntax error; nothing is deleted in such files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inherited:
    """What a method implements or overrides."""

    owner: str
    """Name of the method that documents it, such as ``Value.Set``."""
    text: str
    """Its documentation; empty for a convention of the language or of another package."""
    is_of_type: bool = False
    """Whether this is the documentation of the method's type, of which the method is a part."""


class Codebase(Protocol):
    """All parsed files of a repository and the references between their symbols; made by a :class:`Language`."""

    @property
    def modules(self) -> Mapping[str, Module]:
        """Paths to parsed files."""
        ...

    @property
    def executable(self) -> frozenset[str]:
        """Paths of the files that are executable."""
        ...

    def symbols(self) -> Mapping[str, Symbol]:
        """Ids to symbols, including those of test files."""
        ...

    def is_test(self, path: str) -> bool:
        """Whether the file belongs to the tests (test files, conftest, helpers of tests)."""
        ...

    def is_vendored(self, path: str) -> bool:
        """Whether the file belongs to a copy of another project."""
        ...

    def is_removable(self, symbol_id: str) -> bool:
        """Whether a definition can be deleted alone: the language itself needs some others, such as constructors."""
        ...

    def compiled_name(self, symbol_id: str) -> str:
        """The name under which compiled programs hold a function, see ``verifiers/leaks/decoders``; empty for none."""
        ...

    def inherited(self, symbol_id: str) -> Inherited | None:
        """What a method implements or overrides, as an interface, a trait or a type above its own documents it.

        ``None`` for Python, where statements look at base classes, and where nothing is known.
        """
        ...

    def definition_of_test(self, test_id: str) -> Symbol | None:
        """The function of a test, which its class may inherit or its file import; ``None`` for other tests."""
        ...

    def callees(self, symbol_id: str) -> frozenset[str]:
        """Symbols that the body of this one refers to, as far as names can be resolved."""
        ...

    def callers(self, symbol_id: str) -> frozenset[str]:
        """Symbols that refer to this one (module ids for references at module level)."""
        ...
