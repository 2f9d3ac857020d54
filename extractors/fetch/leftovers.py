"""Finds and deletes files that are not sources: caches, build outputs, virtual environments, links to files outside.

Of git sources, which are committed trees, only the links to files outside are left out. Files that agents must not see
are removed later, from sources of all kinds (:func:`excise.verifiers.shipped_tree.scrub`).
"""

from __future__ import annotations

import fnmatch
import os
from pathlib import Path

from excise.extractors.fetch.trees import list_files

_FOLDERS = frozenset(
    (
        *("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".pytype", ".pyre", ".cache"),
        *(".tox", ".nox", ".eggs", ".ipynb_checkpoints", ".benchmarks", "htmlcov", "node_modules", "__MACOSX"),
        *(".svn", ".hg", ".bzr"),
    )
)
_FILES = (
    *("*.pyc", "*.pyo", "*.egg-link", ".coverage", ".coverage.*", "coverage.xml", ".DS_Store", "Thumbs.db"),
    *("*.cpython-*.so", "*.abi3.so", "*.cp3*-win*.pyd"),
)
_FILE_LISTS = frozenset({"SOURCES.txt", "scm_file_list.json"})
"""Lists of a release's files among its metadata."""


def kept_files(root: Path) -> list[str]:
    """Return the files of ``root`` that are sources: no caches, no build outputs, no links to files outside it."""
    outputs = _output_folders(root)
    return [
        path
        for path in list_files(root)
        if not _is_cache(path) and not any(path.startswith(folder) for folder in outputs) and not leads_out(root, path)
    ]


def clean_export(root: Path) -> None:
    """Delete the files of ``root`` that :func:`kept_files` leaves out, and the folders that become empty.

    The metadata of a release (``PKG-INFO``) lose the project's description: a copy of its README, which no edit of
    that reaches.
    """
    keep = set(kept_files(root))
    for folder, _, names in os.walk(root, topdown=False):
        for name in names:
            if Path(folder, name).relative_to(root).as_posix() not in keep:
                Path(folder, name).unlink()
        for entry in list(os.scandir(folder)):
            if entry.is_symlink():
                if Path(entry.path).relative_to(root).as_posix() not in keep:
                    os.unlink(entry.path)
            elif entry.is_dir() and not os.listdir(entry.path):
                os.rmdir(entry.path)
    for metadata in (root / "PKG-INFO", *root.glob("*.egg-info/PKG-INFO"), *root.glob("*/*.egg-info/PKG-INFO")):
        if metadata.is_file() and not metadata.is_symlink():
            before = metadata.read_bytes()
            if (after := _without_description(before)) != before:
                metadata.write_bytes(after)


def _without_description(metadata: bytes) -> bytes:
    """The fields of core metadata without ``Description``, be it a field with folded lines or the message's body."""
    left: list[bytes] = []
    is_description = False
    for line in metadata.splitlines(keepends=True):
        if line in {b"\n", b"\r\n"}:  # folded lines that look empty begin with blanks
            break
        if not line[:1].isspace():
            is_description = line.lower().startswith(b"description:")
        if not is_description:
            left.append(line)
    return b"".join(left)


def leads_out(root: Path, path: str) -> bool:
    """Whether ``path`` is a symbolic link to a file outside ``root``: files of the host could be read through it."""
    link = root / path
    if not link.is_symlink():
        return False
    target = os.readlink(link)
    if os.path.isabs(target):
        return True
    resolved = os.path.realpath(link.parent / target)
    base = os.path.realpath(root)
    return os.path.commonpath([base, resolved]) != base


def _is_cache(path: str) -> bool:
    *folders, name = path.split("/")
    if name in _FILE_LISTS and folders and folders[-1].endswith(".egg-info"):
        return True
    return any(f in _FOLDERS for f in folders) or any(fnmatch.fnmatchcase(name, pattern) for pattern in _FILES)


def _output_folders(root: Path) -> tuple[str, ...]:
    """Folders of build outputs and virtual environments, as path prefixes that end with ``/``."""
    found = [f.parent for f in root.glob("*/pyvenv.cfg")] + [f.parent for f in root.glob("*/*/pyvenv.cfg")]
    build, dist = root / "build", root / "dist"
    if any(any(build.glob(pattern)) for pattern in ("lib", "lib.*", "bdist.*", "temp.*")) and not _is_package(build):
        found.append(build)
    if dist.is_dir() and all(f.name.endswith((".whl", ".tar.gz", ".zip", ".egg")) for f in dist.iterdir()):
        found.append(dist)
    return tuple(f"{folder.relative_to(root).as_posix()}/" for folder in found)


def _is_package(folder: Path) -> bool:
    return (folder / "__init__.py").is_file()
