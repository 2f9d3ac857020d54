"""The bubblewrap sandbox: killed processes, leftovers, limits, and commands that cannot start."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import excise.envs.bubblewrap.bubblewrap_sandbox as backend
from excise.envs.bubblewrap import zygote_client
from excise.envs.bubblewrap.control_groups import remove_groups
from excise.envs.bubblewrap.forked_sessions import close_idle
from excise.errors import SandboxError, StageTimeout
from excise.protocols import Mount, Policy
from excise.system.deadline import deadline
from excise.system.process_identity import own_process_name

sys.path.insert(0, str(Path(__file__).parent))
import sandbox_probes


def until(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


SURVIVOR = """
import json, os, sys, threading, time
sys.path.insert(0, {folder!r})
import sandbox_probes
if {bare}: sandbox_probes.without_groups()
session = sandbox_probes.opened()
work = lambda: sandbox_probes.sh(session, "setsid sleep {marker} & sleep {marker}", timeout_s=60)
threading.Thread(target=work, daemon=True).start()
time.sleep(0.5)
folders = [sandbox_probes.zygote_folder(), *sandbox_probes.session_folders(session)]
print(json.dumps([session.supervisor_pid, folders]), flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("name", ["a,b", "a:b", "a\\b", "a b", "a\\,:b,"])
def test_layers_may_be_called_anything(name: str) -> None:
    first, second = sandbox_probes.layer({"a.txt": "first\n"}), sandbox_probes.layer({"b.txt": "second\n"})
    layers = tuple(str(one.rename(sandbox_probes.scratch() / name)) for one in (first, second))
    for one in layers:
        Path(one).parent.chmod(0o755)
    mounts = [Mount(target=target, layers=layers, writable=target == "/testbed") for target in ("/testbed", "/fixed")]
    with sandbox_probes.sandbox().open(mounts, Policy(), env=sandbox_probes.ENV) as session:
        done = sandbox_probes.sh(
            session, "cat /fixed/a.txt /testbed/b.txt; echo more > /testbed/a.txt; cat /testbed/a.txt"
        )
    assert done.stdout == b"first\nsecond\nmore\n", done.stderr


OTHER_TMP = """
import sys
sys.path.insert(0, {folder!r})
import sandbox_probes
with sandbox_probes.opened() as session:
    print(sandbox_probes.sh(session, "cat a.txt; echo x > b.txt && cat b.txt").stdout.decode())
"""


def test_temporary_folders_may_be_called_anything() -> None:
    odd = sandbox_probes.scratch() / "t,m:p"
    odd.mkdir()
    odd.parent.chmod(0o755)
    script = OTHER_TMP.format(folder=str(Path(__file__).parent))
    env = {**os.environ, "TMPDIR": str(odd)}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["first", "x"], done.stderr


@pytest.mark.parametrize("bare", [False, True], ids=["groups", "no groups"])
@pytest.mark.parametrize("victims", ["parent", "supervisor", "both"])
def test_nothing_is_left_after_kill_9(victims: str, bare: bool) -> None:
    marker = f"99{os.getpid()}.5"
    script = SURVIVOR.format(folder=str(Path(__file__).parent), marker=marker, bare=bare)
    pipe = subprocess.PIPE
    parent = subprocess.Popen([sys.executable, "-"], stdin=pipe, stdout=pipe)
    assert parent.stdin is not None
    assert parent.stdout is not None
    folders: list[str] = []
    try:
        parent.stdin.write(script.encode())
        parent.stdin.close()
        supervisor, folders = json.loads(parent.stdout.readline())
        assert sandbox_probes.alive(marker) >= 2
        if victims in {"supervisor", "both"}:
            os.kill(supervisor, signal.SIGKILL)
        if victims in {"parent", "both"}:
            parent.kill()
        assert until(lambda: sandbox_probes.alive(marker) == 0)
        if victims != "supervisor":  # the parent removes the groups when it closes the session
            assert until(lambda: not any(Path(f).exists() for f in folders))
        assert until(lambda: not Path(f"/proc/{supervisor}").exists())
        mounts = Path("/proc/self/mountinfo").read_text()
        assert not any(folder in mounts for folder in folders)
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()
        remove_groups(folders[1:])


def test_a_killed_supervisor_is_an_infrastructure_failure_and_leaves_nothing() -> None:
    session = sandbox_probes.opened()
    folders = sandbox_probes.session_folders(session)
    threading.Timer(0.5, lambda: os.kill(session.supervisor_pid, signal.SIGKILL)).start()  # type: ignore[attr-defined]
    with pytest.raises(SandboxError, match="ended unexpectedly"):
        sandbox_probes.sh(session, "sleep 30", timeout_s=60)
    session.close()
    session.close()
    assert not any(Path(folder).exists() for folder in folders)
    with pytest.raises(SandboxError, match="closed"):
        sandbox_probes.sh(session, "true")


def test_leftovers_of_dead_processes_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    mine = f"excise-stage-{own_process_name()}-x"
    same_pid = f"excise-stage-{os.getpid()}-1-x"
    for name in ("excise-stage-4194305-1-x", same_pid, mine, "excise-stage-odd", "somebody-else"):
        (tmp_path / name / "inside").mkdir(parents=True)
    assert backend.remove_leftovers() >= 2
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([mine, "excise-stage-odd", "somebody-else"])


def test_a_killed_zygote_is_replaced() -> None:
    with sandbox_probes.opened() as session:
        base = Path(sandbox_probes.zygote_folder())
        os.kill(int(base.name.split("-")[2]), signal.SIGKILL)
        assert sandbox_probes.sh(session, "echo lives on").stdout == b"lives on\n"
    with sandbox_probes.opened() as session:
        assert sandbox_probes.sh(session, "echo well").stdout == b"well\n"
        assert sandbox_probes.zygote_folder() != str(base)
    backend.remove_leftovers()
    assert not base.exists()


def test_a_killed_spare_supervisor_is_replaced() -> None:
    close_idle()  # whose supervisors are children of the zygote, too
    with sandbox_probes.opened():
        zygote = int(Path(sandbox_probes.zygote_folder()).name.split("-")[2])
    assert until(lambda: len(sandbox_probes.children(zygote)) == 1)
    spare = sandbox_probes.children(zygote)[0]
    os.kill(spare, signal.SIGKILL)
    assert until(lambda: not Path(f"/proc/{spare}").exists())  # a signal takes a moment
    with sandbox_probes.opened() as session:
        assert sandbox_probes.sh(session, "echo lives on").stdout == b"lives on\n"
    backend.remove_leftovers()


def test_a_forked_process_has_a_zygote_of_its_own() -> None:
    with sandbox_probes.opened() as session:
        mine = sandbox_probes.zygote_folder()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with sandbox_probes.opened() as other:
                    code = (
                        0 if sandbox_probes.sh(other, "true").rc == 0 and sandbox_probes.zygote_folder() != mine else 2
                    )
                zygote_client.stop()
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert sandbox_probes.sh(session, "echo well").stdout == b"well\n"
    assert sandbox_probes.zygote_folder() == mine


def test_ending_the_zygote_leaves_nothing() -> None:
    with sandbox_probes.opened():
        base = Path(sandbox_probes.zygote_folder())
        assert base.is_dir()
    zygote_client.stop()
    assert not base.exists()


def test_a_limit_that_cannot_be_enforced_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "writable_groups", dict)
    with pytest.raises(SandboxError, match=r"cannot limit cpus on this machine.*lenient_sandbox=true"):
        sandbox_probes.opened(Policy(cpus=1.0))
    with sandbox_probes.opened(Policy(cpus=1.0, lenient=True)) as session:
        assert sandbox_probes.sh(session, "true").rc == 0
    mounts = [Mount(target="/testbed", layers=(), writable=True)]
    everywhere = backend.BubblewrapSandbox(lenient=True)
    with everywhere.open(mounts, Policy(cpus=1.0), env=sandbox_probes.ENV) as session:
        assert sandbox_probes.sh(session, "true").rc == 0


def test_a_control_group_that_rejects_a_limit_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without the controller's files stands for a controller that is not there after all."""
    monkeypatch.setattr(backend, "writable_groups", lambda: {"memory": str(tmp_path), "pids": str(tmp_path)})
    with pytest.raises(SandboxError, match="takes no limit for memory"):
        sandbox_probes.opened()


def test_capabilities_name_the_mechanism_of_each_limit() -> None:
    can = backend.BubblewrapSandbox().capabilities()
    assert can.available
    assert {"network_off", "memory", "pids", "disk"} <= set(can.how)
    assert all(can.how.values())


def test_a_missing_bubblewrap_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(SandboxError, match="apt-get install bubblewrap"):
        sandbox_probes.opened(root=Path("/nonexistent"))


def test_a_missing_layer_is_reported() -> None:
    with pytest.raises(SandboxError, match="The sandbox failed"):
        sandbox_probes.opened(root=Path("/nonexistent"))


def test_a_snapshot_that_fails_is_an_error_and_the_session_lives(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    with sandbox_probes.opened() as session:
        sandbox_probes.sh(session, "echo x >/testbed/x")
        with pytest.raises(SandboxError, match="no snapshot of /testbed"):
            session.snapshot("/testbed", tmp_path)
        with pytest.raises(SandboxError, match="no snapshot of /fixed"):
            session.snapshot("/fixed", tmp_path / "other")
        assert sandbox_probes.sh(session, "echo well").stdout == b"well\n"


def test_programs_that_cannot_start() -> None:
    with sandbox_probes.opened() as session:
        done = session.exec(["/no/such/program"], timeout_s=10)
        assert done.rc == 127
        assert b"No such file" in done.stderr
        assert sandbox_probes.sh(session, "echo 'bwrap: mine' >&2; exit 2").rc == 2


def test_many_sessions_do_not_disturb_each_other() -> None:
    sessions = [sandbox_probes.opened(Policy(disk_bytes=16 << 20)) for _ in range(4)]
    try:
        for number, session in enumerate(sessions):
            session.put("/testbed/me", str(number).encode())
        assert [session.get("/testbed/me") for session in sessions] == [b"0", b"1", b"2", b"3"]
    finally:
        for session in sessions:
            session.close()


def test_a_command_that_hangs_ends_with_the_deadline_of_its_stage() -> None:
    began = time.monotonic()
    with sandbox_probes.opened() as session:
        with pytest.raises(StageTimeout, match="Hanging took longer"), deadline(1.0, "Hanging"):
            sandbox_probes.sh(session, "sleep 60", timeout_s=60)
        assert sandbox_probes.sh(session, "echo alive").stdout == b"alive\n"
    assert time.monotonic() - began < 30
