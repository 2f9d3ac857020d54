"""Functions that all sources share: subfolders in pinned specifications, and the record of a fetched snapshot."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from excise.errors import SourceError
from excise.extractors.fetch.project_info import read_project_info
from excise.extractors.fetch.trees import EMPTY_TREE, copy_files, git_tree_hash, import_commit, list_files
from excise.extractors.languages import detect_language, get_language
from excise.protocols import Fetched
from excise.types import Repo, SourceSpec

_SUBDIR = "#subdirectory="
MAX_LINKED = 16 << 20
"""Bytes of files outside of a subfolder that links in it may bring."""


def with_subdir(pinned: str, spec: SourceSpec) -> str:
    """``pinned`` with the subfolder of the spec appended in pip's notation (``#subdirectory=``)."""
    subdir = spec.subdir.strip("/")
    return f"{pinned}{_SUBDIR}{subdir}" if subdir and _SUBDIR not in pinned else pinned


def split_subdir(pinned: str) -> tuple[str, str]:
    """The pinned form without its subfolder, and the subfolder; empty if there is none."""
    plain, _, subdir = pinned.partition(_SUBDIR)
    return plain, subdir


@contextmanager
def staging(pinned: str, into: Path) -> Iterator[Path]:
    """Yield a folder to write the whole source to; when the block ends, ``into`` holds the files of the subfolder.

    Links to files of the source that are not in the subfolder (``LICENSE -> ../LICENSE``) become these files. Raises
    :class:`SourceError` if the subfolder is missing.
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
        _resolve_outer_links(project, Path(whole), into)
        get_language(detect_language(into)).complete_subfolder(into, project, Path(whole))


def _resolve_outer_links(project: Path, whole: Path, into: Path) -> None:
    """Replace copies of links out of a subfolder of a source by the files that these lead to.

    No more than :data:`MAX_LINKED` bytes altogether: many links to one large file would fill the disk.
    """
    inner, outer = (Path(os.path.realpath(each)) for each in (project, whole))
    left = MAX_LINKED
    for path in (each for each in list_files(project) if (project / each).is_symlink()):
        target = Path(os.path.realpath(project / path))
        is_outer = target.is_relative_to(outer) and not target.is_relative_to(inner)
        if is_outer and target.is_file() and ".git" not in target.parts and target.stat().st_size <= left:
            left -= target.stat().st_size
            (into / path).unlink()
            shutil.copyfile(target, into / path)
            (into / path).chmod(0o644)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFacts:
    """Facts about a snapshot that its source knows; a field is empty if the source does not know it."""

    source: str
    """The pinned specification."""
    name: str = ""
    """Name of the project."""
    commit: str = ""
    """Commit id."""
    version: str = ""
    """Version."""
    tag: str = ""
    """Version from a tag: used only if the manifests name no version."""
    sha256: str = ""
    """Hash of the archive."""
    created_at: str = ""
    """Date of the sources, ISO-8601 UTC."""


def record_snapshot(root: Path, facts: SourceFacts) -> Fetched:
    """Make the record of the files in ``root``; facts that the source lacks are read from the project's manifests.

    Raises :class:`SourceError` if there are no files.
    """
    files, tree = list_files(root), git_tree_hash(root)
    if tree == EMPTY_TREE:
        shutil.rmtree(root, ignore_errors=True)
        raise SourceError(f"{facts.source} holds no files", reason="empty_source")
    info = read_project_info(root)
    name = facts.name or info.name or root.name
    version = facts.version or info.version or facts.tag
    repo = Repo(
        repo=name,
        base_commit=facts.commit or import_commit(tree, f"Import {name} {version}".rstrip()),
        tree=tree,
        version=version,
        license=info.license,
        source=facts.source,
        sha256=facts.sha256,
        created_at=facts.created_at,
        num_files=len(files),
        num_bytes=sum((root / f).lstat().st_size for f in files),
    )
    return Fetched(repo=repo, root=root)
