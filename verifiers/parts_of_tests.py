"""Finds the parts of hidden tests that need no deleted code: these stay in sight."""

from __future__ import annotations

from excise.protocols import Deleter, ShorteningDeleter
from excise.types import Status, Visibility, path_of
from excise.verifiers.candidate import PlannedDeletion

SHOWING_TESTS = frozenset({Visibility.TESTS, Visibility.SAMPLE_TESTS})
"""Visibilities of tasks whose tests stay in sight, or a part of them: as they are."""


def leaving_parts(plan: PlannedDeletion, deleter: Deleter) -> Deleter | None:
    """The deleter that takes out of hidden tests what fails without the code; ``None`` if they go as a whole.

    One run of variants of the tests tells what fails. Tests that took too long without the code are not among them.
    """
    bench = plan.bench
    if not isinstance(deleter, ShorteningDeleter) or bench.settings.visibility in SHOWING_TESTS:
        return None
    whole = [test for test in sorted((plan.hidden & bench.trusted) - plan.shortened) if plan.is_gradable(test)]
    files = deleter.probing(bench.codebase, whole)
    tests = [test for test in whole if path_of(test) in files]
    if not tests:
        return None
    before = plan.run("deleted", ids=plan.dependent_tests)
    if any(result.duration_s >= bench.test_timeout_s([result.test_id]) for result in before.results):
        return None
    run = bench.run({**plan.edits("deleted"), **files}, ids=tests, forked=True)
    messages = {each.test_id: each.message or "?" for each in run.results if each.status is Status.FAILED}
    passing = {each.test_id: "" for each in run.results if each.status is Status.PASSED}
    return deleter.losing(bench.codebase, {**messages, **passing}) if messages else None
