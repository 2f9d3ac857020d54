"""A guess at the pass rate of tasks that nobody tried yet, from what is known of others.

A logistic regression on three numbers (level, visibility, logarithm of the size), fitted with Gaussian priors that say
what is plausible without any data: harder rungs and larger code are passed less often.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from excise.trainer.curriculum.rungs import TYPICAL_LOC, Rung

_PRIOR = (1.5, -0.5, -0.3, -0.3)
_DEVIATION = (2.0, 0.5, 0.5, 0.5)
_ROUNDS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictor:
    """Coefficients of the logit of a pass rate."""

    bias: float = _PRIOR[0]
    """For an expression of which everything is shown."""
    level: float = _PRIOR[1]
    """For each level."""
    visibility: float = _PRIOR[2]
    """For each step of visibility."""
    size: float = _PRIOR[3]
    """For each doubling of the lines of code, beyond what is typical of the level."""

    def rate(self, rung: Rung, loc: int | None = None) -> float:
        """Predicted pass rate of a task on this rung with ``loc`` lines of code."""
        weights = (self.bias, self.level, self.visibility, self.size)
        logit = sum(weight * value for weight, value in zip(weights, _inputs(rung, loc), strict=True))
        return 1.0 / (1.0 + math.exp(-min(max(logit, -30.0), 30.0)))


def _inputs(rung: Rung, loc: int | None) -> tuple[float, float, float, float]:
    typical = TYPICAL_LOC[rung.level]
    level, visibility = rung.order
    return 1.0, float(level), float(visibility), math.log2(max(1, loc or typical) / typical)


def fitted(observations: Iterable[tuple[Rung, int, float, float]]) -> Predictor:
    """The likeliest predictor after (rung, lines of code, passed, failed); counts may be fractions."""
    rows = [(_inputs(rung, loc), passed, failed) for rung, loc, passed, failed in observations if passed + failed > 0]
    prior, precision = np.array(_PRIOR), np.diag(1.0 / np.square(_DEVIATION))
    if not rows:
        return Predictor()
    inputs = np.array([row[0] for row in rows])
    passed = np.array([row[1] for row in rows])
    total = passed + np.array([row[2] for row in rows])
    weights = prior.copy()
    for _ in range(_ROUNDS):
        rates = 1.0 / (1.0 + np.exp(-np.clip(inputs @ weights, -30, 30)))
        slope = inputs.T @ (passed - total * rates) - precision @ (weights - prior)
        curvature = inputs.T @ (inputs * (total * rates * (1 - rates))[:, None]) + precision
        step = np.linalg.solve(curvature, slope)
        weights += step * min(1.0, 2.0 / max(1e-9, float(np.abs(step).max())))
        if float(np.abs(step).max()) < 1e-9:
            break
    bias, level, visibility, size = (round(float(weight), 9) for weight in weights)
    return Predictor(bias=bias, level=level, visibility=visibility, size=size)
