"""First process of a sandbox container: runs commands for the worker that is attached to its standard input.

Orphans of a command become children of this process, which kills them before it replies. When the worker ends in any
way, the input closes, this process exits, and the container is removed.

Standard library only, for Python 3.6 and later. The modules of this folder are passed to the container as one argument
(see ``first_program`` in ``envs/docker/container.py``).
"""

import os
import resource
import signal

from excise_command import PR_SET_DUMPABLE, Command, libc
from excise_folders import Sandbox
from excise_messages import cpu_s, ooms, peak_bytes, receive, send


def execute(sandbox, request, stdin):
    before, began = ooms(), cpu_s()
    times = os.times()
    command = Command(sandbox, request, stdin)
    out, err = command.run()
    now = os.times()
    spent = now.children_user + now.children_system - times.children_user - times.children_system
    status = command.status
    rc = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    results = sandbox.results(request["results"])
    reply = {
        "rc": rc if rc <= 128 or rc > 192 else -(rc - 128),
        "killed": command.killed,
        "oom": command.full or (ooms() > before and rc != 0),
        "cpu_s": max(spent, cpu_s() - began),
        "peak_bytes": peak_bytes() or resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024,
        "results": [name for name, _ in results],
    }
    send(reply, out, err, *(data for _, data in results))


def answer(sandbox, header, bodies):
    if "exec" in header:
        execute(sandbox, header["exec"], bodies[0])
    elif "edit" in header:
        sandbox.edit(header["edit"], bodies[0] if bodies else None)
    elif "edited" in header:
        send({})
    elif "snapshot" in header:
        send({"deleted": sandbox.snapshot(header["snapshot"])})


def main():
    """Answer requests until the input closes."""
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # processes of the same uid cannot read or write this one's memory
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    os.umask(0)
    config, _ = receive()
    sandbox = Sandbox(config)
    os.umask(0o022)
    send({"ready": True})
    while True:
        header, bodies = receive()
        try:
            answer(sandbox, header, bodies)
        except (OSError, ValueError) as error:
            send({"error": str(error)})
