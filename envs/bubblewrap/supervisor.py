"""The process that holds one sandbox's mounts; forked by :mod:`excise.envs.bubblewrap.zygote`.

It makes a mount namespace of its own, builds the mounts on a sized tmpfs, and starts bubblewrap once per command.
It begins before its sandbox is asked for: the kernel takes 10 ms and more to put a process into control groups.
When the socket to the worker closes, however the worker ended, it kills what runs, and all mounts vanish with the
namespace. Requests are JSON lines: ``exec`` (with three file descriptors), ``kill``, ``snapshot``.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import socket
from typing import Any

from excise.envs.bubblewrap.control_groups import Groups, reap, relieve, remove_groups
from excise.envs.bubblewrap.kernel_calls import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_PDEATHSIG,
    check,
    copy_namespace,
    libc,
)
from excise.envs.bubblewrap.session_mounts import Mounts
from excise.envs.bubblewrap.shared_root import Root

SLOT_UID_BASE = 1 << 30
"""Host uids of sandboxes start here; the holder's pid is added, so live sandboxes never share one."""
MAX_OPEN_FILES = 4096
"""Open files of one process: the same on every machine whose own limit is not lower."""
WATCH_S = 0.05
"""How often memory is looked at where there is no control group."""
FILTER_FD = 3
"""Where bubblewrap finds the filter of system calls."""


class Holder:
    """One sandbox: its namespace, its mounts, its control groups."""

    control: socket.socket
    """To the worker, once there is a session."""

    def __init__(self, shared: Root) -> None:
        self.shared = shared
        self.privileged = os.geteuid() == 0
        self.uid = SLOT_UID_BASE + os.getpid() if self.privileged else os.getuid()
        self.groups = Groups(shared.owner)
        self.config: dict[str, Any] = {}
        self.policy: dict[str, Any] = {}
        self.mounts = Mounts(shared, self.privileged)
        self.child = 0
        self.first: socket.socket | None = None

    def stand_by(self) -> None:
        """What every sandbox needs, whatever it will be: a namespace, control groups, a first process in them."""
        check(libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")
        copy_namespace()
        self.groups.make(root for name, root in self.shared.plan["cgroups"].items() if name != "cpu")
        self.expect_command()

    def prepare(self, config: dict[str, Any], control: socket.socket, edits: Any) -> None:
        """Limits, mounts, and edits (read from the stream ``edits``)."""
        self.config, self.policy, self.control = config, config["policy"], control
        self.groups.limit(config["cgroups"], self.policy)
        self.mounts.build(config)
        for path, size in config["edits"]:
            self.mounts.edit(path, size, edits.read)

    # ------------------------------------------------------------------------------------- exec
    def command(self, request: dict[str, Any]) -> list[str]:
        """bubblewrap's command line."""
        line = [self.config["bwrap"], "--unshare-all", "--unshare-user", "--disable-userns"]
        if self.policy["network"]:
            line.append("--share-net")
        line += ["--uid", "1000", "--gid", "1000", "--hostname", "sandbox", "--die-with-parent", "--new-session"]
        line += ["--cap-drop", "ALL", "--clearenv"]
        if self.config["filter"]:
            line += ["--seccomp", str(FILTER_FD)]
        line += self.mounts.arguments()
        for name, value in {**self.config["env"], **request.get("env", {})}.items():
            line += ["--setenv", name, value]
        line += ["--chdir", request.get("cwd") or self.config["cwd"], "--"]
        if not self.groups.folders:  # inside bubblewrap, so that the processes of the user's own session do not count
            line += [self.config["prlimit"], f"--nproc={self.policy['pids']}", "--"]
        return line + list(request["argv"])

    def expect_command(self) -> None:
        """Fork the process of the first command before it is known, so that it has joined the groups by then."""
        ours, theirs = socket.socketpair()
        self.child = os.fork()
        if self.child == 0:
            ours.close()
            self.become_command(theirs)
        theirs.close()
        self.first = ours

    def start(self, request: dict[str, Any], fds: list[int]) -> None:
        """Start bubblewrap in a child, with three descriptors."""
        if self.first is None:
            self.expect_command()
        assert self.first is not None
        what = {"line": self.command(request), "filter": self.config["filter"], "groups": self.groups.folders}
        data = json.dumps(what).encode() + b"\n"
        with self.first as pipe, contextlib.suppress(ConnectionError):  # a child that is gone tells by its exit code
            sent = socket.send_fds(pipe, [data], fds)
            pipe.sendall(data[sent:])
        self.first = None
        for fd in fds:
            os.close(fd)

    def become_command(self, pipe: socket.socket) -> None:
        """In the child: join the groups, wait for the command, become bubblewrap as the sandbox's own user."""
        try:
            os.closerange(
                FILTER_FD, pipe.fileno()
            )  # above all, ends of sockets whose other end waits for us to be gone
            os.closerange(pipe.fileno() + 1, 1 << 16)
            self.groups.join(self.groups.made)
            what = take_over(pipe)
            self.groups.join(what["groups"])
            line = what["line"]
            pass_filter(bytes.fromhex(what["filter"]))
            os.closerange(FILTER_FD + 1, 1 << 16)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            hard = min(MAX_OPEN_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            if self.privileged:
                os.setgroups([])
                os.setresgid(self.uid, self.uid, self.uid)
                os.setresuid(self.uid, self.uid, self.uid)
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            forget_signals()
            os.execv(line[0], line)
        except BaseException as error:
            os.write(2, f"excise: cannot start the sandbox: {error}\n".encode())
        os._exit(127)

    def run(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Run one command to its end, or until the parent says ``kill`` or goes away."""
        ooms, began = self.groups.ooms(), self.groups.cpu_s()
        self.start(request, fds)
        killed, gone, relieved = self.watch()
        _, status, usage = os.wait4(self.child, 0)
        self.child = 0
        self.groups.kill()
        cpu_s, peak = reap()
        if gone:
            raise EOFError
        rc = os.waitstatus_to_exitcode(status)
        ooms = self.groups.ooms() - ooms + relieved
        return {
            "rc": rc if rc <= 128 or rc > 192 else -(rc - 128),
            "killed": killed,
            "oom": ooms > 0 and rc != 0,
            "cpu_s": max(usage.ru_utime + usage.ru_stime + cpu_s, self.groups.cpu_s() - began),
            "peak_bytes": self.groups.peak_bytes() or max(peak, usage.ru_maxrss * 1024),
        }

    def watch(self) -> tuple[bool, bool, int]:
        """Wait for the command; (the parent said kill, the parent is gone, processes killed for want of memory)."""
        pidfd, control = os.pidfd_open(self.child), self.control.fileno()
        killed, gone, relieved = False, False, 0
        poll = None if self.groups.folders else WATCH_S
        while True:
            ready = select.select([pidfd] if gone else [pidfd, control], [], [], poll)[0]
            if pidfd in ready:
                os.close(pidfd)
                return killed, gone, relieved
            if control in ready:
                gone, killed = not self.control.recv(65536), True
                self.kill()
            elif not ready and not killed:
                relieved += relieve(self.policy["memory_bytes"])

    def kill(self) -> None:
        """Kill the command: bubblewrap's process namespace dies with it."""
        if self.child:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.child, signal.SIGKILL)
        self.groups.kill()

    # ------------------------------------------------------------------------------------- loop
    def serve(self) -> None:
        """Answer requests until the socket closes."""
        while True:
            data, fds, _, _ = socket.recv_fds(self.control, 1 << 20, 3)
            if not data:
                return
            while not data.endswith(b"\n"):
                more = self.control.recv(1 << 20)
                if not more:
                    return
                data += more
            request = json.loads(data)
            if "exec" in request:
                reply = self.run(request["exec"], list(fds))
            elif "snapshot" in request:
                reply = self.snapshot(request["snapshot"], request["into"])
            else:
                continue  # a kill that came too late
            self.control.sendall(json.dumps(reply).encode() + b"\n")

    def snapshot(self, target: str, into: str) -> dict[str, Any]:
        """Copy a layer; a full disk is an answer, not the end of the session."""
        try:
            self.mounts.snapshot(target, into)
        except (OSError, KeyError) as error:
            return {"error": f"no snapshot of {target}: {error}"}
        return {}

    def cleanup(self) -> None:
        """Leave nothing: no process, no control group, no mount."""
        self.kill()
        reap()
        remove_groups(self.groups.made)
        self.mounts.clear()


def take_over(pipe: socket.socket) -> dict[str, Any]:
    """Wait for a command, and take its three descriptors as our own."""
    data, fds, _, _ = socket.recv_fds(pipe, 1 << 20, 3)
    while not data.endswith(b"\n"):
        more = pipe.recv(1 << 20)
        if not more:
            os._exit(0)  # the session ends without another command
        data += more
    for wanted, fd in enumerate(fds):
        os.dup2(fd, wanted)
    what: dict[str, Any] = json.loads(data)
    return what


def pass_filter(program: bytes) -> None:
    """Put the filter where bubblewrap reads it."""
    file = os.memfd_create("filter", 0)
    os.write(file, program)
    os.lseek(file, 0, os.SEEK_SET)
    if file != FILTER_FD:
        os.dup2(file, FILTER_FD)


def forget_signals() -> None:
    """What we ignore, tests must not: a pool of theirs ends its workers with SIGTERM, and would wait for ever."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def stand_by(orders: socket.socket, shared: Root) -> None:
    """Get ready, wait for the socket of a session, and hold its sandbox until that closes."""
    holder, trouble = Holder(shared), ""
    try:
        holder.stand_by()
    except OSError as error:
        trouble = str(error)
    data, fds, _, _ = socket.recv_fds(orders, 1, 1)
    orders.close()
    if data:
        control = socket.socket(fileno=fds[0])
        if trouble:
            control.sendall(json.dumps({"error": trouble}).encode() + b"\n")
        else:
            serve_session(holder, control)
    holder.cleanup()


def serve_session(holder: Holder, control: socket.socket) -> None:
    """Hold one sandbox until the socket closes."""
    stream = control.makefile("rb")
    line = stream.readline()
    if not line:
        return
    with contextlib.suppress(EOFError, ConnectionError):
        try:
            holder.prepare(json.loads(line), control, stream)
            out, pidfd = holder.mounts.open_out(), os.pidfd_open(os.getpid())
            ready = {"pid": os.getpid(), "groups": holder.groups.made}
            socket.send_fds(control, [json.dumps(ready).encode() + b"\n"], [out, pidfd])
            os.close(out)
            os.close(pidfd)
            holder.serve()
        except (OSError, ValueError, KeyError) as error:
            control.sendall(json.dumps({"error": str(error)}).encode() + b"\n")
