"""Texts of removed code that hidden tests expect, for languages where both are read by syntax."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from excise.types import FILLED_IN, Need, NeedKind, Symbol

MIN_CHARS = 4
"""Minimum length of a text that is a detail."""
MAX_CHARS = 200
"""Maximum length of one; to give a longer one would be to give the code."""

Text = tuple[str, NeedKind, bool]
"""A text in a function, what it is, and whether the function is no more than it."""


def find_expected_texts(
    symbols: Iterable[Symbol],
    texts_of: Callable[[Symbol], Iterable[Text]],
    expected: Mapping[str, Sequence[str]],
    filled_in: re.Pattern[str],
) -> tuple[Need, ...]:
    """Texts of the functions among ``symbols`` that the literals of a test hold, or that hold a literal of one.

    ``expected``: test to its literals; ``filled_in``: what the code replaces in a text when it runs.
    """
    found: dict[tuple[str, NeedKind, str], set[str]] = defaultdict(set)
    templates: dict[tuple[str, NeedKind, str], tuple[str, bool]] = {}
    for symbol in symbols:
        for whole, kind, is_all in texts_of(symbol) if symbol.is_callable else ():
            for part in (part for part in filled_in.split(whole) if len(part.strip()) >= MIN_CHARS):
                for test, literals in expected.items():
                    for word in {_common(part, literal) for literal in literals} - {""}:
                        key = symbol.symbol_id, kind, word
                        found[key].add(test)
                        filled = filled_in.sub(FILLED_IN, whole)
                        templates[key] = (filled if filled != word else "", is_all or len(whole) > MAX_CHARS)
    return tuple(
        Need(
            kind=kind,
            word=word,
            owner=owner,
            tests=tuple(sorted(wanted)),
            template=templates[owner, kind, word][0],
            is_answer=templates[owner, kind, word][1],
        )
        for (owner, kind, word), wanted in sorted(found.items())
    )


def _common(part: str, literal: str) -> str:
    """The shorter one of a part of the code's text and a test's literal, if the other holds it."""
    shorter, longer = sorted((part, literal), key=len)
    is_telling = len(shorter.strip()) >= MIN_CHARS and any(letter.isalpha() for letter in shorter)
    return shorter if is_telling and shorter in longer else ""
