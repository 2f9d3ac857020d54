"""Examples of what removed code does, for statements: calls that the tests do not make, with the original's results."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from excise.protocols import Grading
from excise.verifiers.grading.kit import RecordedBehaviour

MAX_EXAMPLES = 8
"""Maximum number of examples of one function."""
MIN_EXAMPLES = 3
"""Number of examples below which they do not describe what a function does."""
MAX_CHARS = 160
"""Maximum length of an example."""


class Examples(NamedTuple):
    """Lines of code that show what one function does."""

    results: list[str]
    """Calls with results, at most :data:`MAX_EXAMPLES`; the first ones have results of their own."""
    raising: list[str]
    """One call for each exception."""


def examples_of(
    behaviour: RecordedBehaviour, grading: Grading, exceptions: frozenset[str] = frozenset()
) -> dict[str, Examples]:
    """Qualified name of a function to its examples; ``exceptions`` are the names of those that are shown."""
    results: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    raising: dict[str, dict[str, str]] = defaultdict(dict)
    for call in (*behaviour.replayed.varied, *behaviour.replayed.raising):
        line = grading.example(call.call, call.outcome)
        if not line or len(line) > MAX_CHARS:
            continue
        name, found = grading.called(call.call), line.rpartition("  # ")[2]
        if grading.is_result(call.outcome):
            results[name][found].append(line)
        elif not exceptions.isdisjoint(re.findall(r"\w+", found)):
            raising[name].setdefault(found, line)
    return {
        name: Examples(_different_first(list(results[name].values())), list(raising[name].values()))
        for name in sorted(results.keys() | raising.keys())
    }


def _different_first(by_result: Sequence[Sequence[str]]) -> list[str]:
    """All lines: one of each result, then a second one of each, and so on."""
    turns = max(map(len, by_result), default=0)
    return [lines[turn] for turn in range(turns) for lines in by_result if turn < len(lines)][:MAX_EXAMPLES]
