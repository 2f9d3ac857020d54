"""Priorities of jobs: long repositories start early, so that no worker idles at the end, and first tasks come soon."""

from __future__ import annotations

from typing import Literal

StageName = Literal["fetch", "environment", "model", "baseline", "coverage", "find", "prove"]

SLOW_SUITE_S = 20.0
"""Duration of one run of the tests, in seconds, above which a repository counts as slow."""
MIN_ACTIVE_SOURCES = 16
"""Lower bound of :func:`max_active_sources`. The number is limited because each environment takes disk space."""
SOURCES_PER_WORKER = 4
"""Active sources per worker."""
MAX_BYTES, MAX_WALL_S = 1e13, 1e5
"""Sizes in bytes and times in seconds above these have the same priority."""


def max_active_sources(workers: int) -> int:
    """Return how many sources may be between fetch and publication at once, for a number of workers."""
    return max(MIN_ACTIVE_SOURCES, SOURCES_PER_WORKER * workers)


def priority(stage: StageName, *, num_bytes: int = 0, wall_s: float = 0.0) -> float:
    """Return the priority of a job; higher goes first.

    The cost of a repository is known only after its baseline, so the stages up to the baseline come first, large
    repositories before small ones. Next are coverage and find of slow repositories, which cannot be split into shards.
    Then quick repositories are finished one after the other. Candidates of slow repositories come last; they are many
    and keep all workers busy. ``num_bytes`` is the size of the sources, ``wall_s`` the wall seconds of one run of the
    tests.
    """
    size, cost = min(1.0, num_bytes / MAX_BYTES), min(1.0, wall_s / MAX_WALL_S)
    slow = wall_s > SLOW_SUITE_S
    match stage:
        case "fetch":
            return 9.0
        case "environment" | "model":
            return 8.0 + size
        case "baseline":
            return 7.0 + size
        case "coverage":
            return (6.0 if slow else 3.0) + cost
        case "find":
            return (6.0 if slow else 5.0) + cost
        case "prove":
            return (2.0 if slow else 4.0) + cost
