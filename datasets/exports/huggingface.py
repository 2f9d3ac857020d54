"""Export as a folder for HuggingFace's ``datasets``, with a card; ``excise push`` uploads it.

Each table is a configuration. Columns that are maps become lists of key and value, since ``datasets`` has no maps.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from excise.datasets.exports.dataset_card import card_text
from excise.datasets.schema import TABLES, Table
from excise.protocols import ExportedSet, ExportReport
from excise.system.files import replace_file, sync

CONFIGURATIONS = ("tasks", "statements", "repos", "environments", "verdicts", "rejections")
"""Tables that are written, the default one first."""
ROWS_PER_FILE = 20_000
"""Rows of one Parquet file."""
ROWS_PER_GROUP = 1_000
"""Rows that are in memory at once."""

NOT_CARRIED = ("Quarantined tasks are not in the tables (the files in `set/` have them, as quarantined).",)


class HuggingFaceExporter:
    """Exports tables as Parquet with a card."""

    name = "huggingface"

    def export(self, tasks: ExportedSet, into: Path) -> ExportReport:
        """Write ``README.md``, and a folder for each table."""
        files: dict[str, int] = {}
        for name in CONFIGURATIONS:
            shutil.rmtree(into / name, ignore_errors=True)
            files[name] = write_table(TABLES[name], tasks.rows(name), into / name)
        whole = any(True for _ in tasks.files())
        present = [name for name in CONFIGURATIONS if files[name]]
        replace_file(into / "README.md", card_text(tasks, present, whole_set=whole).encode())
        run = ["python -c \"from datasets import load_dataset; print(load_dataset('.'))\""]
        run += ["excise pull OWNER/NAME --out SET  # after excise push OWNER/NAME --out SET"] if whole else []
        return ExportReport(num_tasks=files["tasks"], not_carried=NOT_CARRIED, run=tuple(run))


def write_table(table: Table, rows: Iterable[Mapping[str, Any]], folder: Path) -> int:
    """Write ``train-XXXXX-of-XXXXX.parquet`` files; return the number of rows. Writes nothing without rows."""
    import pyarrow as pa
    from pyarrow import parquet

    schema, total = plain_schema(table), 0
    parts: list[Path] = []
    batches = _batches(rows)
    batch = next(batches, None)
    while batch:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"part-{len(parts)}"
        parts.append(path)
        written = 0
        with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
            while batch and written < ROWS_PER_FILE:
                writer.write_table(pa.Table.from_pylist([_plain_row(table, row) for row in batch], schema=schema))
                written += len(batch)
                batch = next(batches, None)
        sync(path)
        total += written
    for number, path in enumerate(parts):
        path.rename(folder / f"train-{number:05d}-of-{len(parts):05d}.parquet")
    return total


def _batches(rows: Iterable[Mapping[str, Any]]) -> Iterator[Sequence[Mapping[str, Any]]]:
    remaining = iter(rows)
    while batch := list(islice(remaining, ROWS_PER_GROUP)):
        yield batch


def plain_schema(table: Table) -> Any:
    """The Arrow schema of a table, with lists of ``key`` and ``value`` instead of maps."""
    import pyarrow as pa

    scalars = {"string": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}

    def arrow_type(kind: str) -> Any:
        if kind.startswith("map"):
            value = scalars[kind.removesuffix(">").partition(", ")[2]]
            return pa.list_(pa.struct([("key", pa.string()), ("value", value)]))
        return pa.list_(pa.string()) if kind == "list<string>" else scalars[kind]

    return pa.schema([(column.name, arrow_type(column.kind)) for column in table.columns])


def _plain_row(table: Table, row: Mapping[str, Any]) -> dict[str, Any]:
    maps = {column.name for column in table.columns if column.kind.startswith("map")}
    return {
        name: [{"key": key, "value": item} for key, item in value.items()] if name in maps and value else value or value
        for name, value in row.items()
    } | {name: [] for name in maps if not row.get(name)}
