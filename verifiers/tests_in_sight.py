"""Chooses which of the tests that need a feature a task with a sample of its tests shows."""

from __future__ import annotations

from collections import defaultdict

from excise.types import Deletion, content_id, without_parameter
from excise.verifiers.candidate import Rejected
from excise.verifiers.grading.kit import record_behaviour
from excise.verifiers.workbench import LinesOfTests, Workbench

SHARE_IN_SIGHT = 0.5
"""Share of the tests that need the code that is shown."""


def kept_hidden(bench: Workbench, deletion: Deletion) -> frozenset[str]:
    """Those of a deletion's hidden tests that stay hidden, as whole functions.

    Those in sight execute as much of the removed code as can be: each time the one is shown that adds most of its
    definitions and lines. Which of several that execute the same are shown depends on their names alone. Raises
    :class:`Rejected` if there is only one.
    """
    functions = {without_parameter(test) for test in deletion.hidden}
    if len(functions) < 2:
        raise Rejected("One test alone needs this code: it cannot be in sight and hidden.", reason="too_few_tests")
    executed = _executed(bench, deletion.removed)
    left = sorted(functions, key=lambda test: content_id("sample", test))
    most = int(len(functions) * SHARE_IN_SIGHT)
    unseen = set[object]().union(*(executed[test] for test in functions))
    in_sight: list[str] = []
    while unseen and len(in_sight) < most:
        in_sight.append(max(left, key=lambda test: len(executed[test] & unseen)))
        left.remove(in_sight[-1])
        unseen -= executed[in_sight[-1]]
    kept = set(left[: len(functions) - most])
    return frozenset(test for test in deletion.hidden if without_parameter(test) in kept)


def _executed(bench: Workbench, removed: tuple[str, ...]) -> defaultdict[str, set[object]]:
    """Function of a test to the removed symbols, and their lines, that its cases execute; lines where they can be
    followed."""
    found: defaultdict[str, set[object]] = defaultdict(set)
    coverage = bench.prepared.coverage
    if coverage is None:
        return found
    for symbol in removed:
        for test in bench.trusted & coverage.executing([symbol]):
            found[without_parameter(test)].add(symbol)
    for test, lines in _lines(bench, removed).items():
        found[without_parameter(test)] |= lines
    return found


def _lines(bench: Workbench, removed: tuple[str, ...]) -> LinesOfTests:
    """The lines of the removed symbols that each test executes, followed once for all plans of one deletion."""
    coverage = bench.prepared.coverage
    if coverage is None or bench.language.grading.needs_mirrors:
        return {}
    if bench.lines_of_tests[0] != removed:
        tests = sorted(bench.trusted & coverage.executing(removed))
        lines = record_behaviour(bench, removed, tests).recording.uses.lines if tests else {}
        bench.lines_of_tests = removed, lines
    return bench.lines_of_tests[1]
