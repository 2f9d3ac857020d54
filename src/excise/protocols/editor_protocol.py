"""Code editors: how features and tests are taken out of the code of one language."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from excise.protocols.codebase_protocol import Codebase, Module
from excise.protocols.task_protocols import Deleter
from excise.types import Deletion, Symbol

EMPTY = ("none", "raise", "any")
"""Kinds of stand-ins that do nothing: they return nothing, raise, or raise what passes for many errors."""
CONSTANTS = ("true", "false", "zero", "text", "list", "object", "argument", "length")
"""Kinds of stand-ins that return a constant, the first argument or its length, where types allow that and nothing else
tries it."""
TRIVIAL = "trivial"
"""The kind of stand-ins that stand for a trivial program, which is chosen when the tests run."""


class MissingCode(NamedTuple):
    """What a patch adds to a tree."""

    removed: Sequence[str]
    """Ids of the definitions that it adds, and of those that it changes."""
    texts: Sequence[tuple[str, str]]
    """(id, text) of what is missing: a whole definition, or ``ID#part1`` and so on for lines of one."""


class CodePath(NamedTuple):
    """A path through a function: what it does under one condition."""

    name: str
    """The condition, on one line."""
    text: str
    """The source text of the function without it."""
    loc: int
    """Number of lines of code that go."""


class Assertion(NamedTuple):
    """An assertion of a test that names a function."""

    place: tuple[str, int]
    """Its file, and where it starts in it, in bytes."""
    text: str
    """Its source, without indentation; empty if it is not plain."""
    literals: tuple[str, ...] = ()
    """The literals in it."""


class StatementWords(Protocol):
    """How problem statements write about code of one language."""

    fence: str
    """Name of the language after the three backticks of a block of code."""
    placeholder: str
    """The statement that stands in the place of deleted code whose definition stays."""
    separator: str
    """What stands between the names of a type and of what is in it."""
    heads: str
    """A regular expression for the beginning of a definition up to its name, which is its only group."""

    imports: str
    """A regular expression for the beginning of a line that imports something."""

    values: str
    """A regular expression for the beginning of a line that gives a file a value of its own, up to its name, which is
    its only group; one that fits nothing where stubs leave such values."""
    exports: str
    """A regular expression for the beginning of a line by which a file offers a name of another, such as an import."""

    def declaration(self, module: Module, symbol: Symbol) -> str:
        """How a definition is declared, without code; empty if its signature says all."""
        ...

    def unnamed(self, module: Module) -> str:
        """The name by which excise knows the function without a name that a file exports; empty if it has none."""
        ...

    def condition(self, module: Module, symbol: Symbol) -> str:
        """Under which condition a definition counts whose file has another one of its name; empty if it has none."""
        ...

    def assignments(self, module: Module, holder: Symbol) -> Mapping[str, str]:
        """Names in the file that statements of a file or class bind (``A.LIMIT``), to these statements.

        Names of definitions and imports are left out. Empty in languages where such names are symbols.
        """
        ...

    def data(self, module: Module, symbol: Symbol) -> Sequence[str]:
        """The literals in a function's code that are data which nobody could know, such as tables."""
        ...

    def lost_imports(self, before: bytes, after: bytes) -> Sequence[str]:
        """The imports that a file has ``before``, and not ``after``, as statements."""
        ...

    def excerpt(self, test: str, name: str, *, whole: bool) -> str:
        """The beginning of a test function (source text) through a check that tells what comes of ``name``.

        Unless ``whole``, as many checks must follow. Empty if there is none.
        """
        ...

    def table_rows(self, module: Module, test: Symbol, names: Collection[str]) -> str:
        """Some rows of a table of a test function that has one of ``names``, as code. Empty if there are none."""
        ...

    def assertions(self, codebase: Codebase, test: str, symbol: Symbol) -> Sequence[Assertion]:
        """The assertions of a test (id) that name a function, with the texts of those that are plain."""
        ...

    def is_other(self, codebase: Codebase, path: str, name: str, own: Collection[str]) -> bool:
        """Whether a name of a file is known to stand for a definition that is in none of the files ``own``."""
        ...

    def is_foreign_use(self, codebase: Codebase, symbol: Symbol, caller: str, line: str) -> bool:
        """Whether what a line of a caller (the id of a symbol) uses is known to have only the name of a symbol."""
        ...

    def module_of(self, path: str) -> str:
        """The name by which a file is imported, as far as its path tells."""
        ...

    def missing_file(self, path: str) -> Sequence[str]:
        """What a user sees who imports a file that is not there: lines of a session."""
        ...

    def failure(self, path: str, name: str, deleter: str) -> Sequence[str]:
        """What a user sees who uses a definition that is missing, or lacks its code: lines of a session."""
        ...


class HiddenRows(NamedTuple):
    """Tests that go as rows of parameters."""

    rows: frozenset[str] = frozenset()
    """Their ids."""
    renamed: frozenset[str] = frozenset()
    """Ids of other rows, which stay, and whose ids have another number then."""


class LackingPart(NamedTuple):
    """An original file without one part of its code; it can still be parsed, as a rule."""

    symbol: str
    """Id of the function that the part is in."""
    path: str
    """The file."""
    what: str
    """The part, for reports."""
    start: int
    """Its first byte."""
    end: int
    """The byte behind it."""
    replacement: bytes
    """What stands in its place."""
    may_be_idle: bool = False
    """Whether it is a statement found by syntax alone, so that code often does the same without it: a reset, a hint."""
    is_compiled: bool = False
    """Whether a compiler reads it, which may refuse the file: then no test tells anything."""
    fails: bool = False
    """Whether it ends in an error where the part would be done, so that a test that needs the part must notice."""
    parameter: str = ""
    """The parameter that has its default, or another constant, instead of what it is given; empty if another part is
    gone."""
    is_required: bool = False
    """Whether every call gives that parameter."""
    is_essential: bool = False
    """Whether tests that do not notice it check too little, whatever else they notice."""


class CodeEditor(Protocol):
    """Takes features and tests out of the code of one language; all other code stays byte-identical.

    What it makes is clean: no reference is left to what is gone, and nothing stays that only the removed code used and
    that the language or its tools would complain about, such as an unused import.
    """

    words: StatementWords
    """How statements write about the code."""

    @property
    def deleters(self) -> Mapping[str, Callable[[], Deleter]]:
        """The deleters of this language by name, a part of :data:`~excise.deleters.all_deleters.DELETERS`."""
        ...

    def path(self, codebase: Codebase, symbol: Symbol) -> CodePath | None:
        """The longest path through a function that can go alone, for the deleter ``path``; ``None`` if it has none."""
        ...

    def hiding_only(self, codebase: Codebase, deletion: Deletion, tests: frozenset[str]) -> Deletion:
        """A copy of the deletion that hides ``tests`` and no others: these fail in sight, and keep all their imports.

        Raises :class:`DeletionRefused`.
        """
        ...

    def hidden_rows(self, codebase: Codebase, tests: frozenset[str]) -> HiddenRows:
        """Those of the tests that can be hidden without all others of their functions: rows of parameters.

        A test whose function is in ``tests`` by its id without parameters goes with the function.
        """
        ...

    def stand_ins(self, codebase: Codebase, symbols: Collection[str]) -> tuple[tuple[str, str], ...]:
        """(kind, patch) for each kind of stand-in (:data:`EMPTY`, :data:`CONSTANTS`, :data:`TRIVIAL`) that the language
        has.

        The patch puts stand-ins in the place of the symbols into the base tree; it is empty if there is no body to
        replace. Raises :class:`PatchError`.
        """
        ...

    def deleted_texts(
        self, codebase: Codebase, deleter: str, removed: Sequence[str], edits: Mapping[str, bytes | None]
    ) -> list[tuple[str, str]]:
        """(id, text) of what the deleter called ``deleter`` took of the symbols ``removed``, as its deletion says.

        ``edits`` make the tree without the feature from the base tree: path to content.
        """
        ...

    def changed_code(
        self, codebase: Codebase, solved: Mapping[str, bytes], shipped: Mapping[str, bytes | None]
    ) -> MissingCode:
        """What files of the solved sources have and those of the agent's tree have not, both by path."""
        ...

    def lacking_parts(self, codebase: Codebase, removed: Mapping[str, frozenset[int]]) -> Iterator[LackingPart]:
        """The parts of the functions that lines were ``removed`` from (path to their numbers, from 1).

        In an order that depends on nothing but their names; found as they are asked for.
        """
        ...

    def shortcuts(self, codebase: Codebase, removed: Mapping[str, frozenset[int]]) -> Iterator[LackingPart]:
        """Lesser bodies of the functions that were ``removed`` whole, as parts.

        Few of many functions may have one that tests do not notice, and none an essential one.
        """
        ...
