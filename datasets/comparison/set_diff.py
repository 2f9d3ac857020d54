"""The differences between two snapshots, of one set or of two: tasks and projects, and which columns differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from excise.datasets.schema import TABLES
from excise.datasets.storage.snapshot import Snapshot
from excise.datasets.storage.views import views_sql

if TYPE_CHECKING:
    import duckdb

COSTS = frozenset({"certificate", "certificate_id", "flake_rate", "cpu_s", "wall_s"})
"""Columns that also differ when the same task is proven again."""
_PROJECT_COLUMNS = ("status", "version", "tree", "license", "num_tests", "num_candidates", "num_valid")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A task or a project that is in both snapshots, and differs."""

    name: str
    """Instance id, or name of the project."""
    columns: tuple[str, ...]
    """Columns with different values."""

    @property
    def is_only_costs(self) -> bool:
        """Whether the same task was proven again."""
        return COSTS.issuperset(self.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDiff:
    """What is different in the second of two snapshots; all names are sorted."""

    added: tuple[str, ...]
    """Tasks that only the second has."""
    removed: tuple[str, ...]
    """Tasks that only the first has."""
    changed: tuple[Difference, ...]
    """Tasks of both whose rows differ."""
    unchanged: int
    """Number of tasks that are the same."""
    projects_added: tuple[str, ...]
    """Projects that only the second has."""
    projects_removed: tuple[str, ...]
    """Projects that only the first has."""
    projects_changed: tuple[Difference, ...]
    """Projects of both whose sources or counts differ."""


def compare(first: Snapshot, second: Snapshot) -> SetDiff:
    """Compare two snapshots. Tasks with equal hashes are not read. Raises :class:`StoreError` for damaged sets."""
    import duckdb

    with duckdb.connect() as connection:
        for name, snapshot in (("first", first), ("second", second)):
            hashes = snapshot.index.hashes()
            connection.register("hashes", hashes)
            connection.execute(f"CREATE TABLE {name}_hashes AS SELECT DISTINCT ON (instance_id) * FROM hashes")
            connection.unregister("hashes")
            connection.execute(f"CREATE SCHEMA {name}; USE {name}; {views_sql(snapshot.root)} USE memory.main;")
        changed = _changed_tasks(connection)
        [(both,)] = connection.execute(
            "SELECT count(*) FROM first_hashes JOIN second_hashes USING (instance_id)"
        ).fetchall()
        return SetDiff(
            added=_only_in(connection, "second_hashes", "first_hashes"),
            removed=_only_in(connection, "first_hashes", "second_hashes"),
            changed=changed,
            unchanged=both - len(changed),
            projects_added=_only_in(connection, "second.repos", "first.repos", "repo"),
            projects_removed=_only_in(connection, "first.repos", "second.repos", "repo"),
            projects_changed=_changed_projects(connection),
        )


def _only_in(connection: duckdb.DuckDBPyConnection, here: str, there: str, key: str = "instance_id") -> tuple[str, ...]:
    sql = f"SELECT DISTINCT {key} FROM {here} ANTI JOIN {there} USING ({key}) ORDER BY {key}"
    return tuple(name for (name,) in connection.execute(sql).fetchall())


def _changed_tasks(connection: duckdb.DuckDBPyConnection) -> tuple[Difference, ...]:
    connection.execute(
        "CREATE TABLE suspects AS SELECT instance_id FROM first_hashes JOIN second_hashes USING (instance_id) "
        "WHERE first_hashes.hash <> second_hashes.hash"
    )
    columns = [column.name for column in TABLES["tasks"].columns if column.name != "instance_id"]
    for name in ("first", "second"):
        connection.execute(
            f"CREATE TABLE {name}_tasks AS SELECT * FROM {name}.tasks SEMI JOIN suspects USING (instance_id)"
        )
    return _differences(connection, "instance_id", columns, "first_tasks", "second_tasks")


def _changed_projects(connection: duckdb.DuckDBPyConnection) -> tuple[Difference, ...]:
    values = ", ".join(f"list({column} ORDER BY source) AS {column}" for column in _PROJECT_COLUMNS)
    for name in ("first", "second"):  # a joined set may have several versions of a project
        connection.execute(f"CREATE TABLE {name}_repos AS SELECT repo, {values} FROM {name}.repos GROUP BY repo")
    return _differences(connection, "repo", list(_PROJECT_COLUMNS), "first_repos", "second_repos")


def _differences(
    connection: duckdb.DuckDBPyConnection, key: str, columns: list[str], first: str, second: str
) -> tuple[Difference, ...]:
    tests = ", ".join(f"""CASE WHEN a."{c}" IS DISTINCT FROM b."{c}" THEN '{c}' END""" for c in columns)
    sql = f"""
        SELECT {key}, list_filter([{tests}], lambda name: name IS NOT NULL) AS columns
        FROM {first} a JOIN {second} b USING ({key}) WHERE len(columns) > 0 ORDER BY {key}
    """
    return tuple(Difference(name=name, columns=tuple(found)) for name, found in connection.execute(sql).fetchall())
