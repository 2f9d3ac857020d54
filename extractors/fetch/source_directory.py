"""Source of folders without version control, pinned by the hash of their content."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from excise.errors import SourceError
from excise.extractors.fetch.git_mirror import is_repository
from excise.extractors.fetch.leftovers import kept_files
from excise.extractors.fetch.project_info import read_project_info
from excise.extractors.fetch.snapshot_records import SourceFacts, record_snapshot, split_subdir, staging, with_subdir
from excise.extractors.fetch.trees import copy_files, git_tree_hash
from excise.protocols import Fetched
from excise.types import SourceSpec

_PREFIX = "dir:"
_TREE = "@tree:"


class DirectorySource:
    """``path`` of a folder that is no git repository, or ``dir:path`` for any folder.

    Caches, build outputs and links to files outside are left out. Pinned: ``dir:/path@tree:<git tree hash>``.
    """

    name = "directory"

    def matches(self, spec: SourceSpec) -> bool:
        """``dir:…``, or an existing folder without git."""
        if spec.spec.startswith(_PREFIX):
            return True
        path = Path(spec.spec).expanduser()
        return path.is_dir() and not is_repository(path)

    def resolve(self, spec: SourceSpec, cache: Path) -> str:  # noqa: ARG002
        """Pin by the hash of the files that :meth:`fetch` would copy.

        Raises :class:`SourceError` (``source_changed``) for a spec that is pinned to other files.
        """
        plain, subdir = split_subdir(spec.spec)
        path = _folder(plain)
        tree = git_tree_hash(path, kept_files(path))
        if _TREE in plain and plain.rpartition(_TREE)[2] != tree:
            raise _changed(path, plain)
        return with_subdir(f"{_PREFIX}{path}{_TREE}{tree}", replace(spec, subdir=spec.subdir or subdir))

    def fetch(self, pinned: str, cache: Path, into: Path) -> Fetched:  # noqa: ARG002
        """Copy the files. Raises :class:`SourceError` (``source_changed``) if they are no longer the pinned ones."""
        plain, _ = split_subdir(pinned)
        path, files = _folder(plain), []
        with staging(pinned, into) as root:
            files = kept_files(path)
            copy_files(path, files, root)
            if _TREE in plain and git_tree_hash(root) != plain.rpartition(_TREE)[2]:
                raise _changed(path, plain)
        newest = max(((path / f).lstat().st_mtime for f in files), default=0.0)
        created = datetime.fromtimestamp(int(newest), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        facts = SourceFacts(source=pinned, created_at=created, name=_name(path, split_subdir(pinned)[1]))
        return record_snapshot(into, facts)


def _changed(path: Path, pinned: str) -> SourceError:
    tree = pinned.rpartition(_TREE)[2]
    return SourceError(
        f"{path} is not what it was when it was pinned ({tree}). Name the folder without its pin to take it as it is.",
        reason="source_changed",
    )


def _folder(spec: str) -> Path:
    path = Path(spec.removeprefix(_PREFIX).rpartition(_TREE)[0] or spec.removeprefix(_PREFIX)).expanduser().resolve()
    if not path.is_dir():
        raise SourceError(f"{path} is not a folder", reason="source_unavailable")
    return path


def _name(path: Path, subdir: str) -> str:
    project = path / subdir
    return read_project_info(project).name or project.name
