"""Records of what removed code supplies besides names and signatures."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from excise.types import Symbol


class Role(StrEnum):
    """What a text is for."""

    TEXT = "text"
    KEY = "key"
    MESSAGE = "message"


@dataclass(frozen=True, slots=True)
class Piece:
    """A text of removed code, or a part of it between two placeholders."""

    text: str
    """Its content."""
    role: Role
    """What it is for."""
    exception: str = ""
    """Name of the exception of a message; empty if unknown."""
    is_whole_code: bool = False
    """Whether the function does nothing but return it."""
    template: str = ""
    """The text that it is a part of, with what statements show for placeholders; empty if it is whole."""
    within: str = ""
    """This text where statements do not show it: it only tells the order of its parts."""

    @property
    def order(self) -> tuple[str, Role, str, bool, str]:
        """All fields, to sort by."""
        return self.text, self.role, self.exception, self.is_whole_code, self.template


_RANK = {Role.MESSAGE: 0, Role.KEY: 1, Role.TEXT: 2}
"""Which of the pieces with one text tells most: the lowest number."""


class Format(NamedTuple):
    """A text that puts several values together, with no word of its own."""

    template: str
    """The text, with what statements show for placeholders."""
    separators: tuple[str, ...]
    """Its parts that stand for themselves, in order."""


@dataclass
class Words:
    """What the code of one removed definition supplies; not to be changed once it has been read."""

    symbol: Symbol
    """The innermost definition that the code belongs to."""
    names: set[str] = field(default_factory=set)
    """Names that a module binds by assignment."""
    attributes: set[str] = field(default_factory=set)
    """Attributes that it sets, and names that a class binds by assignment."""
    pieces: set[Piece] = field(default_factory=set)
    """Texts."""
    formats: set[Format] = field(default_factory=set)
    """Texts without words, which put values together."""
    exceptions: set[str] = field(default_factory=set)
    """Names of the exceptions that it raises."""
    bases: dict[str, set[str]] = field(default_factory=dict)
    """Those of them that are classes of the project, to the names of their bases in the project."""
    exits: set[str] = field(default_factory=set)
    """``SystemExit(CODE)`` for each code that it ends the process with, and ``… for EXCEPTION`` in its handlers."""
    numbers: dict[str, bool] = field(default_factory=dict)
    """Numbers that it returns or stores, and whether the function does nothing but return it."""
    stored: dict[str, set[str]] = field(default_factory=dict)
    """Numbers that it gives to attributes of its own object, and the names of these."""
    identifiers: set[str] = field(default_factory=set)
    """Names and attributes that it reads."""
    owners: dict[str, set[str]] = field(default_factory=dict)
    """Each of them, to the last names of what it is read of; empty for a plain name."""
    parameters: frozenset[str] = frozenset()
    """Names of the parameters of a function."""
    passed: set[str] = field(default_factory=set)
    """Keyword arguments of the calls that it makes."""
    elsewhere: set[str] = field(default_factory=set)
    """Attributes that it sets on objects of classes that stay, as far as syntax can tell."""

    printed: set[str] = field(default_factory=set)
    """The texts that it prints, with what statements show for placeholders."""
    sorts: set[str] = field(default_factory=set)
    """How it sorts: ``sorted(…)``, ``sorted(…, reverse=True)``, and keys that are names."""
    writers: set[str] = field(default_factory=set)
    """How it writes values as texts: ``dumps(…, indent=2)``."""
    groups: set[tuple[str, ...]] = field(default_factory=set)
    """Texts that stand beside each other in one condition: ``"a" in x or "b" in x``, ``x in ("a", "b")``."""
    handled: set[str] = field(default_factory=set)
    """Exceptions that it handles by returning a constant, a colon, and that: ``OSError: []``."""
    chained: dict[str, str] = field(default_factory=dict)
    """How it raises exceptions while it handles others, to the name of the new one: ``except OSError: raise E from
    None``."""
    called: dict[str, str] = field(default_factory=dict)
    """Names of what it calls, such as parameters and attributes, to the first call of each that is not plain."""
    gives_none: bool = False
    """Whether it is a function that returns values, but ``None`` in some cases."""
    gives_truth: bool = False
    """Whether it is a function that returns ``True`` or ``False``, and nothing else."""
    gives_self: bool = False
    """Whether it is a method that returns its object, and nothing else."""
    made: set[str] = field(default_factory=set)
    """Those of the types ``list`` and ``tuple`` of which it makes objects."""

    @property
    def fields(self) -> set[str]:
        """Names that may be attributes of the objects which it makes."""
        return self.passed | self.attributes | {piece.text for piece in self.pieces if piece.text.isidentifier()}

    @cached_property
    def best_pieces(self) -> dict[str, Piece]:
        """Each text to the piece with it that tells most."""
        best: dict[str, Piece] = {}
        for piece in sorted(self.pieces, key=lambda piece: (_RANK[piece.role], -len(piece.template), piece.order)):
            best.setdefault(piece.text, piece)
        return best
