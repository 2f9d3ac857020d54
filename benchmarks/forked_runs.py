"""Benchmark of test runs that are forked from a process that has imported pytest, against processes of their own.

Each candidate's hidden tests are run without its code in both ways, alternately, in the same sandbox backend. Run:
``python benchmarks/forked_runs.py CANDIDATES SOURCE...``, with the number of candidates of each source, such as
``40 pypi:boltons==26.2.0 pypi:jinja2==3.1.6`` (uses the usual cache). Prints CPU and wall seconds and ratios; ends
with exit code 1 if the status of a test differs on which two fresh runs agree.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import geometric_mean

from search import prepare

from excise.config import Settings, load
from excise.deleters.all_deleters import get
from excise.errors import DeletionRefused
from excise.pipeline.stages.environment_stage import open_workbench
from excise.types import Deletion, Feature, SourceSpec, Status
from excise.verifiers.candidate import DeletionTrees
from excise.verifiers.workbench import Workbench

SEED = 7
"""Seed of the choice of features."""


def main() -> None:
    """Measure all sources; exits with 1 if a status differs."""
    wanted, sources = int(sys.argv[1]), sys.argv[2:]
    with tempfile.TemporaryDirectory() as out:
        settings = load(out=Path(out))
        found = [compare(SourceSpec(spec=source), wanted, settings) for source in sources]
    num, differing = sum(n for n, _ in found), sum(d for _, d in found)
    print(f"{num} candidates of {len(sources)} sources, {differing} with another verdict")
    sys.exit(differing > 0)


def compare(spec: SourceSpec, wanted: int, settings: Settings) -> tuple[int, int]:
    """Compare both ways on one source; return the number of candidates, and of those with a difference."""
    prepared, proposed = prepare(spec, settings)
    bench = open_workbench(settings, prepared)
    cpu: list[tuple[float, float]] = []
    wall: list[tuple[float, float]] = []
    differing = 0
    features = random.Random(SEED).sample(proposed.features, len(proposed.features))
    for deletion in _deletions(bench, features):
        if len(cpu) == wanted:
            break
        edits, ids = DeletionTrees(bench=bench, deletion=deletion).edits("deleted"), sorted(deletion.feature.tests)
        fresh, forked = bench.run(edits, ids=ids), bench.run(edits, ids=ids, forked=True)
        cpu.append((fresh.cpu_s, forked.cpu_s))
        wall.append((fresh.wall_s, forked.wall_s))
        different = _differences(fresh.statuses(), forked.statuses())
        if different and not different & _differences(fresh.statuses(), bench.run(edits, ids=ids).statuses()):
            differing += 1
            print(f"  {deletion.feature.entry[0]}: {', '.join(sorted(different)[:5])}")
    for name, pairs in (("CPU", cpu), ("wall", wall)):
        fresh_s, forked_s = (sum(column) / len(pairs) for column in zip(*pairs, strict=True))
        ratio = geometric_mean(first / second for first, second in pairs)
        print(
            f"{spec.spec}: {len(pairs)} candidates, {name} {fresh_s:.3f} s fresh, {forked_s:.3f} forked, x {ratio:.2f}"
        )
    return len(cpu), differing


def _deletions(bench: Workbench, features: Sequence[Feature]) -> Iterator[Deletion]:
    for number, feature in enumerate(features):
        try:
            yield get(("stub", "remove")[number % 2]).delete(bench.codebase, feature)
        except DeletionRefused:
            continue


def _differences(first: dict[str, Status], second: dict[str, Status]) -> set[str]:
    """Tests whose status differs."""
    return {test for test in first.keys() | second.keys() if first.get(test) is not second.get(test)}


if __name__ == "__main__":
    main()
