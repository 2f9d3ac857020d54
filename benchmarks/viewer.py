"""How fast the viewer's pages are on many synthetic tasks: `python benchmarks/viewer.py --tasks 100000`.

Writes a set of Parquet files as a snapshot has them (projects of 500 tasks), opens it, and asks each page several
times with different questions. Prints the seconds to open it, the resident memory, and milliseconds per page, as JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import tempfile
import time
from pathlib import Path

import duckdb
from starlette.testclient import TestClient

from excise.datasets.queries.rollouts import ROLLOUTS
from excise.datasets.schema import TABLES, Table, empty_column
from excise.datasets.storage.snapshot import EMPTY_FILE, write_table
from excise.datasets.viewer.app import build_app
from excise.datasets.viewer.loaded_set import LoadedSet
from excise.datasets.viewer.pages import Site

PER_PROJECT = 500
REPEATS = 5


def main() -> None:
    """Make the set, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--into", type=Path, help="Folder to keep the set in.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = options.into or Path(scratch) / "set"
        if not (root / "current").exists():
            make_set(root, options.tasks)
        begun = time.perf_counter()
        index = LoadedSet(root)
        opened = time.perf_counter() - begun
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        result = {"tasks": options.tasks, "open_s": round(opened, 2), "memory_gib": round(memory, 2), "ms": ask(index)}
        print(json.dumps(result, indent=1))


def ask(index: LoadedSet) -> dict[str, list[float]]:
    """Milliseconds of the first answer and of the slowest of the others, by page."""
    client = TestClient(build_app(Site(index=index)), base_url="http://localhost")
    rng = random.Random(1)
    ids = [str(row["instance_id"]) for row in index.rows("SELECT instance_id FROM task_rows USING SAMPLE 50")]
    tries = index.rows("SELECT run, try_id FROM tries USING SAMPLE 50")
    rejected = index.rows("SELECT parse_filename(file) AS file, row FROM rejection_rows USING SAMPLE 50")
    pages = {
        "overview": lambda: "/",
        "tasks": lambda: f"/tasks?page={rng.randint(1, 1000)}",
        "tasks by lines": lambda: f"/tasks?sort=loc&page={rng.randint(1, 100)}",
        "tasks searched": lambda: f"/tasks?q=name{rng.randint(1, 9999)}",
        "tasks filtered": lambda: f"/tasks?repo=project-{rng.randint(0, 99)}&tier={rng.randint(0, 5)}&sort=cost",
        "statements of a project searched": lambda: (
            f"/tasks?repo=project-{rng.randint(0, 99)}&q=word{rng.randint(1, 99)}&text=1"
        ),
        "task": lambda: f"/task/{rng.choice(ids)}",
        "projects": lambda: "/projects?sort=cost",
        "rejections": lambda: f"/rejections?reason=reason_{rng.randint(0, 9)}",
        "rejection": lambda: "/rejection/{file}/{row}".format(**rng.choice(rejected)),
        "attempts": lambda: f"/tries?page={rng.randint(1, 100)}",
        "attempts flagged": lambda: "/tries?flag=any",
        "attempt": lambda: "/try/rollout/{run}/{try_id}".format(**rng.choice(tries)),
        "training run": lambda: "/run/run-1",
    }
    found = {}
    for name, address in pages.items():
        times = []
        for _ in range(REPEATS):
            begun = time.perf_counter()
            answer = client.get(address())
            times.append(1000 * (time.perf_counter() - begun))
            assert answer.status_code == 200, (name, answer.status_code)
        found[name] = [round(times[0], 1), round(max(times[1:]), 1)]
    return found


def make_set(root: Path, num_tasks: int) -> None:
    """A snapshot with ``num_tasks`` tasks, three verdicts of each in files, rejections, and rollouts beside it."""
    folder = root / "snapshots" / "1"
    connection = duckdb.connect()
    connection.execute("SET preserve_insertion_order = false")
    for name in TABLES:
        (folder / name).mkdir(parents=True)
        write_table(folder / name / EMPTY_FILE, name, [], comments=True)
    projects = max(1, num_tasks // PER_PROJECT)
    diff = "diff --git a/a.py b/a.py\\n--- a/a.py\\n+++ b/a.py\\n@@ -1,40 +1,1 @@\\n def a():\\n"
    patch = f"e'{diff}' || repeat(e'-    value = compute(' || i || e', other)\\n', 40)"
    values = {
        "instance_id": "repo || '__' || md5(i::VARCHAR)[:12]", "repo": "'project-' || p", "tree": "'tree'",
        "problem_statement": "'# Bring back' || repeat(' word' || i % 1000, 300)", "patch": patch,
        "deletion_patch": patch, "test_patch": patch, "version": "'1.0'", "kind": "['function', 'class'][1 + i % 2]",
        "tier": "i % 6", "loc": "hash(i) % 300", "num_files": "1", "num_symbols": "2", "complexity": "i % 40",
        "num_f2p": "i % 70", "num_p2p": "400", "deleter": "'remove'", "visibility": "'docstring'",
        "feature_id": "md5((i // 2)::VARCHAR)", "removed": "['src/a.py::name' || i]", "cpu_s": "(hash(i) % 900) / 100",
        "FAIL_TO_PASS": "['tests/test_a.py::test_' || i]",
        "PASS_TO_PASS": "list_transform(range(400), lambda x: 'tests/t.py::' || x)",
        "certificate": "'{\"verdicts\": []}'", "certificate_id": "md5(i::VARCHAR)",
    }  # fmt: skip
    for number in range(projects):
        rows = f"(SELECT {number} AS p, {number} * {PER_PROJECT} + r AS i FROM range({PER_PROJECT}) t(r))"
        rows = f"(SELECT *, 'project-' || p AS repo FROM {rows})"
        _copy(connection, TABLES["tasks"], values, rows, folder / "tasks" / f"p{number}.parquet")
        verdict = {"repo": "repo", "instance_id": "md5(i::VARCHAR)", "gate": "'g' || (i % 12)", "run": "0",
                   "outcome": "if(i % 9 = 0, 'FAILED', 'PASSED')", "cpu_s": "0.5", "wall_s": "0.5"}  # fmt: skip
        _copy(connection, TABLES["verdicts"], verdict, rows, folder / "verdicts" / f"p{number}.parquet")
        rejection = {"repo": "repo", "stage": "'gate'", "subject": "md5(i::VARCHAR)", "reason": "'reason_' || i % 10",
                     "detail": "repeat('why ', 30)", "worker_outcome": "'ok'"}  # fmt: skip
        _copy(connection, TABLES["rejections"], rejection, rows, folder / "rejections" / f"p{number}.parquet")
        report = {"repo": "repo", "source": "'pypi:' || repo", "status": "'ok'", "num_tests": "500",
                  "num_symbols": "900", "num_covered": "700", "num_features": "600",
                  "num_candidates": "600", "num_valid": "500",
                  "cpu_s": "hash(p) % 9000", "not_proposed": "MAP {'private': 30}"}  # fmt: skip
        one = f"(SELECT {number} AS p, 'project-' || {number} AS repo)"
        _copy(connection, TABLES["repos"], report, one, folder / "repos" / f"p{number}.parquet")
    for step in range(min(500, num_tasks // 200)):
        rollout = {"run": "'run-1'", "step": str(step), "group_id": "'g' || r // 8", "rollout_id": f"'r{step}-' || r",
                   "instance_id": "'project-0__' || md5(r::VARCHAR)[:12]", "reward": "r % 2", "task_reward": "r % 2",
                   "counts": "true", "tier": "1", "num_turns": "9", "thinking_tokens": "100", "call_tokens": "100",
                   "final_tokens": "100", "flags": "if(r % 50 = 0, ['leak_found'], [])", "hints": "[]",
                   "ending": "'finished'",
                   "text": "repeat(e'### assistant\\nword word word\\n', 200)", "segments": "'[]'"}  # fmt: skip
        place = root / "rollouts" / "run-1" / f"step-{step:08d}.parquet"
        _copy(connection, ROLLOUTS, rollout, "(SELECT r FROM range(200) t(r))", place)
    repos = {f"project-{n}": {"files": dict.fromkeys(TABLES, f"p{n}.parquet"), "tasks": {}} for n in range(projects)}
    manifest = {"schema_version": 6, "number": 1, "parent": None, "created_at": "", "report": {}, "repos": repos}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (root / "current").symlink_to("snapshots/1")


def _copy(connection: duckdb.DuckDBPyConnection, table: Table, values: dict[str, str], rows: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = []
    for column in table.columns:
        empty = empty_column(column)
        kind = empty.partition("::")[2].partition(" AS ")[0]
        columns.append(f'({values[column.name]})::{kind} AS "{column.name}"' if column.name in values else empty)
    sql = f"COPY (SELECT {', '.join(columns)} FROM {rows}) TO '{path}' (FORMAT parquet, COMPRESSION zstd)"
    connection.execute(sql)


if __name__ == "__main__":
    main()
