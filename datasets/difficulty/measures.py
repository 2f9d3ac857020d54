"""What is known of a task, or of a candidate for one, before anybody has attempted it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from excise.datasets.difficulty.rungs import TYPICAL_LOC, Rung, rung_of
from excise.types import Feature, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """Static measures of a task. Those that are ``None`` are unknown, and count as typical."""

    rung: Rung
    """What is missing, and what is shown."""
    loc: int | None = None
    """Lines of code removed."""
    num_symbols: int | None = None
    """Number of symbols removed."""
    num_files: int | None = None
    """Number of source files changed."""
    fan_in: int | None = None
    """Number of references from the remaining code."""
    complexity: int | None = None
    """Sum of cyclomatic complexities."""
    num_tests: int | None = None
    """Number of FAIL_TO_PASS tests."""
    statement_chars: int | None = None
    """Length of the problem statement in characters."""
    similar_share: float | None = None
    """Share of the removed code that stands elsewhere in the project in the same words."""


def measures_of(task: Task) -> Measures:
    """The measures of a task."""
    difficulty = task.difficulty
    return Measures(
        rung=rung_of(task),
        loc=difficulty.loc,
        num_symbols=difficulty.num_symbols,
        num_files=difficulty.num_files,
        fan_in=difficulty.fan_in,
        complexity=difficulty.complexity,
        num_tests=difficulty.num_f2p,
        statement_chars=len(task.problem_statement) or None,
        similar_share=difficulty.similar_share,
    )


def measures_of_feature(feature: Feature, rung: Rung) -> Measures:
    """The measures of a task that may be made of a feature, as far as they are known before it is made."""
    return Measures(
        rung=rung,
        loc=feature.loc,
        num_symbols=len(feature.symbols),
        fan_in=feature.fan_in,
        complexity=feature.complexity,
    )


def inputs_of(measures: Measures) -> Mapping[str, float]:
    """The measures as numbers by name: 0 is typical, and 1 is one step or one doubling more."""
    typical = TYPICAL_LOC[measures.rung.level]
    level, visibility = measures.rung.order
    loc = max(1, measures.loc or typical)
    return {
        "level": float(level),
        "visibility": float(visibility),
        "size": math.log2(loc / typical),
        "symbols": _doublings(measures.num_symbols, 1),
        "files": _doublings(measures.num_files, 1),
        "fan_in": 0.0 if measures.fan_in is None else math.log2((1 + measures.fan_in) / 2),
        "complexity": 0.0 if measures.complexity is None else math.log2((1 + measures.complexity) / (1 + loc / 5)),
        "tests": _doublings(measures.num_tests, 4),
        "statement": _doublings(measures.statement_chars, 1200),
        "similar": 0.0 if measures.similar_share is None else measures.similar_share - 0.2,
    }


def _doublings(value: int | None, typical: int) -> float:
    return 0.0 if value is None else math.log2(max(1, value) / typical)
