"""Source of Debian source packages: found, downloaded and verified by apt, which needs no root for this.

Only the archive of the original authors is unpacked, without Debian's patches. Nothing of the package is run.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from excise.errors import SourceError
from excise.extractors.fetch.leftovers import clean_export
from excise.extractors.fetch.project_info import read_project_info
from excise.extractors.fetch.snapshot_records import SourceFacts, record_snapshot, split_subdir, staging, with_subdir
from excise.extractors.fetch.untrusted_archives import unpack_archive
from excise.protocols import Fetched
from excise.system.apt import PackageLists, archive_entries
from excise.system.commands import run_command
from excise.system.files import file_sha256, replacement
from excise.types import SourceSpec

_PREFIX = "debsrc:"
_SPEC = re.compile(r"debsrc:([a-z0-9][a-z0-9+.-]+)(?:=([A-Za-z0-9.+:~-]+))?")
_URI = re.compile(r"'(\S+)' (\S+) (\d+) SHA256:([0-9a-f]{64})")
_ORIGINAL = re.compile(r".*(\.orig\.tar\.\w+|_[^-]*\.tar\.\w+)")
"""The archive of the original authors; a package that Debian itself wrote has one archive without a revision."""


def system_entries() -> list[str]:
    """``deb-src`` lines for the archives that this machine's apt uses. Raises :class:`SourceError` without any."""
    return archive_entries("deb-src")


class DebianSource:
    """``debsrc:name`` (the newest version that apt's archives offer), ``debsrc:name=1.2-3``. Pinned: the latter."""

    name = "debian"

    def __init__(self, entries: Callable[[], Sequence[str]] = system_entries) -> None:
        """``entries`` returns the lines of a ``sources.list``."""
        self._entries = entries

    def matches(self, spec: SourceSpec) -> bool:
        """``debsrc:…``."""
        return spec.spec.startswith(_PREFIX)

    def resolve(self, spec: SourceSpec, cache: Path) -> str:
        """Ask apt for the version. Raises :class:`SourceError` (``source_unavailable``, ``bad_source``)."""
        name, version = _parsed(spec.spec)
        return with_subdir(f"{_PREFIX}{name}={version or self._newest(name, cache)}", spec)

    def fetch(self, pinned: str, cache: Path, into: Path) -> Fetched:
        """Have apt download the package, check the hash of the original archive again, and unpack it."""
        name, version = _parsed(split_subdir(pinned)[0])
        archive, digest = self._download(name, version, cache)
        with staging(pinned, into) as root:
            newest = unpack_archive(archive, root)
            clean_export(root)
        upstream = re.sub(r"^\d+:|-[^-]*$|[+~](dfsg|ds|repack)[\d.+]*", "", version)
        facts = SourceFacts(
            source=pinned, sha256=digest, created_at=newest, name=read_project_info(into).name or name, tag=upstream
        )
        return record_snapshot(into, facts)

    def _newest(self, name: str, cache: Path) -> str:
        shown = self._ask(cache, ["--only-source", "showsrc", name], program="apt-cache")
        versions: list[tuple[str, str]] = re.findall(r"^Package: (\S+)$[\s\S]*?^Version: (\S+)$", shown, re.MULTILINE)
        found = [version for package, version in versions if package == name]
        if not found:
            raise SourceError(
                f"apt's archives have no source package {name}{self._hint(name, cache)}", reason="source_unavailable"
            )
        newest = found[0]
        for version in found[1:]:
            if run_command(["dpkg", "--compare-versions", version, "gt", newest], timeout_s=10).returncode == 0:
                newest = version
        return newest

    def _hint(self, name: str, cache: Path) -> str:
        """What to write instead, if the name is that of a package that a source package makes."""
        try:
            shown = self._ask(cache, ["showsrc", name], program="apt-cache")
        except SourceError:
            return ""
        packages = sorted(set(re.findall(r"^Package: (\S+)$", shown, re.MULTILINE)))
        return f"; {name} is made from {packages[0]}: write {_PREFIX}{packages[0]}" if packages else ""

    def _download(self, name: str, version: str, cache: Path) -> tuple[Path, str]:
        """The original archive in the cache, and its sha256 as the signed list of packages has it."""
        listed = self._ask(cache, ["source", "--print-uris", "--only-source", f"{name}={version}"])
        files = {file: digest for _, file, _, digest in _URI.findall(listed)}
        originals = [file for file in files if _ORIGINAL.fullmatch(file)]
        if len(originals) != 1:
            raise SourceError(f"{name}={version} has {len(originals)} original archives, not one", reason="no_original")
        [original] = originals
        slot = cache / "debian" / f"{name}-{version.replace(':', '_')}"
        archive = slot / original
        if not archive.exists() or file_sha256(archive) != files[original]:
            work = slot / "download"
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True)
            self._ask(
                cache, ["source", "--download-only", "--tar-only", "--only-source", f"{name}={version}"], cwd=work
            )
            with replacement(archive) as target, (work / original).open("rb") as source:
                shutil.copyfileobj(source, target)
            shutil.rmtree(work)
        if file_sha256(archive) != files[original]:
            raise SourceError(f"{original} is not what the list of packages says", reason="hash_mismatch")
        return archive, files[original]

    def _ask(self, cache: Path, words: list[str], *, program: str = "apt-get", cwd: Path | None = None) -> str:
        return PackageLists(cache / "debian", self._entries).ask(words, program=program, cwd=cwd)


def _parsed(spec: str) -> tuple[str, str]:
    match = _SPEC.fullmatch(spec)
    if match is None:
        raise SourceError(f"{spec}: write debsrc:name or debsrc:name=version", reason="bad_source")
    return match[1], match[2] or ""
