"""Where a project comes from, and the snapshot of its sources."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSpec:
    """One line of a sources file: where a repository comes from, and what to do with it."""

    spec: str
    """``pypi:name[==version]``, a git URL or path (``git+…``, ``…@rev``), a directory, an archive."""
    limit: int | None = None
    """At most this many tasks from this source; ``None`` takes the run's limit."""
    python: str | None = None
    """Interpreter to use, for example ``3.11``; ``None`` chooses from the manifests."""
    subdir: str = ""
    """Where the project lies inside the repository."""
    extras: tuple[str, ...] = ()
    """Extras to install beside those found."""
    requirements: tuple[str, ...] = ()
    """Requirements to install beside those found."""
    test_args: tuple[str, ...] = ()
    """Arguments for the test runner beside those found."""

    @property
    def name(self) -> str:
        """What identifies the source between runs: as the user wrote it, with its subfolder."""
        return f"{self.spec}#subdirectory={self.subdir.strip('/')}" if self.subdir else self.spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Repo:
    """A snapshot of one project's sources."""

    repo: str
    """Name of the project: ``owner/name`` of a forge, else the distribution's or folder's name."""
    base_commit: str
    """The upstream commit; for sources without git, of the import commit (fixed author and date)."""
    tree: str
    """git tree hash of the pristine sources, caches and leftovers left out: the identity of the content."""
    language: str = "python"
    """Name of the language adapter."""
    version: str = ""
    """Version of the project, where known."""
    license: str = ""
    """SPDX expression or the text found in the manifest; empty if unknown."""
    source: str
    """The resolved, pinned source (``pypi:name==1.2``, ``git+URL@commit``, …): fetch it again with this."""
    sha256: str = ""
    """Hash of the downloaded archive, where there is one."""
    created_at: str = ""
    """ISO-8601 UTC time of the commit or release; empty if unknown."""
    blob: str = ""
    """sha256 of the archive of the pristine sources in the blob store."""
    num_files: int = 0
    """Number of files of the snapshot."""
    num_bytes: int = 0
    """Their size in bytes."""
