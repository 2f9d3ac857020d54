"""The supervisor process of one sandbox, forked by :mod:`excise.envs.bubblewrap.zygote`.

It enters a mount namespace, builds the sandbox's mounts on a tmpfs of limited size, and starts bubblewrap once per
command. It is forked before its sandbox is requested, because the kernel needs 10 ms or more to move a process into
control groups. When the socket to the worker closes, however the worker ended, the supervisor kills all processes of
the sandbox and exits, and all mounts disappear with the namespace.

Requests are JSON lines on the socket: ``exec`` (with three file descriptors), ``kill``, ``snapshot``.
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

from excise.envs.bubblewrap.control_groups import ControlGroups, kill_and_reap_all, kill_largest_if_over, remove_groups
from excise.envs.bubblewrap.kernel_calls import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_PDEATHSIG,
    check,
    enter_copied_namespace,
    libc,
)
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

    def start_early(self) -> None:
        """Set up what does not depend on the session: namespace, control groups, process for the first command."""
        check(libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")
        enter_copied_namespace()
        self.groups.make(root for name, root in self.shared.plan["cgroups"].items() if name != "cpu")
        self.prefork_command()

    def configure(self, config: dict[str, Any], control: socket.socket, edits: Any) -> None:
        """Set the limits, build the mounts, and make the edits, whose contents are read from the stream ``edits``."""
        self.config, self.policy, self.control = config, config["policy"], control
        self.groups.limit(config["cgroups"], self.policy)
        self.mounts.build(config)
        for path, size in config["edits"]:
            self.mounts.edit(path, size, edits.read)

    # ------------------------------------------------------------------------------------- exec
    def command(self, request: dict[str, Any]) -> list[str]:
        """Return the command line of bubblewrap for one command."""
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
        """Start bubblewrap in the preforked child, with three descriptors for its streams."""
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
            os.closerange(FILTER_FD + 1, 1 << 16)
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
        ooms, began = self.groups.ooms(), self.groups.cpu_s()
        self.start(request, fds)
        killed, gone, out_of_memory = self.wait_for_command()
        _, status, usage = os.wait4(self.child, 0)
        self.child = 0
        self.groups.kill()
        cpu_s, peak = kill_and_reap_all()
        if gone:
            raise EOFError
        rc = os.waitstatus_to_exitcode(status)
        ooms = self.groups.ooms() - ooms + out_of_memory
        return {
            "rc": rc if rc <= 128 or rc > 192 else -(rc - 128),
            "killed": killed,
            "oom": ooms > 0 and rc != 0,
            "cpu_s": max(usage.ru_utime + usage.ru_stime + cpu_s, self.groups.cpu_s() - began),
            "peak_bytes": self.groups.peak_bytes() or max(peak, usage.ru_maxrss * 1024),
        }

    def wait_for_command(self) -> tuple[bool, bool, int]:
        """Wait for the command to end.

        Return whether the worker requested a kill, whether the worker is gone, and how many processes were killed
        because memory ran out.
        """
        pidfd, control = os.pidfd_open(self.child), self.control.fileno()
        killed, gone, out_of_memory = False, False, 0
        poll = None if self.groups.folders else MEMORY_POLL_S
        while True:
            ready = select.select([pidfd] if gone else [pidfd, control], [], [], poll)[0]
            if pidfd in ready:
                os.close(pidfd)
                return killed, gone, out_of_memory
            if control in ready:
                gone, killed = not self.control.recv(65536), True
                self.kill()
            elif not ready and not killed:
                out_of_memory += kill_largest_if_over(self.policy["memory_bytes"])

    def kill(self) -> None:
        """Kill the command; all processes of bubblewrap's pid namespace die with it."""
        if self.child:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.child, signal.SIGKILL)
        self.groups.kill()

    # ---------------------------------------------------------------------------------- requests
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
                continue  # a kill for a command that has ended
            self.control.sendall(json.dumps(reply).encode() + b"\n")

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
    """Wait for a command, and make its three descriptors this process's standard streams."""
    data, fds, _, _ = socket.recv_fds(pipe, 1 << 20, 3)
    while not data.endswith(b"\n"):
        more = pipe.recv(1 << 20)
        if not more:
            os._exit(0)  # the session ended without another command
        data += more
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
    command: dict[str, Any] = json.loads(data)
    return command


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
    stream = control.makefile("rb")
    line = stream.readline()
    if not line:
        return
    with contextlib.suppress(EOFError, ConnectionError):
        try:
            supervisor.configure(json.loads(line), control, stream)
            out, pidfd = supervisor.mounts.open_out(), os.pidfd_open(os.getpid())
            ready = {"pid": os.getpid(), "groups": supervisor.groups.made}
            socket.send_fds(control, [json.dumps(ready).encode() + b"\n"], [out, pidfd])
            os.close(out)
            os.close(pidfd)
            supervisor.serve()
        except (OSError, ValueError, KeyError) as error:
            control.sendall(json.dumps({"error": str(error)}).encode() + b"\n")
