"""Source of git repositories, by URL or path, pinned to a commit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from excise.errors import SourceError
from excise.extractors.fetch.git_mirror import SHA, Mirror, is_repository
from excise.extractors.fetch.project_info import read_project_info
from excise.extractors.fetch.snapshot_records import SourceFacts, record_snapshot, split_subdir, staging, with_subdir
from excise.protocols import Fetched
from excise.types import Repo, SourceSpec

_SCHEMES = ("https://", "http://", "ssh://", "git://", "file://")
_LOCAL = ("/", "file://")
_SCP = re.compile(r"(?P<host>[\w.-]+@[\w.-]+):(?P<path>[^/].*)")


@dataclass(frozen=True, slots=True)
class GitSpec:
    """A repository and a revision in it."""

    url: str
    """URL, scp-like address or absolute path."""
    rev: str
    """Branch, tag or commit; empty for the default branch."""


def parse_git_spec(text: str) -> GitSpec | None:
    """Split ``URL[@rev]`` or ``path[@rev]``; ``None`` if it is no git source.

    Raises :class:`SourceError` for a revision that git would read as an option, and for a URL with credentials.
    """
    plain = split_subdir(text)[0].removeprefix("git+")
    spec = _split_url(plain) or _split_scp(plain) or _split_path(plain)
    if spec is None:
        return None
    if spec.rev.startswith("-"):
        raise SourceError(f"{text!r}: {spec.rev!r} is not a revision", reason="bad_source")
    parts = urlsplit(spec.url) if "://" in spec.url else None
    if parts and (parts.password or (parts.scheme.startswith("http") and parts.username)):
        raise SourceError(
            "the URL holds credentials, which would end up in the task set; use a git credential helper instead",
            reason="bad_source",
        )
    return spec


class GitSource:
    """``https://…``, ``git@host:owner/name``, ``git+…``, or a local path; all with an optional ``@rev``.

    Pinned: ``git+URL@<40 hexadecimal digits>``. Submodules are not fetched and LFS files stay pointers.
    """

    name = "git"

    def matches(self, spec: SourceSpec) -> bool:
        """A URL of a plain transport, an scp-like address, or the path of a repository."""
        if spec.spec.startswith("git+"):
            return True
        try:
            return parse_git_spec(spec.spec) is not None
        except SourceError:
            return True

    def resolve(self, spec: SourceSpec, cache: Path) -> str:
        """Ask the server for the current commit of the revision; for an abbreviated commit id, update the mirror."""
        wanted = _parsed(spec.spec)
        mirror = Mirror(wanted.url, cache)
        commit = wanted.rev if SHA.fullmatch(wanted.rev) else mirror.remote_commit(wanted.rev)
        if not commit and wanted.rev:
            mirror.update()
            commit = mirror.commit(wanted.rev)
        if not commit:
            missing = f"revision {wanted.rev!r}" if wanted.rev else "commit"
            raise SourceError(f"{wanted.url} has no {missing}", reason="no_such_revision")
        return with_subdir(f"git+{wanted.url}@{commit}" + _subdir_of(spec.spec), spec)

    def fetch(self, pinned: str, cache: Path, into: Path) -> Fetched:
        """Fetch the commit into the mirror and write its files to ``into``."""
        wanted = _parsed(pinned)
        if not SHA.fullmatch(wanted.rev):
            raise SourceError(f"{pinned} is not pinned to a full commit id", reason="bad_source")
        mirror = Mirror(wanted.url, cache)
        mirror.ensure(wanted.rev)
        with staging(pinned, into) as root:
            mirror.export(wanted.rev, root)
        facts = SourceFacts(
            source=pinned,
            name=repository_name(wanted.url),
            commit=wanted.rev,
            tag=mirror.version(wanted.rev),
            created_at=mirror.created_at(wanted.rev),
        )
        return record_snapshot(into, facts)


def repository_name(url: str) -> str:
    """``owner/name`` for a forge's URL, the folder's name for a path."""
    scp = _SCP.fullmatch(url)
    local = url.startswith(_LOCAL)
    path = scp["path"] if scp else unquote(urlsplit(url).path)
    parts = [part for part in path.removesuffix("/").removesuffix(".git").split("/") if part]
    return parts[-1] if local or len(parts) == 1 else "/".join(parts[-2:])


def name_in_words(repo: Repo, root: Path) -> str:
    """The name of a project for texts about it: that of the manifests in ``root`` if its source is a repository on this
    machine, whose folder may have any name; else that of its record."""
    is_local = repo.source.removeprefix("git+").startswith(_LOCAL)
    return (_name_in_manifests(root, repo.tree) if is_local else "") or repo.repo


@lru_cache(maxsize=32)
def _name_in_manifests(root: Path, tree: str) -> str:  # noqa: ARG001
    """The name, read once for a root with the files of a tree."""
    return read_project_info(root).name


def _parsed(text: str) -> GitSpec:
    spec = parse_git_spec(text)
    if spec is None:
        raise SourceError(
            f"{text!r} is no repository: give a path, or a URL with https, ssh, git or file", reason="bad_source"
        )
    return spec


def _subdir_of(text: str) -> str:
    subdir = split_subdir(text)[1]
    return f"#subdirectory={subdir}" if subdir else ""


def _split_url(text: str) -> GitSpec | None:
    if not text.startswith(_SCHEMES):
        return None
    scheme, _, rest = text.partition("://")
    host, slash, path = rest.partition("/")
    path, _, rev = _split_rev(path)
    return GitSpec(f"{scheme}://{host}{slash}{path}", rev)


def _split_scp(text: str) -> GitSpec | None:
    match = _SCP.fullmatch(text)
    if not match:
        return None
    path, _, rev = _split_rev(match["path"])
    return GitSpec(f"{match['host']}:{path}", rev)


def _split_path(text: str) -> GitSpec | None:
    for path, _, rev in ((text, "", ""), _split_rev(text)):
        folder = Path(path).expanduser()
        if path and folder.is_dir() and is_repository(folder):
            return GitSpec(str(folder.resolve()), rev)
    return None


def _split_rev(path: str) -> tuple[str, str, str]:
    before, at, after = path.rpartition("@")
    return (before, at, after) if at else (path, "", "")
