"""A model of pass rates: a logistic regression on static measures of tasks, refitted from measured attempts.

The logit of the pass rate of a solver on a task is ``ability of the solver + sum of coefficient * input``
(:func:`measures.inputs_of`), a Rasch model with covariates in place of a difficulty per task (Fischer's linear logistic
test model, 1973), fitted by maximum a posteriori. Its Gaussian priors express what is plausible without data: harder
rungs and larger code have lower pass rates. Coefficients are shared by all solvers, so that what one solver's attempts
tell of difficulty helps to predict another's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace

import numpy as np
from numpy.typing import NDArray

from excise.datasets.difficulty.measures import Measures, inputs_of

_MAX_ITERATIONS = 50
"""Maximum number of Newton steps of a fit."""
_LIMIT = 30.0
"""Largest absolute logit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictor:
    """Coefficients for the logit of one solver's pass rate. The defaults are the prior means."""

    bias: float = 1.5
    """The solver's ability: the logit at the lowest level and visibility, for code that is typical otherwise."""
    level: float = -0.5
    """Change per level."""
    visibility: float = -0.3
    """Change per step of visibility."""
    size: float = -0.3
    """Change per doubling of the lines of code, relative to the typical size of the level."""
    symbols: float = -0.1
    """Change per doubling of the symbols."""
    files: float = -0.1
    """Change per doubling of the changed files."""
    fan_in: float = 0.0
    """Change per doubling of the references from the remaining code."""
    complexity: float = -0.2
    """Change per doubling of the branches, relative to the lines of code."""
    tests: float = -0.1
    """Change per doubling of the FAIL_TO_PASS tests."""
    statement: float = 0.0
    """Change per doubling of the statement's length."""
    similar: float = 1.0
    """Change from code of which nothing to code of which everything stands elsewhere in the project."""

    def rate(self, measures: Measures) -> float:
        """Predicted pass rate on a task with these measures."""
        inputs = inputs_of(measures)
        logit = self.bias + sum(getattr(self, name) * value for name, value in inputs.items())
        return 1.0 / (1.0 + math.exp(-min(max(logit, -_LIMIT), _LIMIT)))


COEFFICIENTS = tuple(each.name for each in fields(Predictor) if each.name != "bias")
"""Names of the coefficients, in the order of the fields; each has an input of the same name."""
_DEVIATIONS = {
    "bias": 2.0, "level": 0.5, "visibility": 0.5, "size": 0.5, "symbols": 0.3, "files": 0.3, "fan_in": 0.3,
    "complexity": 0.3, "tests": 0.3, "statement": 0.3, "similar": 1.0,
}  # fmt: skip
"""Prior standard deviations of the coefficients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What is known of one solver's attempts at one task. Counts may be fractions."""

    measures: Measures
    """The task's measures."""
    passed: float
    """Number of attempts that passed."""
    failed: float
    """Number of attempts that failed."""
    solver: str = ""
    """Who attempted it: agent, model and style, or a training run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRateModel:
    """A fitted model: coefficients that all solvers share, and an ability of each."""

    shared: Predictor = field(default_factory=Predictor)
    """The coefficients; its bias is the mean of the prior."""
    deviations: Mapping[str, float] = field(default_factory=lambda: dict(_DEVIATIONS))
    """Coefficient to its standard deviation, by the curvature at the optimum (Laplace's approximation)."""
    abilities: Mapping[str, float] = field(default_factory=dict)
    """Solver to its bias."""

    def predictor(self, solver: str = "") -> Predictor:
        """The coefficients for one solver; an unknown one has the prior's ability."""
        return replace(self.shared, bias=self.abilities.get(solver, self.shared.bias))

    def as_prior(self) -> PassRateModel:
        """The model as a prior for a new solver: its ability is as uncertain as without data."""
        return PassRateModel(shared=self.shared, deviations={**self.deviations, "bias": _DEVIATIONS["bias"]})


def fit(
    observations: Iterable[Observation], prior: PassRateModel | None = None, *, correlation: float = 0.0
) -> PassRateModel:
    """Fit the model (maximum a posteriori, Newton's method).

    ``correlation``: that of two attempts of a solver at the same task, beyond what the measures explain. ``n`` attempts
    then weigh as much as ``n / (1 + (n - 1) * correlation)`` independent ones (Kish's design effect).
    """
    prior = prior or PassRateModel()
    rows = [each for each in observations if each.passed + each.failed > 0]
    solvers = sorted({each.solver for each in rows})
    if not rows:
        return prior
    places = {solver: place for place, solver in enumerate(solvers)}
    inputs = np.zeros((len(rows), len(solvers) + len(COEFFICIENTS)))
    passed, total = np.zeros(len(rows)), np.zeros(len(rows))
    for number, row in enumerate(rows):
        count = row.passed + row.failed
        weight = 1.0 / (1.0 + max(0.0, count - 1.0) * correlation)
        found = inputs_of(row.measures)
        inputs[number, places[row.solver]] = 1.0
        inputs[number, len(solvers) :] = [found[name] for name in COEFFICIENTS]
        passed[number], total[number] = weight * row.passed, weight * count
    mean = np.array([prior.shared.bias] * len(solvers) + [getattr(prior.shared, name) for name in COEFFICIENTS])
    spread = np.array([prior.deviations["bias"]] * len(solvers) + [prior.deviations[name] for name in COEFFICIENTS])
    weights, curvature = _newton(inputs, passed, total, mean, np.diag(1.0 / np.square(spread)))
    deviations = np.sqrt(np.diag(np.linalg.inv(curvature)))[len(solvers) :]
    found_weights = [round(float(weight), 9) for weight in weights]
    shared = dict(zip(COEFFICIENTS, found_weights[len(solvers) :], strict=True))
    return PassRateModel(
        shared=replace(prior.shared, **shared),
        deviations={
            "bias": prior.deviations["bias"],
            **{name: round(float(value), 9) for name, value in zip(COEFFICIENTS, deviations, strict=True)},
        },
        abilities=dict(zip(solvers, found_weights[: len(solvers)], strict=True)),
    )


_Array = NDArray[np.float64]


def _newton(inputs: _Array, passed: _Array, total: _Array, mean: _Array, precision: _Array) -> tuple[_Array, _Array]:
    """The weights of largest posterior density, and the curvature there. ``inputs``: rows of shape (n, p)."""
    weights = mean.copy()
    curvature = precision
    for _ in range(_MAX_ITERATIONS):
        rates = 1.0 / (1.0 + np.exp(-np.clip(inputs @ weights, -_LIMIT, _LIMIT)))
        gradient = inputs.T @ (passed - total * rates) - precision @ (weights - mean)
        curvature = inputs.T @ (inputs * (total * rates * (1 - rates))[:, None]) + precision
        step = np.linalg.solve(curvature, gradient)
        weights += step * min(1.0, 2.0 / max(1e-9, float(np.abs(step).max())))
        if float(np.abs(step).max()) < 1e-9:
            break
    return weights, curvature
