"""Scopes: which names are local to a function, so that the others can be resolved across files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from excise.extractors.python.analysis.parsed_file import SELF, Place, Reference


class Pending(NamedTuple):
    """A reference whose scope is still open."""

    root: str
    rest: str
    start: int
    end: int
    owner: str
    klass: str
    place: Place
    is_base: bool
    via: int

    def emit(self) -> Reference:
        """The final record."""
        chain = f"{self.root}.{self.rest}" if self.rest else self.root
        return Reference(chain, self.start, self.end, self.owner, self.klass, self.place, self.is_base, self.via)


@dataclass(slots=True)
class Scope:
    """One lexical scope: the module, a class, a function, a lambda or a comprehension."""

    kind: str
    """``module``, ``class``, ``function`` or ``comprehension`` (lambdas are functions)."""
    bound: set[str] = field(default_factory=set)
    """Names bound here."""
    imports: dict[str, int] = field(default_factory=dict)
    """Names bound by an import here, to the import's index."""
    outer: set[str] = field(default_factory=set)
    """Names declared ``global`` or ``nonlocal`` here."""
    pending: list[Pending] = field(default_factory=list)
    """References made here and in inner scopes that no inner scope bound."""
    self_name: str = ""
    """First parameter of a method."""
    is_generator: bool = False
    """A ``yield`` of its own was seen."""

    def close(self, parent: Scope) -> None:
        """Hand the references that are not local to the enclosing scope."""
        keep = parent.pending.append
        for ref in self.pending:
            root = ref.root
            if root in self.outer or root not in self.bound:
                keep(ref)
            elif root in self.imports:
                keep(ref._replace(root=f"\0{root}", via=self.imports[root]))
            elif ref.rest and root == self.self_name:
                keep(ref._replace(root=SELF))
            elif ref.rest:
                keep(ref._replace(root=""))
