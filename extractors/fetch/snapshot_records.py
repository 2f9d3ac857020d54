"""What all sources share: a pinned form with a subfolder, and the record of a finished snapshot."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from excise.errors import SourceError
from excise.extractors.fetch.project_info import read_project_info
from excise.extractors.fetch.trees import EMPTY_TREE, copy_files, git_tree_hash, import_commit, list_files
from excise.protocols import Fetched
from excise.types import Repo, SourceSpec

_SUBDIR = "#subdirectory="


def with_subdir(pinned: str, spec: SourceSpec) -> str:
    """``pinned`` and the subfolder of the spec, in pip's notation."""
    subdir = spec.subdir.strip("/")
    return f"{pinned}{_SUBDIR}{subdir}" if subdir and _SUBDIR not in pinned else pinned


def split_subdir(pinned: str) -> tuple[str, str]:
    """The pinned form without its subfolder, and the subfolder (mostly empty)."""
    plain, _, subdir = pinned.partition(_SUBDIR)
    return plain, subdir


@contextmanager
def staging(pinned: str, into: Path) -> Iterator[Path]:
    """A folder to unpack the whole source into; what lies in its subfolder ends up in ``into``.

    Raises :class:`SourceError` if the subfolder is missing.
    """
    subdir = split_subdir(pinned)[1]
    into.mkdir(parents=True, exist_ok=True)
    if not subdir:
        yield into
        return
    with TemporaryDirectory(dir=into.parent, prefix=".whole-") as whole:
        yield Path(whole)
        project = Path(whole, subdir)
        if ".." in Path(subdir).parts or project.is_symlink() or not project.is_dir():
            raise SourceError(f"{pinned}: there is no folder {subdir!r} in it", reason="no_such_folder")
        copy_files(project, list_files(project), into)


def snapshot(  # one keyword per fact that only the source knows
    root: Path,
    *,
    source: str,
    name: str = "",
    commit: str = "",
    version: str = "",
    tag: str = "",
    sha256: str = "",
    created_at: str = "",
) -> Fetched:
    """The record of the files in ``root``. What is not given is read from the project's own manifests.

    Raises :class:`SourceError` if there are no files.
    """
    files, tree = list_files(root), git_tree_hash(root)
    if tree == EMPTY_TREE:
        shutil.rmtree(root, ignore_errors=True)
        raise SourceError(f"{source} holds no files", reason="empty_source")
    info = read_project_info(root)
    name = name or info.name or root.name
    version = version or info.version or tag
    repo = Repo(
        repo=name,
        base_commit=commit or import_commit(tree, f"Import {name} {version}".rstrip()),
        tree=tree,
        version=version,
        license=info.license,
        source=source,
        sha256=sha256,
        created_at=created_at,
        num_files=len(files),
        num_bytes=sum((root / f).lstat().st_size for f in files),
    )
    return Fetched(repo=repo, root=root)
