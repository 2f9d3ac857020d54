"""The bubblewrap sandbox: no daemon, no image, a few milliseconds.

A session is one :mod:`holder <excise.envs.bubblewrap.supervisor>` process that owns the mounts; every command is one
``bwrap`` in it, with fresh process, network, IPC and user namespaces, no capabilities, a read-only root and a filter of
system calls. Started by root, commands run under an unprivileged uid of the session's own (bubblewrap started by root
alone would leave ``/proc/sys`` writable). The kernel is shared with the host: this is not a virtual machine.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from excise.envs.bubblewrap.cgroups import writable_groups
from excise.envs.bubblewrap.session import BubblewrapSession
from excise.envs.sandbox.limits import require_limits
from excise.envs.sandbox.seccomp import filter_program
from excise.errors import SandboxError
from excise.protocols import Capabilities, Mount, Policy, Session
from excise.system.process_identity import remove_orphaned_folders

ADVICE = "Run it as root where control groups can be written (not in a container without them)."
INSTALL = "apt-get install bubblewrap util-linux"


class BubblewrapSandbox:
    """The default backend; see :class:`excise.protocols.Sandbox`."""

    name = "bubblewrap"

    def __init__(self, *, lenient: bool = False) -> None:
        self.lenient = lenient

    def capabilities(self) -> Capabilities:
        """What bubblewrap can enforce here; tried out once per process."""
        return _probe()

    def system(self) -> str:
        """This host's own."""
        return ""

    def open(
        self,
        mounts: Sequence[Mount],
        policy: Policy,
        *,
        env: Mapping[str, str],
        cwd: str = "/testbed",
        edits: Mapping[str, bytes | None] | None = None,
        system_packages: Sequence[str] = (),  # noqa: ARG002  # the host's own are all there is
    ) -> Session:
        """Open a session; raises :class:`SandboxError` if a limit of ``policy`` cannot be enforced here."""
        bwrap, prlimit = shutil.which("bwrap"), shutil.which("prlimit")
        if bwrap is None or prlimit is None:
            raise SandboxError(f"bubblewrap is not installed. Install it: {INSTALL}")
        lenient = policy.lenient or self.lenient
        require_limits(policy, how_limited(), self.name, ADVICE, lenient=lenient)
        groups = writable_groups()
        config: dict[str, Any] = {
            "bwrap": bwrap,
            "prlimit": prlimit,
            "mounts": [{"target": m.target, "layers": list(m.layers), "writable": m.writable} for m in mounts],
            "policy": {name: getattr(policy, name) for name in Policy.__slots__} | {"lenient": lenient},
            "env": dict(env),
            "cwd": cwd,
            "filter": filter_program().hex(),
            "cgroups": {name: root for name, root in groups.items() if name != "cpu" or policy.cpus is not None},
        }
        session = BubblewrapSession(config, policy, edits or {})
        session.begin_forking(mounts, functools.partial(self.open, policy=policy, env=env, cwd=cwd))
        return session


def how_limited() -> dict[str, str]:
    """Each limit that this machine can give, and by what."""
    groups = writable_groups()
    found = {
        "network_off": "a network namespace",
        "memory": "a control group" if groups else "a look at all processes every 50 ms",
        "pids": "a control group" if groups else "RLIMIT_NPROC in a user namespace",
        "disk": "a tmpfs of that size",
    }
    if "cpu" in groups:
        found["cpus"] = "a control group"
    if filter_program():
        found["syscalls"] = "a seccomp filter"
    if os.geteuid() == 0:
        found["separate_uid"] = "a uid per session"
    return found


@cache
def _probe() -> Capabilities:
    if shutil.which("bwrap") is None or shutil.which("prlimit") is None:
        return Capabilities(available=False, detail="bubblewrap is not installed", advice=INSTALL)
    sweep()
    try:
        mounts = [Mount(target="/testbed", layers=(), writable=True)]
        with BubblewrapSandbox().open(mounts, Policy(lenient=True), env={}) as session:
            done = session.exec(["/bin/sh", "-c", "touch /testbed/x && cat /proc/net/dev"], timeout_s=20)
    except SandboxError as error:
        return Capabilities(available=False, detail=str(error), advice=_NAMESPACES)
    how = how_limited()
    lines = [line for line in done.stdout.decode().splitlines() if ":" in line and not line.strip().startswith("lo:")]
    if lines:
        del how["network_off"]
    return Capabilities(
        available=done.rc == 0,
        detail=done.stderr.decode(errors="replace").strip(),
        how=how,
        snapshot=True,
        advice="" if "cpus" in how else f"For a CPU limit: {ADVICE}",
    )


_NAMESPACES = (
    "In a container, allow user namespaces; on Ubuntu 24.04 set kernel.apparmor_restrict_unprivileged_userns=0 or run "
    "as root."
)


def sweep() -> int:
    """Remove what runs left behind whose every process was killed at once; returns how many folders and groups.

    Their mounts and processes are gone already. Control groups are only removed, never emptied: a live one is not ours.
    """
    count = 0
    for group in (g for root in {*writable_groups().values()} for g in Path(root).glob("excise-*-*")):
        if not any(Path("/proc", pid).exists() for pid in group.name.split("-")[1:]):
            with contextlib.suppress(OSError):
                group.rmdir()
                count += 1
    return count + remove_orphaned_folders("stage")
