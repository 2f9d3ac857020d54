"""``excise difficulty``: fits the model of pass rates to the attempts that are stored with a set."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from excise.pipeline.cli.options import Config, Json, Out, exit_codes_for_errors, settings_of
from excise.types import to_dict

if TYPE_CHECKING:
    from excise.datasets.difficulty.calibration import Calibration
    from excise.datasets.difficulty.stored_model import FittedDifficulty

MAX_SOLVERS = 30
"""Solvers that are printed; ``--json`` has all."""


def difficulty(out: Out = None, as_json: Json = False, config: Config = None) -> None:
    """Fit a model of pass rates to the stored attempts, print how far it can be trusted, and store its predictions.

    Attempts are those of ``excise solve``, ``excise eval`` and ``excise train``. The table ``predicted_rates`` has the
    predictions, and training begins with the model.
    """
    from excise.datasets.difficulty.stored_model import refit

    with exit_codes_for_errors():
        settings = settings_of(config, None, out=out)
        found = refit(settings.out)
        print(json.dumps(to_dict(found), indent=2) if as_json else "\n".join(_lines(found)))


def _lines(found: FittedDifficulty) -> Iterator[str]:
    from excise.datasets.difficulty.pass_rate_model import COEFFICIENTS

    model = found.model
    yield f"{found.num_attempts} attempts at {found.num_tasks} tasks by {len(model.abilities)} solvers"
    yield "logit of the pass rate, for one step or doubling more of"
    for name in COEFFICIENTS:
        yield f"  {name:<11}{getattr(model.shared, name):+6.2f} ± {model.deviations[name]:.2f}"
    yield "logit of each solver's pass rate on the easiest typical task"
    ranked = sorted(model.abilities.items(), key=lambda item: -item[1])
    for solver, ability in ranked[:MAX_SOLVERS]:
        yield f"  {ability:+6.2f}  {solver}"
    if len(ranked) > MAX_SOLVERS:
        yield f"  and {len(ranked) - MAX_SOLVERS} more: see --json"
    if found.calibration is None:
        yield "Too few tasks were attempted to say how good predictions are: two at least are needed."
    else:
        yield from _quality(found.calibration)


def _quality(found: Calibration) -> Iterator[str]:
    left_out = "projects" if found.num_projects > 1 else "tasks"
    yield f"predictions for {left_out} that were left out of the fit ({found.num_attempts} attempts)"
    yield f"  Brier score {found.brier:.3f}, of the solvers' mean rates {found.brier_of_mean:.3f}"
    yield f"  skill       {found.skill:+.3f} (1 is perfect, 0 no better than mean rates)"
    yield f"  log loss    {found.log_loss:.3f}, of the mean rates {found.log_loss_of_mean:.3f}"
    yield f"  calibration error {found.error:.3f}"
    yield "  predicted  measured  attempts"
    for each in found.bins:
        yield f"  {each.predicted:9.2f}  {each.measured:8.2f}  {each.num_attempts:8d}"
