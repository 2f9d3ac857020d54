"""Run the recovery agent on one task: run its strategies, score what they found, and test a patch built from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from excise.types import Status, path_of
from excise.verifiers.candidate import Candidate, PlannedDeletion
from excise.verifiers.recovery.reconstruction import reconstruction
from excise.verifiers.recovery.recovery_attempt import RecoveryAttempt, StrategyOptions, run_strategies
from excise.verifiers.recovery.scoring import (
    MIN_LINES,
    DeletedCode,
    RecoveryScore,
    deleted_code,
    distinctive_lines,
    score,
)
from excise.verifiers.workbench import Edits

MIN_PATCH_SHARE = 0.2
"""Share of the distinctive lines from which on a patch is built and tested, even if it is too little for a leak."""
MAX_PATCH_TESTS = 30
"""Maximum number of FAIL_TO_PASS tests that are run with the patch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """The result of the recovery agent on one task."""

    attempt: RecoveryAttempt
    """The strategies' report."""
    by_strategy: dict[str, RecoveryScore]
    """Score of each strategy that found something."""
    total: RecoveryScore
    """Score of all strategies together."""
    passing: tuple[str, ...] = ()
    """FAIL_TO_PASS tests that pass with a patch built from what was found."""

    @property
    def succeeded(self) -> bool:
        """Whether source text or byte code was recovered, or enough to make a hidden test pass."""
        return self.total.leaks or bool(self.passing)


def recover(candidate: Candidate, *, thorough: bool = False) -> Recovery:
    """Run all strategies in one task's workspace and score the result; ``thorough`` reads the system's files as well.

    Raises :class:`SandboxError`.
    """
    bench = candidate.bench
    options = StrategyOptions(
        distribution=bench.repo.repo.rpartition("/")[2],
        packages=bench.recipe.packages,
        definitions=bench.language.scan_rules.definitions,
        suffixes=() if bench.repo.language == "python" else bench.language.suffixes,
        thorough=thorough,
    )
    with candidate.trees.workspace() as place, place.open() as session:
        attempt = run_strategies(session, candidate.deletion.removed, options)
    bench.spent = bench.spent.plus(attempt.completed.cpu_s, attempt.completed.wall_s)
    return scored(candidate, attempt)


def scored(candidate: Candidate, attempt: RecoveryAttempt) -> Recovery:
    """Score an attempt. If enough was found, also build a patch from it and run the hidden tests."""
    code = deleted_code_of(candidate)
    remaining = cache(lambda: shipped_lines(candidate))
    by_strategy = {name: score(code, items, remaining) for name, items in attempt.items_by_strategy().items()}
    total = score(code, attempt.items, remaining)
    passing: tuple[str, ...] = ()
    if total.leaks or (total.share >= MIN_PATCH_SHARE and total.num_lines >= MIN_LINES):
        edits = reconstruction(candidate, code, attempt.items)
        passing = _passing_tests(candidate, edits) if edits else ()
    return Recovery(
        attempt=attempt,
        by_strategy={name: found for name, found in by_strategy.items() if found.level},
        total=total,
        passing=passing,
    )


def deleted_code_of(plan: PlannedDeletion) -> DeletedCode:
    """The code that a deletion removed, in the form that scoring compares."""
    modules = plan.bench.codebase.modules
    paths = {path_of(symbol) for symbol in plan.deletion.removed}
    sources = {path: modules[path].source.decode(errors="replace") for path in paths if path in modules}
    return deleted_code(plan.deletion.text, sources)


def shipped_lines(plan: PlannedDeletion) -> set[str]:
    """Distinctive lines of every text file of the shipped tree."""
    bench, edits = plan.bench, plan.edits("shipped")
    found: set[str] = set()
    for path in {*bench.paths, *edits}:
        file = bench.root / path
        data = edits[path] if path in edits else file.read_bytes() if file.is_file() else None
        if data and b"\0" not in data[:4096]:
            found |= distinctive_lines(data.decode(errors="replace"))
    return found


def _passing_tests(candidate: Candidate, edits: Edits) -> tuple[str, ...]:
    """FAIL_TO_PASS tests that pass on the tree with ``edits``, run in a fresh sandbox, in a forked process."""
    ids = candidate.fail_to_pass[:MAX_PATCH_TESTS]
    statuses = candidate.bench.run(edits, ids=ids, forked=True).statuses()
    return tuple(test for test in ids if statuses.get(test) is Status.PASSED)
