"""Options of a command line that nothing obeys any more, since only removed code read their values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from excise.deleters.python.references.dependent_removal import DependentRemover
from excise.deleters.python.references.remaining_words import paths_of_words, source_left

_VALUE = re.compile(r"\b(?:args|arguments|opts|options|namespace|ns|parsed|params)\.([a-z]\w*)")
"""A value of an option, as code of programs calls what a parser returns."""
_DEFINES = ("add_argument(", "add_option(")


def orphaned_options(remover: DependentRemover, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(path, option) of each option that sources still define, and whose value was read in removed ``texts`` alone, or
    else only where options are defined and checked."""
    names = {name for text in texts for name in _VALUE.findall(text)}
    for name in sorted(names):
        option = re.compile(rf"""["']--{re.escape(name.replace("_", "-"))}["']""")
        read = re.compile(rf"\.{re.escape(name)}\b")
        left = dict(_left_with(remover, {name, name.split("_")[0]}))
        defining = [path for path, text in left.items() if option.search(text) and any(d in text for d in _DEFINES)]
        is_read = any(read.search(_without_parser(text)) for text in left.values())
        yield from [] if is_read else ((path, f"--{name.replace('_', '-')}") for path in defining)


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
