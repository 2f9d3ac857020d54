"""A run on machines with folders of their own, whose workers are killed, gives the rows of a run on one machine."""

from __future__ import annotations

import json
import random
import shutil
import threading
from pathlib import Path
from typing import Any

from excise.datasets.queries.catalogue import connect
from excise.datasets.schema import TABLES
from excise.pipeline.exit_codes import FAILED, PARTIAL

from .machine import Machines, machines
from .processes import kill, started, workers_in_sandboxes

REPOS = Path(__file__).resolve().parents[1] / "repos"
MEASURED = {"cpu_s", "wall_s", "mean_wall_s", "install_s", "durations", "duration_s", "bytes_read", "flake_rate"}
"""Columns, and parts of records, that differ between two runs on one machine: times, and bytes read from /proc."""
SEALED = {"certificate_id", "digest"}
"""Hashes of records that contain such parts."""
KILLS = 3


def rows(folder: Path) -> dict[str, list[str]]:
    """All rows of a set by table, without what is measured; the rest is compared byte by byte."""
    base, found = connect(folder), {}
    for table in TABLES:
        answer = base.execute(f"SELECT * FROM {table}")
        names = [column[0] for column in answer.description or ()]
        records = (dict(zip(names, values, strict=True)) for values in answer.fetchall())
        found[table] = sorted(json.dumps(unmeasured(record), default=str, sort_keys=True) for record in records)
    return found


def unmeasured(value: Any) -> Any:
    """A value without what is measured, at any depth; JSON in texts is read."""
    if isinstance(value, dict):
        return {key: unmeasured(item) for key, item in value.items() if key not in MEASURED | SEALED}
    if isinstance(value, (list, tuple)):
        return [unmeasured(item) for item in value]
    if isinstance(value, str) and value[:1] == "{":
        try:
            return unmeasured(json.loads(value))
        except ValueError:
            return value
    return value


def kill_workers(cluster: Machines, ended: threading.Event, killed: list[int]) -> None:
    """Kill worker processes that have a sandbox open, at random moments; their nannies start others."""
    chance = random.Random(7)
    while len(killed) < KILLS and not ended.wait(chance.uniform(0.5, 3.0)):
        busy = [pid for name in ("first", "second") for pid in workers_in_sandboxes(cluster.processes[name].pid)]
        if busy:
            killed.append(chance.choice(busy))
            kill(killed[-1])


def blobs(folder: Path) -> set[str]:
    """Names, which are hashes, of source archives and grading kits."""
    return {path.name for path in folder.glob("blobs/*/*")}


def test_rows_are_those_of_one_machine(shapes, excise, tmp_path: Path) -> None:
    cache = tmp_path / "main" / "cache"
    shapes.copy_cache(cache)
    for stage in ("environment", "coverage", "find"):  # not the baseline: what is done later depends on its durations
        shutil.rmtree(cache / "stages" / stage)
    for path in sorted(cache.glob("stages/candidate/*/*.json"))[:2]:
        path.unlink()
    ended = threading.Event()
    with machines(tmp_path / "machines") as cluster:
        for name in ("first", "second"):
            cluster.start(name)
        given = [
            "generate",
            REPOS / "shapes",
            REPOS / "notests",
            "-c",
            shapes.config,
            "-o",
            tmp_path / "main" / "out",
            "--cache",
            cache,
        ]
        killed: list[int] = []
        killer = threading.Thread(target=kill_workers, args=(cluster, ended, killed))
        with started(*given, "--scheduler", cluster.address, "--json") as process:
            killer.start()
            _, errors = process.communicate(timeout=1200)
            ended.set()
            killer.join()
        assert process.returncode == PARTIAL, errors
        used = {name: list((cluster.base / name / "cache").glob("envs/copy-*/layer")) for name in ("first", "second")}
    assert killed, "no worker was killed"
    assert any(used.values()), "no machine got layers from another one"
    # The same on this machine: `shapes` was made before.
    here = tmp_path / "here"
    done = excise("generate", REPOS / "notests", "-c", shapes.config, "--workers", "1", "-o", here, "--cache", cache)
    assert done.returncode == FAILED, done.stderr
    alone, other, together = rows(shapes.out), rows(here), rows(tmp_path / "main" / "out")
    assert {table: sorted(alone[table] + other[table]) for table in alone} == together
    assert blobs(tmp_path / "main" / "out") == blobs(shapes.out) | blobs(here)
