"""Trees of files: git tree hashes, deterministic archives, exact copies.

The hash is the one of ``git write-tree`` (SHA-1 over tree objects), computed from the folder without git, so it does
not depend on an index, on filters or on the machine's git configuration.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import os
import stat
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from excise.errors import SourceError
from excise.system.deadline import check_deadline
from excise.system.files import file_sha256, replacement

_Tree = dict[bytes, "_Tree | tuple[bytes, bytes]"]
"""Name to the subfolder, or to a file's mode and digest."""

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""git's hash of a folder without files."""

_IDENTITY = "excise <excise@localhost> 946684800 +0000"
"""Author, committer and date (2000-01-01) of every import commit, fixed so that equal trees give equal commits."""


def list_files(root: Path) -> list[str]:
    """Paths of all regular files and symbolic links below ``root``, separated by ``/`` and sorted by bytes.

    As in git, empty folders, sockets and devices are left out, and so is ``.git`` at every level.
    """
    found: list[str] = []
    _walk(os.fspath(root), "", found)
    return sorted(found, key=os.fsencode)


def _walk(folder: str, prefix: str, found: list[str]) -> None:
    check_deadline()
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name == ".git":
                continue
            if entry.is_dir(follow_symlinks=False):
                _walk(entry.path, f"{prefix}{entry.name}/", found)
            elif entry.is_symlink() or entry.is_file(follow_symlinks=False):
                found.append(prefix + entry.name)


def git_tree_hash(
    root: Path, files: Iterable[str] | None = None, *, edits: Mapping[str, bytes | None] | None = None
) -> str:
    """The hash (40 hexadecimal digits) of ``git write-tree`` for ``root``, or only its ``files``, with ``edits``.

    ``edits`` maps paths to new contents, ``None`` for a deleted file. Modes are those of git: 644, 755 if the owner may
    execute, and links. An edited file keeps its mode; a new one has 644.
    """
    edits = edits or {}
    tree: _Tree = {}
    present = set(list_files(root) if files is None else files) | edits.keys()
    for path in present - {p for p, data in edits.items() if data is None}:
        *parents, name = os.fsencode(path).split(b"/")
        into = tree
        for parent in parents:
            below = into.setdefault(parent, {})
            assert isinstance(below, dict)  # a name cannot be a file and a folder at once
            into = below
        into[name] = _blob(root / path, edits.get(path))
    return _tree_object(tree).hex()


def _blob(path: Path, edited: bytes | None = None) -> tuple[bytes, bytes]:
    mode = path.lstat().st_mode if edited is None or path.exists() else 0
    if edited is not None:
        return (b"100755" if mode & 0o100 else b"100644"), _object(b"blob", edited)
    if stat.S_ISLNK(mode):
        return b"120000", _object(b"blob", os.fsencode(os.readlink(path)))
    return (b"100755" if mode & 0o100 else b"100644"), _object(b"blob", path.read_bytes())


def _tree_object(tree: _Tree) -> bytes:
    entries: list[tuple[bytes, bytes]] = []
    for name, value in tree.items():
        if isinstance(value, dict):
            entries.append((name + b"/", b"40000 " + name + b"\0" + _tree_object(value)))
        else:
            mode, digest = value
            entries.append((name, mode + b" " + name + b"\0" + digest))
    return _object(b"tree", b"".join(line for _, line in sorted(entries)))


def _object(kind: bytes, data: bytes) -> bytes:
    return hashlib.sha1(b"%s %d\0%s" % (kind, len(data), data), usedforsecurity=False).digest()


def import_commit(tree: str, message: str) -> str:
    """Return the id of a commit of ``tree`` without parents, by a fixed author at a fixed date."""
    text = f"tree {tree}\nauthor {_IDENTITY}\ncommitter {_IDENTITY}\n\n{message}\n"
    return _object(b"commit", text.encode()).hex()


def copy_files(root: Path, files: Iterable[str], into: Path) -> None:
    """Copy ``files`` of ``root`` to the folder ``into``: content, git modes, links as links, but no time stamps."""
    for path in files:
        check_deadline()
        source, target = root / path, into / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            target.symlink_to(os.readlink(source))
        else:
            target.write_bytes(source.read_bytes())
            target.chmod(_mode(source))


def _mode(path: Path) -> int:
    return 0o755 if path.stat().st_mode & 0o100 else 0o644


def pack(root: Path, out: Path) -> str:
    """Write the files of ``root`` to a reproducible tar.xz (of names, modes and contents only); return its sha256."""
    with (
        replacement(out) as partial,
        lzma.open(partial, "wb", preset=6) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in list_files(root):
            check_deadline()
            _add(archive, root, path)
    return file_sha256(out)


def _add(archive: tarfile.TarFile, root: Path, path: str) -> None:
    member, file = tarfile.TarInfo(path), root / path
    if file.is_symlink():
        member.type, member.linkname, member.mode = tarfile.SYMTYPE, os.readlink(file), 0o777
        archive.addfile(member)
    else:
        data = file.read_bytes()
        member.size, member.mode = len(data), _mode(file)
        archive.addfile(member, io.BytesIO(data))


def unpack(blob: Path, into: Path) -> None:
    """Write the files of an archive made by :func:`pack` to ``into``, with their exact modes under any umask.

    Raises :class:`SourceError` if the archive is damaged or has members that :func:`pack` never writes.
    """
    links: list[tarfile.TarInfo] = []
    try:
        with lzma.open(blob) as compressed, tarfile.open(fileobj=compressed, mode="r:") as archive:
            for member in archive:
                check_deadline()
                _refuse_unsafe(member.name)
                if member.issym():
                    links.append(member)
                    continue
                stream = archive.extractfile(member) if member.isreg() else None
                if stream is None:
                    raise SourceError(f"{blob}: {member.name} is neither a file nor a link", reason="bad_archive")
                target = into / member.name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(stream.read())
                target.chmod(member.mode)
            compressed.read()  # to the end, where the checksum is
    except (tarfile.TarError, lzma.LZMAError, EOFError) as error:
        raise SourceError(f"{blob}: damaged archive ({error})", reason="bad_archive") from error
    for member in links:  # last, so that no file is ever written through one
        target = into / member.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(member.linkname)


def _refuse_unsafe(path: str) -> None:
    if path.startswith("/") or any(part in ("", ".", "..", ".git") for part in path.split("/")):
        raise SourceError(f"unsafe path in archive: {path!r}", reason="bad_archive")


def share_of_files(root: Path, suffixes: str | tuple[str, ...]) -> float:
    """The share of a tree's files with these suffixes; 0 if it has none."""
    files = list_files(root)
    return sum(path.endswith(suffixes) for path in files) / len(files) if files else 0.0
