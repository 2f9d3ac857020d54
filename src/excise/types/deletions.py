"""Symbols of source code, features (groups of symbols), and deletions of features from a tree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from excise.types.ids import joined


class SymbolKind(StrEnum):
    """The kind of a definition."""

    FUNCTION = "function"
    METHOD = "method"
    CLASS = "class"
    MODULE = "module"


class FeatureKind(StrEnum):
    """The kind of a feature."""

    FUNCTION = "function"
    METHOD = "method"
    CLASS = "class"
    MODULE = "module"
    MULTI = "multi"
    """Several entry symbols of one file."""
    CROSS_FILE = "cross_file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A half-open byte range of a file."""

    path: str
    """Path inside the repository, with ``/``."""
    start: int
    """First byte."""
    end: int
    """One past the last byte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    """One definition of a source file, with its position."""

    path: str
    """Path inside the repository."""
    qualname: str
    """Dotted name inside the module; empty for the module itself."""
    kind: SymbolKind
    """function, method, class or module."""
    start: int
    """First byte, decorators included."""
    end: int
    """One past the last byte."""
    body_start: int
    """First byte of the first statement of the body (the docstring, if there is one)."""
    code_start: int
    """First byte of the first statement after the docstring; equals ``end`` if there is none."""
    start_line: int
    """First line, 1-based, decorators included."""
    end_line: int
    """Last line, 1-based."""
    body_line: int
    """First line of the first statement after the docstring; 0 if there is none."""
    signature: str = ""
    """``def name(args) -> type`` or ``class name(bases)`` on one line, with normalised white space."""
    docstring: str = ""
    """Cleaned docstring."""
    decorators: tuple[str, ...] = ()
    """Source text of each decorator, without ``@``."""
    is_public: bool = True
    """Whether no component of the qualified name starts with an underscore (dunder names count as public)."""
    is_async: bool = False
    """Whether it is an ``async def``."""
    is_generator: bool = False
    """Whether its own body contains ``yield``."""
    loc: int = 0
    """Lines that are neither blank nor comments, docstring excluded; 0 for a constructor without code of its own."""
    complexity: int = 1
    """McCabe's cyclomatic complexity: 1 + decision points."""

    @property
    def is_callable(self) -> bool:
        """Whether it is a function or a method."""
        return self.kind in {SymbolKind.FUNCTION, SymbolKind.METHOD}

    @property
    def symbol_id(self) -> str:
        """``path::qualname``; the path alone for a module."""
        return joined(self.path, self.qualname) if self.qualname else self.path

    @property
    def holder_id(self) -> str:
        """Id of the definition around it by name; of the module if there is none."""
        holder = self.qualname.rpartition(".")[0]
        return joined(self.path, holder) if holder else self.path

    @property
    def name(self) -> str:
        """Last component of the qualified name."""
        return self.qualname.rpartition(".")[2]

    @property
    def is_overload(self) -> bool:
        """Whether it is only one of a Python function's signatures for type checkers."""
        return any(each.rpartition(".")[2] == "overload" for each in self.decorators)


def by_plain_name(symbols: Iterable[Symbol]) -> dict[str, Symbol]:
    """Qualified name to the definition of a file that has it at run time, as far as names without numbers tell.

    That is the first of the name; of several, the one after nothing but overloads. What is in a definition with a
    number is left out.
    """
    found: dict[str, Symbol] = {}
    for symbol in symbols:
        head, dot, last = symbol.qualname.rpartition(".")
        plain = f"{head}{dot}{last.partition('#')[0]}"
        if "#" not in head and (plain not in found or found[plain].is_overload):
            found[plain] = symbol
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """Symbols that are deleted together, and the tests that execute them."""

    feature_id: str
    """Content hash of tree, symbols and kind."""
    kind: FeatureKind
    """Kind of the feature."""
    tier: int
    """How much the feature spans, 1 (a function) to 5 (several files)."""
    entry: tuple[str, ...]
    """Ids of the public symbols that the feature is proposed for."""
    symbols: tuple[str, ...]
    """All symbol ids to delete: the entries and symbols that only they use."""
    tests: tuple[str, ...]
    """Ids of the tests that coverage predicts to fail."""
    fan_in: int = 0
    """Number of references from outside the feature."""
    num_mentions: int = 0
    """Number of functions outside it that refer to it: they stay, since they can do something without it."""
    loc: int = 0
    """Lines of code of the symbols."""
    complexity: int = 0
    """Sum of cyclomatic complexities."""
    name: str = ""
    """The qualified name of a single symbol, else the place and the words that most symbols share."""
    summary: str = ""
    """First line of the docstring of its longest public symbol; empty if none has one."""
    needed_by: tuple[str, ...] = ()
    """Symbols outside it that cannot work without it: its bodies can be emptied, but not its definitions removed."""
    parent_feature_id: str = ""
    """The smallest other feature that contains this one; empty if there is none."""
    proposed_by: str = ""
    """Name of the model that proposed it; empty for features that were found in the coverage map."""
    changed: tuple[tuple[str, str], ...] = ()
    """(symbol id, source text without the feature) of those of the symbols that stay and lose a part of their code; for
    the deleter ``proposed``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolReport:
    """One definition outside tests, and the features that hold it, or the reason why none does."""

    symbol: str
    """Symbol id: ``path::qualname``."""
    kind: SymbolKind
    """function, method or class."""
    loc: int
    """Lines of code."""
    num_tests: int
    """Number of trusted tests that execute it."""
    features: tuple[str, ...] = ()
    """Ids of the features that hold it."""
    reason: str = ""
    """Reason why it is in no feature; empty if it is in one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """The deletion of a feature as two patches, which apply exactly and can be reversed."""

    deletion_id: str
    """Content hash of deleter, version, and both patches."""
    feature: Feature
    """The feature to delete."""
    deleter: str
    """Name of the deleter."""
    deleter_version: int
    """Version of the deleter."""
    source_patch: str
    """Unified diff that removes the code; applies to the base tree."""
    hide_patch: str
    """Unified diff that removes the hidden tests; no file is in both patches."""
    removed: tuple[str, ...]
    """Ids of the symbols removed or stubbed; after delta debugging possibly fewer than the feature's."""
    hidden: tuple[str, ...]
    """Ids of tests that are not in the visible tree, or only in part."""
    text: tuple[tuple[str, str], ...]
    """(symbol id, deleted source text), for the leak scan."""
    stub_patches: tuple[tuple[str, str], ...] = ()
    """(kind, unified diff from the base tree): stand-ins, which no grader may accept. Kinds: ``none`` returns nothing,
    ``raise`` raises, ``any`` raises an exception that many ``except`` clauses catch, ``trivial`` does what a trivial
    program does that is chosen when the tests run."""
    registrations: tuple[tuple[str, str], ...] = ()
    """(path, text) of each call, entry of a table and entry point that was removed with the code that it registers."""
    uses: tuple[tuple[str, str], ...] = ()
    """(path, text) of each use of the code in a function that stays, which was removed with its branch, and of each
    field of a type that stays which nothing reads without the code."""
    uses_left: tuple[tuple[str, str], ...] = ()
    """(path, function and name) of each use of the code in a function that stays, which was left as it is: the name is
    bound nowhere."""
    uses_likely: tuple[tuple[str, str], ...] = ()
    """(id of a function that stays, name) of each attribute of an unknown object that has the name of a removed method:
    a use, if no test executes the function without the code."""
    uses_distinctive: tuple[tuple[str, str], ...] = ()
    """Those of them whose names nothing else has: a use, if a test executes the function with the code."""
    shortened: tuple[str, ...] = ()
    """Those of the hidden tests of which a part stays: it must pass without the code."""
