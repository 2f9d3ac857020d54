"""The supervisor process of one sandbox, forked by :mod:`excise.envs.bubblewrap.zygote`.

It enters a mount namespace, builds the sandbox's mounts on a tmpfs of limited size, and starts bubblewrap once per
command. It is forked before its sandbox is requested, because the kernel needs 10 ms or more to move a process into
control groups. When the socket to the worker closes, however the worker ended, the supervisor kills all processes of
the sandbox and exits, and all mounts disappear with the namespace.

Requests are JSON lines on the socket: ``exec`` (with three file descriptors), ``kill``, ``snapshot``; a sandbox with a
fork server also takes ``begin`` and ``end``, between which it serves one session after the other.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import socket
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from excise.envs.bubblewrap.control_groups import (
    ControlGroups,
    descendants,
    kill_and_reap_all,
    kill_largest_if_over,
    remove_groups,
)
from excise.envs.bubblewrap.kernel_calls import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_PDEATHSIG,
    check,
    enter_copied_namespace,
    libc,
)
from excise.envs.bubblewrap.server_connection import SERVER_FD, CannotServe, ServerConnection, server_command
from excise.envs.bubblewrap.session_mounts import SessionMounts
from excise.envs.bubblewrap.shared_root import SharedRoot

SLOT_UID_BASE = 1 << 30
"""First host uid of sandboxes. The supervisor's pid is added, so that no two live sandboxes share a uid."""
MAX_OPEN_FILES = 4096
"""Limit of open files of one process; equal on every machine whose own limit is not lower."""
MEMORY_POLL_S = 0.05
"""Interval for measuring memory where there is no control group, in seconds."""
FILTER_FD = 3
"""File descriptor from which bubblewrap reads the filter of system calls."""


class Ending(NamedTuple):
    """How the wait for a command ended."""

    killed: bool = False
    """Whether the worker requested a kill."""
    gone: bool = False
    """Whether the worker is gone."""
    ooms: int = 0
    """Processes that were killed here because memory ran out."""
    answer: dict[str, Any] | None = None
    """What a fork server answered; ``None`` if the command or the server ended."""


class Supervisor:
    """The state of one sandbox: namespace, mounts, control groups and running command."""

    control: socket.socket
    """Connection to the worker; set when the session begins."""

    def __init__(self, shared: SharedRoot) -> None:
        self.shared = shared
        self.privileged = os.geteuid() == 0
        self.uid = SLOT_UID_BASE + os.getpid() if self.privileged else os.getuid()
        self.groups = ControlGroups(shared.owner)
        self.config: dict[str, Any] = {}
        self.policy: dict[str, Any] = {}
        self.mounts = SessionMounts(shared, self.privileged)
        self.child = 0
        self.preforked: socket.socket | None = None
        self.server: ServerConnection | None = None
        """Connection to the fork server, while there is one; ``child`` is then its bubblewrap."""
        self.residents: frozenset[int] = frozenset()
        """Pids of bubblewrap and the fork server: the processes of the sandbox between two runs."""
        self.edited: list[str] = []
        """Paths that the session's edits changed."""
        self.received = b""

    def start_early(self) -> None:
        """Set up what does not depend on the session: namespace, control groups, process for the first command."""
        check(libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")
        enter_copied_namespace()
        self.groups.make(root for name, root in self.shared.plan["cgroups"].items() if name != "cpu")
        self.prefork_command()

    def configure(self, config: dict[str, Any]) -> None:
        """Set the limits, and build the mounts or start the fork server."""
        self.config, self.policy = config, config["policy"]
        self.groups.limit(config["cgroups"], self.policy)
        if config["fork_server"]:
            self.mounts.build_read_only(config)
            self.start_server()
        else:
            self.mounts.build(config)

    def make_edits(self, edits: Iterable[tuple[str, int | None]]) -> None:
        """Make the edits of a session, whose contents follow on the socket."""
        for path, size in edits:
            self.mounts.edit(path, size, self.read)

    # ----------------------------------------------------------------------------- fork server
    def start_server(self) -> None:
        """Start the fork server and wait until it is ready. Raises ``OSError``."""
        spec = self.config["fork_server"]
        server = ServerConnection()
        request = {"argv": server_command(spec["argv"]), "env": spec["env"], "process_1": True}
        self.start(request, server.descriptors)
        server.wait_until_ready(self.mounts.attach)
        self.mounts.detach()
        self.server, self.residents = server, self.processes()

    def processes(self) -> frozenset[int]:
        """Pids of all processes of the sandbox, as this namespace sees them."""
        for group in self.groups.folders:
            with open(f"{group}/cgroup.procs") as lines:
                return frozenset(map(int, lines))
        return frozenset(descendants(os.getpid()))

    def begin(self, edits: Sequence[tuple[str, int | None]]) -> int:
        """Begin a session with fresh mounts; return a descriptor of its folder of results.

        Raises ``OSError`` if the fork server has ended since the last session.
        """
        self.mounts.attach()
        self.make_edits(edits)
        self.edited = [path for path, _ in edits]
        if os.waitid(os.P_PID, self.child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            raise OSError("the fork server has ended")
        return self.mounts.open_out()

    def run_forked(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any] | None:
        """Let the fork server run its command; ``None`` if it refuses, and then the descriptors stay open."""
        assert self.server is not None
        cwd = request.get("cwd") or self.config["cwd"]
        environ = {**self.config["env"], **request.get("env", {}), "PWD": cwd}
        ooms, began = self.groups.ooms(), self.groups.cpu_s()
        self.server.request_run({"env": environ, "cwd": cwd, "edited": self.edited}, fds)
        ending = self.wait_for_command(self.server)
        if ending.answer is not None and "refused" in ending.answer:
            return None
        for fd in fds:
            os.close(fd)
        if ending.answer is None:
            report = self.finish(ending, ooms, began)
            if not report["killed"] and not report["oom"]:  # no process of the sandbox can end it
                raise OSError("the fork server ended during a run")
            return report
        # A run may have rewritten the server's memory, so that some processes were spared.
        if ending.killed or not ending.answer["reusable"] or self.processes() != self.residents:
            self.stop_server()
        rc = os.waitstatus_to_exitcode(ending.answer["status"])
        return {
            "rc": rc,
            "killed": ending.killed,
            "oom": self.groups.ooms() - ooms + ending.ooms > 0 and rc != 0,
            "cpu_s": max(ending.answer["cpu_s"], self.groups.cpu_s() - began),
            "peak_bytes": 0,  # the group's peak is that of all runs
        }

    def stop_server(self) -> None:
        """End the fork server, if there is one, and everything in its sandbox."""
        if self.server is not None:
            self.forget_server()
            self.kill()
            os.waitpid(self.child, 0)
            self.child = 0
            kill_and_reap_all()

    def forget_server(self) -> None:
        """Close what leads to the fork server, if there is one."""
        if self.server is not None:
            self.server.close()
            self.server = None

    # ------------------------------------------------------------------------------------- exec
    def command(self, request: dict[str, Any]) -> list[str]:
        """Return the command line of bubblewrap for one command."""
        line = [self.config["bwrap"], "--unshare-all", "--unshare-user", "--disable-userns"]
        if self.policy["network"]:
            line.append("--share-net")
        if request.get("process_1"):
            line.append("--as-pid-1")
        line += ["--uid", "1000", "--gid", "1000", "--hostname", "sandbox", "--die-with-parent", "--new-session"]
        line += ["--cap-drop", "ALL", "--clearenv"]
        if self.config["filter"]:
            line += ["--seccomp", str(FILTER_FD)]
        line += self.mounts.arguments()
        for name, value in {**self.config["env"], **request.get("env", {})}.items():
            line += ["--setenv", name, value]
        line += ["--chdir", request.get("cwd") or self.config["cwd"], "--"]
        if not self.groups.folders:  # inside bubblewrap, so that the user's other processes do not count
            line += [self.config["prlimit"], f"--nproc={self.policy['pids']}", "--"]
        return line + list(request["argv"])

    def prefork_command(self) -> None:
        """Fork the process of the next command before the command is known, so that it can join the groups early."""
        ours, theirs = socket.socketpair()
        self.child = os.fork()
        if self.child == 0:
            ours.close()
            self.become_command(theirs)
        theirs.close()
        self.preforked = ours

    def start(self, request: dict[str, Any], fds: list[int]) -> None:
        """Start bubblewrap in the preforked child, with three descriptors for its streams and perhaps a fourth one."""
        if self.preforked is None:
            self.prefork_command()
        assert self.preforked is not None
        command = {"line": self.command(request), "filter": self.config["filter"], "groups": self.groups.folders}
        data = json.dumps(command).encode() + b"\n"
        # If the child has died, its exit code tells what happened.
        with self.preforked as pipe, contextlib.suppress(ConnectionError):
            sent = socket.send_fds(pipe, [data], fds)
            pipe.sendall(data[sent:])
        self.preforked = None
        for fd in fds:
            os.close(fd)

    def become_command(self, pipe: socket.socket) -> None:
        """In the child: join the groups, wait for the command, and execute bubblewrap as the sandbox's own user."""
        try:
            # An inherited socket would stay open here, and its other end would wait for it to close.
            os.closerange(FILTER_FD, pipe.fileno())
            os.closerange(pipe.fileno() + 1, 1 << 16)
            self.groups.join(self.groups.made)
            command = receive_command(pipe)
            self.groups.join(command["groups"])
            line = command["line"]
            place_filter(bytes.fromhex(command["filter"]))
            os.closerange(command["next_fd"], 1 << 16)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            hard = min(MAX_OPEN_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            if self.privileged:
                os.setgroups([])
                os.setresgid(self.uid, self.uid, self.uid)
                os.setresuid(self.uid, self.uid, self.uid)
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            reset_signals()
            os.execv(line[0], line)
        except BaseException as error:
            os.write(2, f"excise: cannot start the sandbox: {error}\n".encode())
        os._exit(127)

    def run(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Run one command until it ends, or until the worker requests ``kill`` or closes the socket."""
        if request.get("forked") and self.server is not None:
            reply = self.run_forked(request, fds)
            if reply is not None:
                return reply
        self.stop_server()
        ooms, began = self.groups.ooms(), self.groups.cpu_s()
        self.start(request, fds)
        return self.finish(self.wait_for_command(), ooms, began)

    def finish(self, ending: Ending, ooms: int, began: float) -> dict[str, Any]:
        """The report on a command that has ended; ``ooms`` and ``began`` are what the counters showed before it."""
        _, status, usage = os.wait4(self.child, 0)
        self.child = 0
        self.forget_server()
        self.groups.kill()
        cpu_s, peak = kill_and_reap_all()
        if ending.gone:
            raise EOFError
        rc = os.waitstatus_to_exitcode(status)
        ooms = self.groups.ooms() - ooms + ending.ooms
        return {
            "rc": rc if rc <= 128 or rc > 192 else -(rc - 128),
            "killed": ending.killed,
            "oom": ooms > 0 and rc != 0,
            "cpu_s": max(usage.ru_utime + usage.ru_stime + cpu_s, self.groups.cpu_s() - began),
            "peak_bytes": self.groups.peak_bytes() or max(peak, usage.ru_maxrss * 1024),
        }

    def wait_for_command(self, server: ServerConnection | None = None) -> Ending:
        """Wait until the command ends, or until the fork server ends or answers."""
        pidfd = os.pidfd_open(self.child)
        sources: list[Any] = [pidfd, self.control, *([server] if server else [])]
        ending = Ending()
        poll = None if self.groups.folders else MEMORY_POLL_S
        try:
            while True:
                ready = select.select(sources, [], [], poll)[0]
                if pidfd in ready:
                    return ending
                if server is not None and server in ready:
                    answer = server.receive_answer()
                    if answer is not None:
                        return ending._replace(answer=answer)
                    sources.remove(server)
                    self.kill()
                if self.control in ready:
                    gone = not self.control.recv(65536)
                    ending = ending._replace(killed=True, gone=gone)
                    if gone:
                        sources.remove(self.control)
                    self.kill()
                elif not ready and not ending.killed:
                    over = kill_largest_if_over(self.policy["memory_bytes"])
                    ending = ending._replace(ooms=ending.ooms + over)
        finally:
            os.close(pidfd)

    def kill(self) -> None:
        """Kill the command; all processes of bubblewrap's pid namespace die with it."""
        if self.child:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.child, signal.SIGKILL)
        self.groups.kill()

    # ---------------------------------------------------------------------------------- requests
    def receive(self) -> tuple[dict[str, Any], list[int]]:
        """The next request and its descriptors. Raises ``EOFError`` when the socket closes."""
        fds: list[int] = []
        while b"\n" not in self.received:
            more, extra, _, _ = socket.recv_fds(self.control, 1 << 20, 3)
            if not more:
                raise EOFError
            self.received += more
            fds += extra
        line, _, self.received = self.received.partition(b"\n")
        request: dict[str, Any] = json.loads(line)
        return request, fds

    def read(self, size: int) -> bytes:
        """The next bytes on the socket. Raises ``EOFError`` when it closes."""
        chunks = [self.received[:size]]
        self.received = self.received[size:]
        missing = size - len(chunks[0])
        while missing:
            chunks.append(self.control.recv(min(missing, 1 << 20)))
            if not chunks[-1]:
                raise EOFError
            missing -= len(chunks[-1])
        return b"".join(chunks)

    def serve(self) -> None:
        """Answer requests until the socket closes, which raises ``EOFError``."""
        while True:
            request, fds = self.receive()
            if "exec" in request:
                self.reply(self.run(request["exec"], fds))
            elif "snapshot" in request:
                self.reply(self.snapshot(request["snapshot"], request["into"]))
            elif "begin" in request:
                self.reply({}, self.begin(request["begin"]))
            elif "end" in request:
                self.mounts.detach()
                self.reply({"reusable": self.server is not None})
            # else: a kill for a command that has ended

    def reply(self, message: dict[str, Any], *fds: int) -> None:
        """Send an answer, with descriptors, which are closed here."""
        socket.send_fds(self.control, [json.dumps(message).encode() + b"\n"], list(fds))
        for fd in fds:
            os.close(fd)

    def snapshot(self, target: str, into: str) -> dict[str, Any]:
        """Copy a layer; a failure (such as a full disk) is reported and does not end the session."""
        try:
            self.mounts.snapshot(target, into)
        except (OSError, KeyError) as error:
            return {"error": f"no snapshot of {target}: {error}"}
        return {}

    def cleanup(self) -> None:
        """Remove all processes, control groups and mounts."""
        self.kill()
        kill_and_reap_all()
        remove_groups(self.groups.made)
        self.mounts.unmount()


def receive_command(pipe: socket.socket) -> dict[str, Any]:
    """Wait for a command, and make its descriptors this process's standard streams, a fourth one :data:`SERVER_FD`."""
    data, fds, _, _ = socket.recv_fds(pipe, 1 << 20, 4)
    while not data.endswith(b"\n"):
        more = pipe.recv(1 << 20)
        if not more:
            os._exit(0)  # the session ended without another command
        data += more
    for number, fd in zip((0, 1, 2, SERVER_FD), fds, strict=False):
        os.dup2(fd, number)
    if len(fds) > 3:
        os.set_inheritable(SERVER_FD, True)
    command: dict[str, Any] = json.loads(data)
    return command | {"next_fd": SERVER_FD + 1 if len(fds) > 3 else SERVER_FD}


def place_filter(program: bytes) -> None:
    """Write the filter to a memory file at :data:`FILTER_FD`."""
    file = os.memfd_create("filter", 0)
    os.write(file, program)
    os.lseek(file, 0, os.SEEK_SET)
    if file != FILTER_FD:
        os.dup2(file, FILTER_FD)


def reset_signals() -> None:
    """Restore default signal handling.

    The signals that the zygote ignores must not be ignored by tests: a process pool that ends its workers with SIGTERM
    would never end.
    """
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def supervise(handover: socket.socket, shared: SharedRoot) -> None:
    """Prepare a sandbox, receive the socket of a session on ``handover``, and serve it until that socket closes."""
    supervisor, failure = Supervisor(shared), ""
    try:
        supervisor.start_early()
    except OSError as error:
        failure = str(error)
    data, fds, _, _ = socket.recv_fds(handover, 1, 1)
    handover.close()
    if data:
        control = socket.socket(fileno=fds[0])
        if failure:
            control.sendall(json.dumps({"error": failure}).encode() + b"\n")
        else:
            serve_session(supervisor, control)
    supervisor.cleanup()


def serve_session(supervisor: Supervisor, control: socket.socket) -> None:
    """Configure the sandbox and serve requests until the socket closes."""
    supervisor.control = control
    with contextlib.suppress(EOFError, ConnectionError):
        try:
            config, _ = supervisor.receive()
            supervisor.configure(config)
            supervisor.make_edits(config["edits"])
            out = [] if config["fork_server"] else [supervisor.mounts.open_out()]
            ready = {"pid": os.getpid(), "groups": supervisor.groups.made, "cpu_s": supervisor.groups.cpu_s()}
            supervisor.reply(ready, os.pidfd_open(os.getpid()), *out)
            supervisor.serve()
        except (OSError, ValueError, KeyError) as error:
            reason = "cannot_serve" if isinstance(error, CannotServe) else None
            control.sendall(json.dumps({"error": str(error), "reason": reason}).encode() + b"\n")
