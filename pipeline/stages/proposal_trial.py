"""Tries a proposal that takes parts of functions: which tests fail without them, no coverage map tells."""

from __future__ import annotations

from dataclasses import replace

from excise.deleters.all_deleters import get
from excise.deleters.delta_debugging import largest_clean
from excise.errors import DeletionRefused
from excise.extractors.features.search_index import SearchIndex
from excise.types import Feature, WorkerOutcome
from excise.verifiers.candidate import not_passing
from excise.verifiers.workbench import Workbench

MAX_TRIALS = 6
"""How many parts of one proposal are run."""


def with_failing_tests(bench: Workbench, index: SearchIndex, feature: Feature) -> Feature:
    """The feature with the trusted tests that execute what goes as a whole or fail, shrunk until they are not too many.

    Raises :class:`DeletionRefused` if no test needs what is gone, or too many need each part that was tried.
    """
    parts = {name for name, _ in feature.changed}
    failing: dict[frozenset[str], tuple[str, ...]] = {}
    problems: list[tuple[str, str]] = []

    def is_clean(symbols: frozenset[str]) -> bool:
        executing = index.tests_of(symbols - parts)
        part = replace(
            feature,
            tests=tuple(sorted(executing)),
            changed=tuple(pair for pair in feature.changed if pair[0] in symbols),
        )
        try:
            deletion = get("proposed", bench.repo.language).delete(bench.codebase, part, only=symbols)
        except DeletionRefused as refusal:
            problems.append((refusal.reason, str(refusal)))
            return False
        run = bench.run(bench.edits_of(deletion.source_patch, deletion.hide_patch), forked=True)
        visible = sorted(bench.trusted - executing - set(deletion.hidden))
        failing[symbols] = tuple(sorted(executing | not_passing(run, visible).keys()))
        if run.worker is not WorkerOutcome.OK or len(failing[symbols]) > index.max_tests:
            problems.append(("breaks_other_tests", f"{len(failing[symbols])} tests fail without this code"))
        elif not failing[symbols]:
            problems.append(("no_fail_to_pass", "no test that passes every time needs this code"))
        else:
            return True
        return False

    best = largest_clean(feature.symbols, is_clean, MAX_TRIALS)
    if not best:
        reason, detail = problems[0]
        raise DeletionRefused(detail, reason=reason)
    return replace(
        feature,
        symbols=tuple(sorted(best)),
        entry=tuple(s for s in feature.entry if s in best) or tuple(sorted(best)),
        changed=tuple(pair for pair in feature.changed if pair[0] in best),
        tests=failing[best],
    )
