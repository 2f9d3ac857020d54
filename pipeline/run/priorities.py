"""In which order the stages go: no worker waits for one long repository at the end, and tasks come early."""

from __future__ import annotations

from typing import Literal

Stage = Literal["fetch", "environment", "model", "baseline", "coverage", "find", "prove"]

SLOW_SUITE_S = 20.0
"""A suite that takes longer makes a repository a long one."""
WINDOW = 16
"""Sources under way at once, at least: more would fill the disk with environments that wait to be used."""
MAX_BYTES, MAX_WALL_S = 1e13, 1e5


def window(workers: int) -> int:
    """How many sources may be under way at once."""
    return max(WINDOW, 4 * workers)


def priority(stage: Stage, *, num_bytes: int = 0, wall_s: float = 0.0) -> float:
    """Rank of a job; higher goes first.

    What a repository costs is known only after its baseline, so everything under way is first brought that far,
    big ones first. Then a long suite's map, which nothing can shorten, goes before everything else; short
    repositories follow one by one, each to its end; candidates of long suites, dear but many, fill the rest.
    ``num_bytes`` is the size of the sources, ``wall_s`` what one run of the suite takes.
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
