"""Probes of sandboxes with a fork server: each runs sessions one after the other and returns facts for a test to check.

Standard library and excise only; ``sandbox_probes.py`` runs them as another user.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from sandbox_probes import ENV, MB, PYTHON, alive, children, facts, layer, refused, sandbox

from excise.envs.bubblewrap import bubblewrap_session, forked_sessions
from excise.protocols import ForkServer, Mount, Policy, Session

HERE = Path(__file__).resolve()
PLACES = (
    HERE.with_name("excise_fork_server.py"),
    *(p / "extractors/python/inside/excise_fork_server.py" for p in HERE.parents),
)
PROGRAM = """
import json, os, signal, sys
sys.path[0] = os.getcwd()
FORKED = sys.argv[1:2] == ["--serve"]
if FORKED:
    number = int(sys.argv[2])
    del sys.argv[1:]
    sys.path.append("/served")
    import excise_fork_server
    sys.path.remove("/served")
    excise_fork_server.serve_importers(number, "/testbed")
exec(sys.stdin.read())
"""
COMMAND = ForkServer(argv=(PYTHON, "/served/program.py"), env={"EXTRA": "yes"})
DESCRIBE = """
import resource
with open("/proc/self/status") as lines:
    masks = [line for line in lines if line.startswith(("Sig", "Cap", "NoNewPrivs", "Seccomp:"))]
print(json.dumps({
    "environ": dict(os.environ), "cwd": os.getcwd(), "argv": sys.argv, "path": sys.path, "masks": masks,
    "descriptors": sorted(int(n) for n in os.listdir("/proc/self/fd"))[:-1], "leader": os.getsid(0) == os.getpid(),
    "limits": [resource.getrlimit(n) for n in range(16)], "id": [os.getuid(), os.getgid(), os.getgroups()],
    "seekable": [stream.seekable() for stream in (sys.stdin, sys.stdout, sys.stderr)], "nice": os.nice(0),
    "umask": os.umask(0), "main": sys.modules["__main__"].__file__, "file": open("a.txt").read(),
}))
"""
TRACES = """
import subprocess
marks = ["/testbed/mark", "/tmp/mark", "/dev/shm/mark", "/home/agent/mark", "/excise/out/mark"]
processes = [name for name in os.listdir("/proc") if name.isdigit()]
print(json.dumps([FORKED, [mark for mark in marks if os.path.exists(mark)], len(processes)]))
for mark in marks:
    open(mark, "w").close()
os.remove("/testbed/a.txt") if os.path.exists("/testbed/a.txt") else print("gone")
subprocess.Popen(["sleep", "MARKER"], start_new_session=True)
os.fork() or os.setsid() or os.execvp("sleep", ["sleep", "MARKER"])
"""


def opened(
    policy: Policy | None = None, edits: dict[str, bytes | None] | None = None, *, served: ForkServer | None = COMMAND,
    root: Path | None = None,
) -> Session:  # fmt: skip
    """A session on mounts that are the same each time."""
    program = _LAYERS.get("program") or _make_layers()
    layers = (str(root or _LAYERS["root"]),)
    mounts = [Mount(target="/testbed", layers=layers, writable=True), Mount(target="/served", layers=(str(program),))]
    return sandbox().open(mounts, policy or Policy(), env=ENV, edits=edits, fork_server=served)


_LAYERS: dict[str, Path] = {}


def _make_layers() -> Path:
    server = next(place for place in PLACES if place.exists())
    _LAYERS["program"] = layer({"program.py": PROGRAM, "excise_fork_server.py": server.read_text()})
    _LAYERS["root"] = layer({"a.txt": "first\n"})
    return _LAYERS["program"]


def serve(session: Session, script: str, *, timeout_s: float = 60.0) -> dict[str, object]:
    """What the served program does with a script."""
    done = session.exec(COMMAND.argv, timeout_s=timeout_s, stdin=script.encode(), env=COMMAND.env)
    return facts(done) | {"text": done.stdout.decode()}


def alone(script: str, policy: Policy | None = None, **options: object) -> dict[str, object]:
    """The same in a session of its own."""
    with opened(policy, **options) as session:  # type: ignore[arg-type]
        return serve(session, script)


ASK = "print(FORKED)"
CONNECT = """
import socket
server = socket.create_server(("127.0.0.1", PORT))
client = socket.create_connection(server.getsockname())
other, _ = server.accept()
client.close()
other.close()
print(FORKED)
"""


def descriptions() -> dict[str, object]:
    edits: dict[str, bytes | None] = {"/testbed/a.txt": b"edited\n"}
    forked, again = alone(DESCRIBE, edits=edits), alone(DESCRIBE, edits=edits)
    fresh = alone(DESCRIBE, edits=edits, served=None)
    return {"forked": forked["text"], "again": again["text"], "fresh": fresh["text"], "ask": alone(ASK)["stdout"]}


def traces() -> dict[str, object]:
    marker = f"66{os.getpid()}.25"
    runs = [alone(TRACES.replace("MARKER", marker))["text"].splitlines()[0] for _ in range(3)]  # type: ignore[attr-defined]
    return {"runs": [json.loads(run) for run in runs], "left": alive(marker)}


def kills() -> dict[str, object]:
    killing = "try: os.kill({}, signal.{})\nexcept OSError: pass\n"
    targets = [(-1, "SIGKILL"), (1, "SIGKILL"), (1, "SIGINT"), (1, "SIGTERM"), ("os.getpid()", "SIGKILL")]
    everything = "".join(killing.format(*target) for target in targets)
    killed = alone(everything)
    after = alone(ASK)
    with opened() as session:
        late = serve(session, "import time; time.sleep(3600)", timeout_s=1.0)
        second = serve(session, ASK)
    return {"killed": killed, "after": after, "late": late, "second": second, "next": alone(ASK)}


def memory() -> dict[str, object]:
    policy = Policy(memory_bytes=160 * MB)
    before = alone(ASK, policy)
    hog = alone("held = []\nwhile True: held.append(bytearray(4 << 20))", policy)
    return {"before": before, "hog": hog, "after": alone(ASK, policy)}


LEAVE = {
    "import ctypes; print(ctypes.CDLL(None).shmget(77, 4096, 0o1666) >= 0)":
    "print(len(open('/proc/sysvipc/shm').readlines()) - 1)",
    "import ctypes; print(ctypes.CDLL('librt.so.1').mq_open(b'/left', os.O_CREAT | os.O_RDWR, 0o600, None) >= 0)":
    "print(len(os.listdir('/dev/mqueue')))",
    "os.setpriority(os.PRIO_PROCESS, 1, 7); print(os.getpriority(os.PRIO_PROCESS, 1) == 7)": "print(os.nice(0))",
}  # fmt: skip


def leftovers() -> dict[str, object]:
    """What outlives the processes of a run: the sandbox must not be used again."""
    found = [(alone(leave)["stdout"], alone(count)["stdout"]) for leave, count in LEAVE.items()]
    return {"found": found, "next": alone(ASK)["stdout"]}


def survivors() -> dict[str, object]:
    """A server that spares a process of a run, and says that all is well."""
    marker = f"55{os.getpid()}.25"
    answer = json.dumps({"status": 0, "cpu_s": 0.1, "reusable": True})
    script = f"echo '{{\"ready\": true}}' >&4; while read request <&4; do sleep {marker} & echo '{answer}' >&4; done"
    served = ForkServer(argv=("/bin/sh", "/testbed/server.sh"), env={})
    with opened(Policy(pids=80), served=served, root=layer({"server.sh": script})) as session:
        done = facts(session.exec(served.argv, timeout_s=30.0))
        return {"rc": done["rc"], "left": alive(marker)}


def interrupted() -> dict[str, object]:
    """Ctrl-C during a run."""
    forward = bubblewrap_session.StreamForwarder.forward
    raised = ""
    try:
        with opened() as session:
            bubblewrap_session.StreamForwarder.forward = _interrupt  # type: ignore[method-assign]
            serve(session, "import time; time.sleep(3600)")
    except BaseException as error:
        raised = type(error).__name__
    finally:
        bubblewrap_session.StreamForwarder.forward = forward  # type: ignore[method-assign]
    return {"raised": raised, "next": alone(ASK)["stdout"]}


def _interrupt(*_: object) -> bool:
    raise KeyboardInterrupt


def missing_layer() -> dict[str, object]:
    """A layer that does not exist is an error of the sandbox, as without a fork server."""
    return {"raised": refused(lambda: opened(root=Path("/nowhere")))}


def shadowing() -> dict[str, object]:
    """A checkout whose files a fresh process would import instead of those that the server has imported."""
    edits: dict[str, bytes | None] = {"/testbed/keyword.py": b"", "/testbed/signal": b""}
    with opened(edits=edits) as session:
        first = serve(session, ASK)
        second = serve(session, ASK)
    return {"first": first, "second": second, "next": alone(ASK)["stdout"]}


def unfit() -> dict[str, object]:
    """A command that ends instead of serving."""
    broken = ForkServer(argv=("/bin/false",), env={})
    began = len(forked_sessions._idle.unfit)
    for _ in range(2):
        with opened(served=broken) as session:
            done = facts(session.exec(["/bin/echo", "well"], timeout_s=30))
    return {"done": done, "remembered": len(forked_sessions._idle.unfit) - began}


def misbehaving() -> dict[str, object]:
    """Servers that answer a run with anything but an answer; and a sound one afterwards."""
    found: dict[str, object] = {}
    for number, answer in enumerate(
        ("echo nonsense", "echo '{\"status\": -1}'", "echo '[1]'", "yes | tr -d '\\n'", "true")
    ):
        script = f"echo '{{\"ready\": true}}' >&4; read request <&4; {answer} >&4; exit 0"
        root = layer({"server.sh": script})
        served = ForkServer(argv=("/bin/sh", "/testbed/server.sh"), env={})
        with opened(Policy(pids=60 + number), served=served, root=root) as session:
            found[answer] = refused(
                lambda session=session: session.exec(("/bin/sh", "/testbed/server.sh"), timeout_s=30.0, env={})
            )
    return {"found": sorted(set(found.values())), "next": alone(ASK)["stdout"]}


def ended_while_waiting() -> dict[str, object]:
    """The server is killed from outside between two sessions."""
    first = alone(ASK)
    for _, waiting in forked_sessions._idle.waiting:
        for child in children(waiting.supervisor_pid):
            os.kill(child, signal.SIGKILL)
            while ") Z " not in Path(f"/proc/{child}/stat").read_text():
                time.sleep(0.01)
    return {"first": first["stdout"], "second": alone(ASK)["stdout"]}


def connections() -> dict[str, object]:
    """Runs whose connections are still closing when they end, at a port that they or the kernel have chosen.

    After three servers, runs are not forked any more.
    """
    policies = {"5000": Policy(pids=70), "0": Policy(pids=71)}
    return {port: [alone(CONNECT.replace("PORT", port), p)["stdout"] for _ in range(4)] for port, p in policies.items()}


def other_commands() -> dict[str, object]:
    """Other commands in the same session."""
    with opened() as session:
        serve(session, "open('/testbed/made', 'w').write('x')")
        text = session.get("/testbed/made").decode()
        session.put("/testbed/put", b"put")
        found = serve(session, "print(open('/testbed/put').read(), FORKED)")
    return {"text": text, "found": found, "next": alone(ASK)["stdout"]}


def waiting() -> dict[str, object]:
    """Sandboxes that wait for a session: few, and none after they are closed."""
    for number in range(forked_sessions.MAX_IDLE + 2):
        alone(ASK, Policy(pids=50 + number))
    count = len(forked_sessions._idle.waiting)
    pids = [sandbox.supervisor_pid for _, sandbox in forked_sessions._idle.waiting]
    forked_sessions.close_idle()
    deadline = time.monotonic() + 30.0
    while (living := [pid for pid in pids if Path(f"/proc/{pid}").exists()]) and time.monotonic() < deadline:
        time.sleep(0.05)
    return {"count": count, "alive": living}


def replaced_layer() -> dict[str, object]:
    """A layer that is removed and made again under the same name while a sandbox waits."""
    root = layer({"a.txt": "first\n"})
    show = "print(open('a.txt').read())"
    first = alone(show, root=root)
    (root / "a.txt").unlink()
    root.rmdir()
    root.mkdir()
    (root / "a.txt").write_text("second\n")
    root.chmod(0o777)
    return {"first": first["stdout"], "second": alone(show, root=root)["stdout"]}


FORKS: dict[str, Callable[[], dict[str, object]]] = {
    f"fork_{probe.__name__}": probe
    for probe in (
        descriptions, traces, kills, memory, leftovers, survivors, interrupted, missing_layer, shadowing, unfit,
        misbehaving, ended_while_waiting, connections, other_commands, waiting, replaced_layer,
    )
}  # fmt: skip
