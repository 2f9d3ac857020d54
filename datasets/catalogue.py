"""DuckDB over a task set: the six tables, two summaries and the rollouts beside them as views; queries only read."""

from __future__ import annotations

import csv
import glob
import io
import json
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from excise.datasets.rollouts import rollouts_view
from excise.datasets.schema import TABLES, empty_view
from excise.datasets.snapshot import Snapshot
from excise.errors import StoreError
from excise.system.files import file_sha256, store_errors

if TYPE_CHECKING:
    import duckdb

FUNNEL = """\
CREATE OR REPLACE VIEW funnel AS
SELECT repo, status, num_tests, num_passing, num_flaky, num_symbols, num_covered,
       num_features, num_candidates, num_valid,
       (SELECT count(*) FROM tasks WHERE tasks.repo = repos.repo AND tasks.tree = repos.tree) AS num_tasks,
       round(num_valid / nullif(num_candidates, 0), 3) AS valid_share, cpu_s, wall_s
FROM repos ORDER BY repo;
"""

GATES = """\
CREATE OR REPLACE VIEW gates AS
SELECT gate, count(*) AS num_runs, count(DISTINCT instance_id) AS num_subjects,
       count(*) FILTER (outcome = 'PASSED') AS num_passed,
       count(*) FILTER (outcome = 'FAILED') AS num_failed,
       count(*) FILTER (outcome = 'UNDECIDED') AS num_undecided,
       mode(nullif(reason, '')) AS main_reason,
       round(sum(cpu_s), 3) AS cpu_s, round(sum(wall_s), 3) AS wall_s, round(avg(wall_s), 3) AS mean_wall_s
FROM verdicts GROUP BY gate ORDER BY gate;
"""

_READ_ONLY = {"SELECT", "EXPLAIN", "MULTI"}
_REMEDY = (
    "Restore it from a copy, or make the set again in a new folder with the same command; "
    "what was finished comes from the cache."
)


def views_sql(root: Path | None = None) -> str:
    """``CREATE VIEW`` statements; paths relative to the snapshot, or absolute under ``root``."""
    prefix = f"{glob.escape(str(root))}/" if root else ""
    parts = ["-- In this folder: duckdb -init views.sql\n"]
    for table in TABLES.values():
        if root and not (root / table.name).is_dir():  # the set was made before there was such a table
            parts.append(empty_view(table))
            continue
        pattern = _quoted(f"{prefix}{table.name}/*.parquet")
        parts.append(
            f"CREATE OR REPLACE VIEW {table.name} AS SELECT * FROM read_parquet({pattern}, union_by_name = true);\n"
        )
        parts += [f"COMMENT ON COLUMN {table.name}.{c.name} IS {_quoted(c.comment)};\n" for c in table.columns]
    return "".join([*parts, FUNNEL, GATES])


def connect(store: Path | str) -> duckdb.DuckDBPyConnection:
    """An in-memory DuckDB with the views of the task set in the folder ``store``.

    Raises :class:`StoreError` if there is none, and for a damaged one with the name of the file.
    """
    return _open(store)[1]


def _open(store: Path | str) -> tuple[Snapshot, duckdb.DuckDBPyConnection]:
    import duckdb

    snapshot = Snapshot.current(Path(store))
    if snapshot is None:
        raise StoreError(f"{store} holds no task set yet. Make one with `excise generate`.", reason="no_task_set")
    _refuse_damaged(snapshot, thorough=False)
    connection = duckdb.connect()
    try:
        connection.execute(views_sql(snapshot.root) + rollouts_view(Path(store).absolute()))
    except duckdb.Error as error:
        connection.close()
        _refuse_damaged(snapshot, thorough=True)
        said = str(error).partition("\n")[0]
        raise StoreError(f"{snapshot.root} cannot be read ({said}). {_REMEDY}", reason="damaged") from error
    return snapshot, connection


def _refuse_damaged(snapshot: Snapshot, *, thorough: bool) -> None:
    """Every file must be there and have its size, since DuckDB would answer without a missing one.

    ``thorough``: its bytes, too. Raises :class:`StoreError` that names the file.
    """
    for name, facts in snapshot.manifest.files.items():
        path = snapshot.root / name
        with store_errors("read the task set"):
            if not path.exists():
                raise StoreError(f"{path} is missing. {_REMEDY}", reason="damaged")
            if path.stat().st_size != facts.bytes or (thorough and file_sha256(path) != facts.sha256):
                raise StoreError(f"{path} is damaged: it is not what was published. {_REMEDY}", reason="damaged")


def query(store: Path | str, sql: str, format: str = "table", width: int | None = None) -> str:
    """The answer to one statement that reads, as ``table``, ``json``, ``csv`` or ``jsonl``.

    A table wider than ``width`` is shown record by record (``None``: never). Raises :class:`StoreError` with
    DuckDB's own message, for statements that would write, and for a damaged set with the name of the file.
    """
    import duckdb

    if format not in _FORMATS:
        raise StoreError(f"Unknown format {format!r}: choose from {', '.join(_FORMATS)}.", reason="bad_query")
    snapshot, opened = _open(store)
    with opened as connection:
        try:
            _only_reads(connection.extract_statements(sql))
            result = connection.execute(sql)
            names = _distinct([str(column[0]) for column in result.description or []])
            rows = result.fetchall()
        except duckdb.Error as error:
            of_the_text = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException)
            if not isinstance(error, of_the_text):
                _refuse_damaged(snapshot, thorough=True)
            raise StoreError(str(error), reason="bad_query") from error
    if format == "table":
        return _table(names, rows, width)
    return _FORMATS[format](names, rows)


def _only_reads(statements: Sequence[Any]) -> None:
    if not statements:
        raise StoreError("The query is empty. Try: SELECT * FROM funnel", reason="bad_query")
    for statement in statements:
        # PIVOT is split into several statements of its own, all on temporary objects in memory.
        words = re.sub(r"--[^\n]*|/\*.*?\*/", " ", statement.query, flags=re.DOTALL).split()
        if statement.type.name not in _READ_ONLY:
            raise StoreError(
                f"A query only reads; {(words or ['this'])[0].upper()} does not. To write the answer to a file use "
                "--format csv, json or jsonl, or run `duckdb -init views.sql` in the folder `current` and COPY there.",
                reason="bad_query",
            )


def _distinct(names: list[str]) -> list[str]:
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return result


def _table(names: list[str], rows: list[tuple[Any, ...]], width: int | None = None) -> str:
    cells = [[" ".join(_cell(value).split("\n")) for value in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(names, *cells, strict=True)]
    count = f"({len(rows)} row{'' if len(rows) == 1 else 's'})"
    if width is not None and rows and sum(widths) + 2 * len(widths) > width:
        return "".join([*_records(names, rows), count, "\n"])
    numeric = [any(isinstance(row[i], (int, float, Decimal)) for row in rows) for i in range(len(names))]

    def line(values: Sequence[str]) -> str:
        padded = [
            " " * (w - cell_len(v)) + v if right else v + " " * (w - cell_len(v))
            for v, w, right in zip(values, widths, numeric, strict=True)
        ]
        return "  ".join(padded).rstrip()

    return "\n".join([line(names), "  ".join("─" * w for w in widths), *map(line, cells), count, ""])


def _records(names: list[str], rows: list[tuple[Any, ...]]) -> Iterator[str]:
    """One value a line, for rows that are wider than the screen."""
    indent = max(map(len, names)) + 2
    for row in rows:
        for name, value in zip(names, row, strict=True):
            text = textwrap.indent(_cell(value), " " * indent).strip()
            yield f"{name:<{indent}}{text}\n"
        yield "\n"


def _json(names: list[str], rows: list[tuple[Any, ...]]) -> str:
    records = [dict(zip(names, map(_plain, row), strict=True)) for row in rows]
    return json.dumps(records, ensure_ascii=False, indent=1) + "\n"


def _jsonl(names: list[str], rows: list[tuple[Any, ...]]) -> str:
    records = (dict(zip(names, map(_plain, row), strict=True)) for row in rows)
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def _csv(names: list[str], rows: list[tuple[Any, ...]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue()


_FORMATS: dict[str, Callable[[list[str], list[tuple[Any, ...]]], str]] = {
    "table": _table,
    "json": _json,
    "csv": _csv,
    "jsonl": _jsonl,
}


def _cell(value: object) -> str:
    plain = _plain(value)
    if plain is None:
        return ""
    return json.dumps(plain, ensure_ascii=False) if isinstance(plain, (dict, list, bool)) else str(plain)


def _plain(value: Any) -> Any:
    """A value that JSON has: no NaN, no dates, no bytes."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float):
        return value if value - value == 0 else None
    return value if isinstance(value, (str, int, bool, type(None))) else str(value)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
