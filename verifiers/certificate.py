"""The evidence of one task, put together."""

from __future__ import annotations

from collections.abc import Sequence

import excise
from excise.types import Certificate, Verdict
from excise.verifiers.candidate import Candidate
from excise.verifiers.workbench import Cost


def certify(candidate: Candidate, verdicts: Sequence[Verdict], cost: Cost) -> Certificate:
    """A certificate from the verdicts of all gates."""
    bench = candidate.bench
    repeated = [v for v in verdicts if v.gate == "g7_gold"]
    disagreeing = sum(1 for v in repeated if v.statuses)
    lock = dict(line.partition("==")[::2] for line in bench.prepared.environment.lock)
    return Certificate(
        instance_id=candidate.instance_id,
        verdicts=tuple(verdicts),
        excise_version=excise.__version__,
        tools={"python": bench.recipe.python, "pytest": lock.get("pytest", ""), "sandbox": bench.sandbox.name},
        flake_rate=disagreeing / len(repeated) if repeated else 0.0,
        num_runs=len(repeated),
        cpu_s=cost.cpu_s,
        wall_s=cost.wall_s,
        settings=bench.settings.model_dump(mode="json"),
    )
