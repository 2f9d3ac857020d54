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


class Example(NamedTuple):
    """One call with its outcome."""

    line: str
    """The call and, as a comment, its result or exception."""
    outcome: str
    """The result or exception."""
    executed: frozenset[str]
    """Lines of the removed code that the call executes, of those that calls of the tests execute."""


class Examples(NamedTuple):
    """Lines of code that show what one function does."""

    shown: list[str]
    """At most :data:`MAX_EXAMPLES` calls: first those that execute what no earlier one does, then those with results of
    their own."""
    raising: list[str]
    """One further call for each exception that the statement names."""
    num_paths: int
    """Number of the former: each takes a path through the code that the tests take, too."""
    num_results: int
    """Number of calls with a result that could be shown."""


def examples_of(
    behaviour: RecordedBehaviour, grading: Grading, exceptions: frozenset[str] = frozenset()
) -> dict[str, Examples]:
    """Qualified name of a function to its examples; ``exceptions`` are the names of those that are shown."""
    results: dict[str, list[Example]] = defaultdict(list)
    raising: dict[str, list[Example]] = defaultdict(list)
    replayed = behaviour.replayed
    wanted = frozenset[str]().union(*(replayed.executed.get(call, ()) for call, *_ in replayed.recorded))
    for call in (*replayed.varied, *replayed.raising):
        line = grading.example(call.call, call.outcome)
        if line and len(line) <= MAX_CHARS:
            place = results if grading.is_result(call.outcome) else raising
            executed = replayed.executed.get(call.call, frozenset()) & wanted
            place[grading.called(call.call)].append(Example(line, line.rpartition("  # ")[2], executed))
    return {name: _chosen(results[name], raising[name], exceptions) for name in sorted(results.keys() | raising.keys())}


def _chosen(results: Sequence[Example], raising: Sequence[Example], exceptions: frozenset[str]) -> Examples:
    """The examples of one function: each shows a path that the tests take, as long as there is one left."""
    paths = _covering([*results, *raising])
    shown = [*paths, *(each for each in _different_first(results) if each not in paths)][:MAX_EXAMPLES]
    named: dict[str, str] = {}
    for each in raising:
        if each not in shown and not exceptions.isdisjoint(re.findall(r"\w+", each.outcome)):
            named.setdefault(each.outcome, each.line)
    known = {each.outcome for each in shown}
    others = [line for outcome, line in named.items() if outcome not in known]
    return Examples([each.line for each in shown], others, min(len(paths), MAX_EXAMPLES), len(results))


def _covering(examples: Sequence[Example]) -> list[Example]:
    """Few examples that execute together what all of them do: each time the one that adds most, first the first."""
    chosen: list[Example] = []
    covered: set[str] = set()
    while examples:
        best = max(examples, key=lambda each: len(each.executed - covered))
        if not best.executed - covered:
            break
        chosen.append(best)
        covered |= best.executed
    return chosen


def _different_first(examples: Sequence[Example]) -> list[Example]:
    """All examples: one of each result, then a second one of each, and so on."""
    by_result: dict[str, list[Example]] = defaultdict(list)
    for each in examples:
        by_result[each.outcome].append(each)
    turns = max(map(len, by_result.values()), default=0)
    return [same[turn] for turn in range(turns) for same in by_result.values() if turn < len(same)]
