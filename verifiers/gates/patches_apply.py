"""Gate 3: the patches apply exactly, forwards and backwards, with plain ``git apply``."""

from __future__ import annotations

from excise.deleters.patches.git_patches import touched
from excise.errors import PatchError
from excise.protocols import GateReport
from excise.verifiers.candidate import Candidate
from excise.verifiers.gates.verdict_rows import CheckResult, verdict_row
from excise.verifiers.git_apply import apply_to_files


class PatchesApply:
    """Checks that base + deletion = shipped and shipped + gold patch + test patch = base, byte for byte."""

    name = "g3_applies"
    claim = "The deletion applies exactly, and the gold and test patches restore the untouched sources"

    def check(self, candidate: Candidate) -> GateReport:
        """Apply every patch with git and compare the results with the trees that were tested."""
        task = candidate.task
        try:
            reason, problem = self._difference(candidate)
        except PatchError as error:
            reason, problem = error.reason, str(error)
        result = CheckResult(
            passed=not reason,
            reason=reason,
            problem=problem,
            evidence={"base_tree": task.tree, "shipped_tree": task.shipped_tree},
        )
        return GateReport(verdicts=[verdict_row(self, candidate, result)])

    def _difference(self, candidate: Candidate) -> tuple[str, str]:
        """The reason code and a sentence if the patches do not give the expected files; empty texts if they do."""
        bench, task = candidate.bench, candidate.task
        restoring = task.patch + task.test_patch
        reason = problem = ""
        base = bench.read(touched(task.deletion_patch))
        shipped = apply_to_files(base, task.deletion_patch)
        if bench.tree_hash(shipped) != task.shipped_tree:
            reason, problem = "tree_differs", "git apply gives another tree than the one that was tested."
        present = {path: data for path, data in shipped.items() if data is not None}
        restored = apply_to_files(present, restoring)
        if {p: d for p, d in {**present, **restored}.items() if d is not None} != base:
            return "not_restored", "The gold and test patches do not give the untouched sources back."
        if {**base, **apply_to_files(base, restoring, reverse=True)} != {**base, **shipped}:
            return "not_reversible", "Reversing the gold and test patches does not give the shipped tree."
        return reason, problem
