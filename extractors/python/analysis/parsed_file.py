"""Records of a parsed Python file: imports, references, bindings, exports."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from excise.protocols import Module

SELF = "<self>"
"""Root of a reference chain that starts at the first parameter of a method (``self.x``, ``cls.x``)."""
SUPER = "<super>"
"""Root of a reference chain that starts at ``super()``."""


class Phase(StrEnum):
    """When a piece of code runs."""

    IMPORT = "import"
    """While the module is imported: module level, class bodies, decorators, defaults, bases."""
    LAZY = "lazy"
    """When a function is called, or never (annotations under ``from __future__ import annotations``)."""
    MAIN = "main"
    """Inside ``if __name__ == "__main__":``."""
    TYPING = "typing"
    """Inside ``if TYPE_CHECKING:``."""


class Import(NamedTuple):
    """One imported name: ``import a.b``, ``from a import b as c``, ``from .x import *``."""

    module: str
    """Dotted module without leading dots; empty for ``from . import x``."""
    level: int
    """Number of leading dots."""
    name: str
    """The imported name, or ``*``; empty for ``import module``."""
    alias: str
    """The name after ``as``; empty without one."""
    start: int
    """First byte of the clause (name and alias)."""
    end: int
    """End of the clause: one past its last byte."""
    stmt_start: int
    """First byte of the statement."""
    stmt_end: int
    """End of the statement: one past its last byte."""
    owner: str
    """Qualified name of the innermost symbol around the import; empty at module level."""
    phase: Phase
    """When the import runs."""
    in_try: bool
    """Whether the import is inside a ``try`` statement (of the same function or module level)."""

    @property
    def bound(self) -> str:
        """The local name that the import binds; empty for ``*``."""
        if self.name == "*":
            return ""
        return self.alias or self.name or self.module.partition(".")[0]


class Reference(NamedTuple):
    """One use of a name, with the attributes that follow it."""

    chain: str
    """Dotted name: ``name.attr``, ``<self>.m``, ``<super>.m``, or ``.m`` for an attribute of an unknown object."""
    start: int
    """First byte."""
    end: int
    """One past the last byte."""
    owner: str
    """Qualified name of the innermost symbol (with its decorators) around the reference; empty at module level."""
    klass: str
    """For references in a class body: the class, whose namespace is searched first; else empty."""
    phase: Phase
    """When the reference is evaluated."""
    is_base: bool
    """Whether the reference is a base class of ``owner``."""
    via: int
    """Index into ``imports`` of the function-level import that binds the chain's root; -1 if there is none."""
    is_assigned: bool
    """Whether the last attribute of the chain is assigned or deleted, not read."""


class Binding(NamedTuple):
    """A name bound at module or class level by a statement other than a definition or an import."""

    name: str
    """The name."""
    klass: str
    """Class whose body binds it; empty at module level."""
    target: str
    """Dotted name on the right-hand side, if the binding is a plain alias; else empty."""
    start: int
    """First byte of the binding statement."""
    end: int
    """One past its last byte."""


class Export(NamedTuple):
    """One entry of ``__all__``."""

    name: str
    """The exported name."""
    start: int
    """First byte of the string literal."""
    end: int
    """One past its last byte."""


@dataclass(frozen=True, kw_only=True)
class PythonModule(Module):
    """A parsed Python file."""

    imports: tuple[Import, ...] = ()
    """Every import clause, in order."""
    references: tuple[Reference, ...] = ()
    """Every reference whose root is not local to a function, in order."""
    bindings: tuple[Binding, ...] = ()
    """Other module-level and class-level bindings, in order."""
    exports: tuple[Export, ...] = ()
    """Literal entries of ``__all__``."""
    has_all: bool = False
    """Whether the module defines ``__all__``."""
    one_liners: frozenset[str] = frozenset()
    """Ids of functions whose body begins on the line of their ``def``, which importing the module executes."""
