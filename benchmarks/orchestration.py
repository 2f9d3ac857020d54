"""Benchmark of what a run costs besides its work: a real run whose stages do nothing.

Run: ``python benchmarks/orchestration.py SET [--candidates 10000] [--sources 100] [--workers 2] [--refresh]``, with a
set that has a task: every candidate gives a copy of it. Prints, at each tenth of the run, the resident memory of the
process that runs Dask's scheduler and the graph, in megabytes, and its CPU milliseconds per candidate since the last
line; ``--refresh`` publishes once, at the end. A run of real candidates takes seconds for each. Exits with 1 if the
memory of the last tenth, or after publishing, is more than half again as large as that of the second.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from excise.config import load
from excise.datasets.storage.store import Store
from excise.datasets.taskset import TaskSet
from excise.extractors.features.find_features import FoundFeatures
from excise.pipeline.cluster.local_cluster import open_worker_pool
from excise.pipeline.run.graph import Run, StageJob
from excise.pipeline.run.source_state import SourceState
from excise.pipeline.stages.fetch_stage import FetchedSources
from excise.types import Certificate, Feature, FeatureKind, SourceSpec, Task, content_id
from excise.verifiers.prove import Proof
from excise.verifiers.workbench import Layers, Prepared

MEGABYTE = 1 << 20
GROWTH = 1.5
"""Ratio of memory in the last and in the second tenth of the run above which the benchmark fails."""


def give(settings: object, name: str, result: object) -> object:  # noqa: ARG001
    """A stage that takes no time."""
    return result


def prove_copies(
    settings: object,  # noqa: ARG001
    name: str,
    template: tuple[Task, Certificate],
    features: Sequence[Feature],
) -> list[Proof]:
    """A prove stage that takes no time: a copy of the template for each feature."""
    proofs = []
    for feature in features:
        identity = content_id("copy", name, feature.feature_id)
        task = replace(template[0], instance_id=f"copy__{identity}", patch=f"{template[0].patch}# {identity}\n")
        certificate = replace(template[1], instance_id=task.instance_id)
        proofs.append(Proof(task=task, certificate=certificate, cpu_s=1.0, wall_s=1.0))
    return proofs


class IdleRun(Run):
    """A run whose stages return what the template says."""

    template: tuple[Task, Certificate]
    results: dict[str, Any]

    def submit(self, job: StageJob, function: Callable[..., Any], *args: Any) -> None:
        """Put a job into the queue that does nothing."""
        if job.stage == "prove":
            function, args = prove_copies, (self.template, [feature for feature, _ in job.shard])
        else:
            function, args = give, (self.results[job.stage],)
        super().submit(job, function, *args)

    def index_surface(self, state: SourceState, prepared: Prepared) -> None:
        """Nothing is read."""


def stage_results(taskset: TaskSet, task: Task, features: int) -> dict[str, Any]:
    """Result of each stage, made from the records of a task's repository."""
    environment, baseline = taskset.environment(task.env_id)
    repo = taskset.repo(task.repo)
    layers = Layers(sources="", built="", env="", outputs="", tools="")
    prepared = Prepared(repo=repo, environment=environment, layers=layers, baseline=baseline)
    found = [
        Feature(feature_id=f"{number}", kind=FeatureKind.CLASS, tier=1, entry=(), symbols=(), tests=())
        for number in range(features)
    ]
    proposed = FoundFeatures(features=tuple(found), symbols=())
    stages = dict.fromkeys(("environment", "baseline", "coverage"), prepared)
    return {"fetch": FetchedSources(repo=repo, layer=""), **stages, "find": proposed}


def resident_mb() -> float:
    """Resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / MEGABYTE


def peak_mb() -> float:
    """The largest resident memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Meter:
    """A listener that prints memory and CPU at each tenth of the run."""

    def __init__(self, total: int) -> None:
        self.total, self.printed = total, 0
        self.cpu_s = time.process_time()
        self.memory: list[float] = []

    def __call__(self, states: Sequence[SourceState]) -> None:
        """Print a line if a tenth more is done."""
        tried = sum(state.tried for state in states)
        if tried * 10 < (len(self.memory) + 1) * self.total:
            return
        cpu_s = time.process_time()
        per_candidate = 1000 * (cpu_s - self.cpu_s) / (tried - self.printed)
        self.memory.append(resident_mb())
        print(f"{tried:8} candidates {self.memory[-1]:8.0f} MB {per_candidate:8.2f} ms a candidate", flush=True)
        self.printed, self.cpu_s = tried, cpu_s


def options() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", type=Path)
    parser.add_argument("--candidates", type=int, default=10_000)
    parser.add_argument("--sources", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--refresh", action="store_true")
    return parser.parse_args()


def measure(taskset: TaskSet, candidates: int, sources: int, workers: int, *, refresh: bool = False) -> bool:
    """Run, print, and return whether memory stayed flat."""
    task = taskset.task(taskset.ids()[0])
    meter = Meter(candidates)
    with tempfile.TemporaryDirectory() as out:
        names = tuple(SourceSpec(spec=f"{out}/{number}") for number in range(sources))
        settings = load(out=Path(out, "set"), cache=Path(out, "cache")).model_copy(update={"sources": names})
        with Store(settings.out).writer() as writer, open_worker_pool("", workers) as pool:
            run = IdleRun(settings, pool, writer, meter, atomic=refresh)
            run.template = task, taskset.certificate(task.instance_id)
            run.results = stage_results(taskset, task, candidates // sources)
            run.run_to_end()
            published = Store(settings.out).current() is not None
            began = time.process_time()
            run.publish()
        cpu_s = time.process_time() - began
        after = resident_mb()
        print(f"{len(TaskSet.open(settings.out).ids())} tasks in the set, published before the end: {published}")
        print(f"publishing: {cpu_s:.1f} CPU s; afterwards {after:.0f} MB, at most {peak_mb():.0f} MB", flush=True)
    return max(after, meter.memory[-1]) <= GROWTH * meter.memory[1]


def main() -> None:
    """Run and print."""
    asked = options()
    flat = measure(TaskSet.open(asked.set), asked.candidates, asked.sources, asked.workers, refresh=asked.refresh)
    sys.exit(not flat)


if __name__ == "__main__":
    main()
