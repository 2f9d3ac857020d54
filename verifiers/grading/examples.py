"""Examples of what removed code does, for statements: calls that the tests do not make, with the original's results."""

from __future__ import annotations

from collections.abc import Sequence

from excise.verifiers.grading.kit import record_calls, replay_twice
from excise.verifiers.workbench import Workbench

MAX_EXAMPLES = 8
"""Maximum number of examples in a statement."""
MIN_EXAMPLES = 3
"""Number of examples below which they do not describe what code does."""
MAX_CHARS = 160
"""Maximum length of an example."""


def make_examples(bench: Workbench, removed: Sequence[str], tests: Sequence[str]) -> list[str]:
    """At most :data:`MAX_EXAMPLES` lines of code, of the functions in turn, first those with results of their own."""
    found = replay_twice(bench, record_calls(bench, removed, tests), {}).varied
    by_function: dict[str, dict[str, str]] = {}
    for call in found:
        line = bench.language.grading.example(call.call, call.outcome)
        if line and len(line) <= MAX_CHARS:
            by_function.setdefault(line.partition("(")[0], {}).setdefault(call.outcome, line)
    chosen: list[str] = []
    for turn in range(MAX_EXAMPLES):
        for lines in by_function.values():
            chosen += list(lines.values())[turn : turn + 1]
    return chosen[:MAX_EXAMPLES]
