"""Source of source distributions on a package index: found by ``unearth``, unpacked without running any code."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable
from datetime import UTC
from pathlib import Path
from typing import Any, TypeVar

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from excise.errors import SourceError
from excise.extractors.fetch.leftovers import clean_export
from excise.extractors.fetch.snapshot_records import SourceFacts, record_snapshot, split_subdir, staging, with_subdir
from excise.extractors.fetch.untrusted_archives import SUFFIXES, unpack_archive
from excise.package_index import index_url
from excise.protocols import Fetched
from excise.system.files import file_sha256, replace_file, replacement
from excise.types import SourceSpec

T = TypeVar("T")
_PREFIX = "pypi:"
_MAX_DOWNLOAD = 512 << 20
"""Maximum size of one source distribution in bytes."""
_ATTEMPTS = 3
"""Maximum number of requests to an index that fails; the pause before each retry is one second longer than the last."""


class SdistSource:
    """``pypi:name`` (newest final release that has an sdist), ``pypi:name==1.2``, ``pypi:name<2``.

    The index is the one that pip and uv are configured for. Pinned: ``pypi:name==1.2``.
    """

    name = "sdist"

    def matches(self, spec: SourceSpec) -> bool:
        """``pypi:…``."""
        return spec.spec.startswith(_PREFIX)

    def resolve(self, spec: SourceSpec, cache: Path) -> str:
        """Ask the index for the newest matching sdist; an exact version in the cache needs no request.

        Raises :class:`SourceError` (``no_sdist``, ``source_unavailable``, ``bad_source``).
        """
        wanted = _requirement(spec.spec)
        if (exact := _exact(wanted)) and _cached(cache, wanted.name, exact):
            return with_subdir(f"{_PREFIX}{canonicalize_name(wanted.name)}=={exact}", spec)
        package = _find(wanted)
        return with_subdir(f"{_PREFIX}{canonicalize_name(wanted.name)}=={package.version}", spec)

    def fetch(self, pinned: str, cache: Path, into: Path) -> Fetched:
        """Download the archive if it is not in the cache, check its hash against the index, and unpack it."""
        wanted = _requirement(split_subdir(pinned)[0])
        version = _exact(wanted)
        if not version:
            raise SourceError(f"{pinned} is not pinned; write {_PREFIX}name==version", reason="bad_source")
        archive, facts = _cached(cache, wanted.name, version) or _download(_find(wanted), cache, wanted.name, version)
        with staging(pinned, into) as root:
            newest = unpack_archive(archive, root)
            clean_export(root)
        return record_snapshot(
            into,
            SourceFacts(
                source=pinned,
                name=canonicalize_name(wanted.name),
                version=version,
                sha256=facts["sha256"],
                created_at=facts["uploaded"] or newest,
            ),
        )


def _requirement(spec: str) -> Requirement:
    text = split_subdir(spec)[0].removeprefix(_PREFIX)
    try:
        return Requirement(text)
    except InvalidRequirement as error:
        raise SourceError(
            f"{spec!r}: write {_PREFIX}name or {_PREFIX}name==version ({error})", reason="bad_source"
        ) from None


def _exact(wanted: Requirement) -> str:
    """The version of a requirement ``name==version``; empty for any other requirement."""
    specifiers = list(wanted.specifier)
    exact = len(specifiers) == 1 and specifiers[0].operator in ("==", "===") and "*" not in specifiers[0].version
    return specifiers[0].version if exact else ""


def _find(wanted: Requirement) -> Any:
    """Return the newest sdist that meets the requirement, as a package of ``unearth``. Raises :class:`SourceError`."""
    finder = _finder()
    try:
        packages = _retrying(lambda: list(finder.find_matches(wanted)))
    finally:
        finder.session.close()
    for package in packages:
        if not package.link.is_wheel and package.link.filename.lower().endswith(SUFFIXES) and package.version:
            return package
    if packages:
        versions = sorted({str(p.version) for p in packages})
        raise SourceError(
            f"{wanted} is on the index as wheels only ({', '.join(versions[-5:])}); give its git URL instead",
            reason="no_sdist",
        )
    raise SourceError(f"the package index has no {wanted}, or does not answer", reason="source_unavailable")


def _finder() -> Any:
    from unearth import PackageFinder
    from unearth.auth import MultiDomainBasicAuth
    from unearth.fetchers.sync import PyPIClient

    url = index_url()
    session = PyPIClient(timeout=30.0)
    session.auth = MultiDomainBasicAuth(prompting=False, index_urls=[url] if url else [])
    # Which Python can install it is decided later, among all interpreters of the machine.
    finder: Any = PackageFinder
    return finder(session, index_urls=[url] if url else [], ignore_compatibility=True)


def _retrying(request: Callable[[], T]) -> T:
    """Call ``request``, again after HTTP errors; raises :class:`SourceError` after :data:`_ATTEMPTS` failures."""
    import httpx2

    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return request()
        except httpx2.HTTPError as error:
            if attempt == _ATTEMPTS:
                raise SourceError(f"the package index does not answer: {error}", reason="source_unavailable") from error
            time.sleep(attempt)
    raise AssertionError


def _slot(cache: Path, name: str, version: str) -> Path:
    """The folder of one release in the cache."""
    folder = f"{canonicalize_name(name)}-{version}"
    if not re.fullmatch(r"[\w.!+-]+", folder):
        raise SourceError(f"{version!r} is not a version", reason="bad_source")
    return cache / "sdists" / folder


def _cached(cache: Path, name: str, version: str) -> tuple[Path, dict[str, str]] | None:
    """The archive of a release in the cache and its recorded facts; ``None`` if it is missing or damaged."""
    slot = _slot(cache, name, version)
    try:
        facts: dict[str, str] = json.loads((slot / "facts.json").read_text(encoding="utf-8"))
        archive = slot / facts["filename"]
        intact = file_sha256(archive) == facts["sha256"]
    except (OSError, ValueError, KeyError):
        return None
    return (archive, facts) if intact else None


def _download(package: Any, cache: Path, name: str, version: str) -> tuple[Path, dict[str, str]]:
    slot, link = _slot(cache, name, version), package.link
    archive = slot / Path(link.filename).name
    finder = _finder()
    try:
        digests = _retrying(lambda: _stream(finder.session, link, archive))
    finally:
        finder.session.close()
    uploaded = link.upload_time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if link.upload_time else ""
    facts = {"filename": archive.name, "sha256": digests["sha256"], "uploaded": uploaded}
    replace_file(slot / "facts.json", json.dumps(facts).encode())
    return archive, facts


def _stream(session: Any, link: Any, archive: Path) -> dict[str, str]:
    """Download ``link`` to ``archive`` and return its hashes. Raises :class:`SourceError` if one is not the index's."""
    expected: dict[str, list[str]] = {
        k: v for k, v in (link.hash_option or {}).items() if k in hashlib.algorithms_available
    }
    hashers = {kind: hashlib.new(kind) for kind in {"sha256", *expected}}
    size = 0
    with replacement(archive) as partial:
        with session.get_stream(link.normalized) as response:
            response.raise_for_status()
            for chunk in response.iter_bytes(1 << 16):
                size += len(chunk)
                if size > _MAX_DOWNLOAD:
                    raise SourceError(f"{archive.name} is larger than {_MAX_DOWNLOAD >> 20} MiB", reason="too_large")
                partial.write(chunk)
                for hasher in hashers.values():
                    hasher.update(chunk)
        digests = {kind: hasher.hexdigest() for kind, hasher in hashers.items()}
        for kind, allowed in expected.items():
            if digests[kind] not in allowed:
                raise SourceError(
                    f"{archive.name}: {kind} is {digests[kind]}, the index says {allowed[0]}", reason="hash_mismatch"
                )
    return digests
