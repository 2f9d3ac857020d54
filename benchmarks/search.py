"""Benchmark of finding the tests that a deletion breaks: tests selected by coverage, compared with the whole suite.

Each candidate is tested twice in the same sandbox backend: with the tests that coverage predicts to fail, and with the
whole suite, as without a coverage map. Run: ``python benchmarks/search.py pypi:boltons==26.2.0 [CANDIDATES]`` (uses the
usual cache). Prints CPU seconds for each candidate, their ratio, and whether the sets of failing tests are equal.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from statistics import geometric_mean
from typing import TypeVar

from excise.config import Settings, load
from excise.deleters.all_deleters import get
from excise.errors import DeletionRefused
from excise.pipeline.stages.baseline_stage import baseline_stage
from excise.pipeline.stages.coverage_stage import coverage_stage
from excise.pipeline.stages.environment_stage import environment_stage, open_workbench
from excise.pipeline.stages.fetch_stage import fetch_stage
from excise.pipeline.stages.find_stage import ProposedFeatures, find_stage
from excise.types import Rejection, SourceSpec
from excise.verifiers.candidate import DeletionTrees, not_passing
from excise.verifiers.workbench import Prepared

T = TypeVar("T")


def done(answer: T | Rejection) -> T:
    """The result of a stage; exits if the stage rejected its input."""
    if isinstance(answer, Rejection):
        sys.exit(f"{answer.stage}: {answer.detail}")
    return answer


def prepare(spec: SourceSpec, settings: Settings) -> tuple[Prepared, ProposedFeatures]:
    """Run all stages up to the features."""
    name = spec.spec
    sourced = done(fetch_stage(settings, name, spec))
    prepared = done(environment_stage(settings, name, spec, sourced))
    prepared = done(baseline_stage(settings, name, prepared))
    prepared = done(coverage_stage(settings, name, prepared))
    return prepared, done(find_stage(settings, name, prepared))


def main() -> None:
    """Measure with the first features that can be deleted."""
    spec = SourceSpec(spec=sys.argv[1])
    wanted = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    with tempfile.TemporaryDirectory() as out:
        measure(spec, wanted, load(out=Path(out)))


def measure(spec: SourceSpec, wanted: int, settings: Settings) -> None:
    """Test the same candidates in both ways, alternately, and print the times."""
    prepared, proposed = prepare(spec, settings)
    bench = open_workbench(settings, prepared)
    ratios: list[float] = []
    agree, ours_s, naive_s = 0, 0.0, 0.0
    for feature in proposed.features:
        if len(ratios) >= wanted:
            break
        try:
            deletion = get("stub").delete(bench.codebase, feature)
        except DeletionRefused:
            continue
        trees = DeletionTrees(bench=bench, deletion=deletion)
        near = trees.run("deleted", ids=sorted(feature.tests))
        whole = trees.run("deleted")
        same = set(not_passing(near, feature.tests)) == set(not_passing(whole, sorted(bench.trusted)))
        agree += same
        ours_s, naive_s = ours_s + near.cpu_s, naive_s + whole.cpu_s
        ratios.append(whole.cpu_s / near.cpu_s)
        print(
            f"{feature.entry[0]}: {len(feature.tests)} tests {near.cpu_s:.2f} s, all {whole.cpu_s:.2f} s, same {same}"
        )
    print(f"{len(ratios)} candidates: {ours_s / len(ratios):.2f} against {naive_s / len(ratios):.2f} CPU s each")
    print(f"naive / ours: {geometric_mean(ratios):.1f} (geometric mean); verdicts agree on {agree} of {len(ratios)}")


if __name__ == "__main__":
    main()
