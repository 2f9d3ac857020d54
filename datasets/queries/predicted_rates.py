"""Predicted pass rates of the tasks of a set, stored beside its snapshots by ``excise difficulty``.

::

    DIR/difficulty/model.json       the fitted model, a prior for training
    DIR/difficulty/rates.parquet    the table ``predicted_rates``
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from excise.datasets.schema import Table, arrow_schema, columns_of, empty_view, sql_pattern
from excise.system.files import replacement, store_errors

FOLDER = "difficulty"
"""Name of the folder in the folder of a task set."""
MODEL = "model.json"
"""Name of the file with the model."""
_RATES = "rates.parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedRate:
    """One row of the table: the pass rate of one solver on one task."""

    instance_id: str
    """Id of the task."""
    solver: str
    """Agent, model and style of attempts (`excise solve`), `eval NAME`, or a quarter of a training run."""
    predicted: float
    """Pass rate that the model predicts from the task's measures alone."""
    num_attempts: int
    """Number of measured attempts."""
    num_passed: int
    """Number of them that passed."""


PREDICTED_RATES = Table(
    name="predicted_rates",
    comment="Predicted pass rate of a solver on a task (`excise difficulty`), in `difficulty/`; not in snapshots.",
    columns=tuple(columns_of(PredictedRate)),
    sort_by=("solver", "instance_id"),
)


def write_rates(store: Path, rows: Iterable[PredictedRate]) -> None:
    """Replace the table. Raises :class:`StoreError`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist([asdict(row) for row in rows], schema=arrow_schema(PREDICTED_RATES, comments=True))
    with store_errors("store predicted rates"), replacement(store / FOLDER / _RATES) as file:
        pq.write_table(table, file, compression="zstd", compression_level=3)


def predicted_rates_view(store: Path) -> str:
    """``CREATE VIEW predicted_rates`` of a task set; a view without rows if nothing was predicted."""
    if not (store / FOLDER / _RATES).exists():
        return empty_view(PREDICTED_RATES)
    pattern = sql_pattern(store, f"{FOLDER}/{_RATES}")
    return f"CREATE OR REPLACE VIEW predicted_rates AS SELECT * FROM read_parquet({pattern});\n"
