"""Layers in the format of overlayfs: marks of deleted files, and the merged content of a stack of layers.

A layer is a folder. A *whiteout*, a character device with the number 0/0, marks a deleted file; a folder that is
*opaque* (an extended attribute) hides everything that lower layers have in its place.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

OPAQUE = "overlay.opaque"
"""End of the attribute's name: ``trusted.overlay.opaque`` for root, ``user.overlay.opaque`` for others."""

Tree = Mapping[str, Path]
"""Path inside a stack of layers to the file or folder on the host; ``""`` is the top."""


def is_whiteout(path: Path) -> bool:
    """Whether this is the mark of a deleted file."""
    found = path.lstat()
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == 0


def is_opaque(folder: Path) -> bool:
    """Whether the folder hides everything that lower layers have in its place."""
    return any(name.endswith(OPAQUE) for name in os.listxattr(folder, follow_symlinks=False))


def merged(layers: Sequence[str]) -> Tree:
    """Return the files and folders that an overlay of the layers (topmost first) shows."""
    found: dict[str, Path] = {}
    for layer in reversed(layers):
        for path in _walk(Path(layer)):
            inside = "" if path == Path(layer) else path.relative_to(layer).as_posix()
            if is_whiteout(path):
                _drop(found, inside, itself=True)
                continue
            lower = found.get(inside)
            if lower is not None and (not _is_folder(path) or not _is_folder(lower) or is_opaque(path)):
                _drop(found, inside, itself=False)
            found[inside] = path
    return found


def _walk(root: Path) -> Iterator[Path]:
    """The root and everything below, parents first, links not followed."""
    yield root
    for folder, folders, files in os.walk(root):
        for name in sorted((*folders, *files)):
            yield Path(folder, name)


def _drop(found: dict[str, Path], inside: str, *, itself: bool) -> None:
    for path in [p for p in found if p.startswith(f"{inside}/") or (itself and p == inside)]:
        del found[path]


def _is_folder(path: Path) -> bool:
    return stat.S_ISDIR(path.lstat().st_mode)


def changed_paths(layer: Path, lower: Sequence[str]) -> list[str]:
    """Return the paths of files that the layer adds, changes, or deletes from the lower layers; sorted."""
    found: set[str] = set()
    for folder, folders, files in os.walk(layer):
        here = Path(folder)
        inside = here.relative_to(layer)
        if is_opaque(here):
            found |= _files_at(inside, lower)
        for name in (*files, *(n for n in folders if (here / n).is_symlink())):
            found.add(str(inside / name))
            found |= _files_at(inside / name, lower)
    return sorted(found)


def _files_at(inside: Path, layers: Sequence[str]) -> set[str]:
    """Files of the layers below a folder."""
    found: set[str] = set()
    for layer in layers:
        root = Path(layer, inside)
        if root.is_dir() and not root.is_symlink():
            for folder, _, files in os.walk(root):
                found |= {str(Path(folder, name).relative_to(layer)) for name in files}
    return found


def find_in_layers(path: str, layers: Sequence[str]) -> Path:
    """Return the file at ``path`` in the topmost layer that has it; a nonexistent path if no layer has."""
    for layer in layers:
        parts = Path(path).parts
        steps = [Path(layer, *parts[: n + 1]) for n in range(len(parts))]
        there = [step for step in steps if os.path.lexists(step)]
        if there and is_whiteout(there[-1]):
            break
        if len(there) == len(steps):
            return steps[-1]
        if any(is_opaque(step) for step in there if step.is_dir() and not step.is_symlink()):
            break
    return Path(os.devnull, "nothing")
