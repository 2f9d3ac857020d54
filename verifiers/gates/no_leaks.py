"""Gate 9: no file that the agent can read gives the deleted code away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from excise.envs.sandbox.mount_points import REPO
from excise.protocols import GateReport
from excise.types import Visibility
from excise.verifiers.candidate import Candidate, PlannedDeletion
from excise.verifiers.gates.verdict_rows import CheckResult, verdict_row
from excise.verifiers.leaks.deletion_scan import decoders_of, leaks_in_sources, leaks_in_tree, leaks_outside, subject_of
from excise.verifiers.leaks.file_copies import MIN_SHARE
from excise.verifiers.leaks.fingerprints import FORMAT
from excise.verifiers.leaks.scan import THRESHOLDS, Leak, Level
from excise.verifiers.leaks.surface import surface_of

_LEAKS_SHOWN = 5
_LIMITS = THRESHOLDS


class NoLeaks:
    """Scans every file that an agent can read for the deleted code."""

    name = "g9_leaks"
    claim = (
        "Where the deleted code is long enough to be told from idioms, no file that the agent can read (tree and "
        "history, environment, interpreter, system, processes), decoded, holds "
        f"{_LIMITS.outside_share:.0%} of the source text of it or of a large part of it ({_LIMITS.tree_share:.0%} in "
        f"the project's own sources), byte code with {_LIMITS.code_share:.0%} of a definition's names, or "
        f"{_LIMITS.rare_share:.0%} of the names that nothing else holds; where it is shorter, none that holds it and "
        f"{MIN_SHARE:.0%} of its file; where all that is gone are single calls, some have no function that makes the "
        "same call with the names changed; and no signature or docstring that the "
        "statement does not give"
    )

    def check(self, candidate: Candidate) -> GateReport:
        """Build the shipped tree and search it, and everything outside it, for every deleted definition."""
        bench = candidate.bench
        subject = subject_of(candidate)
        surface = surface_of(bench)
        outside = leaks_outside(candidate, subject)
        with candidate.trees.workspace() as space:
            inside, files = leaks_in_tree(candidate, subject, space.tree)
        leaks = outside + inside
        bad = not_allowed(leaks, bench.settings.visibility)
        contents = [content for _, content in files if content is not None]
        used = decoders_of(surface).union(*(content.decoders for content in contents))
        evidence = {
            "format": str(FORMAT),
            "fingerprints": str(sum(len(target.all_fingerprints()) for target in subject.targets)),
            "definitions": str(len(subject.targets)),
            "too_short_to_tell": str(sum(len(target.body) < _LIMITS.min_windows for target in subject.targets)),
            "files_of_the_tree": str(len(files)),
            "partly_read": str(sum(content.partial for content in contents) + len(files) - len(contents)),
            "decoders": " ".join(sorted(used)),
            **{
                f"root {name}": f"{sum(index.num_files for index in indexes)} files, "
                f"{sum(index.num_bytes for index in indexes) >> 20} MB, "
                f"{sum(index.num_partial for index in indexes)} partly read"
                for name, indexes in surface.roots.items()
            },
            **_residual(leaks),
            **{f"leak {number}": str(leak) for number, leak in enumerate(bad[:_LEAKS_SHOWN])},
        }
        result = CheckResult(passed=not bad, reason=reason_of(bad), problem=problem_of(bad), evidence=evidence)
        return GateReport(verdicts=[verdict_row(self, candidate, result)])


def leaks_before_tests(plan: PlannedDeletion) -> list[Leak]:
    """Leaks that refuse a deletion before any of its tests is run: those outside the tree or, if none, those in it."""
    subject, visibility = subject_of(plan), plan.bench.settings.visibility
    outside = not_allowed(leaks_outside(plan, subject), visibility)
    return outside or not_allowed(leaks_in_sources(plan, subject), visibility)


def not_allowed(leaks: Sequence[Leak], visibility: Visibility) -> list[Leak]:
    """Leaks that refuse a task: source, byte code, locals, and signatures or docstrings that the statement
    withholds."""
    withheld = {
        Visibility.BEHAVIOUR: {"signature", "docstring"},
        Visibility.SIGNATURE: {"docstring"},
    }.get(visibility, set())
    return [leak for leak in leaks if leak.level >= Level.L3 or (leak.level is Level.L2 and leak.what in withheld)]


def reason_of(leaks: Sequence[Leak]) -> str:
    """The reason code of a refusal: ``leak`` if a leak is outside the tree, else ``twin_in_repository``."""
    return "leak" if any(not leak.file.startswith(f"{REPO}/") for leak in leaks) else "twin_in_repository"


def problem_of(leaks: Sequence[Leak]) -> str:
    """A sentence with the first three leaks."""
    return "; ".join(map(str, leaks[:3])) + "."


def _residual(leaks: Sequence[Leak]) -> dict[str, str]:
    """The number of files with allowed leaks: a name (L1), or a signature that the statement also gives (L2)."""
    files: dict[Level, set[str]] = {Level.L1: set(), Level.L2: set()}
    for leak in leaks:
        if leak.level in files:
            files[leak.level].add(leak.file)
    roots = {
        level: Counter("tree" if name.startswith(f"{REPO}/") else "outside" for name in names)
        for level, names in files.items()
    }
    return {
        f"residual L{int(level)}": f"{roots[level]['tree']} files of the tree, {roots[level]['outside']} outside"
        for level in files
    }
