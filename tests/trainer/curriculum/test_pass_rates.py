"""Estimates of pass rates."""

from __future__ import annotations

import random

import numpy as np
import pytest

from excise.trainer.curriculum.pass_rates import Beta, DecayedCounts, Predictor, fitted, incomplete_beta
from excise.trainer.curriculum.rungs import Level, Rung, all_rungs
from excise.types import Visibility

STUB = Rung(Level.STUB, Visibility.DOCSTRING)
CLASS = Rung(Level.CLASS, Visibility.DOCSTRING)


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


def test_the_fitted_predictor_recovers_the_true_parameters() -> None:
    truth = Predictor(bias=2.0, level=-0.9, visibility=-0.2, size=-0.5)
    rng = random.Random(0)
    rows = []
    for rung in all_rungs():
        for loc in (3, 10, 60):
            passed = sum(rng.random() < truth.rate(rung, loc) for _ in range(200))
            rows.append((rung, loc, float(passed), 200.0 - passed))
    found = fitted(rows)
    for name in ("bias", "level", "visibility", "size"):
        assert getattr(found, name) == pytest.approx(getattr(truth, name), abs=0.15)
    assert fitted([]) == Predictor()


def test_the_prediction_without_data_falls_with_each_level() -> None:
    rates = [Predictor().rate(Rung(level, Visibility.DOCSTRING)) for level in Level]
    assert rates == sorted(rates, reverse=True)
    assert Predictor().rate(STUB, 100) < Predictor().rate(STUB, 5)
