"""Options of a command line, and values of them, that nothing obeys any more, since only removed code read them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from excise.deleters.python.references.dependent_removal import DependentRemover
from excise.deleters.python.references.remaining_words import paths_of_words, source_left

_VALUE = re.compile(r"\b(?:args|arguments|opts|options|namespace|ns|parsed|params)\.([a-z]\w*)")
"""A value of an option, as code of programs calls what a parser returns."""
_DEFINES = ("add_argument(", "add_option(")
_COMPARED = re.compile(r"""([\w.]+)\s*==\s*(["'])([\w-]{2,})\2""")
"""A value that code compares with a text."""
_CHOICES = re.compile(r"\bchoices\s*=\s*[\[({]([^\])}]*)")
"""The values that an option may have."""


def orphaned_options(remover: DependentRemover, texts: Sequence[str], uses: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(path, option) of each option that sources still define, and whose value was read in removed code alone, or else
    only where options are defined and checked; and of each value that an option may still have, and whose branch is
    gone.

    ``texts`` are those of what went whole, ``uses`` of branches that are gone from functions which stay.
    """
    names = {name for text in (*texts, *uses) for name in _VALUE.findall(text)}
    for name in sorted(names):
        option = re.compile(rf"""["']--{re.escape(name.replace("_", "-"))}["']""")
        read = re.compile(rf"\.{re.escape(name)}\b")
        left = dict(_left_with(remover, {name, name.split("_")[0]}))
        defining = [path for path, text in left.items() if option.search(text) and any(d in text for d in _DEFINES)]
        is_read = any(read.search(_without_parser(text)) for text in left.values())
        yield from [] if is_read else ((path, f"--{name.replace('_', '-')}") for path in defining)
    for name, _, value in sorted({found for text in uses for found in _COMPARED.findall(text)}):
        left = dict(_left_with(remover, {value, value.split("-")[0]}))
        quoted = rf"""(["']){re.escape(value)}\1"""
        if not any(_obeys(text, name, quoted) for text in left.values()):
            parsing = [(path, text) for path, text in left.items() if any(define in text for define in _DEFINES)]
            offering = (path for path, text in parsing if re.search(quoted, "\n".join(_CHOICES.findall(text))))
            yield from ((path, repr(value)) for path in offering)


def _obeys(text: str, name: str, quoted: str) -> bool:
    """Whether a source still does something for a value of an option: it has its text, which the pattern ``quoted``
    finds, elsewhere than in a list of choices, where it is given to a name, or compared with ``name``."""
    given = rf"(?:(?<![\w.]){re.escape(name)}\s*==|[\w.]+\s*(?<![!<>=])=)\s*{quoted}"
    return re.search(quoted, re.sub(given, "", _CHOICES.sub("", text))) is not None


def _left_with(remover: DependentRemover, words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(path, text) of what the removal leaves of the sources with one of the words."""
    index = paths_of_words(remover.codebase)
    paths = {path for word in words for path in index.get(word, ())}
    for path in sorted(paths):
        if not remover.codebase.is_test(path):
            yield path, source_left(remover.codebase, remover.plans, path).decode(errors="replace")


def _without_parser(text: str) -> str:
    """A source without the functions that define options, which also check how these go together."""
    parts = re.split(r"(?m)^(?=(?:async )?def |class |    (?:async )?def )", text)
    return "".join(part for part in parts if not any(define in part for define in _DEFINES))
