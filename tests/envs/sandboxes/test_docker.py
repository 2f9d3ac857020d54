"""The Docker sandbox: images shared by tasks, killed containers, leftovers, system packages, a whole run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from excise.config import DockerSettings
from excise.datasets.taskset import TaskSet
from excise.envs.docker import docker_engine
from excise.envs.docker.docker_sandbox import DockerSandbox, remove_leftovers
from excise.envs.docker.layer_archives import MountContent
from excise.errors import EnvironmentFailure, SandboxError
from excise.protocols import Mount, Policy, SystemRequest

sys.path.insert(0, str(Path(__file__).parent))
import sandbox_probes

pytestmark = pytest.mark.usefixtures("docker_host")
SHAPES = Path(__file__).resolve().parents[2] / "repos" / "shapes"


@pytest.fixture(autouse=True)
def chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sandbox_probes.SELECTED, "backend", "docker")


def until(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


def containers(owner: str = docker_engine.OWNER) -> set[str]:
    return {c["Id"] for c in docker_engine.connect().api.containers(all=True, filters={"label": owner})}


def images() -> set[str]:
    return {i["Id"] for i in docker_engine.connect().api.images(filters={"label": "excise"})}


def test_all_tasks_of_an_environment_share_one_image() -> None:
    root = sandbox_probes.layer({"a.txt": "same\n"})
    with sandbox_probes.opened(root=root):
        before = images()
    for number in range(3):
        with sandbox_probes.opened(root=root, edits={"/testbed/a.txt": b"%d" % number}) as session:
            assert session.get("/testbed/a.txt") == b"%d" % number
    twin = sandbox_probes.layer({"a.txt": "same\n"})
    with sandbox_probes.opened(root=twin):
        assert images() == before, "an image is named after its content"
    with sandbox_probes.opened(root=sandbox_probes.layer({"a.txt": "other\n"})):
        assert images() > before


def test_layers_are_merged_as_an_overlay_would(tmp_path: Path) -> None:
    bottom = sandbox_probes.layer({"a": "bottom", "b": "bottom", "d/x": "bottom", "d/y": "bottom", "e": "file"})
    with sandbox_probes.opened(root=bottom) as session:
        sandbox_probes.sh(
            session, "cd /testbed; rm b; echo -n top >a; rm d/x; echo -n new >n; rm e; mkdir e; echo -n in >e/f"
        )
        session.snapshot("/testbed", tmp_path / "top")
    tree = MountContent((str(tmp_path / "top"), str(bottom)), "/testbed", "/testbed").tree()
    found = {inside: path.read_text() for inside, path in tree.items() if path.is_file()}
    assert found == {"a": "top", "d/y": "bottom", "n": "new", "e/f": "in"}


def test_empty_paths_are_in_no_image() -> None:
    root = sandbox_probes.layer({"lib/site-packages/other.py": "secret", "lib/os.py": "ours"})
    mounts = [
        Mount(target="/opt/python", layers=(str(root),)),
        Mount(target="/opt/python/lib/site-packages", layers=()),
        Mount(target="/testbed", layers=(), writable=True),
    ]
    with DockerSandbox().open(mounts, Policy(), env=sandbox_probes.ENV) as session:
        done = sandbox_probes.sh(session, "cd /opt/python; find . -type f; ls lib")
    assert done.stdout.split() == [b"./lib/os.py", b"os.py", b"site-packages"]


SURVIVOR = """
import os, sys, threading, time
sys.path.insert(0, {folder!r})
import sandbox_probes
sandbox_probes.SELECTED["backend"] = "docker"
session = sandbox_probes.opened()
work = lambda: sandbox_probes.sh(session, "setsid sleep {marker} & sleep {marker}", timeout_s=60)
threading.Thread(target=work, daemon=True).start()
time.sleep(1)
print(session.container, session.out, flush=True)
time.sleep(60)
"""


def test_nothing_is_left_after_kill_9() -> None:
    marker = f"66{os.getpid()}.5"
    script = SURVIVOR.format(folder=str(Path(__file__).parent), marker=marker)
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout is not None
        container, out = parent.stdout.readline().split()
        assert container in containers()
        assert sandbox_probes.alive(marker) >= 2
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
        assert until(lambda: sandbox_probes.alive(marker) == 0)
        assert until(lambda: container not in containers())
        assert Path(out).exists()
        remove_leftovers.cache_clear()
        remove_leftovers()
        assert not Path(out).exists()
    finally:
        parent.kill()
        parent.wait()


def test_a_killed_container_is_an_infrastructure_failure_and_leaves_nothing() -> None:
    import threading

    session = sandbox_probes.opened()
    name: str = session.container  # type: ignore[attr-defined]
    client = docker_engine.connect()
    threading.Timer(0.5, lambda: client.api.kill(name)).start()
    with pytest.raises(SandboxError, match="ended unexpectedly"):
        sandbox_probes.sh(session, "sleep 30", timeout_s=60)
    with pytest.raises(SandboxError, match="closed"):
        sandbox_probes.sh(session, "true")
    assert until(lambda: name not in containers())
    assert not session.out.exists()


def test_only_containers_of_dead_processes_are_removed() -> None:
    client = docker_engine.connect()
    mine = docker_engine.owner()
    dead = mine.rpartition("-")[0] + "-1"  # our pid, started at another time
    elsewhere = "another-machine/boot/1-1"
    with sandbox_probes.opened() as session:
        image = client.api.inspect_container(session.container)["Image"]  # type: ignore[attr-defined]
        made = {
            label: client.api.create_container(image, ["/bin/sleep", "60"], labels={docker_engine.OWNER: label})["Id"]
            for label in (dead, elsewhere)
        }
        try:
            assert docker_engine.remove_orphaned_containers() >= 1
            left = {c["Id"] for c in client.api.containers(all=True)}
            assert made[dead] not in left
            assert made[elsewhere] in left
            assert sandbox_probes.sh(session, "echo well").stdout == b"well\n"
        finally:
            client.api.remove_container(made[elsewhere], force=True)


def test_unavailable_packages_are_named() -> None:
    mounts = [Mount(target="/testbed", layers=(), writable=True)]
    system = SystemRequest(packages=("excise-no-such-package",))
    with pytest.raises(EnvironmentFailure, match="excise-no-such-package") as caught:
        DockerSandbox().open(mounts, Policy(), env=sandbox_probes.ENV, system=system)
    assert caught.value.reason == "missing_system_lib"
    assert containers(f"{docker_engine.OWNER}={docker_engine.owner()}") == set()


def test_a_missing_image_is_named() -> None:
    sandbox = DockerSandbox(DockerSettings(base_image="excise-test/nothing:1"))
    with pytest.raises(SandboxError, match="excise-test/nothing:1 is not there"):
        sandbox.open([], Policy(), env={})


def test_a_missing_engine_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = "from excise.envs.docker.docker_sandbox import DockerSandbox\n"
    script += "can = DockerSandbox().capabilities(); print(can.available, can.advice)"
    environment = {**os.environ, "DOCKER_HOST": f"unix://{tmp_path}/nothing"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("False Install an engine")


def test_a_missing_layer_is_reported() -> None:
    with pytest.raises(SandboxError, match="gone"):
        sandbox_probes.opened(root=Path("/nonexistent"))


@pytest.mark.slow
def test_generate_runs_in_containers(excise, tmp_path: Path) -> None:
    limits = ["--set", "verdict.gold_runs=1", "--set", "verdict.starved_runs=1"]
    limits += ["--set", "verdict.memory_mb=512", "--set", "verdict.disk_mb=128"]
    done = excise(
        "generate", SHAPES, "--out", tmp_path / "out", "--cache", tmp_path / "cache", "--limit", "1", "--workers", "1",
        "--json", "--set", "sandbox=docker", *limits, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["tasks"] == 1
    taskset = TaskSet.open(tmp_path / "out")
    (task,) = taskset.ids()
    assert dict(taskset.certificate(task).tools)["sandbox"] == "docker"
    assert until(
        lambda: (
            not [
                c
                for c in docker_engine.connect().api.containers()
                if not docker_engine.may_be_alive(c["Labels"][docker_engine.OWNER])
            ]
        )
    )
