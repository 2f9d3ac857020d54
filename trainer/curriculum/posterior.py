"""What is believed about a pass rate: a Beta distribution whose observations fade as the policy changes."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(slots=True)
class Record:
    """Attempts seen so far, older ones counting less; time is counted in groups."""

    passed: float = 0.0
    """Faded number of attempts that passed."""
    failed: float = 0.0
    """Faded number of those that did not."""
    at: int = 0
    """When they were faded last."""

    def add(self, passed: int, failed: int, now: int, half_life: float) -> None:
        """Count a group's attempts."""
        self.passed, self.failed = self.faded(now, half_life)
        self.passed, self.failed, self.at = self.passed + passed, self.failed + failed, now

    def faded(self, now: int, half_life: float) -> tuple[float, float]:
        """What counts ``now``."""
        share = 0.5 ** (max(0, now - self.at) / half_life)
        return self.passed * share, self.failed * share


@dataclass(frozen=True, slots=True)
class Beta:
    """A belief about a rate."""

    a: float
    """Positive; with ``b`` equal to 1 each, every rate is as likely."""
    b: float
    """Positive."""

    @classmethod
    def of(cls, prior: float, strength: float, passed: float, failed: float) -> Beta:
        """After observations, from a guess that is worth ``strength`` of them; the guess is kept off 0 and 1."""
        guess = min(max(prior, 0.02), 0.98)
        return cls(strength * guess + passed, strength * (1 - guess) + failed)

    @property
    def mean(self) -> float:
        """Expected rate."""
        return self.a / (self.a + self.b)

    def below(self, rate: float) -> float:
        """Probability that the true rate is below ``rate``."""
        return incomplete_beta(self.a, self.b, rate)

    def quantile(self, probability: float) -> float:
        """The rate below which the true one is with this probability."""
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
    if x > (a + 1) / (a + b + 2):  # converges fast on this side only
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
