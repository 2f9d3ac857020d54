"""The process that a worker's sandbox supervisors are forked from; a script run with ``-I -S``, standard library only.

Starting an interpreter and mounting ``/usr`` with its masks takes most of a sandbox's start-up time, so both are done
once per worker. This process makes a mount namespace (for ordinary users inside a user namespace), builds the parts of
the root in it, and forks a supervisor (:mod:`excise.envs.bubblewrap.sandbox_supervisor`) for every socket that it
receives; one spare supervisor is always ready. The zygote runs no command of a sandbox, and exits when the worker's end
of its socket closes.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # a bare package: its own imports are not needed here, and every fork would copy them
    package = type(sys)("excise")
    package.__path__ = [sys.argv[2]]
    sys.modules["excise"] = package

import glob
import json
import shutil
import signal
import socket

from excise.envs.bubblewrap.control_groups import remove_groups
from excise.envs.bubblewrap.kernel_calls import enter_private_namespace, umount
from excise.envs.bubblewrap.sandbox_supervisor import supervise
from excise.envs.bubblewrap.shared_root import SharedRoot
from excise.system.process_identity import owned_temporary_folder


def prepare(control: socket.socket) -> SharedRoot:
    """Build the shared parts of all roots, in a temporary folder with the name of this process."""
    with control.makefile("rb") as lines:
        plan = json.loads(lines.readline())
    base = owned_temporary_folder("stage", plan["temporary"])
    os.chmod(base, 0o711)
    shared = SharedRoot(base, plan)
    try:
        enter_private_namespace(privileged=os.geteuid() == 0)
        shared.build()
    except OSError:
        os.rmdir(base)
        raise
    return shared


def serve_requests(control: socket.socket, shared: SharedRoot) -> None:
    """Pass every socket received over ``control`` to a supervisor, until ``control`` closes."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps supervisors that have ended
    spare = fork_supervisor(control, shared)
    while True:
        data, fds, _, _ = socket.recv_fds(control, 1, 1)
        if not data:
            return
        try:
            socket.send_fds(spare, [b"+"], fds)
        except OSError:  # it was killed
            spare.close()
            spare = fork_supervisor(control, shared)
            socket.send_fds(spare, [b"+"], fds)
        for fd in fds:
            os.close(fd)
        spare.close()
        spare = fork_supervisor(control, shared)


def fork_supervisor(control: socket.socket, shared: SharedRoot) -> socket.socket:
    """Fork a supervisor that waits for its session; return the socket over which to send it the session's socket."""
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        try:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            control.close()
            ours.close()
            os.setsid()
            supervise(theirs, shared)
        except Exception as error:
            os.write(2, f"excise: a sandbox's process failed: {error!r}\n".encode())
        finally:
            os._exit(0)
    theirs.close()
    return ours


def main() -> None:
    """Serve the worker; the first argument is the number of the socket to it."""
    control = socket.socket(fileno=int(sys.argv[1]))
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    os.umask(0o022)
    os.chdir("/")
    try:
        shared = prepare(control)
    except OSError as error:
        control.sendall(json.dumps({"error": str(error)}).encode() + b"\n")
        return
    control.sendall(json.dumps({"base": shared.base}).encode() + b"\n")
    serve_requests(control, shared)
    for root in set(shared.plan["cgroups"].values()):  # of supervisors that were killed together with the worker
        remove_groups(glob.glob(f"{root}/excise-{os.getpid()}-*"))
    umount(shared.base)
    shutil.rmtree(shared.base, ignore_errors=True)


if __name__ == "__main__":
    main()
