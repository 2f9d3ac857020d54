"""What tests that are not in sight say of themselves in words, for code of which no example can be shown."""

from __future__ import annotations

from collections.abc import Iterable

from excise.protocols import Codebase
from excise.types import TestId, Visibility, joined, path_of

MAX_SENTENCES = 8
"""Number of tests that are quoted."""
MAX_CHARS = 240
"""Length of a docstring up to which it is quoted."""
MIN_WORDS = 4
"""Number of words from which on a docstring says something."""
_WITH_WORDS = frozenset({Visibility.DOCSTRING, Visibility.SAMPLE_TESTS})


def words_of_tests(codebase: Codebase, tests: Iterable[str], visibility: Visibility) -> str:
    """The section with the first paragraphs of the docstrings of ``tests``; empty if they have none."""
    symbols = codebase.symbols()
    found: dict[str, None] = {}
    for test in sorted(tests) if visibility in _WITH_WORDS else ():
        symbol = symbols.get(joined(path_of(test), ".".join(TestId.parse(test).names)))
        text = " ".join(symbol.docstring.strip().partition("\n\n")[0].split()) if symbol is not None else ""
        if len(text.split()) >= MIN_WORDS and len(text) <= MAX_CHARS:
            found[text] = None
    lines = [f"- {text}" for text in list(found)[:MAX_SENTENCES]]
    return (
        "\n".join(["## What the tests say\n\nTests that are not in this checkout have these descriptions:\n", *lines])
        if lines
        else ""
    )
