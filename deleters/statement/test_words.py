"""What tests that are not in sight say, for code that words and examples do not describe: docstrings, and parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from excise.protocols import Codebase, StatementWords
from excise.types import Symbol, TestId, Visibility, joined, path_of

MAX_SENTENCES = 8
"""Number of tests that are quoted."""
MAX_CHARS = 240
"""Length of a docstring up to which it is quoted."""
MIN_WORDS = 4
"""Number of words from which on a docstring says something."""
MAX_EXCERPTS = 3
"""Number of tests of which a part is shown."""
HIDDEN_FOR_EACH_SHOWN = 2
"""Number of tests of a function that are not shown, for one that is shown to its end."""
_ISSUE = re.compile(
    r"(?i)[\w/-]*#\d+|\b(?:gh|git ?hub|issues?|bugs?|fix(?:e[sd]|ing)?|tests?|regressions?|tickets?|for|see)\b|\W+"
)
"""Addresses, numbers of issues and the words around them, which say nothing to those who cannot read the issue."""
_WITH_WORDS = frozenset({Visibility.DOCSTRING, Visibility.SAMPLE_TESTS})


def words_of_tests(codebase: Codebase, tests: Iterable[str], visibility: Visibility) -> str:
    """The section with the first paragraphs of the docstrings of ``tests``; empty if they have none."""
    found: dict[str, None] = {}
    for symbol in _functions(codebase, tests if visibility in _WITH_WORDS else ()):
        text = " ".join(symbol.docstring.strip().partition("\n\n")[0].split())
        if len(_ISSUE.sub(" ", text).split()) >= MIN_WORDS and len(text) <= MAX_CHARS:
            found[text] = None
    lines = [f"- {text}" for text in list(found)[:MAX_SENTENCES]]
    return (
        "\n".join(["## What the tests say\n\nTests that are not in this checkout have these descriptions:\n", *lines])
        if lines
        else ""
    )


def parts_of_tests(
    codebase: Codebase, tests: Iterable[str], shown: Sequence[Symbol], words: StatementWords, visibility: Visibility
) -> str:
    """The section with parts of ``tests`` that show what the functions ``shown`` do; empty if there are none."""
    functions = list(_functions(codebase, tests if visibility in _WITH_WORDS else ()))
    texts = {
        each.symbol_id: codebase.modules[each.path].source[each.start : each.end].decode(errors="replace")
        for each in functions
    }
    found: dict[str, None] = {}
    for symbol in shown:
        name = symbol.name.partition("#")[0]
        using = [text for text in texts.values() if name in text]
        whole = len(using) > HIDDEN_FOR_EACH_SHOWN
        parts = [part for text in using if (part := words.excerpt(text, name, whole=False))]
        parts = parts or [part for text in using if whole and (part := words.excerpt(text, name, whole=True))]
        found.update(dict.fromkeys(sorted(parts, key=len)[:1]))
    blocks = [f"```{words.fence}\n{part}\n```" for part in list(found)[:MAX_EXCERPTS]]
    lead = (
        "Parts of tests that are not in this checkout:"
        if len(blocks) > 1
        else "A part of a test that is not in this checkout:"
    )
    return "\n\n".join(["## From the tests", lead, *blocks]) if blocks else ""


def _functions(codebase: Codebase, tests: Iterable[str]) -> Iterator[Symbol]:
    """The functions of tests, in the order of their ids."""
    symbols = codebase.symbols()
    ids = (joined(path_of(test), ".".join(TestId.parse(test).names)) for test in sorted(tests))
    yield from (symbols[each] for each in dict.fromkeys(ids) if each in symbols)
