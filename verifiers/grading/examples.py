"""Examples of what removed code does, for statements: calls that the tests do not make, with the original's results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from excise.verifiers.grading.kit import record_calls, replay_twice
from excise.verifiers.workbench import Workbench

MAX_EXAMPLES = 8
"""Maximum number of examples of one function."""
MIN_EXAMPLES = 3
"""Number of examples below which they do not describe what a function does."""
MAX_CHARS = 160
"""Maximum length of an example."""


def make_examples(bench: Workbench, removed: Sequence[str], tests: Sequence[str]) -> dict[str, list[str]]:
    """Qualified name of a function to lines of code that show what it does, at most :data:`MAX_EXAMPLES` of each.

    Each line of a function has a result of its own.
    """
    found = replay_twice(bench, record_calls(bench, removed, tests), {}).varied
    grading = bench.language.grading
    by_function: dict[str, dict[str, str]] = defaultdict(dict)
    for call in found:
        line = grading.example(call.call, call.outcome)
        if line and len(line) <= MAX_CHARS:
            by_function[grading.called(call.call)].setdefault(call.outcome, line)
    return {name: list(lines.values())[:MAX_EXAMPLES] for name, lines in by_function.items()}
