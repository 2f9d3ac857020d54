"""Read-only DuckDB queries over a task set: views of its tables, summaries, and of what is beside its snapshots."""

from __future__ import annotations

import csv
import io
import json
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from excise.datasets.queries.attempts import attempts_views
from excise.datasets.queries.costs import costs_view
from excise.datasets.queries.imports import imports_view
from excise.datasets.queries.predicted_rates import predicted_rates_view
from excise.datasets.queries.rollouts import rollouts_view
from excise.datasets.storage.manifest import damaged_error, no_set_error
from excise.datasets.storage.near_duplicates import near_duplicates_view
from excise.datasets.storage.snapshot import Snapshot
from excise.datasets.storage.views import views_sql
from excise.datasets.visible_text import visible
from excise.errors import StoreError

if TYPE_CHECKING:
    import duckdb

_READ_ONLY = {"SELECT", "EXPLAIN", "MULTI"}


def connect(store: Path | str, as_of: str = "") -> duckdb.DuckDBPyConnection:
    """An in-memory DuckDB connection with the views of the task set in the folder ``store``, or of an earlier state.

    Raises :class:`StoreError` if there is no task set, or with the name of a damaged file.
    """
    return _open(store, as_of)[1]


def _open(store: Path | str, as_of: str = "") -> tuple[Snapshot, duckdb.DuckDBPyConnection]:
    import duckdb

    snapshot = Snapshot.at(Path(store), as_of)
    if snapshot is None:
        raise no_set_error(Path(store))
    snapshot.check_files(check_hashes=False)
    connection = duckdb.connect()
    try:
        folder = Path(store).absolute()
        beside = [rollouts_view, attempts_views, costs_view, near_duplicates_view, imports_view, predicted_rates_view]
        connection.execute("".join([views_sql(snapshot.root), *(view(folder) for view in beside)]))
    except duckdb.Error as error:
        connection.close()
        snapshot.check_files(check_hashes=True)
        detail = str(error).partition("\n")[0]
        raise damaged_error(snapshot.root, f"cannot be read ({detail})") from error
    return snapshot, connection


def query(store: Path | str, sql: str, format: str = "table", width: int | None = None, as_of: str = "") -> str:
    """The result of one read-only statement as ``table``, ``json``, ``csv`` or ``jsonl`` text.

    A table wider than ``width`` characters is printed record by record (``None`` for no limit). ``as_of``: see
    :meth:`Snapshot.at`. Raises
    :class:`StoreError` with DuckDB's message, for statements that write, and for a damaged set with the file's name.
    """
    import duckdb

    if format not in _FORMATS:
        raise StoreError(f"Unknown format {format!r}: choose from {', '.join(_FORMATS)}.", reason="bad_query")
    snapshot, opened = _open(store, as_of)
    with opened as connection:
        try:
            _check_read_only(connection.extract_statements(sql))
            result = connection.execute(sql)
            names = _unique_names([str(column[0]) for column in result.description or []])
            rows = result.fetchall()
        except duckdb.Error as error:
            query_errors = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException)
            if not isinstance(error, query_errors):
                snapshot.check_files(check_hashes=True)
            raise StoreError(str(error), reason="bad_query") from error
    if format == "table":
        return _as_table(list(map(visible, names)), rows, width)
    return _FORMATS[format](names, rows)


def _check_read_only(statements: Sequence[Any]) -> None:
    """Raise :class:`StoreError` for an empty query or a statement that writes."""
    if not statements:
        raise StoreError("The query is empty. Try: SELECT * FROM funnel", reason="bad_query")
    for statement in statements:
        # PIVOT is split into several statements on temporary objects in memory.
        words = re.sub(r"--[^\n]*|/\*.*?\*/", " ", statement.query, flags=re.DOTALL).split()
        if statement.type.name not in _READ_ONLY:
            raise StoreError(
                f"A query only reads; {(words or ['this'])[0].upper()} does not. To write the answer to a file use "
                "--format csv, json or jsonl, or run `duckdb -init views.sql` in the folder `current` and COPY there.",
                reason="bad_query",
            )


def _unique_names(names: list[str]) -> list[str]:
    """Column names with a number appended to repeated ones."""
    counts: dict[str, int] = {}
    result = []
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        result.append(name if counts[name] == 1 else f"{name}_{counts[name]}")
    return result


def _as_table(names: list[str], rows: list[tuple[Any, ...]], width: int | None = None) -> str:
    cells = [[" ".join(visible(_cell_text(value)).split("\n")) for value in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(names, *cells, strict=True)]
    count = f"({len(rows)} row{'' if len(rows) == 1 else 's'})"
    if width is not None and rows and sum(widths) + 2 * len(widths) > width:
        return "".join([*_as_records(names, rows), count, "\n"])
    numeric = [any(isinstance(row[i], (int, float, Decimal)) for row in rows) for i in range(len(names))]

    def line(values: Sequence[str]) -> str:
        padded = [
            " " * (w - cell_len(v)) + v if right else v + " " * (w - cell_len(v))
            for v, w, right in zip(values, widths, numeric, strict=True)
        ]
        return "  ".join(padded).rstrip()

    return "\n".join([line(names), "  ".join("─" * w for w in widths), *map(line, cells), count, ""])


def _as_records(names: list[str], rows: list[tuple[Any, ...]]) -> Iterator[str]:
    """Records with one value per line, for rows that are wider than the terminal."""
    indent = max(map(len, names)) + 2
    for row in rows:
        for name, value in zip(names, row, strict=True):
            text = textwrap.indent(visible(_cell_text(value)), " " * indent).strip()
            yield f"{name:<{indent}}{text}\n"
        yield "\n"


def _as_json(names: list[str], rows: list[tuple[Any, ...]]) -> str:
    records = [dict(zip(names, map(_json_value, row), strict=True)) for row in rows]
    return json.dumps(records, ensure_ascii=False, indent=1) + "\n"


def _as_jsonl(names: list[str], rows: list[tuple[Any, ...]]) -> str:
    records = (dict(zip(names, map(_json_value, row), strict=True)) for row in rows)
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def _as_csv(names: list[str], rows: list[tuple[Any, ...]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_cell_text(value) for value in row] for row in rows)
    return out.getvalue()


_FORMATS: dict[str, Callable[[list[str], list[tuple[Any, ...]]], str]] = {
    "table": _as_table,
    "json": _as_json,
    "csv": _as_csv,
    "jsonl": _as_jsonl,
}


def _cell_text(value: object) -> str:
    plain = _json_value(value)
    if plain is None:
        return ""
    return json.dumps(plain, ensure_ascii=False) if isinstance(plain, (dict, list, bool)) else str(plain)


def _json_value(value: Any) -> Any:
    """A value as JSON: NaN becomes null; dates and bytes become strings."""
    if isinstance(value, dict):
        return {str(key): _json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_value(item) for item in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float):
        return value if value - value == 0 else None
    return value if isinstance(value, (str, int, bool, type(None))) else str(value)
