"""Simulation of orders of jobs, with the measured times of a run.

Run: ``python benchmarks/scheduling.py SET [WORKERS…]``. Takes the stage times of every source of a finished set from
its logs and runs them through excise's own queue on a virtual clock, in several orders. Prints for each number of
workers and each order when the first task, half of the tasks and the last one came, the mean time of all tasks, and the
end of the run as a multiple of what is possible: all work divided by the workers, or the longest chain.
"""

from __future__ import annotations

import heapq
import itertools
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from excise.datasets.queries.catalogue import connect
from excise.pipeline.cluster.worker_pool import JobResult, SharedFiles
from excise.pipeline.run.job_queue import JobQueue, Rank
from excise.pipeline.run.priorities import StageName, rank

CHAIN: tuple[StageName, ...] = ("fetch", "environment", "baseline", "coverage", "find")
Order = Callable[["Job"], Rank]


@dataclass
class Source:
    """The measured times of one source."""

    num_bytes: int
    suite_s: float
    stages: dict[str, float] = field(default_factory=dict)
    candidates: list[float] = field(default_factory=list)


@dataclass
class Job:
    """A job of the simulation."""

    source: Source
    stage: StageName
    seconds: float
    left: int
    """Candidates of the source that have not begun."""

    def rank(self) -> Rank:
        """The rank that excise gives the job."""
        measured = CHAIN.index(self.stage) > CHAIN.index("baseline") if self.stage in CHAIN else True
        return rank(
            self.stage,
            num_bytes=0 if self.stage == "fetch" else self.source.num_bytes,
            suite_s=self.source.suite_s if measured else None,
            tasks=self.left,
        )


class VirtualPool(SharedFiles):
    """Workers on a virtual clock: a job takes the seconds that are its argument."""

    def __init__(self, workers: int) -> None:
        self.workers, self.now = workers, 0.0
        self._numbers = itertools.count()
        self._running: list[tuple[float, int]] = []

    def num_slots(self) -> int:
        """Number of workers."""
        return self.workers

    def submit(self, function: Callable[..., Any], args: tuple[Any, ...]) -> int:  # noqa: ARG002
        """Begin a job."""
        number = next(self._numbers)
        heapq.heappush(self._running, (self.now + args[0], number))
        return number

    def wait(self) -> tuple[int, JobResult]:
        """Go on to the time at which the next job ends."""
        self.now, number = heapq.heappop(self._running)
        return number, JobResult()

    def cancel(self) -> None:
        """Forget what is running."""
        self._running.clear()


def sources_of(folder: Path) -> list[Source]:
    """The sources of a set, with the times of the jobs in its logs; answers from the cache are not counted."""
    base: duckdb.DuckDBPyConnection = connect(folder)
    rows = base.execute(
        "SELECT r.source, r.num_bytes, e.wall_s FROM repos r JOIN environments e USING (tree) WHERE e.wall_s > 0"
    ).fetchall()
    found: dict[str, Source] = {}
    for name, num_bytes, suite_s in rows:
        found[name] = found[re.sub(r"(==|@).*", "", name)] = Source(num_bytes, suite_s)  # pinned, and as it was given
    jobs = base.execute(
        "SELECT source, stage, any_value(job_wall_s), count(*) FILTER (program <> 'excise') FROM costs "
        "GROUP BY run, source, stage, pid, job"
    ).fetchall()
    for name, stage, seconds, num_programs in jobs:
        if name not in found:
            continue
        if stage != "prove":
            found[name].stages[stage] = max(seconds, found[name].stages.get(stage, 0.0))
        elif num_programs:
            found[name].candidates.append(seconds)
    return [source for source in {id(source): source for source in found.values()}.values() if source.candidates]


def simulate(sources: list[Source], workers: int, order: Order) -> tuple[list[float], float]:
    """When each task came, and when the run ended."""
    pool = VirtualPool(workers)
    jobs: JobQueue[Job] = JobQueue(pool)
    came: list[float] = []

    def put(job: Job) -> None:
        jobs.put(job, order(job), print, job.seconds)

    for source in sources:
        put(Job(source, "fetch", source.stages.get("fetch", 1.0), len(source.candidates)))
    for job, _ in jobs:
        source = job.source
        if job.stage == "prove":
            came.append(pool.now)
        elif job.stage == "find":
            for number, seconds in enumerate(source.candidates):
                put(Job(source, "prove", seconds, len(source.candidates) - number))
        else:
            following = CHAIN[CHAIN.index(job.stage) + 1]
            put(Job(source, following, source.stages.get(following, 0.0), len(source.candidates)))
    return came, pool.now


def dear_first(job: Job) -> Rank:
    """What excise did before: all projects up to their baselines, large ones first, then short ones one by one."""
    stages = {"fetch": 9.0, "environment": 8.0, "baseline": 7.0}
    slow = job.source.suite_s > 20
    later = {"coverage": 6.0 if slow else 3.0, "find": 6.0 if slow else 5.0, "prove": 2.0 if slow else 4.0}
    early = job.stage in stages
    size = job.source.num_bytes / 1e13 if early else job.source.suite_s / 1e5
    priority = (stages if early else later)[job.stage] + size
    return Rank(task_s=-priority, chain_s=priority)


def longest_chain(job: Job) -> Rank:
    """The longest chain first, on all workers."""
    return Rank(task_s=-job.rank().chain_s, chain_s=job.rank().chain_s)


def cheapest_task(job: Job) -> Rank:
    """The cheapest task first, on all workers."""
    return Rank(task_s=job.rank().task_s, chain_s=-job.rank().task_s)


ORDERS: dict[str, Order] = {
    "dear first (before)": dear_first,
    "longest chain": longest_chain,
    "cheapest task": cheapest_task,
    "half and half (excise)": Job.rank,
}


def main() -> None:
    """Simulate every order, and print a table."""
    sources = sources_of(Path(sys.argv[1]))
    work = sum(sum(source.stages.values()) + sum(source.candidates) for source in sources)
    longest = max(sum(source.stages.values()) + max(source.candidates) for source in sources)
    print(f"{len(sources)} sources, {sum(len(s.candidates) for s in sources)} candidates, {work:.0f} s of work")
    print(f"{'workers':>7} {'order':24} {'first':>7} {'half':>7} {'last':>7} {'mean':>7} {'end ÷ best':>11}")
    for workers in map(int, sys.argv[2:] or ["1", "2", "4", "8"]):
        for name, order in ORDERS.items():
            came, end = simulate(sources, workers, order)
            times = came[0], came[len(came) // 2], came[-1], sum(came) / len(came)
            shown = " ".join(f"{seconds:7.0f}" for seconds in times)
            print(f"{workers:7} {name:24} {shown} {end / max(work / workers, longest):11.2f}")


if __name__ == "__main__":
    main()
