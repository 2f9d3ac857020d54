"""The model of pass rates of a task set: fitted to the attempts that are stored with it, and stored beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from excise.datasets.difficulty.calibration import CORRELATION, Calibration, calibrate
from excise.datasets.difficulty.measures import Measures
from excise.datasets.difficulty.observations import measures_in, observed_attempts
from excise.datasets.difficulty.pass_rate_model import Observation, PassRateModel, fit
from excise.datasets.queries.predicted_rates import FOLDER, MODEL, PredictedRate, write_rates
from excise.errors import StoreError
from excise.system.files import replacement, store_errors
from excise.types import from_json, to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedDifficulty:
    """A model that was fitted to the attempts of a set."""

    model: PassRateModel
    """The model."""
    num_attempts: int
    """Number of attempts."""
    num_tasks: int
    """Number of tasks with attempts."""
    calibration: Calibration | None
    """How far its predictions can be trusted; ``None`` if too few tasks were attempted."""


def refit(store: Path) -> FittedDifficulty:
    """Fit the model to all stored attempts; store it and its predictions.

    Raises :class:`StoreError` if there are no attempts, or the set cannot be read or written.
    """
    measures = measures_in(store)
    observed = observed_attempts(store, measures)
    if not observed:
        raise StoreError(
            f"{store} has no attempts to learn from. Make some with `excise solve`, `excise eval` or `excise train`.",
            reason="no_attempts",
        )
    rows = [one for own in observed.values() for one in own]
    model = fit(rows, correlation=CORRELATION)
    with store_errors("store the model of difficulty"), replacement(store / FOLDER / MODEL) as file:
        file.write(to_json(model, indent=1))
    write_rates(store, _rates(model, measures, observed))
    return FittedDifficulty(
        model=model,
        num_attempts=round(sum(one.passed + one.failed for one in rows)),
        num_tasks=len(observed),
        calibration=calibrate(observed),
    )


def stored_model(store: Path) -> PassRateModel | None:
    """The stored model of a set; ``None`` if there is none. Raises :class:`StoreError` for a damaged file."""
    path = store / FOLDER / MODEL
    if not path.exists():
        return None
    try:
        return from_json(PassRateModel, path.read_bytes())
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} cannot be read: {error}. Make it again with `excise difficulty`.") from error


def _rates(
    model: PassRateModel, measures: Mapping[str, Measures], observed: Mapping[str, Sequence[Observation]]
) -> Iterator[PredictedRate]:
    """A row for each solver and each task of the set."""
    counts = {(name, one.solver): one for name, own in observed.items() for one in own}
    for solver in sorted(model.abilities):
        predictor = model.predictor(solver)
        for name, known in sorted(measures.items()):
            one = counts.get((name, solver))
            yield PredictedRate(
                instance_id=name,
                solver=solver,
                predicted=round(predictor.rate(known), 6),
                num_attempts=round(one.passed + one.failed) if one else 0,
                num_passed=round(one.passed) if one else 0,
            )
