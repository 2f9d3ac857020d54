"""What hidden tests need from removed code besides its names and signatures, and where a solver finds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

FILLED_IN = "…"
"""What stands in a template for a value that is filled in."""


def is_sign(text: str) -> bool:
    """Whether a text is one sign of ASCII: no letter, digit or blank, and no comma or full stop."""
    return len(text) == 1 and "!" <= text <= "~" and not text.isalnum() and text not in ",."


class NeedKind(StrEnum):
    """The kind of a detail that a test needs."""

    NAME = "name"
    """A name that a removed module binds, such as a constant."""
    ATTRIBUTE = "attribute"
    """An attribute that removed code sets."""
    KEYWORD = "keyword"
    """A keyword argument."""
    EXCEPTION = "exception"
    """The type of an exception that removed code raises."""
    MESSAGE = "message"
    """A part of an exception's message."""
    KEY = "key"
    """A key of a dictionary."""
    TEXT = "text"
    """Another text that removed code reads or writes."""
    NUMBER = "number"
    """A number that removed code returns or stores."""
    RESULT = "result"
    """The type of a function's result, or the number of its parts; ``None`` if it is that in some cases; ``[]T{}`` if
    something empty is that, and not ``nil``."""
    ORDER = "order"
    """How removed code sorts what it returns or goes through."""
    FORMAT = "format"
    """How removed code writes a value as a text: the function, and what it is told about layout."""
    HANDLED = "handled"
    """An exception that removed code handles by returning a constant, a colon, and that."""
    CHAINED = "chained"
    """How removed code raises an exception while it handles another one: ``except OSError: raise BoxError(…) from
    None``."""
    CALLED = "called"
    """A call of a function that tests pass, with what it is given."""
    USED = "used"
    """A name in the same file that only the removed code used, such as a table."""
    DRAWN = "drawn"
    """The order in which removed code draws the random numbers that a test seeds; the word is a name of the code."""
    REPLACED = "replaced"
    """A name that a test replaces (``mock.patch``), so that removed code must use it."""


class GivenBy(StrEnum):
    """Where a solver finds a detail."""

    STATEMENT = "statement"
    """In the project's own words in the statement: signatures, docstrings, documents, callers."""
    DETAILS = "details"
    """In a line of the statement that was written for it."""
    TREE = "tree"
    """In code of the shipped tree that belongs to the removed code: its class, base classes, callers."""
    CONVENTION = "convention"
    """Nowhere: Python or its standard library does so by itself."""
    OTHER = "other"
    """Nowhere: the code has it, but the tests were seen to use it on values of other code only."""
    ANSWER = "answer"
    """Nowhere: to name it would be to give the code. Tests that need it are not graded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """One detail that tests need."""

    kind: NeedKind
    """What it is."""
    word: str
    """The detail as it is written in the tests: a name, or a text's content."""
    owner: str
    """Id of the removed symbol whose code has it."""
    others: tuple[str, ...] = ()
    """For an exception and how it is chained, the ids of further removed symbols that raise it; for a replaced name, of
    those that use it."""
    tests: tuple[str, ...]
    """Ids of the tests that need it."""
    exception: str = ""
    """For a message, the name of the exception; empty if unknown."""
    template: str = ""
    """The text that it is a part of, with placeholders or :data:`FILLED_IN` for values; empty if it is whole."""
    is_answer: bool = False
    """Whether the owner's code is no more than this, or it is too long for a detail."""
    is_watched: bool = False
    """Whether only a run of the tests shows that they need it, not their syntax."""
    given: GivenBy | None = None
    """Where a solver finds it; ``None`` as long as that is not known."""

    @property
    def label(self) -> str:
        """Kind and word, which identify the need within a task."""
        return f"{self.kind} {self.word}"

    def given_by(self, given: GivenBy) -> Need:
        """This need, found there."""
        return replace(self, given=given)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What tests did with values that came from removed code, seen in a run on the original code."""

    words: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    """Test to the words of each kind that it used on such values; kinds are those of the language adapter."""
    results: frozenset[tuple[str, int, str, str]] = frozenset()
    """Path, first line and name of a removed function, and the type of its results on which tests rely, or their
    number of parts."""
    foreign: frozenset[tuple[str, str, int, int]] = frozenset()
    """Places in test files where nothing but values were used that have nothing to do with removed code."""
    lines: Mapping[str, frozenset[tuple[str, int]]] = field(default_factory=dict)
    """Test to path and number of each line of the removed code that it executes; only tests all of whose calls were
    followed."""
    compared: frozenset[str] = frozenset()
    """Qualified names of functions of which graders compare what recorded calls give."""
    given: frozenset[str] = frozenset()
    """Texts in what these calls give."""
    problem: str = ""
    """Why nothing is known of all or some tests; empty if the run was as usual."""
