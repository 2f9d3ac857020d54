"""Exports of tasks in other languages: their plain graders in excise's sandboxes and in containers.

Of the tiny projects, ``spans`` is in Go, ``parcels`` in JavaScript, ``lengths`` in Rust and ``ledger`` in Java.
"""

from __future__ import annotations

import importlib.util
import shlex
import subprocess
import sys
import tarfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from excise.datasets.exports.registry import PYTHON_ALONE, REPORT, export
from excise.datasets.exports.set_files import SET
from excise.datasets.taskset import TaskSet
from excise.envs.docker.base_image import base_image
from excise.envs.docker.docker_engine import connect
from excise.envs.interpreters import interpreter_of
from excise.envs.packed_image import LAYERS
from excise.envs.sandbox.mount_points import system_request
from excise.envs.sandbox.system_root import system_root
from excise.errors import ConfigError
from excise.pipeline.services.export_materials import SetMaterials
from excise.pipeline.services.restore_export import restore

GRADE = """
cp /given/environment/.excise-* /testbed && sh /testbed/.excise-checkout.sh && mkdir /tmp/work
/opt/env/bin/python /tests/plain_grader.py /tests "$0" /tmp/work 300
"""


@pytest.fixture
def run(request: pytest.FixtureRequest) -> Any:
    """The finished run on the project that the test names."""
    return request.getfixturevalue(request.param)


def each(*projects: str) -> pytest.MarkDecorator:
    marked = [pytest.param(name, marks=pytest.mark.slow) for name in projects]
    return pytest.mark.parametrize("run", marked, indirect=True)


def written(run: Any, name: str, into: Path) -> Path:
    with SetMaterials(run.taskset, run.settings) as materials:
        export(run.taskset, name, into, materials)
    return into


def sessions(folder: Path) -> ModuleType:
    """The module of an export that opens its sandboxes."""
    spec = importlib.util.spec_from_file_location(f"sessions_{folder.name}", folder / "excise_tasks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@each("parcels", "lengths")
def test_the_plain_grader_in_sandboxes(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXCISE", f"{sys.executable} -m excise.pipeline.cli")
    monkeypatch.setenv("EXCISE_CACHE", str(run.cache))
    exported = sessions(written(run, "openenv", tmp_path / "tasks"))
    task = run.taskset.tasks()[0]
    row = exported.load_tasks()[task.instance_id]
    assert exported.grade(row, task.patch.encode()) == 1.0
    assert exported.grade(row, b"") == 0.0
    session = exported.TaskSession(row)
    try:
        status = session.run("git status --porcelain; git log --format=%H")["output"]
        assert status.split() == [row["commit"]], "what the installation changed is no change of an agent"
        session.run(f"printf '\\n' >> {row['solution_paths'][0]}")
        assert session.diff().count(b"diff --git") == 1
    finally:
        session.close()


@each("spans")
def test_restored_and_exported_again(run: Any, tmp_path: Path) -> None:
    first = written(run, "harbor", tmp_path / "one" / "tasks")
    restored = restore("harbor", first, tmp_path / "set")
    with SetMaterials(restored, run.settings) as materials:
        export(restored, "harbor", tmp_path / "two" / "tasks", materials)
    names = [{p.relative_to(root) for p in root.rglob("*") if p.is_file()} for root in (first, tmp_path / "two/tasks")]
    assert names[0] == names[1]
    assert all((first / name).read_bytes() == (tmp_path / "two/tasks" / name).read_bytes() for name in names[0])
    assert {name.parts[0] for name in names[0]} >= {SET, "images", REPORT}


@each("spans")
@pytest.mark.parametrize("name", sorted(PYTHON_ALONE))
def test_formats_that_know_python_alone_say_so(run: Any, tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"tasks in Python alone \(here: 1 in go\)\. Choose from harbor"):
        written(run, name, tmp_path / "tasks")


@each("parcels")
def test_mixed_sets_say_what_they_leave_out(run: Any, stored: Any, tmp_path: Path, excise: Any) -> None:
    done = excise("merge", run.out, stored.out, "--out", tmp_path / "set")
    assert done.returncode == 0, done.stderr
    mixed = TaskSet.open(tmp_path / "set")
    with SetMaterials(mixed, run.settings) as materials:
        report = export(mixed, "swe-smith", tmp_path / "tasks", materials)
    assert report.num_tasks == 8
    assert "3 in javascript" in report.not_carried[-1]


@each("ledger")
@pytest.mark.docker
@pytest.mark.usefixtures("docker_host")
def test_the_plain_grader_in_containers(run: Any, tmp_path: Path) -> None:
    folder = written(run, "harbor", tmp_path / "tasks")
    task = run.taskset.tasks()[0]
    recipe = run.taskset.environment(task.env_id)[0].recipe
    interpreter = interpreter_of(recipe.python)
    base = base_image(connect(), "host", system_root(system_request(interpreter, recipe.system_packages)))
    built = subprocess.run(
        ["sh", str(folder / "images/build.sh"), "--build-arg", f"BASE={base}", "--build-arg", "SYSTEM_PACKAGES="],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stdout[-3000:] + built.stderr[-3000:]
    (image,) = [path.parent for path in folder.glob("images/*/Dockerfile")]
    with tarfile.open(image / LAYERS) as layers:
        shipped = [n for n in layers.getnames() if n.startswith("testbed/") and n.endswith((".rs", ".java"))]
    assert shipped == [], "the image holds no sources"
    given = folder / "tasks" / task.instance_id
    for solution, code in ((given / "solution/gold.patch", 0), (Path("/dev/null"), 1)):
        options = ["--rm", "--network", "none", "--user", "1000:1000"]
        options += ["--volume", f"{given / 'tests'}:/tests:ro", "--volume", f"{given}:/given:ro"]
        inside = "/given/solution/gold.patch" if solution.name == "gold.patch" else str(solution)
        command = ["docker", "run", *options, (image / "tag").read_text().strip(), "sh", "-ec", GRADE, inside]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == code, shlex.join(command) + done.stdout[-2000:] + done.stderr[-2000:]
