"""What became of the rows of imported sets (``excise import``), stored beside the snapshots of a task set.

::

    DIR/imports/<name>/<place>.parquet   one row of the imported set; written after its task was published
    DIR/imports/<name>/REPORT.md         the same as a table, with counts

They are not part of a snapshot. A row that is imported again replaces its file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from excise.datasets.schema import Table, arrow_schema, columns_of, empty_view, sql_pattern
from excise.system.files import replacement, store_errors

FOLDER = "imports"
"""Name of the folder in the folder of a task set."""
REPORT = "REPORT.md"
"""File with the readable table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRow:
    """One row of another tool's set and what became of it."""

    imported_set: str
    """Name of the set: of its file or folder, unless `--name` gave another."""
    format: str
    """Format that it was read in."""
    place: str
    """File with line or number, or folder."""
    instance_id: str
    """Id of the task; that of the task in this set if it was imported."""
    repo: str
    """Name of the project."""
    base_commit: str
    """Commit of its sources."""
    status: str
    """`imported`: a task of this set; `refused`: it was run and a check failed; `not_run`; `bad_row`: no task."""
    reason: str
    """Machine-readable code; empty for an imported task."""
    detail: str
    """Explanation for users."""
    advice: str
    """What to do about it; empty if there is nothing to do."""
    checks: dict[str, str] = field(default_factory=dict)
    """Check to `passed`, `failed: …`, `not decided: …` or `not run: …`. Checks: `texts` (statement, hints and files of
    the environment do not give the solution away), `sources`, `history` (no commit of the project holds it),
    `environment`, `baseline`, `tests` (what the set says about them), the gates, `attacks`."""
    num_f2p: int | None = None
    """Number of listed FAIL_TO_PASS tests; null if the format lists none."""
    num_f2p_confirmed: int = 0
    """Number of tests that fail without the gold patch and pass with it, here."""
    num_p2p: int | None = None
    """Number of listed PASS_TO_PASS tests; null if the format lists none."""
    num_p2p_confirmed: int = 0
    """Number of tests that pass with and without it, here."""
    unconfirmed: dict[str, int] = field(default_factory=dict)
    """Why listed tests were not confirmed, to their number: `not_collected`, `fails_with_gold`, `fails_without_gold`,
    `passes_without_gold`, `in_solution_files` (a solution may change it)."""
    unconfirmed_examples: tuple[str, ...] = ()
    """Some of these tests."""
    history: str
    """How the project's history gives the solution away to an agent that has the whole of it; excise's agents have not.
    """
    num_attacks: int = 0
    """Number of attacks on its grading that were tried."""
    attacks_on_log: tuple[str, ...] = ()
    """Attacks that a grader rewards which reads pytest's log, as most sets' graders do."""
    attacks_on_excise: tuple[str, ...] = ()
    """Attacks that excise's grader rewards."""
    image_name: str = ""
    """Docker image that the set names; it was not used."""
    wall_s: float = 0.0
    """Wall seconds."""
    row: str
    """The row as JSON, or its beginning if it is no task."""
    row_sha256: str
    """sha256 of the row: a row that is unchanged is not checked again."""
    excise_version: str
    """Version of excise."""


IMPORTS = Table(
    name="imports",
    comment="One row of another tool's set and what became of it (`excise import`). Not part of a snapshot.",
    columns=tuple(columns_of(ImportRow)),
    sort_by=("imported_set", "place"),
)


def row_path(store: Path, imported_set: str, place: str) -> Path:
    """File of a row."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", place)[-80:].lstrip(".-")
    return store / FOLDER / imported_set / f"{plain}-{hashlib.sha256(place.encode()).hexdigest()[:8]}.parquet"


def write_import(store: Path, row: ImportRow) -> None:
    """Write a row durably. Raises :class:`StoreError`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    values = asdict(row)
    values |= {name: list(value.items()) for name, value in values.items() if isinstance(value, dict)}
    table = pa.Table.from_pylist([values], schema=arrow_schema(IMPORTS, comments=True))
    with store_errors("store a row of the report"), replacement(row_path(store, row.imported_set, row.place)) as file:
        pq.write_table(table, file, compression="zstd", compression_level=3)


def finished_imports(store: Path, imported_set: str) -> dict[str, str]:
    """Place to sha256 of the rows that need not be checked again: they were imported or refused."""
    import pyarrow.parquet as pq

    found = {}
    for path in sorted((store / FOLDER / imported_set).glob("*.parquet")):
        (row,) = pq.read_table(path, columns=["place", "row_sha256", "status"]).to_pylist()
        if row["status"] in {"imported", "refused"}:
            found[str(row["place"])] = str(row["row_sha256"])
    return found


def imports_view(store: Path) -> str:
    """``CREATE VIEW imports`` over all imported sets; a view without rows if there are none."""
    if not any((store / FOLDER).glob("*/*.parquet")):
        return empty_view(IMPORTS)
    pattern = sql_pattern(store, f"{FOLDER}/*/*.parquet")
    return f"CREATE OR REPLACE VIEW imports AS SELECT * FROM read_parquet({pattern}, union_by_name = true);\n"


def report_markdown(store: Path, imported_set: str) -> str:
    """The rows of an imported set as Markdown: counts, then a table."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute(imports_view(store.absolute()))
        rows = connection.execute(
            "SELECT place, instance_id, status, reason, detail, num_f2p, num_f2p_confirmed, num_p2p, num_p2p_confirmed,"
            " checks, num_attacks, len(attacks_on_log), len(attacks_on_excise), advice FROM imports"
            " WHERE imported_set = ? ORDER BY ALL",
            [imported_set],
        ).fetchall()
    counts = counts_of([str(row[2]) for row in rows])
    lines = [f"# Import of {imported_set}", "", f"{len(rows)} rows: {counts}.", ""]
    lines += ["| task | status | FAIL_TO_PASS | PASS_TO_PASS | leaks and gates that failed | attacks: log, excise |"]
    lines += ["|---|---|--:|--:|---|--:|"]
    for row in rows:
        failed = [name for name, text in dict(row[9]).items() if not str(text).startswith("passed")]
        status = f"{row[2]} ({row[3]})" if row[3] else str(row[2])
        attacks = f"{row[11]}, {row[12]} of {row[10]}" if row[10] else "none"
        cells = [row[1] or row[0], status, f"{row[6]} of {_known(row[5])}", f"{row[8]} of {_known(row[7])}"]
        lines.append(f"| {' | '.join(map(_cell, [*cells, ', '.join(failed), attacks]))} |")
    why = [row for row in rows if row[4]]
    if why:
        lines += ["", "## Why", ""]
        lines += [f"- **{_cell(row[1] or row[0])}** ({_cell(row[0])}): {_cell(f'{row[4]} {row[13]}')}" for row in why]
    return "\n".join(lines) + "\n"


def _known(number: object) -> str:
    return "unlisted" if number is None else str(number)


def counts_of(statuses: Sequence[str]) -> str:
    """Counts of statuses as text."""
    order = ("imported", "refused", "not_run", "bad_row")
    return ", ".join(f"{statuses.count(name)} {name.replace('_', ' ')}" for name in order if name in statuses) or "none"


def _cell(value: object) -> str:
    """A text on one line of a Markdown table."""
    return " ".join(str(value).split()).replace("|", "\\|").replace("<", "&lt;")[:400]
