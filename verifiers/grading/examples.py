"""Examples of what removed code does, for statements: calls that the tests do not make, with the original's results."""

from __future__ import annotations

from collections import defaultdict

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

    Each line of a function has a result of its own.
    """
    by_function: dict[str, dict[str, str]] = defaultdict(dict)
    for call in behaviour.replayed.varied:
        line = grading.example(call.call, call.outcome)
        if line and len(line) <= MAX_CHARS:
            by_function[grading.called(call.call)].setdefault(call.outcome, line)
    return {name: list(lines.values())[:MAX_EXAMPLES] for name, lines in by_function.items()}
