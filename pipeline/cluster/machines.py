"""What kind of machine a worker is on: whether it can work on a run, and whether it would give the same results."""

from __future__ import annotations

import os
import platform
import socket
from dataclasses import dataclass
from pathlib import Path

import excise
from excise.config import Settings, default_cache
from excise.envs.install.install_sandbox import uv_version
from excise.envs.interpreters import find_interpreters
from excise.envs.sandbox.host_identity import system_identity
from excise.envs.sandbox.system_root import content_identity
from excise.errors import ExciseError
from excise.pipeline.cluster.layer_names import evict_copies, free_bytes
from excise.pipeline.stages.environment_stage import sandbox_of
from excise.types import content_id

Traits = tuple[tuple[str, str], ...]
"""Names and values."""
SPARE_SANDBOXES = 2
"""Free disk space that a worker needs for a job, in sandboxes that have written as much as they may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A worker's machine, as it describes itself."""

    name: str
    """Names the machine and its cache: workers with the same name share their copies of layers."""
    kind: str
    """Hash of what results depend on (:func:`traits`); layers are only good for machines of one kind."""
    traits: Traits
    """What results depend on, for the message about machines of another kind."""
    problem: str
    """Why it cannot run sandboxes of this run; empty if it can."""
    free_bytes: int
    """Free disk space."""
    slots: int
    """Jobs that the worker runs at once."""
    pid: int
    """The worker's process."""


def required_bytes(settings: Settings) -> int:
    """Free disk space that a worker needs for a job."""
    return SPARE_SANDBOXES * settings.verdict.disk_mb << 20


def describe_machine(settings: Settings, slots: int) -> Machine:
    """Describe this machine, with its own cache."""
    cache = default_cache()
    evict_copies(cache, required_bytes(settings))
    free, problem = free_bytes(cache), ""
    own: Traits = ()
    try:
        can = sandbox_of(settings).capabilities()
        if not can.available:
            problem = f"the sandbox {settings.sandbox} cannot be used: {can.detail} {can.advice}"
        elif (memory := memory_bytes()) < settings.verdict.memory_mb << 20:
            has = f"it has {memory >> 20} MiB of memory"
            problem = f"{has}, one sandbox may take {settings.verdict.memory_mb} (verdict.memory_mb)"
        else:
            own = traits(settings)
    except (ExciseError, OSError) as error:
        problem = str(error)
    if free < required_bytes(settings):
        problem = disk_problem(cache, free, settings)
    return Machine(
        name=f"{socket.gethostname()} {os.stat('/proc/self/ns/uts').st_ino} {cache}",
        kind=content_id("kind", own),
        traits=own,
        problem=problem,
        free_bytes=free,
        slots=slots,
        pid=os.getpid(),
    )


def disk_problem(cache: Path, free: int, settings: Settings) -> str:
    """The message about a machine without room for a job."""
    wanted = required_bytes(settings) >> 20
    return f"{free >> 20} MiB are free for {cache} and temporary files, a job needs {wanted} (twice verdict.disk_mb)"


def traits(settings: Settings) -> Traits:
    """What the results of a run depend on besides sources and settings."""
    system, sandbox, image = system_identity(sandbox_of(settings))
    found = [
        ("excise", excise.__version__),
        ("machine", platform.machine()),
        ("system", system),
        ("sandbox", f"{sandbox} {image}".strip()),
        ("packages of /usr", content_identity() if sandbox == "bubblewrap" else ""),
        ("uv", uv_version()),
    ]
    found += [(f"Python {found.version}", str(found.executable)) for found in find_interpreters()]
    return tuple(found)


def differing_traits(machine: Machine, usual: Traits) -> str:
    """What distinguishes a machine from others, in words: ``Python 3.12.1: nothing instead of /usr/bin/python3.12``."""
    own, others = dict(machine.traits), dict(usual)
    names = [name for name in {**own, **others} if own.get(name) != others.get(name)]
    return "; ".join(
        f"{name}: {own.get(name) or 'nothing'} instead of {others.get(name) or 'nothing'}" for name in names
    )


def memory_bytes() -> int:
    """Memory of this machine, or of its control group if that is less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            total = min(total, int(Path(name).read_text()))
        except (OSError, ValueError):
            continue
    return total
