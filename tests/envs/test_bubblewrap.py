"""The sandbox's promises, run for real: as the caller, without control groups, and as an ordinary user."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import excise.envs.bubblewrap.sandbox as backend
from excise.envs.interpreters import find_interpreters
from excise.errors import SandboxError
from excise.protocols import Policy

sys.path.insert(0, str(Path(__file__).parent))
import promises

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534
Ask = Callable[[str], dict]
DROPPED = ["--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]


@pytest.fixture(scope="session")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A command line that runs ``promises.py`` as a user without rights, from a copy that this user can read."""
    if os.geteuid() != 0:
        return [sys.executable, str(Path(__file__).with_name("promises.py"))]
    base = Path("/tmp") / f"excise-ordinary.{os.getpid()}"
    shutil.rmtree(base, ignore_errors=True)
    for folder in ("envs",):
        shutil.copytree(ROOT / folder, base / "excise" / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("__init__", "types", "errors", "protocols"):
        shutil.copy(ROOT / "src" / "excise" / f"{name}.py", base / "excise")
    shutil.copy(Path(__file__).with_name("promises.py"), base)
    subprocess.run(["chmod", "-R", "a+rX", str(base)], check=True)
    python = readable_python(base)
    return [
        "setpriv",
        *DROPPED,
        "env",
        f"PYTHONPATH={base}",
        "PYTHONDONTWRITEBYTECODE=1",
        python,
        str(base / "promises.py"),
    ]


def readable_python(base: Path) -> str:
    """An interpreter of 3.11 or later that every user can run; a copy of ours if there is none."""
    for interpreter in find_interpreters():
        command = ["setpriv", *DROPPED, str(interpreter.executable), "-c", "import json"]
        if interpreter.minor >= (3, 11) and subprocess.run(command, capture_output=True, check=False).returncode == 0:
            return str(interpreter.executable)
    shutil.copytree(sys.base_prefix, base / "python", symlinks=True)
    subprocess.run(["chmod", "-R", "a+rX", str(base)], check=True)
    return str(base / "python" / "bin" / Path(sys.executable).resolve().name)


@pytest.fixture(scope="session", autouse=True)
def cleared() -> Iterator[None]:
    yield
    shutil.rmtree(Path("/tmp") / f"excise-ordinary.{os.getpid()}", ignore_errors=True)


@pytest.fixture(params=["caller", "without groups", "ordinary user"])
def ask(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, ordinary: list[str]) -> Ask:
    """Tries a promise out on one of three hosts."""
    if request.param == "ordinary user":

        def run(name: str) -> dict:
            done = subprocess.run([*ordinary, name], capture_output=True, cwd="/", check=False)
            assert done.returncode == 0, done.stderr.decode()
            return json.loads(done.stdout)

        return run
    if request.param == "without groups":
        monkeypatch.setattr(backend, "writable_groups", dict)
    return lambda name: json.loads(json.dumps(promises.PROMISES[name]()))


def test_nothing_of_the_caller_is_inside(ask: Ask) -> None:
    lines = ask("identity")["stdout"].splitlines()
    assert lines[:4] == ["1000", "CapEff:\t0000000000000000", "NoNewPrivs:\t1", "sandbox"]
    assert [line.partition("=")[0] for line in lines[4:]] == ["HOME", "LC_ALL", "PATH", "PWD"]


def test_no_signal_is_ignored_or_blocked_from_birth(ask: Ask) -> None:
    none = "0" * 16
    assert ask("signals")["masks"] == ["SigBlk:", none, "SigIgn:", none]


def test_the_network_is_unreachable(ask: Ask) -> None:
    *attempts, names, interfaces = ask("network")["stdout"].splitlines()
    assert all(line.startswith("refused") for line in attempts)
    assert (names, interfaces) == ("no names", "['lo']")


def test_host_files_are_unreadable(ask: Ask) -> None:
    assert ask("host_files")["stdout"].replace("LC_CTYPE=C.UTF-8\0", "") == ""


def test_writes_stay_in_the_session(ask: Ask) -> None:
    found = ask("writes")
    assert found["stdout"].split() == found["targets"]
    assert (found["layer"], found["text"]) == (["a.txt"], "first\n")


def test_the_kernel_cannot_be_configured(ask: Ask) -> None:
    found = ask("proc_sys")
    assert found["stdout"] == ""
    assert found["same"]


def test_a_fork_bomb_is_contained(ask: Ask) -> None:
    found = ask("fork_bomb")
    children, error = found["polite"]["stdout"].split()
    assert 30 <= int(children) <= 43
    assert error == "11"
    assert found["rude"]["wall_s"] < 5
    assert found["after"]["stdout"] == "well\n"


def test_memory_is_limited_for_all_processes_together(ask: Ask) -> None:
    found = ask("memory_hog")
    assert (found["one"]["worker"], found["one"]["rc"]) == ("oom", -9)
    assert found["together"]["worker"] == "oom"
    assert found["after"] | {"worker": "ok", "stdout": "well\n"} == found["after"]


def test_a_full_disk_spares_the_host_and_the_report(ask: Ask) -> None:
    found = ask("disk_filler")
    sizes = [int(line) for line in found["fill"]["stdout"].splitlines() if line.isdigit()]
    assert sum(sizes[:4]) <= 16 << 20
    assert 0 < sizes[4] <= 8 << 20
    assert found["report"]["stdout"] == "report\n"
    assert found["many"]["rc"] != 0, "empty files are limited too"


def test_output_is_capped_while_the_command_runs_on(ask: Ask) -> None:
    found = ask("log_flood")
    assert (found["ended"]["rc"], found["ended"]["num_stdout"]) == (3, 1000)
    assert (found["endless"]["worker"], found["endless"]["num_stdout"]) == ("timeout", 1000)


def test_daemons_are_dead_when_exec_returns(ask: Ask) -> None:
    found = ask("daemons")
    assert (found["stdout"], found["left"]) == ("started\n", 0)


def test_a_timeout_is_kept_within_a_second(ask: Ask) -> None:
    found = ask("timeout")
    for run in found["runs"]:
        assert run["worker"] == "timeout"
        assert 1.0 <= run["seconds"] < 2.0
        assert run["left"] == 0
    assert found["after"]["stdout"] == "well\n"


def test_links_lead_nowhere(ask: Ask) -> None:
    found = ask("links")
    assert (found["edited"], found["made"], found["put"]) == ("edited", "made", "put")
    assert found["gone"] == found["get"] == "FileNotFoundError"
    for name in ("put through", "put outside", "edit through", "edit up", "edit outside", "edit fixed"):
        assert found[name] == "SandboxError", name
    assert (found["outside"], found["layer"]) == (["untouched"], ["a.txt", "file", "folder"])


def test_snapshots_are_layers_without_set_id_bits(ask: Ask) -> None:
    found = ask("snapshots")
    assert found["modes"]["n.txt"] == "0o777"
    assert "pipe" not in found["modes"]
    assert found["link"] == "/etc/shadow"
    assert found["again"]["stdout"].split() == [".", "./deep", "./deep/c", "./l", "./n.txt", "new"]
    assert found["owner"]


def test_nothing_is_left_behind(ask: Ask) -> None:
    found = ask("traces")
    assert found["existed"]
    assert found["left"] == []


def test_cpu_time_of_grandchildren_is_counted(ask: Ask) -> None:
    found = ask("accounting")
    assert 0.5 < found["cpu_s"] < 3
    assert found["peak_bytes"] > 50 << 20


# ----------------------------------------------------------------------------- violent ends
def until(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


SURVIVOR = """
import json, os, sys, threading, time
sys.path.insert(0, {folder!r})
import promises
if {bare}: promises.without_groups()
session = promises.opened()
work = lambda: promises.sh(session, "setsid sleep {marker} & sleep {marker}", timeout_s=60)
threading.Thread(target=work, daemon=True).start()
time.sleep(0.5)
print(json.dumps([session.holder, promises.session_folders(session)]), flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("bare", [False, True], ids=["groups", "no groups"])
@pytest.mark.parametrize("victims", ["parent", "holder", "both"])
def test_nothing_is_left_after_kill_9(victims: str, bare: bool) -> None:
    marker = f"99{os.getpid()}.5"
    script = SURVIVOR.format(folder=str(Path(__file__).parent), marker=marker, bare=bare)
    pipe = subprocess.PIPE
    parent = subprocess.Popen([sys.executable, "-"], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
    assert parent.stdin is not None
    assert parent.stdout is not None
    folders: list[str] = []
    try:
        parent.stdin.write(script.encode())
        parent.stdin.close()
        holder, folders = json.loads(parent.stdout.readline())
        assert promises.alive(marker) >= 2
        if victims in {"holder", "both"}:
            os.kill(holder, signal.SIGKILL)
        if victims in {"parent", "both"}:
            parent.kill()
        assert until(lambda: promises.alive(marker) == 0)
        if victims == "parent":
            assert until(lambda: not any(Path(f).exists() for f in folders))
            assert until(lambda: not Path(f"/proc/{holder}").exists())
        mounts = Path("/proc/self/mountinfo").read_text()
        assert not any(folder in mounts for folder in folders)
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()
        for folder in folders:
            for remove in (os.rmdir, shutil.rmtree):
                if Path(folder).exists():
                    with_errors_ignored(remove, folder)


def with_errors_ignored(action: Callable[[str], object], folder: str) -> None:
    try:
        action(folder)
    except OSError:
        return


def test_a_killed_holder_is_an_infrastructure_failure_and_leaves_nothing() -> None:
    session = promises.opened()
    folders = promises.session_folders(session)
    threading.Timer(0.5, lambda: os.kill(session.holder, signal.SIGKILL)).start()  # type: ignore[attr-defined]
    with pytest.raises(SandboxError, match="ended unexpectedly"):
        promises.sh(session, "sleep 30", timeout_s=60)
    session.close()
    session.close()
    assert not any(Path(folder).exists() for folder in folders)
    with pytest.raises(SandboxError, match="closed"):
        promises.sh(session, "true")


def test_sweep_removes_old_leftovers_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name in ("excise-stage-old", "excise-stage-new", "somebody-else"):
        (tmp_path / name / "inside").mkdir(parents=True)
    for name in ("excise-stage-old", "somebody-else"):
        os.utime(tmp_path / name, (1, 1))
    assert backend.sweep() >= 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["excise-stage-new", "somebody-else"]


def test_a_missing_bubblewrap_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(SandboxError, match="apt-get install bubblewrap"):
        promises.opened(root=Path("/nonexistent"))


def test_a_layer_that_is_gone_is_said() -> None:
    with pytest.raises(SandboxError, match="The sandbox failed"):
        promises.opened(root=Path("/nonexistent"))


def test_a_snapshot_that_fails_is_an_error_and_the_session_lives(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    with promises.opened() as session:
        promises.sh(session, "echo x >/testbed/x")
        with pytest.raises(SandboxError, match="no snapshot of /testbed"):
            session.snapshot("/testbed", tmp_path)
        with pytest.raises(SandboxError, match="no snapshot of /fixed"):
            session.snapshot("/fixed", tmp_path / "other")
        assert promises.sh(session, "echo well").stdout == b"well\n"


def test_programs_that_cannot_start() -> None:
    with promises.opened() as session:
        done = session.exec(["/no/such/program"], timeout_s=10)
        assert done.rc == 127
        assert b"No such file" in done.stderr
        assert promises.sh(session, "echo 'bwrap: mine' >&2; exit 2").rc == 2


def test_many_sessions_do_not_disturb_each_other() -> None:
    sessions = [promises.opened(Policy(disk_bytes=16 << 20)) for _ in range(4)]
    try:
        for number, session in enumerate(sessions):
            session.put("/testbed/me", str(number).encode())
        assert [session.get("/testbed/me") for session in sessions] == [b"0", b"1", b"2", b"3"]
    finally:
        for session in sessions:
            session.close()
