"""Examples of what removed code does, for statements: calls that the tests do not make, with the original's results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from excise.protocols import Grading
from excise.verifiers.grading.kit import RecordedBehaviour

MAX_EXAMPLES = 8
"""Maximum number of examples of one function."""
MIN_EXAMPLES = 3
"""Number of examples below which they do not describe what a function does."""
MAX_CHARS = 160
"""Maximum length of an example."""


def examples_of(behaviour: RecordedBehaviour, grading: Grading) -> dict[str, list[str]]:
    """Qualified name of a function to lines of code that show what it does, at most :data:`MAX_EXAMPLES` of each.

    The first lines of a function have results of their own.
    """
    by_function: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for call in behaviour.replayed.varied:
        line = grading.example(call.call, call.outcome)
        if line and len(line) <= MAX_CHARS:
            by_function[grading.called(call.call)][line.rpartition("  # ")[2]].append(line)
    return {name: _different_first(list(lines.values()))[:MAX_EXAMPLES] for name, lines in by_function.items()}


def _different_first(by_result: Sequence[Sequence[str]]) -> list[str]:
    """All lines: one of each result, then a second one of each, and so on."""
    turns = max(map(len, by_result), default=0)
    return [lines[turn] for turn in range(turns) for lines in by_result if turn < len(lines)]
