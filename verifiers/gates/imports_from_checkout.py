"""Gate 2: the tests import the package from the checkout."""

from __future__ import annotations

from excise.protocols import GateReport
from excise.verifiers.candidate import Candidate


class ResolvesIntoCheckout:
    """Gate 2."""

    name = "g2_resolves"
    claim = "The package that the tests import lies in the checkout"

    def check(self, candidate: Candidate) -> GateReport:
        """Look at where the tests' imports came from."""
        run = candidate.run("shipped")
        outside = [f"{name}: {path}" for name, path in run.imported if not path.lstrip("['").startswith("/testbed")]
        verdict = candidate.judged(
            self,
            run,
            not outside,
            reason="imports_elsewhere",
            problem=f"Imported from outside: {'; '.join(outside)}",
            evidence=dict(run.imported),
        )
        return GateReport(verdicts=[verdict])
