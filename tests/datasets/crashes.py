"""Kills writers of a task set at random moments and says what readers see: ``python -m tests.datasets.crashes``.

Each trial changes a set by one operation in a process of its own, ends this process with SIGKILL at a random moment,
and reads the set all the while. A reader must see all of the state before or all of the state after; what a finished
operation published must be there; and the same operation, run again, must finish.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from excise.datasets.comparison.merge import merge
from excise.datasets.rows import canonical_json, table_rows
from excise.datasets.storage import compaction, near_duplicates, writer
from excise.datasets.storage.garbage import Retention, collect
from excise.datasets.storage.snapshot import Snapshot
from excise.datasets.storage.store import Store
from excise.datasets.storage.working_copy import local_folder
from excise.system.files import file_sha256
from excise.types import content_id

from .made_sets import many_rows

Contents = Mapping[str, tuple[int, int]]
"""Name of each project to the number and the version of its tasks."""
NAMES = [f"project-{number}" for number in range(12)]


@cache
def hashes(name: str, count: int, version: int) -> dict[str, str]:
    """Instance id to row hash of the tasks of a project."""
    rows = table_rows(name, many_rows(name, count, version=version))["tasks"]
    return {row["instance_id"]: content_id("row", canonical_json(row)) for row in rows}


def expected(contents: Contents) -> dict[str, str]:
    """Instance id to row hash of all tasks of a set."""
    return {i: digest for name, facts in contents.items() for i, digest in hashes(name, *facts).items()}


@dataclass(frozen=True)
class Operation:
    """A change of a set."""

    kind: str
    put: dict[str, tuple[int, int]] = field(default_factory=dict)
    drop: tuple[str, ...] = ()

    def after(self, before: Contents) -> Contents:
        """What the set holds afterwards."""
        kept = {name: facts for name, facts in before.items() if name not in self.drop}
        return kept | self.put if self.kind != "merge" else self.put | kept

    def run(self, root: Path, other: Path) -> None:
        """Change the set in ``root``."""
        compaction.MAX_SMALL = 4
        writer.PUT_BEFORE_JOINING = 3
        if self.kind == "gc":
            collect(root, Retention(snapshots=1, grace_hours=0))
            return
        if self.kind == "merge":
            snapshot = Snapshot.current(other)
            assert snapshot is not None
            merge([snapshot], root)
            return
        with Store(root).writer() as changes:
            for name, (count, version) in self.put.items():
                changes.put_repo(name, many_rows(name, count, version=version))
                if self.kind == "publish" and name == min(self.put):
                    changes.publish()
            for name in self.drop:
                changes.drop_repo(name)
            if self.kind == "compact":
                changes.compact()
            changes.publish()
            near_duplicates.update(root)


def draw_operation(draw: random.Random, kind: str, before: Contents) -> Operation:
    """An operation of this kind with random projects."""
    if kind in ("compact", "gc"):
        return Operation(kind)
    names = NAMES if kind != "merge" else [name for name in NAMES if name not in before] or ["project-x"]
    chosen = sorted(draw.sample(names, min(len(names), 5)))
    put = {name: (draw.randint(1, 6), draw.randint(0, 9)) for name in chosen}
    drop = [name for name in before if name not in put] if kind == "refresh" else []
    return Operation(kind, put, tuple(draw.sample(drop, min(len(drop), 2))))


def seen(root: Path) -> dict[str, str]:
    """What a reader sees, after every file was compared with its hash and every row was read."""
    snapshot = Snapshot.current(root)
    if snapshot is None:
        return {}
    for path, entry in snapshot.manifest.files.items():
        assert file_sha256(snapshot.root / path) == entry.sha256, path
    rows = {row["instance_id"]: content_id("row", canonical_json(row)) for row in snapshot.rows("tasks")}
    listed = {i: digest for name in snapshot.index.entries for i, digest in snapshot.index.tasks(name).items()}
    assert rows == listed
    assert len(snapshot.rows("repos")) == len(snapshot.index.entries)
    return rows


Reader = Callable[[], dict[str, str]]
KINDS = ("publish", "refresh", "merge", "compact", "gc")


def _in_environment(environ: dict[str, str], operation: Operation, root: Path, other: Path) -> None:
    """Run an operation with this process's variables: the fork server may be older than some."""
    os.environ.update(environ)
    operation.run(root, other)


class Trials:
    """A set that survives one trial after the other."""

    def __init__(self, root: Path, folder: Path, seed: int, readers: Sequence[Reader] = ()) -> None:
        """``readers`` look at the set in another way than in the folder ``root``."""
        self.root, self.folder = root, folder
        self.readers = (lambda: seen(root), *readers)
        self.draw = random.Random(seed)
        self.contents: Contents = {}
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.seconds: dict[str, float] = {}
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload([__name__, "pyarrow.parquet", "numpy"])

    def run(self, kind: str) -> None:
        """One trial. Raises :class:`AssertionError` if a reader saw anything but a whole state."""
        operation = draw_operation(self.draw, kind, self.contents)
        before, after = expected(self.contents), expected(operation.after(self.contents))
        allowed = [before, after]
        if kind == "publish":  # it publishes twice
            first = min(operation.put)
            allowed.append(expected(dict(self.contents) | {first: operation.put[first]}))
        other = self.folder / "other"
        if kind == "merge":
            others = tuple(name for name in [*NAMES, "project-x"] if name not in operation.put)
            Operation("refresh", operation.put, others).run(other, other)
        began = time.monotonic()
        process = self.context.Process(target=_in_environment, args=(dict(os.environ), operation, self.root, other))
        process.start()
        moment = self.draw.uniform(0, 2) * self.seconds.get(kind, 0.5)
        while process.is_alive() and time.monotonic() < began + moment:
            for read in self.readers:
                assert read() in allowed, f"{kind}: a reader saw a part of it"
            time.sleep(0.005)
        process.kill()
        process.join()
        *_, found = [read() for read in self.readers]
        assert found in allowed, f"{kind}: something was lost"
        outcome = "finished" if process.exitcode == 0 else "after" if found == after != before else "before"
        assert outcome != "finished" or found == after
        self.outcomes[kind, outcome] += 1
        began = time.monotonic()
        again = self.context.Process(target=_in_environment, args=(dict(os.environ), operation, self.root, other))
        again.start()
        again.join()
        took = time.monotonic() - began
        self.seconds[kind] = min(self.seconds.get(kind, took), took)
        assert again.exitcode == 0, f"{kind}: it does not finish after a crash"
        assert [read() for read in self.readers] == [after] * len(self.readers)
        self.contents = operation.after(self.contents)


@contextmanager
def s3_server() -> Iterator[str]:
    """A real S3 server on this machine with an empty bucket; the environment leads to it. Yields a set's URL."""
    import s3fs
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", port=0)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server.start()
    host, port = server.get_host_and_port()
    values = {"AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}
    before = {name: os.environ.get(name) for name in (*values, "AWS_DEFAULT_REGION")}
    os.environ.update(values, AWS_DEFAULT_REGION="us-east-1")
    try:
        s3fs.S3FileSystem(skip_instance_cache=True).call_s3("create_bucket", Bucket="bucket")
        yield "s3://bucket/a set"
    finally:
        server.stop()
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


def s3_trials(url: str, folder: Path, seed: int) -> Trials:
    """Trials in an object store: one machine writes, another one reads."""
    writing, reading = folder / "writing", folder / "reading"
    return Trials(local_folder(url, writing), folder, seed, [lambda: seen(local_folder(url, reading))])


def main() -> None:
    """Run many trials and print how they ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moments", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--s3", action="store_true", help="In an object store, not in a folder.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, s3_server() if options.s3 else nullcontext("") as url:
        folder = Path(name)
        trials = s3_trials(url, folder, options.seed) if url else Trials(folder / "set", folder, options.seed)
        for number in range(options.moments):
            trials.run(KINDS[number % len(KINDS)])
            if (number + 1) % 20 == 0:
                print(f"{number + 1} moments", dict(trials.outcomes), flush=True)
    for (kind, outcome), count in sorted(trials.outcomes.items()):
        print(f"{kind}: {count} {outcome}")
    print(f"{options.moments} moments: no reader saw a part of a change, nothing was lost")


if __name__ == "__main__":
    main()
