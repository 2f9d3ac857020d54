"""Estimates of pass rates from a task's own attempts: a Beta distribution over exponentially decayed counts.

Its prior is what the model of pass rates predicts (:mod:`excise.datasets.difficulty.pass_rate_model`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass


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
