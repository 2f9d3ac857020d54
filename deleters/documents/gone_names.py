"""Names that are gone from a project, and how text mentions them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_DISTINCT = re.compile(r"[^_]_+[^_]|[a-z][A-Z]|[A-Z]{2}[a-z]")
"""What tells a name from an ordinary word."""
_ITEM = r"^\s*(?:[-*+•]\s+|\.\.\s+\w+::\s*)(?:"
_ITEM_NAME = r"(?::\w+(?::\w+)?:)?[`*]{{0,2}}[~.]?(?:[\w.]+\.)?(?:{names})\b"
_ITEM_WORD = (
    r"(?:(?::\w+(?::\w+)?:)?[`*]{{1,2}}[~.]?(?:[\w.]+\.)?(?:{names})\b|(?:[\w.]+\.)?(?:{names})(?=\(|\s*:|\s*$))"
)


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

    def __bool__(self) -> bool:
        return bool(self.names or self.qualified)

    def pattern(self) -> re.Pattern[str]:
        """What finds a mention: a name that is no ordinary word, one in backticks or a call, or behind its owner's."""
        distinct, plain = _divided(self.names)
        parts = [rf"(?<![\w$./-])(?:[\w.]+\.)?(?:{_any(distinct)})(?![\w$/-])"] if distinct else []
        if plain:
            parts += [
                rf"`[~.!]?(?:[\w.]+\.)?(?:{_any(plain)})(?:\([^()`\n]{{0,100}}\))?`",
                rf"(?<![\w$.])(?:{_any(plain)})\(\)",
            ]
            dotted = [".".join(each.split(".")[-2:]) for each in self.dotted]
            parts.append(rf"(?<![\w$./-])(?:[\w.]+\.)?(?:{_any(dotted)})(?![\w$/-])")
        if self.qualified:
            parts.append(rf"(?<![\w$./-])(?:[\w.]+\.)?(?:{_any(self.qualified)})(?![\w$/-])")
        return re.compile("|".join(parts))


def item_pattern(names: Iterable[str]) -> re.Pattern[str]:
    """What finds an item of a list that begins with one of the names; an ordinary word must look like one."""
    distinct, plain = _divided(names)
    forms = [form.format(names=_any(own)) for form, own in ((_ITEM_NAME, distinct), (_ITEM_WORD, plain)) if own]
    return re.compile(rf"{_ITEM}{'|'.join(forms) or '(?!)'})")


def _divided(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """The names that are no ordinary words, and the others."""
    distinct = [name for name in names if _DISTINCT.search(name)]
    return distinct, [name for name in names if name not in distinct]


def _any(names: Iterable[str]) -> str:
    return "|".join(map(re.escape, names))
