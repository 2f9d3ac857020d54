"""Benchmark of forked test runs against processes of their own.

Each candidate's hidden tests are run without its code in three ways, in turn: in a process of its own (fresh), forked
from a process that has imported pytest (forked), and forked from one that has collected the suite, where that is
possible (collected). Run:
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
from excise.protocols import Start, TestRunRequest
from excise.types import Deletion, Feature, SourceSpec, Status, TestRun
from excise.verifiers.candidate import DeletionTrees
from excise.verifiers.workbench import Edits, Workbench

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
    """Compare all ways on one source; return the number of candidates, and of those with a difference."""
    prepared, proposed = prepare(spec, settings)
    bench = open_workbench(settings, prepared)
    cpu: list[list[float]] = []
    wall: list[list[float]] = []
    differing = 0
    features = random.Random(SEED).sample(proposed.features, len(proposed.features))
    for deletion in _deletions(bench, features):
        if len(cpu) == wanted:
            break
        edits, ids = DeletionTrees(bench=bench, deletion=deletion).edits("deleted"), sorted(deletion.feature.tests)
        fresh, forked = bench.run(edits, ids=ids), run_forked(bench, edits, ids, Start.FORKED)
        collected = run_forked(bench, edits, ids, Start.COLLECTED)
        runs = (fresh, forked, *([collected] if collected.finished else []))
        cpu.append([run.cpu_s for run in runs])
        wall.append([run.wall_s for run in runs])
        different = {test for run in runs for test in _differences(fresh.statuses(), run.statuses())}
        if different and not different & _differences(fresh.statuses(), bench.run(edits, ids=ids).statuses()):
            differing += 1
            print(f"  {deletion.feature.entry[0]}: {', '.join(sorted(different)[:5])}")
    for name, found in (("CPU", cpu), ("wall", wall)):
        print(f"{spec.spec}: {len(found)} candidates, {name} {means(found, 1)}; {means(found, 2)}")
    return len(cpu), differing


def run_forked(bench: Workbench, edits: Edits, ids: Sequence[str], start: Start) -> TestRun:
    """Run tests in one of the ways in which they are forked."""
    request = TestRunRequest(
        ids=ids,
        excluded=bench.left_out,
        timeout_s=bench.suite_timeout_s(ids),
        test_timeout_s=bench.test_timeout_s(ids),
        start=start,
    )
    with bench.open(edits, start=start) as session:
        return bench.language.run_tests(session, bench.recipe, request)


def means(found: Sequence[Sequence[float]], way: int) -> str:
    """Mean seconds of the fresh runs and of those in another way, where there are such, and the mean ratio."""
    pairs = [(seconds[0], seconds[way]) for seconds in found if len(seconds) > way]
    if not pairs:
        return "none collected"
    fresh_s, other_s = (sum(column) / len(pairs) for column in zip(*pairs, strict=True))
    ratio = geometric_mean(first / second for first, second in pairs)
    return f"{len(pairs)} {('forked', 'collected')[way - 1]}: {fresh_s:.3f} s fresh, {other_s:.3f}, x {ratio:.2f}"


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
