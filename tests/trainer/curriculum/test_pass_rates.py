"""Estimates of pass rates."""

from __future__ import annotations

import numpy as np
import pytest

from excise.trainer.curriculum.pass_rates import Beta, DecayedCounts, incomplete_beta


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.3, 2.5), (12.0, 3.0), (200.0, 20.0)])
def test_the_incomplete_beta_function_is_the_integral(a: float, b: float) -> None:
    u = (np.arange(400_000) + 0.5) / 400_000
    x = u**4 / (u**4 + (1 - u) ** 4)  # crowded at both ends, where the density may be infinite
    slope = 4 * u**3 * (1 - u) ** 3 / (u**4 + (1 - u) ** 4) ** 2
    density = x ** (a - 1) * (1 - x) ** (b - 1) * slope
    for rate in (0.02, 0.4, 0.77, 0.95):
        expected = density[x < rate].sum() / density.sum()
        assert incomplete_beta(a, b, rate) == pytest.approx(expected, abs=2e-4)
        assert Beta(a, b).below(Beta(a, b).quantile(rate)) == pytest.approx(rate, abs=1e-4)


def test_observations_decay_with_their_half_life() -> None:
    record = DecayedCounts()
    record.add(4, 4, now=10, half_life=5)
    record.add(2, 0, now=15, half_life=5)
    assert (record.passed, record.failed) == (4.0, 2.0)
    assert record.decayed(25, half_life=5) == (1.0, 0.5)
