"""The process that holds one sandbox's mounts; run as a script with ``-I -S``, standard library only.

The parent (:mod:`excise.envs.bubblewrap.sandbox`) starts it with one end of a socket. It makes a private mount
namespace (for ordinary users inside a user namespace of its own), builds the mounts on a sized tmpfs,
and starts bubblewrap once per command. When the socket closes, however the parent ended, it kills
what runs, and all mounts vanish with the namespace.

Requests are JSON lines: ``exec`` (with three file descriptors), ``kill``, ``snapshot``, ``close``.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import shutil
import signal
import socket
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from excise.envs.bubblewrap.holder_groups import Groups, reap, relieve, remove_groups
    from excise.envs.bubblewrap.holder_mounts import Mounts, check, libc, unshare
else:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from holder_groups import Groups, reap, relieve, remove_groups
    from holder_mounts import Mounts, check, libc, unshare

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
SLOT_UID_BASE = 1 << 30
"""Host uids of sandboxes start here; the holder's pid is added, so live sandboxes never share one."""
MAX_OPEN_FILES = 4096
"""Open files of one process: the same on every machine whose own limit is not lower."""
WATCH_S = 0.05
"""How often memory is looked at where there is no control group."""


class Holder:
    """One sandbox: its namespace, its mounts, its control groups."""

    def __init__(self, config: dict[str, Any], control: socket.socket) -> None:
        self.config = config
        self.policy = config["policy"]
        self.control = control
        self.privileged = os.geteuid() == 0
        self.uid = SLOT_UID_BASE + os.getpid() if self.privileged else os.getuid()
        self.mounts = Mounts(config["stage"], config["mounts"], self.policy["disk_bytes"], self.privileged)
        self.groups = Groups()
        self.child = 0

    def prepare(self) -> None:
        """Namespaces, mounts, edits, control groups."""
        check(libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")
        unshare(self.privileged)
        self.mounts.build()
        for path, edit in self.config["edits"].items():
            self.mounts.edit(path, edit)
        self.groups.make(self.config["cgroups"], self.policy["memory_bytes"], self.policy["pids"])

    # ------------------------------------------------------------------------------------- exec
    def command(self, request: dict[str, Any]) -> list[str]:
        """bubblewrap's whole command line."""
        line = [self.config["bwrap"], "--unshare-all", "--unshare-user", "--disable-userns"]
        if self.policy["network"]:
            line.append("--share-net")
        line += ["--uid", "1000", "--gid", "1000", "--hostname", "sandbox", "--die-with-parent", "--new-session"]
        line += ["--cap-drop", "ALL", "--clearenv"]
        for name, value in {**self.config["env"], **request.get("env", {})}.items():
            line += ["--setenv", name, value]
        line += self.config["rootfs"]
        line += ["--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", "--dev", "/dev", *self.mounts.arguments]
        line += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", request.get("cwd") or self.config["cwd"], "--"]
        if not self.groups.folders:  # inside bubblewrap, so that the processes of the user's own session do not count
            line += [self.config["prlimit"], f"--nproc={self.policy['pids']}", "--"]
        return line + list(request["argv"])

    def start(self, request: dict[str, Any], fds: list[int]) -> None:
        """Start bubblewrap in a child: in its groups, with three descriptors, as the sandbox's own user."""
        line = self.command(request)
        self.child = os.fork()
        if self.child:
            for fd in fds:
                os.close(fd)
            return
        try:
            self.groups.join()
            for wanted, fd in enumerate(fds):
                os.dup2(fd, wanted)
            os.closerange(3, 1 << 16)
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
            elif "close" in request:
                return
            else:
                continue
            self.control.sendall(json.dumps(reply).encode() + b"\n")

    def snapshot(self, target: str, into: str) -> dict[str, Any]:
        """Copy a layer; a full disk is an answer, not the end of the session."""
        try:
            self.mounts.snapshot(target, into)
        except (OSError, KeyError) as error:
            return {"error": f"no snapshot of {target}: {error}"}
        return {}

    def cleanup(self) -> None:
        """Leave nothing: no process, no mount, no control group, no folder."""
        self.kill()
        reap()
        remove_groups(self.groups.folders)
        self.mounts.clear()
        for folder in (self.config["stage"], self.config["edits_dir"]):
            shutil.rmtree(folder, ignore_errors=True)


def forget_signals() -> None:
    """What we ignore, tests must not: a pool of theirs ends its workers with SIGTERM, and would wait for ever."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def main() -> None:
    """Serve one sandbox over the socket whose number is the first argument."""
    control = socket.socket(fileno=int(sys.argv[1]))
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    with control.makefile("rb") as lines:
        line = lines.readline()
    if not line:
        return
    holder = Holder(json.loads(line), control)
    with contextlib.suppress(EOFError, ConnectionError):
        try:
            holder.prepare()
            out = holder.mounts.open_out()
            ready = {"ready": holder.uid, "groups": holder.groups.folders}
            socket.send_fds(control, [json.dumps(ready).encode() + b"\n"], [out])
            os.close(out)
            holder.serve()
        except (OSError, ValueError, KeyError) as error:
            control.sendall(json.dumps({"error": str(error)}).encode() + b"\n")
    holder.cleanup()


if __name__ == "__main__":
    main()
