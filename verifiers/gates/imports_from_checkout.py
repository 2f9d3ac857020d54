"""Gate 2: the tests import the package from the checkout, not from an installed copy."""

from __future__ import annotations

from excise.protocols import GateReport
from excise.verifiers.candidate import Candidate
from excise.verifiers.gates.verdict_rows import CheckResult, verdict_row


class ImportsFromCheckout:
    """Looks at the file of every module that the tests imported."""

    name = "g2_resolves"
    claim = "The package that the tests import lies in the checkout"

    def check(self, candidate: Candidate) -> GateReport:
        """Check that no module of the project was imported from outside ``/testbed``."""
        run = candidate.run("shipped")
        outside = [f"{name}: {path}" for name, path in run.imported if not path.lstrip("['").startswith("/testbed")]
        result = CheckResult(
            passed=not outside,
            reason="imports_elsewhere",
            problem=f"Imported from outside: {'; '.join(outside)}",
            run=run,
            evidence=dict(run.imported),
        )
        return GateReport(verdicts=[verdict_row(self, candidate, result)])
