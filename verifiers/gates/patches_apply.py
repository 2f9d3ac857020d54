"""Gate 3: the patches apply exactly, forwards and backwards, with plain ``git apply``."""

from __future__ import annotations

from excise.deleters.patches.git_patches import touched
from excise.errors import PatchError
from excise.protocols import GateReport
from excise.verifiers.candidate import Candidate


class PatchesApply:
    """base + deletion = shipped; shipped + gold + tests = base, byte for byte."""

    name = "g3_applies"
    claim = "The deletion applies exactly, and the gold and test patches restore the untouched sources"

    def check(self, candidate: Candidate) -> GateReport:
        """Apply every patch with git, and compare with what our own application gives."""
        bench, task = candidate.bench, candidate.task
        assert task is not None, "a task is built before its gates run"
        evidence = {"base_tree": task.tree, "shipped_tree": task.shipped_tree}
        reason = detail = ""
        try:
            base = bench.read(touched(task.deletion_patch))
            shipped = bench.git_apply(base, task.deletion_patch)
            if bench.tree_hash(shipped) != task.shipped_tree:
                reason, detail = "tree_differs", "git apply gives another tree than the one that was tested."
            present = {path: data for path, data in shipped.items() if data is not None}
            restored = bench.git_apply(present, task.patch + task.test_patch)
            if {p: d for p, d in {**present, **restored}.items() if d is not None} != base:
                reason, detail = "not_restored", "The gold and test patches do not give the untouched sources back."
            elif {**base, **bench.git_apply(base, task.patch + task.test_patch, reverse=True)} != {**base, **shipped}:
                reason, detail = "not_reversible", "Reversing the gold and test patches does not give the shipped tree."
        except PatchError as error:
            reason, detail = error.reason, str(error)
        verdict = candidate.judged(self, None, not reason, reason=reason, problem=detail, evidence=evidence)
        return GateReport(verdicts=[verdict])
