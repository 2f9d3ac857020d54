"""Details that hidden tests need besides names and signatures: texts that removed code writes, and tests expect.

A language reads the texts of its code and of its tests by syntax; what they have in common is found here.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from excise.types import FILLED_IN, Need, NeedKind, is_sign

MIN_CHARS = 4
"""Minimum length of a text that is a detail; one with characters outside ASCII that is no word may be shorter."""
MIN_SIGNS = 3
"""Minimum length of a text without letters and digits that is a detail where a test's text holds all of it."""
MAX_CHARS = 200
"""Maximum length of one; to give a longer one would be to give the code."""
MAX_PARTS = 6
"""Maximum number of parts of a format of which each is shorter than a detail."""
_PLAIN = re.compile(
    r"[$]\{[\w.]{1,40}\([\w., ]{0,40}\)\}"
    r"|[$]?\{[\w.]{0,40}(?:![rsa])?(?::[-\w.<>^+#?,%]{0,12})?\}|%(?:\(\w{1,40}\))?[-+# 0-9.*]{0,8}[a-zA-Z%]"
)
"""A placeholder of a format, the name of a value in one, or a call with names alone in a template."""


class WrittenText(NamedTuple):
    """A text in removed code."""

    owner: str
    """Id of the function that it is in."""
    text: str
    """The text, with what is filled in as the language writes it."""
    kind: NeedKind
    """Whether it is the message of an error, or another text."""
    is_all: bool
    """Whether the function is no more than it."""
    exception: str = ""
    """For the message of an error, the name of its type, where the language shows it."""
    is_character: bool = False
    """Whether it is the literal of a character."""


def expected_texts(
    written: Iterable[WrittenText], expected: Mapping[str, Collection[str]], filled_in: re.Pattern[str]
) -> tuple[Need, ...]:
    """The needs of tests, each of which ``expected`` maps to the texts in it.

    A text of the code that a test's text holds is one, and the other way round; ``filled_in`` is where the code fills
    in values, which divide a text into parts.
    """
    found: dict[tuple[str, NeedKind, str], set[str]] = defaultdict(set)
    templates: dict[tuple[str, NeedKind, str], tuple[str, bool, str]] = {}
    for each in written:
        if each.is_character and is_sign(each.text):
            if fit := [t for t, literals in expected.items() if any(_repeats(each.text, one) for one in literals)]:
                found[each.owner, each.kind, each.text].update(fit)
                templates[each.owner, each.kind, each.text] = ("", False, each.exception)
            continue
        parts = filled_in.split(each.text)
        if _is_short_format(parts) and (fit := [t for t, literals in expected.items() if _fits_one(parts, literals)]):
            key = each.owner, each.kind, filled_in.sub(shown_placeholder, each.text)
            found[key].update(fit)
            templates[key] = ("", each.is_all, each.exception)
        is_short = len(parts) == 1 and each.text.isascii() and 0 < len(each.text.strip()) < MIN_CHARS
        is_short_answer = each.is_all and is_short
        common = _common_answer if is_short_answer else _common
        shortest = MIN_SIGNS if len(parts) == 1 and _is_signs(each.text) else MIN_CHARS
        for part in (p for p in parts if is_short_answer or len(p.strip()) >= shortest or not p.isascii()):
            for test, literals in expected.items():
                for word in {common(part, literal) for literal in literals} - {""}:
                    key = each.owner, each.kind, word
                    found[key].add(test)
                    filled = filled_in.sub(shown_placeholder, each.text)
                    is_answer = each.is_all or len(each.text) > MAX_CHARS
                    templates[key] = (filled if filled != word else "", is_answer, each.exception)
    return tuple(
        Need(
            kind=kind,
            word=word,
            owner=owner,
            tests=tuple(sorted(wanted)),
            template=templates[owner, kind, word][0],
            is_answer=templates[owner, kind, word][1],
            exception=templates[owner, kind, word][2],
        )
        for (owner, kind, word), wanted in sorted(found.items())
    )


def _repeats(sign: str, literal: str) -> bool:
    """Whether a literal is a sign, or holds it several times in a row."""
    return literal == sign or sign * MIN_SIGNS in literal


def _is_short_format(parts: Sequence[str]) -> bool:
    """Whether a text is little more than what is filled in, such as ``%s: %s``: no part of it is a detail by itself."""
    between = "".join(parts)
    is_told = any(len(part.strip()) >= MIN_CHARS or not part.isascii() for part in parts)
    return 1 < len(parts) <= MAX_PARTS and not is_told and (bool(between.strip()) or (bool(between) and len(parts) > 2))


def _fits_one(parts: Sequence[str], literals: Iterable[str]) -> bool:
    """Whether one of the literals is made of the parts, in order, with something between them."""
    first, *middle, last = parts
    for literal in literals:
        place = len(first)
        if not literal.startswith(first):
            continue
        for part in middle:
            place = literal.find(part, place + 1)
            if place < 0:
                break
            place += len(part)
        if 0 <= place < len(literal) - len(last) and literal.endswith(last):
            return True
    return False


def shown_placeholder(found: re.Match[str]) -> str:
    """A placeholder as a statement shows it: as it stands if it holds no code and is short, else FILLED_IN."""
    return found[0] if _PLAIN.fullmatch(found[0]) else FILLED_IN


def _common_answer(part: str, literal: str) -> str:
    """A short text that a function returns, if a literal equals it, or has it as a word: ``N``, ``px``."""
    is_word = part.isalpha() and (len(part) > 1 or part.isupper())
    has_word = is_word and re.search(rf"(?<![\w'\u2019]){re.escape(part)}(?![\w'\u2019])", literal) is not None
    return part if has_word or part == literal else ""


def _common(part: str, literal: str) -> str:
    """The shorter one of a part of the code's text and a test's literal, if the other holds it."""
    shorter, longer = sorted((part, literal), key=len)
    plain = shorter.strip()
    is_drawn = not plain.isascii() and not plain.isalpha()
    has_letters = len(plain) >= MIN_CHARS and any(letter.isalpha() for letter in plain)
    is_telling = is_drawn or has_letters or (shorter == part and _is_signs(part))
    return shorter if is_telling and shorter in longer else ""


def _is_signs(text: str) -> bool:
    """Whether a text has no letters and digits, and is long enough to be a detail: ``://``."""
    return len(text.strip()) >= MIN_SIGNS and not any(letter.isalnum() for letter in text)
