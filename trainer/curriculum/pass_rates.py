"""Estimates of pass rates: a prediction for tasks that were never attempted, and a posterior for those that were.

The prediction is a logistic regression on three numbers (level, visibility, logarithm of the size). Its Gaussian priors
express what is plausible without data: harder rungs and larger code have lower pass rates. The posterior is a Beta
distribution with the prediction as its prior and exponentially decayed counts of attempts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from excise.trainer.curriculum.rungs import TYPICAL_LOC, Rung

_PRIOR_MEAN = (1.5, -0.5, -0.3, -0.3)
"""Prior means of the coefficients bias, level, visibility, size."""
_PRIOR_DEVIATION = (2.0, 0.5, 0.5, 0.5)
"""Prior standard deviations of the coefficients."""
_MAX_ITERATIONS = 30
"""Maximum number of Newton steps of a fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictor:
    """Coefficients of the logistic regression for the logit of a pass rate."""

    bias: float = _PRIOR_MEAN[0]
    """Logit at the lowest level and visibility, for code of typical size."""
    level: float = _PRIOR_MEAN[1]
    """Change per level."""
    visibility: float = _PRIOR_MEAN[2]
    """Change per step of visibility."""
    size: float = _PRIOR_MEAN[3]
    """Change per doubling of the lines of code, relative to the typical size of the level."""

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
    """Fit a predictor (maximum a posteriori) to rows of (rung, lines of code, attempts passed, attempts failed).

    Counts may be fractions.
    """
    rows = [(_inputs(rung, loc), passed, failed) for rung, loc, passed, failed in observations if passed + failed > 0]
    prior, precision = np.array(_PRIOR_MEAN), np.diag(1.0 / np.square(_PRIOR_DEVIATION))
    if not rows:
        return Predictor()
    inputs = np.array([row[0] for row in rows])
    passed = np.array([row[1] for row in rows])
    total = passed + np.array([row[2] for row in rows])
    weights = prior.copy()
    for _ in range(_MAX_ITERATIONS):
        rates = 1.0 / (1.0 + np.exp(-np.clip(inputs @ weights, -30, 30)))
        gradient = inputs.T @ (passed - total * rates) - precision @ (weights - prior)
        curvature = inputs.T @ (inputs * (total * rates * (1 - rates))[:, None]) + precision
        step = np.linalg.solve(curvature, gradient)
        weights += step * min(1.0, 2.0 / max(1e-9, float(np.abs(step).max())))
        if float(np.abs(step).max()) < 1e-9:
            break
    bias, level, visibility, size = (round(float(weight), 9) for weight in weights)
    return Predictor(bias=bias, level=level, visibility=visibility, size=size)


@dataclass(slots=True)
class DecayedCounts:
    """Exponentially decayed counts of attempts. Time is measured in recorded groups."""

    passed: float = 0.0
    """Decayed number of attempts that passed."""
    failed: float = 0.0
    """Decayed number of attempts that failed."""
    at: int = 0
    """Time at which the counts are valid."""

    def add(self, passed: int, failed: int, now: int, half_life: float) -> None:
        """Add a group's attempts."""
        self.passed, self.failed = self.decayed(now, half_life)
        self.passed, self.failed, self.at = self.passed + passed, self.failed + failed, now

    def decayed(self, now: int, half_life: float) -> tuple[float, float]:
        """(Passed, failed) decayed to the time ``now``."""
        share = 0.5 ** (max(0, now - self.at) / half_life)
        return self.passed * share, self.failed * share


@dataclass(frozen=True, slots=True)
class Beta:
    """A Beta distribution of a pass rate."""

    a: float
    """First parameter, positive; a = b = 1 is the uniform distribution."""
    b: float
    """Second parameter, positive."""

    @classmethod
    def of(cls, prior: float, strength: float, passed: float, failed: float) -> Beta:
        """The posterior after observations. ``prior`` is the prior mean (kept between 0.02 and 0.98); it weighs as much
        as ``strength`` observations.
        """
        mean = min(max(prior, 0.02), 0.98)
        return cls(strength * mean + passed, strength * (1 - mean) + failed)

    @property
    def mean(self) -> float:
        """Mean of the distribution."""
        return self.a / (self.a + self.b)

    def below(self, rate: float) -> float:
        """Probability that the pass rate is below ``rate``."""
        return incomplete_beta(self.a, self.b, rate)

    def quantile(self, probability: float) -> float:
        """The rate that the pass rate is below with this probability."""
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if self.below(middle) < probability else (low, middle)
        return (low + high) / 2


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by its continued fraction (DLMF 8.17.22)."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    if x > (a + 1) / (a + b + 2):  # the continued fraction converges fast only below this
        return 1.0 - incomplete_beta(b, a, 1.0 - x)
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(logarithm) / (a * _fraction(a, b, x))


def _fraction(a: float, b: float, x: float) -> float:
    """``1 + d1/(1 + d2/(1 + …))``, evaluated by Lentz's method."""
    tiny = 1e-300
    value = c = 1.0
    d = 0.0
    for n in range(1, 2000):
        m = n // 2
        if n % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1.0 / ((1.0 + term * d) or tiny)
        c = (1.0 + term / c) or tiny
        value *= c * d
        if abs(c * d - 1.0) < 1e-12:
            break
    return value
