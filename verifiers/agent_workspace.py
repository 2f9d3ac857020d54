"""The workspace of an agent: the shipped tree with a history of one commit, the environment, and nothing else.

Rollouts, the recovery agent and the leak scan all open their sandboxes here, so that agents get exactly what was
scanned and attacked.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from excise.envs.sandbox.mount_points import open_to_all, project_mounts
from excise.protocols import Mount, Session
from excise.system.process_identity import owned_temporary_folder, remove_orphaned_folders
from excise.verifiers.shipped_tree import materialise
from excise.verifiers.workbench import Edits, Workbench


@dataclass(frozen=True, slots=True)
class Workspace:
    """One task's shipped tree on disk, and its environment."""

    bench: Workbench
    """The prepared repository."""
    tree: Path
    """Folder with the shipped tree, ``.git`` included; mounted as a layer."""

    def mounts(self) -> list[Mount]:
        """Mounts of the agent's sandbox: tree (writable), environment and interpreter, but none of excise's
        programs."""
        layers = self.bench.prepared.layers
        return project_mounts(self.bench.interpreter, [self.tree], [Path(layers.env)])

    def open(self) -> Session:
        """Open a fresh sandbox for an agent, without network and with the limits of test runs."""
        bench = self.bench
        variables = bench.variables | dict(bench.recipe.env)
        return bench.sandbox.open(self.mounts(), bench.policy, env=variables, system=bench.system)


@contextmanager
def workspace(bench: Workbench, shipped: Edits) -> Iterator[Workspace]:
    """Make the workspace of a task whose shipped tree is the base tree with ``shipped`` edits; it is removed
    afterwards.

    Workspaces that killed processes left behind are removed first. Raises :class:`SandboxError` if git fails.
    """
    parent = Path(bench.prepared.layers.env).parent.parent.parent / "workspaces"
    parent.mkdir(mode=0o711, exist_ok=True)
    kind = f"workspace-{_pid_namespace()}"
    remove_orphaned_folders(kind, str(parent))
    folder = Path(owned_temporary_folder(kind, str(parent)))
    try:
        folder.chmod(0o711)
        tree = folder / "tree"
        materialise(bench.root, Path(bench.prepared.layers.built), bench.paths, shipped, tree, bench.repo.language)
        open_to_all(tree)
        yield Workspace(bench, tree)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _pid_namespace() -> str:
    """An id of this machine and PID namespace, because other machines and containers may share the cache."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return hashlib.sha256(f"{boot} {os.readlink('/proc/self/ns/pid')}".encode()).hexdigest()[:16]
