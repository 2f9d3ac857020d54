"""Benchmark of making candidates: excise's runs against a loop that knows nothing, and against the tests themselves.

Run: ``python benchmarks/search.py [--candidates 20] [--naive 5] SOURCE…``, for example ``pypi:boltons==26.2.0`` (uses
the usual cache). All is measured in one run, in CPU seconds of all processes, for the same features, drawn by a seed:

naive      the whole suite on the tree without the feature, in a fresh process (the first ``--naive`` candidates)
search     only the tests that coverage names, forked from a process that has collected the suite: finds out whether a
           deletion breaks them
both       the same twice, with the feature and without
limit      the duration of these tests themselves
proof      from the feature to a certified task or a rejection, by the deleter of ordinary runs, everything included
start      starting the processes that runs are forked from, once

One line a project: CPU seconds of fetching and installing (0 from the cache) and of one run of the suite; ratios naive
÷ search, naive twice ÷ both and both ÷ limit (geometric means over candidates); CPU seconds of the start, proof ÷ one
run of the suite, CPU seconds of a proof beyond that run, coverage map ÷ run of the suite, compressed bytes of a task.
At the end, the geometric mean over projects and the peak memory. Exits with 1 if the sets of failing tests differ
between ``naive`` and ``search``. ``benchmarks/all.py`` prints this table and more.
"""

from __future__ import annotations

import argparse
import functools
import logging
import lzma
import random
import resource
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import geometric_mean, mean, median
from typing import TypeVar

from excise.config import Settings, load
from excise.deleters.all_deleters import get
from excise.errors import DeletionRefused
from excise.extractors.features.find_features import FoundFeatures
from excise.pipeline.run.selection import CandidateSelection
from excise.pipeline.stages.baseline_stage import baseline_stage
from excise.pipeline.stages.coverage_stage import coverage_stage
from excise.pipeline.stages.environment_stage import environment_stage, open_workbench
from excise.pipeline.stages.fetch_stage import fetch_stage
from excise.pipeline.stages.find_stage import find_stage
from excise.system.job_costs import measure_job
from excise.types import Deletion, Feature, Rejection, SourceSpec, to_json
from excise.verifiers.candidate import DeletionTrees, not_passing
from excise.verifiers.prove import prove
from excise.verifiers.workbench import Prepared, Workbench

SEED = 11
"""Seed of the choice of features."""
T = TypeVar("T")


def done(answer: T | Rejection) -> T:
    """The result of a stage; exits if the stage rejected its input."""
    if isinstance(answer, Rejection):
        sys.exit(f"{answer.stage}: {answer.detail}")
    return answer


def prepare(spec: SourceSpec, settings: Settings) -> tuple[Prepared, FoundFeatures]:
    """Run all stages up to the features."""
    name = spec.spec
    prepared = done(baseline_stage(settings, name, installed(spec, settings)))
    prepared = done(coverage_stage(settings, name, prepared))
    return prepared, done(find_stage(settings, name, prepared))


def installed(spec: SourceSpec, settings: Settings) -> Prepared:
    """Fetch the sources and install the environment."""
    sourced = done(fetch_stage(settings, spec.spec, spec))
    return done(environment_stage(settings, spec.spec, spec, sourced))


@dataclass
class Measured:
    """CPU seconds of one project's candidates."""

    name: str
    setup_s: float
    suite_s: float
    map_s: float
    start_s: float
    naive: list[float] = field(default_factory=list)
    search: list[float] = field(default_factory=list)
    both: list[float] = field(default_factory=list)
    limit: list[float] = field(default_factory=list)
    proof: list[float] = field(default_factory=list)
    task_bytes: list[int] = field(default_factory=list)
    differing: int = 0

    def row(self) -> str:
        """The project's line of the table."""
        compared = list(zip(self.naive, self.search, self.both, strict=False))
        above = [both / max(limit, 0.001) for both, limit in zip(self.both, self.limit, strict=True)]
        beyond = mean(self.proof) - self.suite_s
        values = [
            f"{len(self.search):5}",
            f"{self.setup_s:8.1f}",
            f"{self.suite_s:8.2f}",
            f"{geometric_mean([naive / search for naive, search, _ in compared]):8.1f}",
            f"{geometric_mean([2 * naive / both for naive, _, both in compared]):8.1f}",
            f"{geometric_mean(above):8.1f}",
            f"{self.start_s:8.1f}",
            f"{mean(self.proof) / self.suite_s:8.2f}",
            f"{beyond:8.2f}",
            f"{self.map_s / self.suite_s:6.2f}",
            f"{median(self.task_bytes) if self.task_bytes else 0:7.0f}",
            f"{self.differing:7}",
        ]
        return f"{self.name:32} {' '.join(values)}"


HEADER = (
    f"{'project':32} {'cand.':>5} {'set-up s':>8} {'suite s':>8} {'n/search':>8} {'2n/both':>8} {'both/lim':>8} "
    f"{'start s':>8} {'proof/s':>8} {'beyond s':>8} {'map/s':>6} {'bytes':>7} {'differ':>7}"
)


class JobCosts(logging.Handler):
    """Receives what a job cost, commands in sandboxes included, from the event that it logs."""

    cpu_s = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        """Sum the rows of the event ``job measured``."""
        if record.msg == "job measured":
            self.cpu_s = sum(row["cpu_s"] for row in vars(record)["costs"])


def cost_of(name: str, call: Callable[[], T]) -> tuple[T, float]:
    """The result of a call, and all CPU seconds that it took; ``name`` is the project's."""
    costs, logger = JobCosts(), logging.getLogger("excise.system.job_costs")
    logger.addHandler(costs)
    logger.setLevel(logging.INFO)
    try:
        with measure_job(name, "prove"):
            result = call()
    finally:
        logger.removeHandler(costs)
    return result, costs.cpu_s


def deletions(bench: Workbench, features: Sequence[Feature]) -> Iterator[Deletion]:
    """Deletions of the features, as far as they can be stubbed."""
    for feature in features:
        try:
            yield get("stub").delete(bench.codebase, feature)
        except DeletionRefused:
            continue


def measure(spec: SourceSpec, candidates: int, naive: int, settings: Settings) -> Measured:
    """Measure one project."""
    _, setup_s = cost_of(spec.spec, lambda: installed(spec, settings))
    prepared, proposed = prepare(spec, settings)
    bench = open_workbench(settings, prepared)
    assert prepared.coverage is not None
    suite_s = min(bench.run({}).cpu_s for _ in range(2))
    bench.starts.collect_now()
    _, start_s = cost_of(spec.spec, lambda: bench.run({}, ids=[], forked=True))
    found = Measured(spec.spec, setup_s, suite_s, prepared.coverage.cpu_s, start_s)
    deleters = {each.feature_id: name for each, name in reversed(CandidateSelection().candidates(proposed.features))}
    known = [each for each in proposed.features if each.feature_id in deleters]
    features = random.Random(SEED).sample(known, len(known))
    for deletion in deletions(bench, features):
        if len(found.search) == candidates:
            break
        ids = sorted(deletion.feature.tests)
        trees = DeletionTrees(bench=bench, deletion=deletion)
        edits = trees.edits("deleted")
        without = bench.run(edits, ids=ids, forked=True)
        restored = bench.run({}, ids=ids, forked=True)
        found.search.append(without.cpu_s)
        found.both.append(without.cpu_s + restored.cpu_s)
        found.limit.append(2 * sum(bench.baseline.durations.get(test, 0.0) for test in ids))
        if len(found.naive) < naive:
            whole = bench.run(edits)
            found.naive.append(whole.cpu_s)
            found.differing += set(not_passing(without, ids)) != set(not_passing(whole, sorted(bench.trusted)))
        deleter = deleters[deletion.feature.feature_id]
        proof, cpu_s = cost_of(spec.spec, functools.partial(prove, bench, deletion.feature, deleter))
        found.proof.append(cpu_s)
        if proof.task is not None:
            found.task_bytes.append(len(lzma.compress(to_json(proof.task))))
    return found


def table(sources: Sequence[str], candidates: int, naive: int, settings: Settings) -> list[Measured]:
    """Measure all projects and print their lines, with the geometric mean over them."""
    rows = []
    print(HEADER, flush=True)
    for source in sources:
        rows.append(measure(SourceSpec(spec=source), candidates, naive, settings))
        print(rows[-1].row(), flush=True)
    over_all = geometric_mean([geometric_mean([n / s for n, s in zip(r.naive, r.search, strict=False)]) for r in rows])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"naive ÷ search over all projects {over_all:.1f}; peak memory of this process {peak:.0f} MB")
    return rows


def main() -> None:
    """Measure all projects and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+")
    parser.add_argument("--candidates", type=int, default=20)
    parser.add_argument("--naive", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as out:
        rows = table(options.sources, options.candidates, options.naive, load(out=Path(out)))
    sys.exit(any(row.differing for row in rows))


if __name__ == "__main__":
    main()
