"""What the Python parser records beyond the language-neutral :class:`~excise.protocols.Module`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from excise.protocols import Module

SELF = "<self>"
"""Root of a chain that starts at the first parameter of a method (``self.x``, ``cls.x``)."""
SUPER = "<super>"
"""Root of a chain that starts at ``super()``."""


class Place(StrEnum):
    """When the code at a place runs."""

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
    """Dotted module without leading dots; may be empty for ``from . import x``."""
    level: int
    """Number of leading dots."""
    name: str
    """The imported name; ``*``; empty for ``import module``."""
    alias: str
    """The name that ``as`` gives; empty without one."""
    start: int
    """First byte of the clause (name and alias)."""
    end: int
    """One past its last byte."""
    stmt_start: int
    """First byte of the statement."""
    stmt_end: int
    """One past its last byte."""
    owner: str
    """Qualified name of the innermost symbol around it; empty at module level."""
    place: Place
    """When it runs."""
    in_try: bool
    """Inside a ``try`` statement (of the same function or module level)."""

    @property
    def bound(self) -> str:
        """The local name it binds; empty for ``*``."""
        if self.name == "*":
            return ""
        return self.alias or self.name or self.module.partition(".")[0]


class Reference(NamedTuple):
    """One use of a name, with the attributes that follow it."""

    chain: str
    """Dotted: ``name.attr``; ``<self>.m``; ``<super>.m``; ``.m`` for an attribute of an unknown object."""
    start: int
    """First byte."""
    end: int
    """One past the last byte."""
    owner: str
    """Qualified name of the innermost symbol whose span (decorators included) holds it."""
    klass: str
    """Class whose namespace is searched first (class bodies only); empty otherwise."""
    place: Place
    """When it is evaluated."""
    is_base: bool
    """A base class of ``owner``."""
    via: int
    """Index into ``imports`` of the function-level import that binds the root; -1 otherwise."""


class Binding(NamedTuple):
    """A name bound at module or class level by anything but a definition or an import."""

    name: str
    """The name."""
    klass: str
    """Class whose body binds it; empty at module level."""
    target: str
    """Dotted chain that it is a plain alias of; empty for other values."""
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
    """Every use of a name that is not local to a function, in order."""
    bindings: tuple[Binding, ...] = ()
    """Other module-level and class-level bindings, in order."""
    exports: tuple[Export, ...] = ()
    """Literal entries of ``__all__``."""
    has_all: bool = False
    """The module defines ``__all__``."""
    one_liners: frozenset[str] = frozenset()
    """Symbol ids of functions whose body begins on the line of their ``def``: importing executes that line."""

    @cached_property
    def by_qualname(self) -> dict[str, int]:
        """Qualified name to index into ``symbols``."""
        return {s.qualname: i for i, s in enumerate(self.symbols)}

    @cached_property
    def dynamic_names(self) -> bool:
        """The module has a ``__getattr__`` of its own, so names may exist that nothing binds."""
        return "__getattr__" in self.by_qualname
