"""The attempts that are stored with a task set, as observations of pass rates.

Three kinds: attempts of agents (``excise solve``), evaluations of local weights (``excise eval``), and rollouts of
training runs. A policy in training changes, so each quarter of a run's steps counts as a solver of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from excise.datasets.difficulty.measures import Measures
from excise.datasets.difficulty.pass_rate_model import Observation
from excise.datasets.difficulty.rungs import Rung, level_of
from excise.datasets.queries.catalogue import connect
from excise.datasets.queries.scores import Evaluation
from excise.errors import StoreError
from excise.system.files import replacement, store_errors
from excise.types import FeatureKind, Visibility, from_json, to_json

FOLDER = "evaluations"
"""Name of the folder in the folder of a task set."""
REFERENCE_AGENTS = ("gold", "noop", "stub")
"""Agents whose attempts tell nothing of difficulty."""

_MEASURES = """
SELECT instance_id, deleter, kind, visibility, loc, num_symbols, num_files, fan_in, complexity, num_f2p,
       nullif(length(problem_statement), 0), similar_share
FROM tasks ORDER BY instance_id
"""
_NAMES = (
    "loc", "num_symbols", "num_files", "fan_in", "complexity", "num_tests", "statement_chars", "similar_share",
)  # fmt: skip
"""Fields of :class:`Measures` in the order of the columns of :data:`_MEASURES` that follow the visibility."""
_ATTEMPTS = f"""
SELECT instance_id, concat_ws(' ', agent, nullif(model, ''), style) AS solver,
       count(*) FILTER (solved) AS passed, count(*) FILTER (NOT solved) AS failed
FROM attempts WHERE agent NOT IN {REFERENCE_AGENTS} GROUP BY ALL ORDER BY ALL
"""
_ROLLOUTS = """
WITH counted AS (
    SELECT run, instance_id, task_reward >= 1 AS passed,
           floor(4 * (step - min(step) OVER runs) / (1 + max(step) OVER runs - min(step) OVER runs))::INTEGER AS quarter
    FROM rollouts WHERE counts AND coalesce(decided, true)
    WINDOW runs AS (PARTITION BY run)
)
SELECT instance_id, 'train ' || run || ' quarter ' || (quarter + 1) AS solver,
       count(*) FILTER (passed) AS passed, count(*) FILTER (NOT passed) AS failed
FROM counted GROUP BY ALL ORDER BY ALL
"""


def measures_in(store: Path) -> dict[str, Measures]:
    """Task to measures, for all tasks of a set. Raises :class:`StoreError` if it cannot be read."""
    with connect(store) as connection:
        rows = connection.sql(_MEASURES).fetchall()
    found = {}
    for name, deleter, kind, visibility, *values in rows:
        rung = Rung(level_of(deleter, FeatureKind(kind)), Visibility(visibility))
        found[name] = Measures(rung=rung, **dict(zip(_NAMES, values, strict=True)))
    return found


def observed_attempts(store: Path, measures: Mapping[str, Measures]) -> dict[str, list[Observation]]:
    """Task to the attempts at it, one observation for each solver. Tasks without ``measures`` are left out.

    Raises :class:`StoreError` if the set cannot be read.
    """
    found: dict[str, list[Observation]] = {}
    with connect(store) as connection:
        rows = [*connection.sql(_ATTEMPTS).fetchall(), *connection.sql(_ROLLOUTS).fetchall()]
    for instance_id, solver, passed, failed in [*rows, *_evaluated(store)]:
        if instance_id in measures and passed + failed:
            one = Observation(measures=measures[instance_id], passed=passed, failed=failed, solver=solver)
            found.setdefault(instance_id, []).append(one)
    return found


def store_evaluation(store: Path, found: Evaluation) -> Path:
    """Store the scores of an evaluation beside the set, replacing those of the same name. Raises
    :class:`StoreError`."""
    name = re.sub(r"[^\w.-]+", "-", found.name).strip(".-") or "model"
    target = store / FOLDER / f"{name}.json"
    with store_errors("store an evaluation"), replacement(target) as file:
        file.write(to_json(found, indent=1))
    return target


def _evaluated(store: Path) -> Iterator[tuple[str, str, int, int]]:
    """Task, solver, and numbers of attempts that passed and failed, of each stored evaluation."""
    for path in sorted((store / FOLDER).glob("*.json")):
        try:
            evaluation = from_json(Evaluation, path.read_bytes())
        except (OSError, ValueError) as error:
            raise StoreError(f"{path} cannot be read: {error}. Remove it, or evaluate again.") from error
        for score in evaluation.tasks:
            yield (
                score.instance_id,
                f"eval {evaluation.name}",
                score.num_solved,
                score.num_attempts - score.num_solved,
            )
