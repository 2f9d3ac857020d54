"""The bubblewrap sandbox: needs no daemon and no image, and starts in a few milliseconds.

Each session has a supervisor process (:mod:`excise.envs.bubblewrap.sandbox_supervisor`) that owns the mounts. Each
command is one ``bwrap`` with new process, network, IPC and user namespaces, no capabilities, a read-only root and a
filter of system calls. Where excise runs as root, commands run under an unprivileged uid, one per session (``bwrap``
started by root without this would leave ``/proc/sys`` writable). The kernel is shared with the host: this is no virtual
machine.
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

from excise.envs.bubblewrap.bubblewrap_session import BubblewrapSession
from excise.envs.bubblewrap.control_groups import writable_groups
from excise.envs.bubblewrap.forked_sessions import ForkedSession, open_forked
from excise.envs.sandbox.limits import require_limits
from excise.envs.sandbox.seccomp import filter_program
from excise.envs.sandbox.system_root import usr_mounts
from excise.errors import SandboxError
from excise.protocols import Capabilities, ForkServer, Mount, Policy, Session, SystemRequest
from excise.system.process_identity import remove_orphaned_folders

ADVICE = "Run it as root where control groups can be written (not in a container without them)."
INSTALL = "apt-get install bubblewrap util-linux"


class BubblewrapSandbox:
    """The default backend; see :class:`excise.protocols.Sandbox`."""

    name = "bubblewrap"

    def __init__(self, *, lenient: bool = False) -> None:
        self.lenient = lenient

    def capabilities(self) -> Capabilities:
        """The limits that bubblewrap can enforce on this machine; tested once per process."""
        return _probe()

    def system(self) -> str:
        """Empty: the root file system is the host's own."""
        return ""

    def open(
        self,
        mounts: Sequence[Mount],
        policy: Policy,
        *,
        env: Mapping[str, str],
        cwd: str = "/testbed",
        edits: Mapping[str, bytes | None] | None = None,
        system: SystemRequest | None = None,
        fork_server: ForkServer | None = None,
    ) -> Session:
        """Open a session; raises :class:`SandboxError` if a limit of ``policy`` cannot be enforced here."""
        bwrap, prlimit = shutil.which("bwrap"), shutil.which("prlimit")
        if bwrap is None or prlimit is None:
            raise SandboxError(f"bubblewrap is not installed. Install it: {INSTALL}")
        system = system or SystemRequest()
        lenient = policy.lenient or self.lenient
        require_limits(policy, enforced_limits(), self.name, ADVICE, lenient=lenient)
        groups = writable_groups()
        shown = [*usr_mounts(system), *mounts]
        config: dict[str, Any] = {
            "bwrap": bwrap,
            "prlimit": prlimit,
            "mounts": [{"target": m.target, "layers": list(m.layers), "writable": m.writable} for m in shown],
            "policy": {name: getattr(policy, name) for name in Policy.__slots__} | {"lenient": lenient},
            "env": dict(env),
            "cwd": cwd,
            "filter": filter_program().hex(),
            "cgroups": {name: root for name, root in groups.items() if name != "cpu" or policy.cpus is not None},
        }
        session: BubblewrapSession | ForkedSession | None = None
        if fork_server is not None and not policy.network:
            session = open_forked(config, policy, edits or {}, fork_server)
        if session is None:
            session = BubblewrapSession(config | {"fork_server": None}, policy, edits or {})
        session.enable_forking(mounts, functools.partial(self.open, policy=policy, env=env, cwd=cwd, system=system))
        return session


def enforced_limits() -> dict[str, str]:
    """Limit to the mechanism that enforces it on this machine."""
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
    remove_leftovers()
    try:
        mounts = [Mount(target="/testbed", layers=(), writable=True)]
        with BubblewrapSandbox().open(mounts, Policy(lenient=True), env={}) as session:
            done = session.exec(["/bin/sh", "-c", "touch /testbed/x && cat /proc/net/dev"], timeout_s=20)
    except SandboxError as error:
        return Capabilities(available=False, detail=str(error), advice=_NAMESPACES)
    how = enforced_limits()
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


def remove_leftovers() -> int:
    """Remove folders and control groups of runs whose processes were all killed at once; return how many.

    Their mounts are gone already. A control group that still has processes belongs to a live run and is kept.
    """
    count = 0
    for group in (g for root in {*writable_groups().values()} for g in Path(root).glob("excise-*-*")):
        if not any(Path("/proc", pid).exists() for pid in group.name.split("-")[1:]):
            with contextlib.suppress(OSError):
                group.rmdir()
                count += 1
    return count + remove_orphaned_folders("stage")
