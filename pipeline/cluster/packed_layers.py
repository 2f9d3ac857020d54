"""Layers as files that can be sent to other machines: tar archives, compressed with zstd, named by their sha256.

Equal folders give equal archives: entries are sorted, and hold what sandboxes see and byte code depends on (modes,
modification times to the nanosecond, links), not owners. Files with several names in one layer are stored once.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from excise.system.files import file_sha256

CODEC = "zstd"


def pack_layer(folder: Path, archive: Path) -> str:
    """Write a folder to an archive; return its sha256. Raises ``OSError`` for files that cannot be read."""
    with (
        pa.OSFile(str(archive), "wb") as file,
        pa.CompressedOutputStream(file, CODEC) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path in _sorted(folder):
            _add(tar, path, path.relative_to(folder).as_posix())
    return file_sha256(archive)


def _sorted(folder: Path) -> Iterator[Path]:
    """The folder and everything below, parents first; links are not followed."""
    yield folder
    for parent, folders, files in os.walk(folder):
        folders.sort()
        links = [name for name in folders if os.path.islink(os.path.join(parent, name))]
        yield from (Path(parent, name) for name in sorted({*files, *folders}))
        folders[:] = [name for name in folders if name not in links]


def _add(tar: tarfile.TarFile, path: Path, name: str) -> None:
    entry = tar.gettarinfo(path, name)
    found = path.lstat()
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = int(found.st_mtime)
    entry.pax_headers = {"mtime": f"{found.st_mtime_ns // 10**9}.{found.st_mtime_ns % 10**9:09d}"}
    entry.pax_headers |= {f"SCHILY.xattr.{key}": value for key, value in _overlay_marks(path)}
    if entry.isreg():
        with path.open("rb") as content:
            tar.addfile(entry, content)
    else:
        tar.addfile(entry)


def _overlay_marks(path: Path) -> list[tuple[str, str]]:
    """The extended attributes by which overlayfs marks folders, as text."""
    if path.is_symlink() or not path.is_dir():
        return []
    names = [name for name in os.listxattr(path) if "overlay." in name]
    return [(name, os.getxattr(path, name).decode("latin-1")) for name in sorted(names)]


def unpack_layer(archive: Path, folder: Path) -> None:
    """Write an archive's content into an empty folder, with its modes and times.

    The archive is one that :func:`pack_layer` wrote and whose hash was checked. Raises ``OSError`` and
    ``tarfile.TarError``.
    """
    folders: list[tuple[Path, tarfile.TarInfo]] = []
    with (
        pa.OSFile(str(archive), "rb") as file,
        pa.CompressedInputStream(file, CODEC) as packed,
        tarfile.open(fileobj=packed, mode="r|") as tar,
    ):
        tar.extraction_filter = lambda entry, _: entry  # Python 3.11.2 has no argument for it
        for entry in tar:
            path = folder / entry.name
            if not (path.parent.resolve() / path.name).is_relative_to(folder.resolve()):
                raise tarfile.TarError(f"{entry.name} leaves the layer")
            if entry.isdir():
                path.mkdir(exist_ok=True)
                folders.append((path, entry))
                continue
            tar.extract(entry, folder, set_attrs=False)
            _set_attributes(path, entry)
    for path, entry in reversed(folders):
        _set_attributes(path, entry)


def _set_attributes(path: Path, entry: tarfile.TarInfo) -> None:
    for key, value in entry.pax_headers.items():
        if key.startswith("SCHILY.xattr."):
            os.setxattr(path, key.removeprefix("SCHILY.xattr."), value.encode("latin-1"))
    if not entry.issym():
        path.chmod(entry.mode & 0o7777)
    seconds, _, rest = str(entry.pax_headers.get("mtime", entry.mtime)).partition(".")
    changed = int(seconds) * 10**9 + int((rest or "0").ljust(9, "0")[:9])
    os.utime(path, ns=(changed, changed), follow_symlinks=False)


def compress(data: bytes, target: Path) -> str:
    """Write data to a file, compressed; return the file's sha256."""
    with pa.OSFile(str(target), "wb") as file, pa.CompressedOutputStream(file, CODEC) as packed:
        packed.write(data)
    return file_sha256(target)


def decompress(file: Path) -> bytes:
    """What :func:`compress` wrote."""
    with pa.OSFile(str(file), "rb") as source, pa.CompressedInputStream(source, CODEC) as packed:
        return bytes(packed.read())
