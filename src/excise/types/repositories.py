"""Sources of projects, and snapshots of their files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSpec:
    """A source as the user specifies it, with its options."""

    spec: str
    """``pypi:name[==version]``, ``debsrc:name[=version]``, ``npm:name[@version]``, ``crate:name[@version]``, a git
    URL or path (``git+…``, ``…@rev``), a directory, an archive."""
    limit: int | None = None
    """Maximum number of tasks from this source; ``None`` for the run's limit."""
    python: str | None = None
    """Version of the interpreter, for example ``3.11``; ``None`` to choose from the manifests."""
    subdir: str = ""
    """Folder of the project inside the repository."""
    extras: tuple[str, ...] = ()
    """Extras to install in addition to the detected ones."""
    requirements: tuple[str, ...] = ()
    """Requirements to install in addition to the detected ones."""
    test_args: tuple[str, ...] = ()
    """Arguments for the test runner in addition to the detected ones."""

    @property
    def name(self) -> str:
        """Identifier of the source across runs: the spec as written, with its subfolder."""
        return f"{self.spec}#subdirectory={self.subdir.strip('/')}" if self.subdir else self.spec


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectInfo:
    """What a project's files say about it; a field is empty if none says it."""

    name: str = ""
    """Name of the distribution, or of the repository."""
    version: str = ""
    """Version of the distribution."""
    license: str = ""
    """SPDX expression if the licence is recognised, else the text in the manifest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repo:
    """A snapshot of one project's sources."""

    repo: str
    """Name of the project: ``owner/name`` of a forge, else the distribution's or folder's name."""
    base_commit: str
    """The upstream commit; without git, the commit that excise makes (fixed author and date)."""
    tree: str
    """git tree hash of the original sources without caches and build leftovers."""
    language: str = "python"
    """Name of the language adapter."""
    version: str = ""
    """Version of the project; empty if unknown."""
    license: str = ""
    """SPDX expression, or the text in the manifest; empty if unknown."""
    source: str
    """The resolved, pinned source (``pypi:name==1.2``, ``git+URL@commit``, …)."""
    sha256: str = ""
    """sha256 of the downloaded archive; empty without one."""
    created_at: str = ""
    """ISO-8601 UTC time of the commit or release; empty if unknown."""
    blob: str = ""
    """sha256 of the archive of the original sources in the blob store."""
    num_files: int = 0
    """Number of files in the snapshot."""
    num_bytes: int = 0
    """Total size of the files in bytes."""
