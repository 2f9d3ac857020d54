"""Source of local archives, pinned by the hash of their bytes."""

from __future__ import annotations

import re
from pathlib import Path

from excise.errors import SourceError
from excise.extractors.fetch.leftovers import clean_export
from excise.extractors.fetch.project_info import read_project_info
from excise.extractors.fetch.snapshot_records import SourceFacts, record_snapshot, split_subdir, staging, with_subdir
from excise.extractors.fetch.untrusted_archives import SUFFIXES, unpack_archive
from excise.protocols import Fetched
from excise.system.files import file_sha256
from excise.types import SourceSpec

_PREFIX = "archive:"
_HASH = "@sha256:"


class ArchiveSource:
    """``path/to/name.tar.gz`` (any tar, or zip). Pinned: ``archive:/path@sha256:<hash>``."""

    name = "archive"

    def matches(self, spec: SourceSpec) -> bool:
        """``archive:…``, or any existing file; :meth:`resolve` raises for a file that is no archive."""
        return spec.spec.startswith(_PREFIX) or Path(spec.spec).expanduser().is_file()

    def resolve(self, spec: SourceSpec, cache: Path) -> str:  # noqa: ARG002
        """The source pinned to its content: the spec with the sha256 of the archive."""
        path = _file(spec.spec)
        return with_subdir(f"{_PREFIX}{path}{_HASH}{file_sha256(path)}", spec)

    def fetch(self, pinned: str, cache: Path, into: Path) -> Fetched:  # noqa: ARG002
        """Unpack the archive. Raises :class:`SourceError` if it has changed since it was pinned, or is unsafe."""
        plain, _ = split_subdir(pinned)
        path = _file(plain)
        digest, wanted = file_sha256(path), plain.rpartition(_HASH)[2]
        if _HASH in plain and digest != wanted:
            raise SourceError(f"{path} is not what it was when it was pinned ({wanted})", reason="source_changed")
        with staging(pinned, into) as root:
            newest = unpack_archive(path, root)
            clean_export(root)
        name = read_project_info(into).name or _stem(path)
        facts = SourceFacts(source=pinned, sha256=digest, created_at=newest, name=name)
        return record_snapshot(into, facts)


def _file(spec: str) -> Path:
    plain = spec.removeprefix(_PREFIX)
    path = Path(plain.rpartition(_HASH)[0] or plain).expanduser().resolve()
    if not path.is_file():
        raise SourceError(f"{path}: no such file", reason="source_unavailable")
    if path.name.endswith((".whl", ".egg")):
        raise SourceError(
            f"{path.name} is a built distribution, without tests. Give the source distribution or a git URL.",
            reason="not_sources",
        )
    if not path.name.lower().endswith(SUFFIXES):
        raise SourceError(f"{path.name} is no archive; understood are {', '.join(SUFFIXES)}", reason="not_an_archive")
    return path


def _stem(path: Path) -> str:
    """``name`` of ``name-1.2.tar.gz``."""
    return re.sub(r"(-v?\d[\w.+]*)?(\.tar)?\.\w+$", "", path.name)
