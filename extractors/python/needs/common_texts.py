"""What a text of removed code and the texts of tests have in common."""

from __future__ import annotations

import re
from collections.abc import Callable

from excise.extractors.python.needs.supplied_words import Piece, Role
from excise.extractors.python.needs.test_uses import Uses

MIN_TEXT = 2
"""Minimum length of a text in ASCII: its single characters are conventions (separators, blanks),
except signs in what results are compared with."""
MIN_PART = 4
"""Minimum length of a test's text that is only a part of a text of the removed code."""
MAX_ENDING = 3
"""Number of letters by which another form of a word may be longer."""


def common_words(piece: Piece, used: Uses) -> set[str]:
    """What a text of the removed code and texts of the tests have in common: one whole text of either."""
    own = piece.text.strip()
    found = set()
    if piece.role is Role.KEY:
        return {own} & used.texts
    if len(own) >= MIN_TEXT or not own.isascii():
        pattern = re.compile(bounded(own))
        has_forms = _has_forms_of(own)
        if any((own in text and pattern.search(text)) or has_forms(text) for text in used.texts):
            found.add(own)
    for text in (used.texts - used.keys) | {text for text in used.texts if " " in text.strip()} | used.patterns:
        inner = text.strip()
        is_part = MIN_PART <= len(inner) < len(own) and inner in own and own not in found
        if is_part and re.search(bounded(inner), own):
            found.add(inner)
    if piece.role is Role.MESSAGE and not found and any(_matches(each, own) for each in used.expressions):
        found.add(own)
    return found


def _has_forms_of(own: str) -> Callable[[str], bool]:
    """Tells of a text whether it has another form of a word, or of all words with their endings apart (``coin/s``)."""
    stems = re.findall(rf"([^\W\d_]{{{MIN_PART},}})/[^\W\d_]{{1,{MAX_ENDING}}}(?!\w)", own)
    if not stems and len(own) > MIN_PART and own.isalpha() and own.islower():
        stems = [own]
    patterns = [re.compile(rf"(?<!\w){re.escape(stem)}[^\W\d_]{{1,{MAX_ENDING}}}(?!\w)") for stem in stems]
    return lambda text: bool(patterns) and all(pattern.search(text) for pattern in patterns)


def _matches(expression: str, text: str) -> bool:
    """Whether a regular expression with a word in it is found in a text."""
    try:
        return re.search(r"[^\W\d]{3}", expression) is not None and re.search(expression, text) is not None
    except re.error:
        return False


def bounded(word: str) -> str:
    """A pattern that finds a word only where no letter or digit joins it."""
    before = r"(?<!\w)" if word[:1].isalnum() else ""
    after = r"(?!\w)" if word[-1:].isalnum() else ""
    return f"{before}{re.escape(word)}{after}"
