"""Probes of what every sandbox guarantees: each runs real commands and returns plain facts for a test to check.

Standard library and excise only, so that it can run as a script for another user:
``python sandbox_probes.py BACKEND NAME``.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import excise.envs.bubblewrap.bubblewrap_sandbox as bubblewrap
from excise.envs.bubblewrap import zygote_client
from excise.envs.bubblewrap.bubblewrap_sandbox import BubblewrapSandbox
from excise.protocols import Completed, Mount, Policy, Sandbox, Session

ENV = {"PATH": "/usr/bin:/bin", "HOME": "/home/agent", "LC_ALL": "C.UTF-8"}
PYTHON = "/usr/bin/python3"
MB = 1 << 20
SELECTED = {"backend": "bubblewrap"}
"""The backend that the probes use."""


def sandbox() -> Sandbox:
    """An instance of that backend."""
    if SELECTED["backend"] == "bubblewrap":
        return BubblewrapSandbox()
    from excise.envs.docker.docker_sandbox import DockerSandbox

    return DockerSandbox()


def zygote_folder() -> str:
    """The temporary folder of this process's zygote; empty if it has none."""
    zygote = zygote_client._Current.zygote
    return zygote.base if zygote is not None else ""


_scratch: list[Path] = []


def scratch() -> Path:
    """A new folder that is removed when this process ends."""
    _scratch.append(Path(tempfile.mkdtemp(prefix="probe-")))
    return _scratch[-1]


@atexit.register
def remove_scratch() -> None:
    """Remove what :func:`scratch` made. Processes of pytest-xdist skip exit handlers, so they have to call this."""
    while _scratch:
        shutil.rmtree(_scratch.pop(), ignore_errors=True)


def layer(files: dict[str, str]) -> Path:
    """A folder with files that every user can read and write, like a layer of the cache."""
    root = scratch()
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    for path in (root, *root.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
        os.utime(path, (1_700_000_001, 1_700_000_001))  # equal content, equal image
    return root


def opened(
    policy: Policy | None = None, root: Path | None = None, edits: dict[str, bytes | None] | None = None
) -> Session:
    """A session with one writable mount."""
    layers = (str(root or layer({"a.txt": "first\n", "deep/b.txt": "second\n"})),)
    mounts = [Mount(target="/testbed", layers=layers, writable=True), Mount(target="/fixed", layers=layers)]
    return sandbox().open(mounts, policy or Policy(), env=ENV, edits=edits)


def sh(session: Session, script: str, *arguments: str, timeout_s: float = 30.0) -> Completed:
    return session.exec(["/bin/sh", "-c", script, "sh", *arguments], timeout_s=timeout_s)


def py(session: Session, script: str, *, timeout_s: float = 30.0) -> Completed:
    return session.exec([PYTHON, "-I", "-c", script], timeout_s=timeout_s)


def facts(done: Completed) -> dict[str, object]:
    return {
        "worker": str(done.worker),
        "rc": done.rc,
        "stdout": done.stdout[-400:].decode(errors="replace"),
        "stderr": done.stderr[-400:].decode(errors="replace"),
        "num_stdout": len(done.stdout),
        "wall_s": done.wall_s,
        "cpu_s": done.cpu_s,
        "peak_bytes": done.peak_bytes,
    }


def children(pid: int) -> list[int]:
    """Pids of child processes."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(marker: str) -> int:
    """Processes of the host whose command line holds the marker."""
    count = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                count += marker.encode() in (entry / "cmdline").read_bytes()
            except OSError:
                continue
    return count


# -------------------------------------------------------------------------------------- the probes
def identity() -> dict[str, object]:
    with opened() as session:
        return facts(sh(session, "id -u; cat /proc/self/status | grep -E '^(CapEff|NoNewPrivs)'; hostname; env | sort"))


def network() -> dict[str, object]:
    script = """
import socket
for address in (("1.1.1.1", 53), ("127.0.0.1", 22)):
    try:
        socket.create_connection(address, timeout=3)
        print("reached", address)
    except OSError as error:
        print("refused", error.errno)
try:
    print(socket.getaddrinfo("example.com", 80))
except OSError:
    print("no names")
print(sorted(name for _, name in socket.if_nameindex()))
"""
    with opened() as session:
        return facts(py(session, script))


def host_files() -> dict[str, object]:
    secret = layer({"secret.txt": "hidden"})
    closed = (
        "/etc/shadow /root/. /home/agent/../root/. /proc/1/root/etc/shadow /proc/1/environ /sys/kernel /var/log /boot"
    )
    paths = [str(secret / "secret.txt"), *closed.split(), "/mnt/.", "/run/dbus", "/dev/sda", "/dev/mem"]
    with opened() as session:
        done = sh(
            session, 'for f in "$@"; do if [ -d "$f" ]; then ls -A "$f"; else cat "$f"; fi 2>/dev/null; done', *paths
        )
        return facts(done)


def writes() -> dict[str, object]:
    targets = ["/testbed/new", "/tmp/new", "/home/agent/new", "/dev/shm/new", "/excise/out/new"]
    closed = "/new /usr/new /etc/new /fixed/new /excise/new /dev/new /run/new /var/tmp/new /proc/new /etc/passwd"
    root = layer({"a.txt": "first\n"})
    with opened(root=root) as session:
        done = sh(
            session,
            'for f in "$@"; do if echo x 2>/dev/null >"$f"; then echo "$f"; fi 2>/dev/null; done',
            *targets,
            *closed.split(),
            "/fixed/a.txt",
        )
        sh(session, "rm /testbed/a.txt; echo changed >/testbed/b.txt")
        left = sorted(path.name for path in root.iterdir())
        return facts(done) | {"targets": targets, "layer": left, "text": (root / "a.txt").read_text()}


def proc_sys() -> dict[str, object]:
    names = ["kernel/core_pattern", "kernel/modprobe", "vm/drop_caches", "kernel/hostname", "user/max_user_namespaces"]
    before = Path("/proc/sys/kernel/core_pattern").read_text()
    with opened() as session:
        done = sh(session, 'for f in "$@"; do echo "|/x" 2>/dev/null >/proc/sys/$f && echo "$f"; done; '
                  "echo b 2>/dev/null >/proc/sysrq-trigger && echo sysrq; unshare -Ur true 2>/dev/null && echo userns; "
                  "mount -t tmpfs x /tmp 2>/dev/null && echo mount; true", *names)  # fmt: skip
    return facts(done) | {"same": Path("/proc/sys/kernel/core_pattern").read_text() == before}


def fork_bomb() -> dict[str, object]:
    script = """
import os, time
most = 0
while True:
    try:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        most += 1
    except OSError as error:
        print(most, error.errno, flush=True)
        break
"""
    with opened(Policy(pids=40)) as session:
        polite = facts(py(session, script, timeout_s=10))
        rude = facts(sh(session, "f() { f | f & f; }; f", timeout_s=2))
        after = facts(sh(session, "echo well"))
        return {"polite": polite, "rude": rude, "after": after}


def memory_hog() -> dict[str, object]:
    hog = "held = []\nwhile True: held.append(bytearray(4 << 20))"
    many = """
import os, sys, time
for _ in range(6):
    if os.fork() == 0:
        held = [bytearray(1 << 20) for _ in range(40)]
        time.sleep(4)
        os._exit(0)
codes = [os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(6)]
sys.exit(1 if -9 in codes else 0)
"""
    with opened(Policy(memory_bytes=160 * MB)) as session:
        one = facts(py(session, hog, timeout_s=30))
        together = facts(py(session, many, timeout_s=30))
        after = facts(sh(session, "echo well"))
        return {"one": one, "together": together, "after": after}


def disk_filler() -> dict[str, object]:
    script = 'for f in "$@"; do dd if=/dev/zero of="$f" bs=1M count=200 2>&1 | tail -1; stat -c %s "$f"; done'
    many = "i=0; while : >/tmp/many.$i; do i=$((i+1)); [ $i -gt 40000 ] && break; done 2>/dev/null; echo $i"
    with opened(Policy(disk_bytes=16 * MB, memory_bytes=400 * MB)) as session:
        done = facts(
            sh(session, script, "/tmp/big", "/testbed/big", "/dev/shm/big", "/home/agent/big", "/excise/out/big")
        )
        free = facts(sh(session, "sleep 0.5; rm -f /excise/out/big && echo report >/excise/out/r && cat /excise/out/r"))
        sh(session, "rm -f /tmp/big /testbed/big /dev/shm/big /home/agent/big")
        return {"fill": done, "report": free, "many": facts(sh(session, many))}


def log_flood() -> dict[str, object]:
    with opened(Policy(output_bytes=1000)) as session:
        ended = facts(sh(session, "head -c 50000000 /dev/zero | tr '\\0' y; head -c 5000000 /dev/zero >&2; exit 3"))
        endless = facts(sh(session, "yes", timeout_s=1))
        return {"ended": ended, "endless": endless}


def daemons() -> dict[str, object]:
    marker = f"77{os.getpid()}.25"
    script = (
        f"setsid sleep {marker} & (setsid setsid sleep {marker} &) ; nohup sleep {marker} >/dev/null 2>&1 & "
        f"(trap '' HUP TERM; exec sleep {marker}) & echo started"
    )
    with opened() as session:
        done = facts(sh(session, script))
        return done | {"left": alive(marker)}


def timeout() -> dict[str, object]:
    marker = f"88{os.getpid()}.25"
    results = []
    with opened() as session:
        for script in (f"sleep {marker}", f"trap '' TERM INT; setsid sleep {marker} & while :; do sleep 1; done"):
            began = time.monotonic()
            done = facts(sh(session, script, timeout_s=1.0))
            results.append({"seconds": time.monotonic() - began, "left": alive(marker), **done})
        return {"runs": results, "after": facts(sh(session, "echo well"))}


def links() -> dict[str, object]:
    """Links in the repository must not lead edits, put or get to files of the host."""
    outside = layer({"victim.txt": "untouched", "folder/victim.txt": "untouched"})
    root = layer({"a.txt": "first\n"})
    (root / "file").symlink_to(outside / "victim.txt")
    (root / "folder").symlink_to(outside / "folder")
    found: dict[str, object] = {}
    with opened(root=root, edits={"/testbed/file": b"edited", "/testbed/new/deep.txt": b"made"}) as session:
        found["edited"] = session.get("/testbed/file").decode()
        found["made"] = session.get("/testbed/new/deep.txt").decode()
        session.put("/testbed/put.txt", b"put")
        found["put"] = session.get("/testbed/put.txt").decode()
        session.put("/testbed/put.txt", None)
        for name, action in (
            ("gone", lambda: session.get("/testbed/put.txt")),
            ("get", lambda: session.get("/testbed/folder/victim.txt")),
            ("put through", lambda: session.put("/testbed/folder/victim.txt", b"broken")),
            ("put outside", lambda: session.put("/usr/lib/x.py", b"broken")),
        ):
            found[name] = refused(action)
    for name, path in (("edit through", "/testbed/folder/victim.txt"), ("edit up", "/testbed/../etc/passwd"),
                       ("edit outside", "/usr/lib/x.py"), ("edit fixed", "/fixed/a.txt")):  # fmt: skip
        found[name] = refused(lambda path=path: opened(root=root, edits={path: b"broken"}))
    texts = {path.read_text() for path in outside.rglob("*") if path.is_file()}
    return found | {"outside": sorted(texts), "layer": sorted(p.name for p in root.iterdir())}


def refused(action: Callable[[], object]) -> str:
    try:
        done = action()
    except Exception as error:
        return type(error).__name__
    if hasattr(done, "close"):
        done.close()
    return ""


def snapshots() -> dict[str, object]:
    root = layer({"a.txt": "first\n", "deep/b.txt": "second\n"})
    into = scratch() / "made"
    with opened(root=root) as session:
        sh(
            session,
            "cd /testbed; rm a.txt; echo new >n.txt; chmod 4755 n.txt; ln -s /etc/shadow l; mkfifo pipe; "
            "rm -r deep; mkdir deep; touch deep/c",
        )
        session.snapshot("/testbed", into)
    modes = {path.name: oct(path.lstat().st_mode & 0o7777) for path in into.rglob("*") if not path.is_symlink()}
    with sandbox().open(
        [Mount(target="/testbed", layers=(str(into), str(root)), writable=True)], Policy(), env=ENV
    ) as again:
        seen = facts(sh(again, "cd /testbed; find . | sort; cat n.txt"))
    return {"modes": modes, "link": os.readlink(into / "l"), "again": seen, "owner": into.stat().st_uid == os.geteuid()}


def forks() -> dict[str, object]:
    """A session is forked; each of the two reports its own changes."""
    root = layer({"a.txt": "first\n", "deep/b.txt": "second\n", "bin.dat": "\0\1"})
    with opened(root=root) as session:
        sh(session, "cd /testbed; echo more >>a.txt; rm deep/b.txt; printf '\\0\\2' >bin.dat; echo n >new.txt")
        with session.fork() as other:
            sh(other, "echo other >/testbed/other; rm /testbed/a.txt")
            theirs = facts(sh(other, "cd /testbed; find . -type f | sort; cat new.txt"))
            patch = other.diff("/testbed").decode(errors="replace")
        ours = facts(sh(session, "cd /testbed; find . -type f | sort; cat a.txt"))
        wrong = refused(lambda: session.diff("/fixed"))
    left = [p.name for p in Path(tempfile.gettempdir()).glob(f"excise-fork-{os.getpid()}-*")]
    return {"ours": ours["stdout"], "theirs": theirs["stdout"], "patch": patch, "wrong": wrong, "left": left}


def cpu_hog() -> dict[str, object]:
    """Four processes that compute for a second share half a core, if the machine can enforce that."""
    script = """
import os, time
began = time.time()
for _ in range(2):
    os.fork()
while time.time() - began < 1.5: pass
"""
    how = bubblewrap.enforced_limits() if SELECTED["backend"] == "bubblewrap" else sandbox().capabilities().how
    if "cpus" not in how:
        return {"given": False, "refused": refused(lambda: opened(Policy(cpus=0.5)))}
    with opened(Policy(cpus=0.5)) as session:
        return {"given": True, **facts(py(session, script + "\nos.system('sleep 0.2')"))}


def traces() -> dict[str, object]:
    """What is left on the host after a session ended."""
    with opened() as session:
        sh(session, "echo x >/testbed/x; setsid sleep 5 &")
        folders = session_folders(session)
        existed = [Path(f).exists() for f in folders]
    stages = len(list(Path(tempfile.gettempdir()).glob(f"excise-stage-{os.getpid()}-*")))
    return {"existed": all(existed), "left": [f for f in folders if Path(f).exists()], "stages": stages}


def session_folders(session: Session) -> list[str]:
    """Folders of the host that belong to a session: its control groups, or where its results are kept."""
    if SELECTED["backend"] == "bubblewrap":
        return list(session.groups)  # type: ignore[attr-defined]
    return [str(session.out)]


def accounting() -> dict[str, object]:
    script = "import time; t=time.process_time()\nwhile time.process_time()-t<0.6: pass\nx=bytearray(60<<20)"
    with opened() as session:
        sh(session, "true")
        return facts(py(session, f"import subprocess,sys\nsubprocess.run([sys.executable,'-c',{script!r}])\n"))


def signals() -> dict[str, object]:
    """The signals that a new command ignores or blocks; read in a shell, since Python changes some."""
    with opened() as session:
        done = sh(session, "grep -E '^Sig(Ign|Blk)' /proc/self/status")
    return {"masks": done.stdout.decode().split()}


PROBES: dict[str, Callable[[], dict[str, object]]] = {
    function.__name__: function
    for function in (
        identity, network, host_files, writes, proc_sys, fork_bomb, memory_hog, disk_filler, log_flood, daemons,
        timeout, links, snapshots, forks, traces, accounting, signals, cpu_hog,
    )
}  # fmt: skip


def without_groups() -> None:
    """Act as on a machine without control groups."""
    bubblewrap.writable_groups = dict


def main() -> None:
    """Run one probe and print its facts."""
    import escape_probes
    import fork_probes

    SELECTED["backend"] = sys.argv[1]
    print(json.dumps((PROBES | escape_probes.ESCAPES | fork_probes.FORKS)[sys.argv[2]]()))


if __name__ == "__main__":
    sys.modules["sandbox_probes"] = sys.modules["__main__"]
    main()
