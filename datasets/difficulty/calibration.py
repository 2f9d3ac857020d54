"""How far predicted pass rates can be trusted: predictions for projects that the fit has not seen.

Brier score and logarithmic loss are means over attempts (Brier, 1950; Gneiting and Raftery, 2007). The calibration
error is the mean distance between predicted and measured rate over ten bins, weighted by attempts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from excise.datasets.difficulty.pass_rate_model import Observation, fit
from excise.types import content_id

NUM_FOLDS = 5
"""Number of parts into which the projects are divided."""
NUM_BINS = 10
"""Number of bins of predicted rates."""
CORRELATION = 0.3
"""Correlation of two attempts of a solver at one task, beyond what the measures explain; see
:func:`~excise.datasets.difficulty.pass_rate_model.fit`."""


class Bin(NamedTuple):
    """The attempts whose predicted rate is in one range."""

    low: float
    """Lower end of the range; it is ``1 / NUM_BINS`` wide."""
    predicted: float
    """Mean predicted pass rate of the attempts."""
    measured: float
    """Share of the attempts that passed."""
    num_attempts: int
    """Number of attempts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Quality of predictions for tasks of projects that were left out of the fit."""

    num_tasks: int
    """Number of tasks with attempts."""
    num_attempts: int
    """Number of attempts."""
    num_projects: int
    """Number of projects; with one, its tasks are divided instead."""
    brier: float
    """Brier score of the model; lower is better."""
    brier_of_mean: float
    """Brier score of predicting each solver's mean rate in the other folds."""
    log_loss: float
    """Logarithmic loss of the model in nats."""
    log_loss_of_mean: float
    """Logarithmic loss of predicting each solver's mean rate."""
    error: float
    """Calibration error."""
    bins: tuple[Bin, ...]
    """The bins that hold attempts, from low to high predicted rates."""

    @property
    def skill(self) -> float:
        """Brier skill score: 1 is perfect, 0 is no better than the solvers' mean rates."""
        return 1.0 - self.brier / self.brier_of_mean if self.brier_of_mean else 0.0


_Loss = Callable[[float, int], float]


class _Prediction(NamedTuple):
    passed: float
    failed: float
    rate: float
    mean: float


def calibrate(observations: Mapping[str, Sequence[Observation]]) -> Calibration | None:
    """Predict the attempts at each fold of the projects from those at the others; ``None`` without enough attempts.

    ``observations``: name of a task, ``PROJECT__…``, to the attempts at it. Two folds at least are needed.
    """
    projects = {name.partition("__")[0] for name in observations}
    unit = {name: name.partition("__")[0] if len(projects) > 1 else name for name in observations}
    folds = {each: int(content_id("fold", each)[:8], 16) for each in set(unit.values())}
    ranks = {each: number % NUM_FOLDS for number, each in enumerate(sorted(folds, key=lambda name: folds[name]))}
    if len(ranks) < 2:
        return None
    found: list[_Prediction] = []
    for fold in sorted(set(ranks.values())):
        known = [one for name, own in observations.items() if ranks[unit[name]] != fold for one in own]
        model = fit(known, correlation=CORRELATION)
        means = _mean_rates(known)
        for name, own in observations.items():
            if ranks[unit[name]] == fold:
                rates = ((one, model.predictor(one.solver).rate(one.measures)) for one in own)
                found += [_Prediction(one.passed, one.failed, rate, means.get(one.solver, 0.5)) for one, rate in rates]
    attempts = sum(each.passed + each.failed for each in found)
    if not attempts:
        return None
    bins = _bins(found)
    return Calibration(
        num_tasks=len(observations),
        num_attempts=round(attempts),
        num_projects=len(projects),
        brier=_mean(found, lambda rate, passed: (rate - passed) ** 2),
        brier_of_mean=_mean([each._replace(rate=each.mean) for each in found], lambda rate, y: (rate - y) ** 2),
        log_loss=_mean(found, _surprise),
        log_loss_of_mean=_mean([each._replace(rate=each.mean) for each in found], _surprise),
        error=sum(each.num_attempts * abs(each.predicted - each.measured) for each in bins) / attempts,
        bins=bins,
    )


def _mean_rates(observations: Sequence[Observation]) -> dict[str, float]:
    """Solver to the share of its attempts that passed, with one attempt more of each outcome."""
    passed: dict[str, float] = {}
    total: dict[str, float] = {}
    for one in observations:
        passed[one.solver] = passed.get(one.solver, 1.0) + one.passed
        total[one.solver] = total.get(one.solver, 2.0) + one.passed + one.failed
    return {solver: passed[solver] / total[solver] for solver in total}


def _mean(found: Sequence[_Prediction], loss: _Loss) -> float:
    attempts = sum(each.passed + each.failed for each in found)
    return sum(each.passed * loss(each.rate, 1) + each.failed * loss(each.rate, 0) for each in found) / attempts


def _surprise(rate: float, passed: int) -> float:
    return -math.log(max(1e-12, rate if passed else 1 - rate))


def _bins(found: Sequence[_Prediction]) -> tuple[Bin, ...]:
    held: dict[int, list[_Prediction]] = {}
    for each in found:
        held.setdefault(min(NUM_BINS - 1, int(each.rate * NUM_BINS)), []).append(each)
    bins = []
    for number, own in sorted(held.items()):
        attempts = sum(each.passed + each.failed for each in own)
        predicted = sum((each.passed + each.failed) * each.rate for each in own) / attempts
        measured = sum(each.passed for each in own) / attempts
        bins.append(Bin(number / NUM_BINS, predicted, measured, round(attempts)))
    return tuple(bins)
