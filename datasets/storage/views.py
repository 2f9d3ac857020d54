"""The views of a snapshot in DuckDB's SQL: one for each table, and summaries of them."""

from __future__ import annotations

from pathlib import Path

from excise.datasets.schema import TABLES, Table, empty_column, empty_view, sql_pattern, sql_string
from excise.datasets.storage.snapshot import EMPTY_FILE, write_table
from excise.system.files import sync, write_file

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

NEEDS = """\
CREATE OR REPLACE VIEW needs AS
SELECT repo, instance_id, split_part(entry.key, ' ', 1) AS kind, entry.key[strpos(entry.key, ' ') + 1:] AS word,
       entry.value AS given
FROM (SELECT repo, instance_id, unnest(map_entries(needs)) AS entry FROM tasks) ORDER BY ALL;
"""

LIFTING = """\
CREATE OR REPLACE VIEW lifting AS
SELECT repo, instance_id, len(fail_to_pass) AS num_tests,
       coalesce(evidence['tests_lifted']::INTEGER, 0) AS num_lifted, round(num_lifted / num_tests, 4) AS lifted_share,
       coalesce(evidence['tests_outside']::INTEGER, 0) AS num_outside,
       coalesce(evidence['tests_uncounted']::INTEGER, 0) AS num_uncounted,
       num_outside + num_uncounted = num_tests AS tamper_proof,
       coalesce(evidence['tests_not_lifted'], '') AS reasons
FROM tasks LEFT JOIN (SELECT instance_id, evidence FROM verdicts WHERE gate = 'g10_calls') USING (instance_id)
ORDER BY ALL;
"""


def views_sql(root: Path | None = None) -> str:
    """``CREATE VIEW`` statements with paths relative to the snapshot, or absolute paths under ``root``."""
    parts = ["-- In this folder: duckdb -init views.sql\n"]
    for table in TABLES.values():
        if root and not (root / table.name).is_dir():  # older sets lack the table
            parts.append(empty_view(table))
            continue
        pattern = sql_pattern(root, f"{table.name}/*.parquet")
        columns = ", ".join(["*", *(_missing_columns(root / table.name, table) if root else ())])
        parts.append(
            f"CREATE OR REPLACE VIEW {table.name} AS SELECT {columns} FROM read_parquet({pattern}, "
            "union_by_name = true);\n"
        )
        parts += [f"COMMENT ON COLUMN {table.name}.{c.name} IS {sql_string(c.comment)};\n" for c in table.columns]
    return "".join([*parts, FUNNEL, GATES, NEEDS, LIFTING])


def write_views(folder: Path) -> None:
    """Write what a snapshot has besides rows: ``views.sql``, and in each table's folder a file with its columns."""
    for table in TABLES:
        (folder / table).mkdir()
        write_table(folder / table / EMPTY_FILE, table, [], comments=True)
        sync(folder / table / EMPTY_FILE)
    write_file(folder / "views.sql", [views_sql().encode()])


def _missing_columns(folder: Path, table: Table) -> list[str]:
    """Empty columns in place of those that the table did not have when the snapshot was written."""
    from pyarrow import parquet

    try:
        known = set(parquet.read_schema(folder / EMPTY_FILE).names)
    except (OSError, ValueError):  # damaged: reading the table says so
        return []
    return [empty_column(column) for column in table.columns if column.name not in known]
