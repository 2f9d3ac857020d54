"""The layers that an installation leaves behind: what of them is kept."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_SUFFIXES = (".pyc", ".pyo", ".o", ".obj")


def prune_built_layer(built: Path, sources: Path) -> tuple[str, ...]:
    """Keep of what a build wrote into the checkout only new files: metadata, generated versions, extensions.

    Caches, intermediate files and every change or deletion of a pristine file go: the sources stay as they are.
    Returns the paths that are left, sorted.
    """
    for folder, folders, files in os.walk(built, topdown=False):
        _forget_opaque(folder)
        for name in files:
            path = Path(folder, name)
            inside = path.relative_to(built)
            if not _is_result(path, inside) or os.path.lexists(sources / inside):
                path.unlink()
        for name in folders:
            path = Path(folder, name)
            if path.is_symlink():
                if os.path.lexists(sources / path.relative_to(built)):
                    path.unlink()
            elif not os.listdir(path):
                path.rmdir()
    found = (Path(folder, name) for folder, _, files in os.walk(built) for name in files)
    return tuple(sorted(path.relative_to(built).as_posix() for path in found))


def _is_result(path: Path, inside: Path) -> bool:
    mode = path.lstat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):  # the mark of a deleted file
        return False
    return "__pycache__" not in inside.parts and inside.parts[0] != "build" and not path.name.endswith(_SUFFIXES)


def _forget_opaque(folder: str) -> None:
    """A folder that the build deleted and made again must not hide the files of the sources."""
    for name in os.listxattr(folder, follow_symlinks=False):
        if name.endswith("overlay.opaque"):
            os.removexattr(folder, name, follow_symlinks=False)
