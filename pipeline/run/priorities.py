"""The order of jobs: no worker waits for one long repository at the end, and first tasks come early."""

from __future__ import annotations

from typing import Literal

StageName = Literal["fetch", "environment", "model", "baseline", "coverage", "find", "prove"]

SLOW_SUITE_S = 20.0
"""Seconds of one run of the tests from which on a repository counts as slow."""
MIN_ACTIVE_SOURCES = 16
"""Sources that may be between fetch and publication at once, at least. More would fill the disk with environments."""
SOURCES_PER_WORKER = 4
"""The same for each worker, where that is more."""
MAX_BYTES, MAX_WALL_S = 1e13, 1e5
"""Sizes and times above these make no difference to the priority."""


def max_active_sources(workers: int) -> int:
    """How many sources may be between fetch and publication at once."""
    return max(MIN_ACTIVE_SOURCES, SOURCES_PER_WORKER * workers)


def priority(stage: StageName, *, num_bytes: int = 0, wall_s: float = 0.0) -> float:
    """The priority of a job; higher goes first.

    What a repository costs is known only after its baseline, so every active source is first brought that far, large
    ones first. Then the coverage of slow repositories, which cannot be split, goes before everything else; quick
    repositories follow one by one, each to its end; candidates of slow repositories, expensive but many, fill the rest.
    ``num_bytes`` is the size of the sources, ``wall_s`` the wall seconds of one run of the tests.
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
