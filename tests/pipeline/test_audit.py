"""``excise audit`` and ``excise recover``: a leak in an environment is found, and its task is quarantined."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from excise.config import Settings, load
from excise.datasets.taskset import TaskSet
from excise.pipeline.services.audit import audit, siblings
from excise.verifiers.monitor.findings import Label
from excise.verifiers.monitor.monitored_task import added
from excise.verifiers.monitor.trajectory import Step, Trajectory, write_events

PARSE, RING = "src/shapes/text.py::parse", "src/shapes/round.py::ring_area"
MARKS = "src/shapes/tables.py::Ruler.marks"


@pytest.fixture
def leaky(shapes, tmp_path: Path) -> Settings:
    """A copy of the set, and a cache whose environment holds old copies of two modules, one of them compressed."""
    shutil.copytree(shapes.out, tmp_path / "out", symlinks=True)
    settings = load([shapes.config], out=tmp_path / "out", cache=tmp_path / "cache")
    shapes.copy_cache(tmp_path / "cache")
    return settings


def plant(settings: Settings, name: str, data: bytes) -> str:
    """Put a file into every environment of the cache; its path inside the sandbox."""
    packages = list((settings.cache / "envs").glob("*/env/lib/python3*/site-packages"))
    assert packages
    for folder in packages:
        (folder / name).write_bytes(data)
        (folder / name).chmod(0o644)
    return f"/opt/env/lib/{packages[0].parent.name}/site-packages/{name}"


def task_of(settings: Settings, symbol: str) -> str:
    """The task that removes the symbol and as little else as possible."""
    tasks = TaskSet.open(settings.out).tasks(quarantined=True)
    found = [t for t in tasks if symbol in t.removed and t.deleter == "remove"]
    return min(found, key=lambda t: len(t.removed)).instance_id


def source(settings: Settings, name: str) -> str:
    return next((settings.cache / "trees").glob(f"*/{name}")).read_text()


def test_a_confirmed_leak_quarantines_its_task_and_those_it_hits(leaky: Settings, tmp_path: Path) -> None:
    """The leak is rot13: no strategy of the recovery agent reads it, only the agent's own command does."""
    import codecs

    old = source(leaky, "src/shapes/text.py") + source(leaky, "src/shapes/round.py")
    place = plant(leaky, "old.dat", codecs.encode(old, "rot13").encode())
    origin, sibling = task_of(leaky, PARSE), task_of(leaky, RING)
    decoder = f"python -c \"import codecs; print(codecs.decode(open('{place}').read(), 'rot13'))\""
    taskset = TaskSet.open(leaky.out)
    steps = (Step(number=1, command="ls"), Step(number=2, command=decoder, output=old))
    trajectory = Trajectory(instance_id=origin, source="excise", steps=steps, diff=taskset.task(origin).patch)
    honest = Trajectory(instance_id=sibling, source="excise", steps=(Step(number=1, command="cat README.md"),))
    stranger = Trajectory(instance_id="nowhere__1", source="excise", steps=())
    before = taskset.manifest.number
    done = audit(leaky, taskset, [trajectory, honest, stranger])
    assert [(r.instance_id, r.label) for r in done.reviews] == [(origin, Label.LEAK_USED), (sibling, Label.BENIGN)]
    assert done.unknown == ("nowhere__1",)
    assert {r.instance_id for r in done.rescanned} == set(siblings(taskset, origin))
    assert all(r.problem == "" for r in done.rescanned)
    after = TaskSet.open(leaky.out)
    assert after.manifest.number == before + 1
    out = {found.instance_id: found for found in after.quarantines()}
    hit = {
        t.instance_id
        for t in taskset.tasks()
        if {s.partition("::")[0] for s in t.removed} <= {"src/shapes/text.py", "src/shapes/round.py"}
    }
    assert {origin, sibling} <= set(out) <= hit
    assert out[origin].decoder == decoder
    assert out[origin].fingerprint
    assert out[sibling].found_in == origin
    assert {task.instance_id for task in after.tasks()} == set(after.ids()) - set(out)
    again = audit(leaky, after, [trajectory], dry_run=True)
    assert {row.instance_id for row in again.quarantined} == set(out), "the same leak, found twice, is one"


def test_the_command_line_audits_and_releases(leaky: Settings, excise, tmp_path: Path) -> None:
    origin = task_of(leaky, RING)
    code = "\n".join(added(TaskSet.open(leaky.out).task(origin).patch))
    bad = Trajectory(instance_id="", source="excise", steps=(Step(number=1, command="cat /tmp/x", output=code),))
    write_events(tmp_path / "t.jsonl", [bad])
    where = ["--config", leaky.out.parent / "none.toml"]
    (leaky.out.parent / "none.toml").write_text("workers = 1\n")
    nobody = excise("audit", leaky.out, "--trajectories", tmp_path / "t.jsonl", "--cache", leaky.cache, *where)
    assert nobody.returncode == 1
    assert "Not in this set: (no name)" in nobody.stdout
    done = excise(
        "audit", leaky.out, "-t", tmp_path / "t.jsonl", "--task", origin, "--cache", leaky.cache, *where, "--json"
    )
    assert done.returncode == 1, done.stderr
    body = json.loads(done.stdout)
    same = {t.instance_id for t in TaskSet.open(leaky.out).tasks(quarantined=True) if RING in t.removed}
    assert {row["instance_id"] for row in body["quarantined"]} == same >= {origin}
    shown = excise("show", origin, "--out", leaky.out)
    assert f"QUARANTINED: L4 leak_found: {body['leaks'][0]['detail']} (/tmp/x)" in shown.stdout
    assert excise("audit", leaky.out, "--release", origin).returncode == 0
    assert {found.instance_id for found in TaskSet.open(leaky.out).quarantines()} == same - {origin}
    assert excise("audit", leaky.out).returncode == 2


def test_recover_says_what_each_strategy_gets(leaky: Settings, excise) -> None:
    origin, sibling = task_of(leaky, PARSE), task_of(leaky, MARKS)
    common = ["--out", leaky.out, "--cache", leaky.cache, "--workers", "1"]
    clean = excise("recover", origin, sibling, *common, "--json")
    assert clean.returncode == 0, clean.stderr
    body = json.loads(clean.stdout)
    assert [(task["tried"], task["recovered"], task["problem"]) for task in body["tasks"]] == [(True, False, "")] * 2
    assert {rate["num_recovered"] for rate in body["strategies"]} == {0}
    assert len(body["strategies"]) >= 20
    plant(leaky, "kept.py", source(leaky, "src/shapes/text.py").encode())
    found = excise("recover", origin, sibling, *common)
    assert found.returncode == 1
    assert f"{origin}: RECOVERED 100% from /opt/env/lib/" in found.stdout
    assert f"{sibling}: nothing" in found.stdout
    assert "installed_copies      1 of 2" in found.stdout
    assert excise("recover", "--out", leaky.out).returncode == 2
