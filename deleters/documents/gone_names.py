"""What is gone from a project, and how text mentions it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from excise.deleters.documents.gone_commands import NO_COMMANDS, GoneCommands
from excise.deleters.documents.lost_calls import LostCall

MIN_WORD = 4
"""Number of letters of a word from which on text with it may be about a name."""
_DISTINCT = re.compile(r"[^_]_+[^_]|[a-z][A-Z]|[A-Z]{2}[a-z]")
"""What tells a name from an ordinary word."""
_OWNER = r"(?:[\w.]+\.|(?:\w{1,80}::){1,5}|\w{1,80}#)?"
"""What may stand before a name: its module, class or type."""
SEPARATOR = r"(?:\.|::|#)"
"""What joins the name of a member to that of its owner, as documents write it."""
_CALL = r"(?:\([^()`\n]{0,100}\))?"
_ROLE = r"(?::\w+(?::\w+)?:)?"
_ITEM = r"^\s*(?:[-*+•]\s+|\.\.\s+\w+::\s*)"


@dataclass(frozen=True, slots=True)
class GoneNames:
    """Names that nothing in the code that stays binds or uses."""

    names: tuple[str, ...]
    """The names, without classes and modules."""
    dotted: frozenset[str]
    """The same with their modules and classes."""
    methods: frozenset[str] = frozenset()
    """Those of methods and other members of classes."""
    qualified: tuple[str, ...] = ()
    """Names that something else has, too, behind those of their classes or modules: ``Builder.finalize``."""
    bare: tuple[str, ...] = ()
    """Names of functions that others have behind objects: a call of the name alone means them."""
    called: tuple[str, ...] = ()
    """Ordinary words that are names of functions: code and links to code mean them, prose does not."""
    headed: tuple[str, ...] = ()
    """Names of members that the language's own objects have, too: headings that are nothing but a call mean them."""
    texts: frozenset[str] = frozenset()
    """Those of the names that texts of the code still have: in quotes, such a text is meant."""

    keys: tuple[str, ...] = ()
    """Texts under which tables had what is gone: in backticks or quotes, they are mentions."""

    def __bool__(self) -> bool:
        return bool(self.names or self.qualified or self.bare or self.called or self.headed or self.keys)

    @lru_cache(maxsize=64)  # noqa: B019  (names are few, and small)
    def pattern(self) -> re.Pattern[str]:
        """What finds a mention: a name that is no ordinary word, one in backticks or a call, or behind its owner's."""
        distinct, plain = _divided(self.names)
        no_text = rf"(?:(?<!['\"])|(?!(?:{any_of(self.texts)})['\"]))" if self.texts else ""
        parts = [rf"(?<![\w$./-]){no_text}{_OWNER}(?:{any_of(distinct)})(?![\w$/-])"] if distinct else []
        if plain:
            parts += [
                rf"`[~.!]?{_OWNER}(?:{any_of(plain)}){_CALL}`",
                rf"\{{@(?:code|link|linkplain)\s+{_OWNER}(?:{any_of(plain)}){_CALL}\}}",
                rf"(?<![\w$.])(?:{any_of(plain)})\(\)",
            ]
            parts.append(_behind_owner(map(with_owner, self.dotted)))
            types = [name for name in plain if name[0].isupper()]
            parts += [rf"\[`?{_OWNER}(?:{any_of(types)}){_CALL}`?\]"] if types else []
        if self.bare:
            parts.append(rf"`(?:{any_of(self.bare)})\([^()`\n]{{0,100}}\)`")
        if self.called:
            called = any_of(self.called)
            parts += [rf"\[`(?:(?:crate|self|super)::)?(?:{called})(?:\(\))?`\]", rf"\bcrate::(?:{called})(?![\w$/-])"]
        if self.methods:
            called = any_of(self.methods)
            parts += [rf"`\.(?:{called}){_CALL}`", rf"(?<![\w$.)\]}}'\"/-])\.(?:{called})\("]
        if self.qualified:
            parts.append(_behind_owner(self.qualified))
        if self.keys:
            parts += [
                rf"(?<![\w{mark}]){mark}(?:{any_of(self.keys)}){mark}(?![\w{mark}])" for mark in ("``", "`", "'", '"')
            ]
        return re.compile("|".join(parts) or "(?!)")


@dataclass(frozen=True, slots=True)
class GoneCode:
    """What is gone, as code names it."""

    mentioned: GoneNames
    """The names that nothing else has."""
    dotted: frozenset[str]
    """All names, with their modules and classes: also those that something else has, too."""
    local: frozenset[str] = frozenset()
    """Names at module level that are gone from the file whose docstrings have the examples."""
    members: frozenset[str] = frozenset()
    """Names of members that are gone from the class whose docstrings have the examples."""
    commands: GoneCommands = NO_COMMANDS
    """Commands of a shell."""
    calls: tuple[LostCall, ...] = ()
    """Calls of what stays that have no answer any more."""
    cases: frozenset[str] = frozenset()
    """Texts with which no code compares any more: a row of a table that begins with one is about what is gone."""


def _behind_owner(dotted: Iterable[str]) -> str:
    """The pattern of names behind those of their owners, however a language joins these."""
    joined = any_of(dotted).replace(r"\.", SEPARATOR)
    return rf"(?<![\w$./-]){_OWNER}(?:{joined})(?![\w$/-])"


@lru_cache(maxsize=64)
def item_pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """What finds an item of a list that begins with one of the names, or a line that is nothing but one, as terms are
    above their definitions; an ordinary word must look like a name."""
    distinct, plain = (any_of(own) for own in _divided(names))
    items = (
        rf"{_ROLE}\[?[`*]{{0,2}}[~.]?{_OWNER}(?:{distinct})\b",
        rf"{_ROLE}\[?[`*]{{1,2}}[~.]?{_OWNER}(?:{plain})\b",
        rf"(?:{_OWNER}|\.)(?:{plain})(?=\(|\s*:|\s*$)",
    )
    term = rf"[`*]{{0,2}}[~.]?{_OWNER}(?:(?:{distinct}){_CALL}|(?:{plain}){_CALL}(?<=[)`]))[`*]{{0,2}}:{{0,2}}\s*$"
    return re.compile(rf"{_ITEM}(?:{'|'.join(items)})|^\s*{term}")


def _divided(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """The names that are no ordinary words, and the others."""
    distinct = [name for name in names if is_distinct(name)]
    return distinct, [name for name in names if name not in distinct]


def is_distinct(name: str) -> bool:
    """Whether a name is no ordinary word: it has an underscore or capitals inside."""
    return _DISTINCT.search(name) is not None


def any_of(names: Iterable[str]) -> str:
    """The pattern of one of the names; one that finds nothing if there is none."""
    return "|".join(map(re.escape, sorted(names))) or "(?!)"


def with_owner(dotted: str) -> str:
    """The last two parts of a dotted name: ``Box.open`` for ``store.boxes.Box.open``."""
    return ".".join(dotted.split(".")[-2:])


def stems(words: str) -> set[str]:
    """The words of a name or of text, in singular, without short ones."""
    found = (word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", words))
    return {word.removesuffix("s") for word in found if len(word) >= MIN_WORD}
