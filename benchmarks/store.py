"""What a large task set costs: ``python benchmarks/store.py --tasks 200000 --work DIR``.

Writes made-up projects of 100 tasks as a run would, publishes them in ten snapshots, changes one percent as a night
would, and asks. Prints seconds and the peak memory of the process. Patches are random words. With ``--copies N`` only
every Nth task is written in this way; the others are copies of their rows under other names, which are taken over as a
merge does it.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from excise.datasets.comparison.set_diff import compare
from excise.datasets.queries.catalogue import connect
from excise.datasets.rows import Row
from excise.datasets.storage import near_duplicates
from excise.datasets.storage.manifest import FileEntry
from excise.datasets.storage.set_index import INDEX, write_index
from excise.datasets.storage.set_reference import open_reference
from excise.datasets.storage.snapshot import Snapshot
from excise.datasets.storage.store import Store
from excise.datasets.storage.writer import Writer
from excise.datasets.taskset import TaskSet

PER_PROJECT = 100
QUERIES = {
    "count": "SELECT count(*) FROM tasks",
    "one task": "SELECT instance_id, kind, tier, loc FROM tasks WHERE instance_id = '{some_id}'",
    "difficulty": "SELECT kind, tier, count(*), avg(loc) FROM tasks GROUP BY ALL ORDER BY ALL",
    "per project": "SELECT repo, count(*) AS n, avg(num_f2p) FROM tasks GROUP BY repo ORDER BY n DESC, repo LIMIT 20",
    "hard page": "SELECT instance_id, loc FROM tasks WHERE tier > 1 ORDER BY loc DESC, instance_id LIMIT 50 OFFSET 900",
    "funnel": "SELECT sum(num_candidates), sum(num_valid), sum(num_tasks) FROM funnel",
    "licences": "SELECT license, count(*) FROM tasks JOIN repos USING (repo, tree) GROUP BY ALL ORDER BY ALL",
    "gates": "FROM gates",
}
_WORDS = [f"word_{n:04}" for n in range(4000)]


def project_tables(template: dict[str, list[Row]], name: str, version: int) -> dict[str, list[Row]]:
    """Rows of a made-up project: those of a real one, with ids, patches and numbers of its own."""
    draw = random.Random(f"{name} {version}")
    task, verdicts = template["tasks"][0], template["verdicts"]
    tasks, proofs = [], []
    for number in range(PER_PROJECT):
        instance_id = f"{name}__{draw.getrandbits(48):012x}"
        lines = (f"+    {' '.join(draw.choices(_WORDS, k=6))}" for _ in range(12))
        own = {"patch": task["patch"] + "\n".join(lines), "feature_id": f"{name}-{number}", "loc": draw.randint(1, 200)}
        own |= {"tier": draw.randint(0, 5), "num_f2p": draw.randint(1, 40)}
        tasks.append(task | own | {"instance_id": instance_id, "repo": name, "certificate_id": instance_id})
        proofs += [row | {"instance_id": instance_id, "repo": name} for row in verdicts]
    repos = [row | {"repo": name, "num_valid": PER_PROJECT} for row in template["repos"]]
    environments = [row | {"repo": name, "env_id": f"env-{name}"} for row in template["environments"]]
    return {"tasks": tasks, "verdicts": proofs, "repos": repos, "environments": environments}


def read_template(source: Path, num_verdicts: int) -> dict[str, list[Row]]:
    """Rows of one task of a real set, with some of its verdicts."""
    taskset = TaskSet.open(source)
    task = taskset.tasks()[0]
    snapshot = open_reference(str(source), source)
    tables = {name: snapshot.rows(name) for name in ("tasks", "verdicts", "repos", "environments")}
    tables["tasks"] = [row for row in tables["tasks"] if row["instance_id"] == task.instance_id]
    verdicts = [row for row in tables["verdicts"] if row["instance_id"] == task.instance_id]
    tables["verdicts"] = verdicts[:num_verdicts]
    return tables


class Timer:
    """Measured seconds by name."""

    def __init__(self) -> None:
        self.facts: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Measure the block and print."""
        began = time.perf_counter()
        yield
        self.facts[name] = round(time.perf_counter() - began, 3)
        print(f"{name:<40} {self.facts[name]:9.3f} s   peak {peak_mb():6.0f} MB", flush=True)


def peak_mb() -> float:
    """Peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def write(root: Path, template: dict[str, list[Row]], projects: int, timer: Timer) -> None:
    """Write the projects, publishing ten times."""
    with timer(f"write {projects * PER_PROJECT} tasks"), Store(root).writer() as writer:
        for number in range(projects):
            put(writer, template, number)
            if (number + 1) % max(1, projects // 10) == 0:
                writer.publish()
        writer.publish()


def put(writer: Writer, template: dict[str, list[Row]], number: int, version: int = 0) -> None:
    """Put one made-up project."""
    name = f"project-{number:06}"
    writer.put_rows(name, project_tables(template, name, version), None)


def add_copies(root: Path, copies: int, folder: Path, timer: Timer) -> None:
    """Add the projects of the set again and again, under other names."""
    with timer("join all small files"), Store(root).writer() as writer:
        writer.compact()
        writer.publish()
    donor = open_reference("", root)
    with timer(f"take over {copies - 1} copies"), Store(root).writer() as writer:
        for number in range(1, copies):
            copy = renamed(donor, f"-copy-{number:04}", folder / f"copy-{number}")
            for name in copy.index.entries:
                writer.put_entry(name, copy, name)
            shutil.rmtree(copy.root)
        writer.publish()


def renamed(donor: Snapshot, suffix: str, target: Path) -> Snapshot:
    """The rows of a snapshot, with a suffix at the names of projects and tasks."""
    files = {}
    for path, facts in donor.manifest.files.items():
        if not path.startswith(INDEX):
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            rows = pq.read_table(donor.root / path)
            for column in {"repo", "instance_id"} & set(rows.column_names):
                values = pc.binary_join_element_wise(rows.column(column), suffix, "")
                rows = rows.set_column(rows.column_names.index(column), rows.schema.field(column), values)
            name = path.replace(".parquet", f"{suffix}.parquet")
            pq.write_table(rows, target / name, compression="zstd", row_group_size=1024)
            files[name] = facts
    entries, tasks = {}, {}
    for name, entry in donor.index.entries.items():
        places = {t: replace(p, file=p.file.replace(".parquet", f"{suffix}.parquet")) for t, p in entry.tables.items()}
        entries[name + suffix] = replace(entry, tables=places)
        tasks[name + suffix] = {i + suffix: digest for i, digest in donor.index.tasks(name).items()}
    (target / INDEX).mkdir()
    index = f"{INDEX}/{write_index(target / INDEX, entries, tasks)}"
    files[index] = FileEntry(sha256="", rows=len(entries), bytes=0)
    return Snapshot(root=target, manifest=replace(donor.manifest, files=files))


def ask(root: Path, timer: Timer) -> None:
    """Ask the queries, each on a connection of its own, as ``excise query`` does."""
    some_id = next(iter(connect(root).execute("SELECT instance_id FROM tasks LIMIT 1 OFFSET 777").fetchall()))[0]
    for name, sql in QUERIES.items():
        with timer(f"query: {name}"), connect(root) as connection:
            connection.execute(sql.format(some_id=some_id)).fetchall()
    with timer("show one task"):
        TaskSet.open(root).task(some_id)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=200_000)
    parser.add_argument("--work", type=Path, help="Folder for the set; a temporary one by default.")
    parser.add_argument("--template", type=Path, default=Path(__file__).parents[1] / "tests" / "sets" / "shapes")
    parser.add_argument("--verdicts", type=int, default=16, help="Verdicts per task.")
    parser.add_argument("--copies", type=int, default=1, help="How often each written task is in the set.")
    parser.add_argument("--json", type=Path, help="File for the numbers.")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=options.work))
    timer, template = Timer(), read_template(options.template, options.verdicts)
    projects = options.tasks // PER_PROJECT
    try:
        root = folder / "set"
        write(root, template, projects // options.copies, timer)
        if options.copies > 1:
            add_copies(root, options.copies, folder, timer)
        ask(root, timer)
        with timer("a night that changes one percent"), Store(root).writer() as writer:
            for number in range(0, projects // options.copies, max(1, 100 // options.copies)):
                put(writer, template, number, version=1)
            writer.publish()
        with timer("diff of two snapshots"):
            compare(open_reference(str(open_reference("", root).manifest.parent), root), open_reference("", root))
        with timer("index near-duplicates of all tasks"):
            near_duplicates.update(root)
        with timer("and again, with nothing new"):
            near_duplicates.update(root)
        files = open_reference("", root).manifest.files
        facts = {"files": len(files), "gigabytes": round(sum(f.bytes for f in files.values()) / 1e9, 3)}
        facts["manifest_kb"] = round((root / "current" / "manifest.json").stat().st_size / 1000)
        print(facts, f"peak {peak_mb():.0f} MB")
        if options.json:
            options.json.write_text(json.dumps(timer.facts | facts | {"peak_mb": round(peak_mb())}, indent=1) + "\n")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
