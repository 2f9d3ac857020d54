"""The layers that an installation leaves behind: what of them is kept."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path

VENDOR_FOLDERS = frozenset(
    {"_vendor", "_vendored_packages", "_vendored", "vendor", "vendored", "extern", "_internal_vendor"}
)
"""Names of folders that hold copies of other people's packages."""
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


def remove_vendored_twins(env: Path, packages: Iterable[str]) -> tuple[str, ...]:
    """Delete copies of the project that other distributions vendor: they would give every deletion away.

    Returns what went, as paths inside the environment. What needs such a copy stops working; the baseline tells.
    """
    names = set(packages)
    gone: list[str] = []
    for folder, folders, files in os.walk(env):
        if Path(folder).name in VENDOR_FOLDERS:
            for name in [n for n in (*folders, *files) if n.partition(".")[0] in names]:
                path = Path(folder) / name
                gone.append(path.relative_to(env).as_posix())
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            folders[:] = [n for n in folders if n.partition(".")[0] not in names]
    return tuple(sorted(gone))
