"""The order of jobs: tasks come soon, and no worker idles at the end.

Half of the workers (the smaller half) take the job that heads the longest chain of jobs which must follow each other:
long projects begin early and are not left over when all others are done. The other workers take the job whose source
costs least for each task that it may still give: cheap projects have tasks before dear ones are measured. A single
worker never idles, so it does the latter only. ``benchmarks/scheduling.py`` simulates this with the times of a run.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from excise.pipeline.run.job_queue import Rank

StageName = Literal["fetch", "environment", "model", "baseline", "surface", "coverage", "find", "propose", "prove"]

MIN_ACTIVE_SOURCES = 16
"""Lower bound of :func:`max_active_sources`. The number is limited because each environment takes disk space."""
SOURCES_PER_WORKER = 4
"""Active sources per worker."""
UNKNOWN_BYTES = 1 << 20
"""Expected size of sources that are not fetched yet."""
BYTES_PER_SUITE_S = 100_000
"""Bytes of sources for which one second of tests is expected, before the tests are run."""
EXPECTED_TASKS = 20
"""Tasks that are expected of a source without a limit, before its features are known."""


class _Cost(NamedTuple):
    """The expected wall seconds of a stage."""

    fixed_s: float
    """Seconds, whatever the project."""
    suites: float
    """Further seconds, as a multiple of one run of its tests."""


_COSTS: dict[StageName, _Cost] = {
    "fetch": _Cost(2.0, 0.0),
    "environment": _Cost(8.0, 0.0),
    "model": _Cost(300.0, 3.0),
    "baseline": _Cost(2.0, 6.0),
    "coverage": _Cost(2.0, 3.0),
    "find": _Cost(1.0, 0.1),
    "propose": _Cost(300.0, 3.0),
    "prove": _Cost(6.0, 1.5),
}
"""What stages cost, from a run of `demo.toml`; ``prove``: one candidate. Only their proportions matter."""
_CHAIN: tuple[StageName, ...] = ("fetch", "environment", "baseline", "coverage", "find")


def max_active_sources(workers: int) -> int:
    """Return how many sources may be between fetch and publication at once, for a number of workers."""
    return max(MIN_ACTIVE_SOURCES, SOURCES_PER_WORKER * workers)


class ProofTimes(NamedTuple):
    """What the proofs of a source took so far."""

    wall_s: float = 0.0
    """Wall seconds of all of them."""
    tasks: int = 0
    """Tasks that they gave."""


NO_PROOFS = ProofTimes()


def rank(
    stage: StageName,
    *,
    num_bytes: int = 0,
    suite_s: float | None = None,
    tasks: int | None = None,
    proofs: ProofTimes = NO_PROOFS,
) -> Rank:
    """Return the rank of a job.

    ``num_bytes`` is the size of the sources, 0 before they are fetched; ``suite_s`` the wall seconds of one run of the
    tests, ``None`` before the baseline; ``tasks`` how many tasks the source may still give, ``None`` if unknown. What
    ``proofs`` took corrects the expectation: it counts as one task more. All proofs wait for ``surface``, so it goes
    when the baseline of its source does, or at once where chains go first.
    """
    if stage == "surface":
        like = rank("baseline", num_bytes=num_bytes, suite_s=suite_s, tasks=tasks, proofs=proofs)
        return like._replace(chain_s=float("inf"))
    if suite_s is None:
        suite_s = (num_bytes or UNKNOWN_BYTES) / BYTES_PER_SUITE_S
    tasks = EXPECTED_TASKS if tasks is None else max(1, tasks)
    after = "environment" if stage == "model" else stage
    to_come = _CHAIN[_CHAIN.index(after) + 1 :] if after in _CHAIN else ()
    preparation_s = 0.0 if stage == "prove" else sum(_seconds(each, suite_s) for each in (stage, *to_come))
    candidate_s = _seconds("prove", suite_s)
    chain_s = float("inf") if stage == "fetch" else preparation_s + candidate_s
    measured_s = (candidate_s + proofs.wall_s) / (1 + proofs.tasks)
    return Rank(task_s=preparation_s / tasks + measured_s, chain_s=chain_s)


def _seconds(stage: StageName, suite_s: float) -> float:
    cost = _COSTS[stage]
    return cost.fixed_s + cost.suites * suite_s
