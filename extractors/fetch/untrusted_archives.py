"""Unpack untrusted archives: nothing is executed or written outside the target folder, and sizes are limited."""

from __future__ import annotations

import lzma
import os
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from excise.errors import SourceError
from excise.system.deadline import check_deadline

MAX_FILES = 100_000
"""Maximum number of entries of an archive."""
MAX_BYTES = 2 << 30
"""Maximum size of an unpacked archive in bytes."""
TAR_SUFFIXES = (".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar", ".tar.lzma")
"""Suffixes of the names of tar archives."""
SUFFIXES = (*TAR_SUFFIXES, ".zip")
"""Suffixes of the names of archives that can be unpacked."""
_BACKEND_EPOCH = 1580601600
"""2020-02-02 as a time stamp: the fixed date that a build backend writes into reproducible archives."""


def unpack_archive(archive: Path, into: Path) -> str:
    """Unpack ``archive`` into the empty folder ``into``; a single top-level folder is left out of the paths.

    Returns the newest time stamp of its members (ISO-8601 UTC; empty if there is none). Raises :class:`SourceError` for
    archives that are damaged, too large or have unsafe members.
    """
    into.mkdir(parents=True, exist_ok=True)
    try:
        newest = _unzip(archive, into) if zipfile.is_zipfile(archive) else _untar(archive, into)
    except (tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error, EOFError, OSError, RuntimeError) as error:
        raise SourceError(f"{archive.name} cannot be unpacked: {error}", reason="bad_archive") from error
    _strip_top_folder(into)
    return newest


def _untar(archive: Path, into: Path) -> str:
    """Unpack a tar archive without ``tarfile``'s data filter, which early releases of Python 3.11 do not have."""
    total, newest, seen = 0, 0.0, 0
    links: list[tuple[Path, str]] = []
    with tarfile.open(archive) as tar:
        for member in tar:
            check_deadline()
            seen, total = seen + 1, total + member.size
            _check_limits(archive, seen, total)
            newest = max(newest, member.mtime)
            inside = PurePosixPath(member.name)
            if inside.is_absolute() or ".." in inside.parts:
                if member.issym() or member.islnk():
                    continue
                raise SourceError(f"{archive.name}: unsafe member: {member.name}", reason="bad_archive")
            if member.issym():
                links.append((into / inside, member.linkname))
            elif member.isdir():
                (into / inside).mkdir(parents=True, exist_ok=True)
            elif member.isreg() or member.islnk():
                _write_member(tar, member, into / inside)
            elif member.isdev():
                raise SourceError(f"{archive.name} holds a device: {member.name}", reason="bad_archive")
    for path, target in links:  # last, so that no file is ever written through one
        _make_link(path, target, into)
    return _iso(newest)


def _write_member(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    """Write a file; a hard link becomes a copy of its target, or nothing if the target is not in the archive."""
    try:
        source = tar.extractfile(member)
    except KeyError:
        return
    if source is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with source, open(path, "wb") as sink:
        shutil.copyfileobj(source, sink, 1 << 20)
    path.chmod(0o755 if member.mode & 0o100 else 0o644)


def _make_link(path: Path, target: str, into: Path) -> None:
    """Make a symbolic link, unless its target lies outside the folder ``into``."""
    base = os.path.realpath(into)
    leads_to = os.path.realpath(os.path.join(os.path.realpath(path.parent), target))
    if not os.path.isabs(target) and os.path.commonpath([base, leads_to]) == base and not os.path.lexists(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)


def _unzip(archive: Path, into: Path) -> str:
    newest, base = 0.0, os.path.realpath(into)
    with zipfile.ZipFile(archive) as bundle:
        members = bundle.infolist()
        _check_limits(archive, len(members), sum(m.file_size for m in members))
        left = MAX_BYTES
        for member in members:
            check_deadline()
            target = os.path.realpath(os.path.join(base, member.filename))
            if os.path.commonpath([base, target]) != base:
                raise SourceError(f"{archive.name}: unsafe member: {member.filename}", reason="bad_archive")
            mode = member.external_attr >> 16
            if member.is_dir() or mode & 0o170000 == 0o120000:
                continue  # links in zip files are rare and never needed
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with bundle.open(member) as source, open(target, "wb") as sink:
                left -= _copy_at_most(source, sink, left, archive)
            os.chmod(target, 0o755 if mode & 0o100 else 0o644)
            newest = max(newest, _zip_time(member))
    return _iso(newest)


def _copy_at_most(source: object, sink: object, limit: int, archive: Path) -> int:
    copied = 0
    while chunk := source.read(1 << 20):  # type: ignore[attr-defined]
        copied += len(chunk)
        if copied > limit:  # more than the archive's directory declares
            _check_limits(archive, 0, MAX_BYTES + 1)
        sink.write(chunk)  # type: ignore[attr-defined]
    return copied


def _check_limits(archive: Path, num_files: int, num_bytes: int) -> None:
    if num_files > MAX_FILES or num_bytes > MAX_BYTES:
        raise SourceError(
            f"{archive.name} is too large: more than {MAX_FILES} files or {MAX_BYTES >> 20} MiB unpacked",
            reason="too_large",
        )


def _zip_time(member: zipfile.ZipInfo) -> float:
    try:
        return datetime(*member.date_time, tzinfo=UTC).timestamp()
    except ValueError:
        return 0.0


def _iso(timestamp: float) -> str:
    # Reproducible builds write a fixed date instead of the release's: 0, 1980-01-01 (the earliest date that zip can
    # hold) or 2020-02-02 (the default of a build backend).
    if timestamp < datetime(1990, 1, 1, tzinfo=UTC).timestamp() or int(timestamp) == _BACKEND_EPOCH:
        return ""
    return datetime.fromtimestamp(int(timestamp), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _strip_top_folder(into: Path) -> None:
    entries = [e for e in into.iterdir() if e.name not in ("pax_global_header", "__MACOSX")]
    if len(entries) != 1 or not entries[0].is_dir() or entries[0].is_symlink():
        return
    top = entries[0].rename(into / f".{entries[0].name}.top")  # renamed, as it may have an entry of the same name
    _move(top.iterdir(), into)
    top.rmdir()
    shutil.rmtree(into / "__MACOSX", ignore_errors=True)


def _move(entries: Iterable[Path], into: Path) -> None:
    for entry in list(entries):
        entry.rename(into / entry.name)
