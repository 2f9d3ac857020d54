"""Source of packages on a registry of npm, as npm is configured: their tarballs, unpacked without running anything."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from excise.errors import SourceError
from excise.extractors.fetch.downloads import kept_archive, record_archive, run_registry_tool
from excise.extractors.fetch.leftovers import clean_export
from excise.extractors.fetch.snapshot_records import SourceFacts, record_snapshot, split_subdir, staging, with_subdir
from excise.extractors.fetch.untrusted_archives import unpack_archive
from excise.protocols import Fetched
from excise.system.files import file_sha256
from excise.types import SourceSpec

_PREFIX = "npm:"
_SPEC = re.compile(r"npm:((?:@[\w.~-]+/)?[A-Za-z0-9._~-]+)(?:@([\w.\-+^~]+))?")
_EXACT = re.compile(r"\d+\.\d+\.\d+[\w.\-+]*")
_TIMEOUT_S = 120.0
"""Time limit of one call of npm."""


class NpmSource:
    """``npm:name`` (the version that the registry calls the latest), ``npm:name@1.2.3``. Pinned: the latter."""

    name = "npm"

    def matches(self, spec: SourceSpec) -> bool:
        """``npm:…``."""
        return spec.spec.startswith(_PREFIX)

    def resolve(self, spec: SourceSpec, cache: Path) -> str:
        """Ask the registry for the version; an exact version in the cache needs no request.

        Raises :class:`SourceError` (``source_unavailable``, ``bad_source``).
        """
        name, version = _parsed(spec.spec)
        if not (_EXACT.fullmatch(version) and kept_archive(_slot(cache, name, version))):
            version = str(_view(name, version)["version"])
        return with_subdir(f"{_PREFIX}{name}@{version}", spec)

    def fetch(self, pinned: str, cache: Path, into: Path) -> Fetched:
        """Download the tarball if it is not in the cache, check its hash against the registry's, and unpack it."""
        name, version = _parsed(split_subdir(pinned)[0])
        if not _EXACT.fullmatch(version):
            raise SourceError(f"{pinned} is not pinned; write {_PREFIX}name@version", reason="bad_source")
        archive, facts = kept_archive(_slot(cache, name, version)) or _download(name, version, cache)
        with staging(pinned, into) as root:
            unpack_archive(archive, root)
            clean_export(root)
        return record_snapshot(
            into,
            SourceFacts(
                source=pinned, name=name, version=version, sha256=facts["sha256"], created_at=facts["published"]
            ),
        )


def _parsed(spec: str) -> tuple[str, str]:
    found = _SPEC.fullmatch(split_subdir(spec)[0])
    if found is None:
        raise SourceError(f"{spec!r}: write {_PREFIX}name or {_PREFIX}name@version", reason="bad_source")
    return found[1], found[2] or ""


def _npm(*arguments: str, cwd: Path) -> str:
    done = run_registry_tool(["npm", *arguments], cwd=cwd, packages="nodejs npm", timeout_s=_TIMEOUT_S)
    if done.returncode != 0:
        lines = [line for line in done.stderr.decode(errors="replace").splitlines() if "ERR" in line or "error" in line]
        raise SourceError(f"npm: {' '.join(lines)[:400]}", reason="source_unavailable")
    return done.stdout.decode()


def _view(name: str, version: str) -> dict[str, Any]:
    """What the registry says of a version."""
    with TemporaryDirectory(prefix="excise-npm-") as folder:
        wanted = f"{name}@{version}" if version else name
        output = _npm("view", wanted, "version", "dist.integrity", "time", "--json", cwd=Path(folder))
    try:
        found = json.loads(output)
    except ValueError:
        found = None
    found = found[-1] if isinstance(found, list) and found else found
    if not isinstance(found, dict) or "version" not in found:
        raise SourceError(f"the registry has no {wanted}", reason="source_unavailable")
    return found


def _slot(cache: Path, name: str, version: str) -> Path:
    """The folder of one release in the cache."""
    return cache / "npm-tarballs" / f"{name.replace('/', '+')}-{version}"


def _download(name: str, version: str, cache: Path) -> tuple[Path, dict[str, str]]:
    known = _view(name, version)
    slot = _slot(cache, name, version)
    slot.mkdir(parents=True, exist_ok=True)
    archive = slot / "package.tgz"
    with TemporaryDirectory(prefix="excise-npm-") as folder:
        _npm("pack", f"{name}@{version}", "--ignore-scripts", "--silent", cwd=Path(folder))
        found = list(Path(folder).glob("*.tgz"))
        if len(found) != 1:
            raise SourceError(f"npm wrote no tarball of {name}@{version}", reason="source_unavailable")
        _check(found[0], str(known.get("dist.integrity", "")))
        shutil.move(found[0], archive)
    published = str((known.get("time") or {}).get(version, ""))[:19]
    published = f"{published}Z" if published else ""
    return archive, record_archive(archive, file_sha256(archive), published=published)


def _check(archive: Path, integrity: str) -> None:
    """Raise :class:`SourceError` unless a tarball has the hash that the registry names."""
    kind, _, digest = integrity.partition("-")
    if kind not in {"sha512", "sha384", "sha256"}:
        return
    found = base64.b64encode(hashlib.new(kind, archive.read_bytes()).digest()).decode()
    if found != digest:
        raise SourceError(f"{archive.name}: {kind} is {found}, the registry says {digest}", reason="hash_mismatch")
