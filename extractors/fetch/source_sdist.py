"""Source of source distributions on a package index: found by ``unearth``, unpacked without running any code."""

from __future__ import annotations

import re
from datetime import UTC
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from excise.errors import SourceError
from excise.extractors.fetch.downloads import download, kept_archive, record_archive, retrying
from excise.extractors.fetch.leftovers import clean_export
from excise.extractors.fetch.snapshot_records import SourceFacts, record_snapshot, split_subdir, staging, with_subdir
from excise.extractors.fetch.untrusted_archives import SUFFIXES, unpack_archive
from excise.package_index import index_url
from excise.protocols import Fetched
from excise.types import SourceSpec

_PREFIX = "pypi:"
_INDEX = "the package index"


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
        if (exact := _exact(wanted)) and kept_archive(_slot(cache, wanted.name, exact)):
            return with_subdir(f"{_PREFIX}{canonicalize_name(wanted.name)}=={exact}", spec)
        package = _find(wanted)
        return with_subdir(f"{_PREFIX}{canonicalize_name(wanted.name)}=={package.version}", spec)

    def fetch(self, pinned: str, cache: Path, into: Path) -> Fetched:
        """Download the archive if it is not in the cache, check its hash against the index, and unpack it."""
        wanted = _requirement(split_subdir(pinned)[0])
        version = _exact(wanted)
        if not version:
            raise SourceError(f"{pinned} is not pinned; write {_PREFIX}name==version", reason="bad_source")
        kept = kept_archive(_slot(cache, wanted.name, version))
        archive, facts = kept or _download(_find(wanted), cache, wanted.name, version)
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
        packages = retrying(lambda: list(finder.find_matches(wanted)), _INDEX)
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


def _slot(cache: Path, name: str, version: str) -> Path:
    """The folder of one release in the cache."""
    folder = f"{canonicalize_name(name)}-{version}"
    if not re.fullmatch(r"[\w.!+-]+", folder):
        raise SourceError(f"{version!r} is not a version", reason="bad_source")
    return cache / "sdists" / folder


def _download(package: Any, cache: Path, name: str, version: str) -> tuple[Path, dict[str, str]]:
    link = package.link
    archive = _slot(cache, name, version) / Path(link.filename).name
    finder = _finder()
    try:
        stream, expected = finder.session.get_stream, link.hash_option or {}
        sha256 = retrying(lambda: download(stream(link.normalized), archive, expected), _INDEX)
    finally:
        finder.session.close()
    uploaded = link.upload_time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if link.upload_time else ""
    return archive, record_archive(archive, sha256, uploaded=uploaded)
