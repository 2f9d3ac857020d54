"""Applying patches with ``git apply``, isolated from the host's configuration: a verdict must not depend on it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from excise.deleters.patches.git_patches import touched
from excise.errors import PatchError, SandboxError
from excise.system.git import GitError, GitOptions, run_git

TIMEOUT_S = 60.0
"""Timeout in seconds for one patch; normally it takes a few milliseconds."""


def apply_in_folder(root: Path, patch: bytes, *, strip: int = 1, reverse: bool = False) -> None:
    """Apply ``patch`` to the files below ``root``, exactly: no fuzz, no repair of white space.

    ``strip`` is the number of leading path parts to drop. Raises :class:`PatchError` if git refuses the patch, and
    :class:`GitError` with reason ``git_timeout`` or ``git_missing``.
    """
    command = ["apply", "--whitespace=nowarn", f"-p{strip}", *(["-R"] if reverse else []), "-"]
    try:
        run_git(command, cwd=root, stdin=patch, options=GitOptions(timeout_s=TIMEOUT_S))
    except GitError as error:
        if error.reason != "git_failed":
            raise
        raise PatchError(f"git apply refuses the patch: {str(error).removeprefix('git apply failed: ')}") from error


def apply_to_files(files: Mapping[str, bytes], patch: str, *, reverse: bool = False) -> dict[str, bytes | None]:
    """The content of every file that ``patch`` names, after ``git apply`` on ``files``; ``None`` for a deleted one.

    Raises :class:`PatchError` unless the patch applies exactly, :class:`SandboxError` if git cannot be run.
    """
    with tempfile.TemporaryDirectory(prefix="excise-apply-") as folder:
        root = Path(folder) / "tree"
        root.mkdir()
        for path, data in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)
        try:
            apply_in_folder(root, patch.encode(), reverse=reverse)
        except GitError as error:
            raise SandboxError(str(error), reason=error.reason) from error
        return {path: (root / path).read_bytes() if (root / path).exists() else None for path in touched(patch)}
