"""Source: a git repository, by URL or path, pinned to a commit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from excise.errors import SourceError
from excise.extractors.fetch.git_mirror import SHA, Mirror, is_repository
from excise.extractors.fetch.snapshot_records import snapshot, split_subdir, staging, with_subdir
from excise.protocols import Fetched
from excise.types import SourceSpec

_SCHEMES = ("https://", "http://", "ssh://", "git://", "file://")
_SCP = re.compile(r"(?P<host>[\w.-]+@[\w.-]+):(?P<path>[^/].*)")


@dataclass(frozen=True, slots=True)
class GitSpec:
    """A repository and a revision (empty: the default branch)."""

    url: str
    rev: str


def parse_git_spec(text: str) -> GitSpec | None:
    """Split ``URL[@rev]`` or ``path[@rev]``; ``None`` if it is no git source.

    Raises :class:`SourceError` for a revision like an option, and for a URL with a password in it.
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
        """Ask the server which commit the revision is now; an abbreviated commit needs the mirror."""
        given = _parsed(spec.spec)
        mirror = Mirror(given.url, cache)
        commit = given.rev if SHA.fullmatch(given.rev) else mirror.remote_commit(given.rev)
        if not commit and given.rev:
            mirror.update()
            commit = mirror.commit(given.rev)
        if not commit:
            wanted = f"revision {given.rev!r}" if given.rev else "commit"
            raise SourceError(f"{given.url} has no {wanted}", reason="no_such_revision")
        return with_subdir(f"git+{given.url}@{commit}" + _subdir_of(spec.spec), spec)

    def fetch(self, pinned: str, cache: Path, into: Path) -> Fetched:
        """Bring the commit into the mirror and write its files out."""
        given = _parsed(pinned)
        if not SHA.fullmatch(given.rev):
            raise SourceError(f"{pinned} is not pinned to a full commit id", reason="bad_source")
        mirror = Mirror(given.url, cache)
        mirror.ensure(given.rev)
        with staging(pinned, into) as root:
            mirror.export(given.rev, root)
        return snapshot(
            into,
            source=pinned,
            name=repository_name(given.url),
            commit=given.rev,
            tag=mirror.version(given.rev),
            created_at=mirror.created_at(given.rev),
        )


def repository_name(url: str) -> str:
    """``owner/name`` for a forge's URL, the folder's name for a path."""
    scp = _SCP.fullmatch(url)
    local = url.startswith(("/", "file://"))
    path = scp["path"] if scp else unquote(urlsplit(url).path)
    parts = [part for part in path.removesuffix("/").removesuffix(".git").split("/") if part]
    return parts[-1] if local or len(parts) == 1 else "/".join(parts[-2:])


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
