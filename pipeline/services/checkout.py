"""``excise checkout``: writes a task's tree to a folder, as the agent gets it (without built files) or solved."""

from __future__ import annotations

import tempfile
from pathlib import Path

from excise.datasets.taskset import TaskSet
from excise.deleters.patches.git_patches import apply_patch, touched
from excise.errors import ConfigError, StoreError
from excise.extractors.fetch.trees import git_tree_hash, list_files, unpack
from excise.verifiers.shipped_tree import materialise


def write_tree(taskset: TaskSet, instance_id: str, into: Path, *, solved: bool = False) -> None:
    """Write the shipped tree of a task (``solved``: the untouched sources) into the new folder ``into``.

    Raises :class:`ConfigError` if the folder exists, :class:`StoreError` if the set does not hold the task.
    """
    if into.exists():
        raise ConfigError(f"{into} exists already; name a new folder.")
    task = taskset.task(instance_id)
    repo = next((r for r in taskset.repos() if r.tree == task.tree), None)
    if repo is None:
        raise StoreError(f"The set has no sources for {instance_id}.")
    with tempfile.TemporaryDirectory(prefix="excise-checkout-") as scratch:
        base, nothing = Path(scratch) / "base", Path(scratch) / "nothing"
        unpack(taskset.blob(repo.blob), base)
        nothing.mkdir()
        if git_tree_hash(base) != task.tree:
            raise StoreError(f"The source archive of {task.repo} does not hold the tree of {instance_id}.")
        paths = touched(task.deletion_patch)
        present = {path: (base / path).read_bytes() for path in paths if (base / path).exists()}
        edits = {} if solved else apply_patch(present, task.deletion_patch)
        materialise(base, nothing, list_files(base), edits, into, repo.language)
