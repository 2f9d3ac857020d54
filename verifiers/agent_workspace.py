"""What an agent gets for a task: the shipped tree with a history of one commit, and the environment. Nothing else.

Everything that may read like an agent (rollouts, the recovery agent, the leak scan) opens its sandbox here, so what is
scanned and attacked is what is given away.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from excise.envs.sandbox.mount_points import base_env, open_to_all, project_mounts
from excise.protocols import Mount, Session
from excise.system.process_identity import owned_temporary_folder, remove_orphaned_folders
from excise.verifiers.shipped_tree import materialise
from excise.verifiers.workbench import Edits, Workbench


@dataclass(frozen=True, slots=True)
class Workspace:
    """One task's tree on disk and the environment it goes with."""

    bench: Workbench
    """The repository."""
    tree: Path
    """Layer with the shipped tree, ``.git`` included."""

    def mounts(self) -> list[Mount]:
        """Mounts of the agent's sandbox: tree (writable), environment, interpreter; none of our own programs."""
        layers = self.bench.prepared.layers
        return project_mounts(self.bench.interpreter, [self.tree], [Path(layers.env)])

    def open(self) -> Session:
        """A fresh sandbox for an agent: no network, the limits of test runs."""
        bench = self.bench
        variables = base_env() | dict(bench.recipe.env)
        packages = bench.recipe.system_packages
        return bench.sandbox.open(self.mounts(), bench.policy, env=variables, system_packages=packages)


@contextmanager
def workspace(bench: Workbench, shipped: Edits) -> Iterator[Workspace]:
    """The workspace of the task whose shipped tree is the base tree with ``shipped`` edits; gone afterwards.

    What processes left that were killed goes first. Raises :class:`SandboxError` if git fails.
    """
    parent = Path(bench.prepared.layers.env).parent.parent.parent / "workspaces"
    parent.mkdir(mode=0o711, exist_ok=True)
    kind = f"workspace-{_here()}"
    remove_orphaned_folders(kind, str(parent))
    folder = Path(owned_temporary_folder(kind, str(parent)))
    try:
        folder.chmod(0o711)
        tree = folder / "tree"
        materialise(bench.root, Path(bench.prepared.layers.built), bench.paths, shipped, tree)
        open_to_all(tree)
        yield Workspace(bench, tree)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _here() -> str:
    """The processes among which a pid means something: a cache may be shared with other machines and containers."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return hashlib.sha256(f"{boot} {os.readlink('/proc/self/ns/pid')}".encode()).hexdigest()[:16]
