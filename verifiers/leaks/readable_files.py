"""Which files an agent can read, and their content.

A program lists the files from inside the sandbox, so that mounts, masks and images need not be modelled. Files of
layers and of the host's system are then read directly on the host; a file that is not found there with the same size
and modification time is read through the sandbox.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from excise.envs.sandbox.mount_points import ENV, OUT
from excise.errors import SandboxError
from excise.protocols import Mount, Session

PROGRAM = Path(__file__).parent / "inside" / "list_readable.py"
_TIMEOUT_S = 600.0
_MAX_LISTING = 512 << 20
_MAX_FILES = 5_000_000
_BATCH = 64 << 20
"""Bytes of files that are read through the sandbox in one archive."""


@dataclass(frozen=True, slots=True)
class ReadableFile:
    """One file that can be read in the sandbox."""

    path: str
    """Absolute path in the sandbox."""
    size: int
    """Size in bytes."""
    changed_ns: int
    """Modification time in nanoseconds since 1970."""


def list_readable(session: Session) -> tuple[list[ReadableFile], bytes]:
    """All files that can be read in a session, and the bytes of what its processes show in ``/proc``.

    Raises :class:`SandboxError` if the listing is incomplete.
    """
    _run(session, "list")
    rows = []
    with _result(session, "listing", _MAX_LISTING) as file:
        for line in file:
            path, size, changed = json.loads(line)
            rows.append(ReadableFile(str(path), int(size), int(changed)))
            if len(rows) > _MAX_FILES:
                raise SandboxError(f"A sandbox shows more than {_MAX_FILES} files.")
    with _result(session, "processes", _MAX_LISTING) as file:
        shown = file.read()
    return sorted(rows, key=lambda row: row.path), shown


def _run(session: Session, what: str, names: Sequence[str] = ()) -> None:
    program = PROGRAM.read_text(encoding="utf-8")
    lines = "".join(json.dumps(name) + "\n" for name in names).encode()
    python = f"{ENV}/bin/python"
    done = session.exec([python, "-I", "-S", "-c", program, what], timeout_s=_TIMEOUT_S, stdin=lines, cwd="/")
    if done.rc != 0:
        raise SandboxError(f"The files of a sandbox cannot be listed: {done.stderr.decode(errors='replace')[-500:]}")


def _result(session: Session, name: str, max_bytes: int) -> BinaryIO:
    """A result file of the program, open for reading. Raises :class:`SandboxError` if it is missing or too large."""
    path = session.out / name
    if path.is_symlink() or not path.is_file() or path.stat().st_size > max_bytes:
        raise SandboxError(f"The sandbox left no sound {OUT}/{name}.")
    return open(path, "rb")


def host_file(path: str, mounts: Sequence[Mount]) -> Path | None:
    """The host file that a sandbox path probably shows (in a layer, or at its own path); :func:`is_same` checks it."""
    fitting = [m for m in mounts if path.startswith(f"{m.target}/")]
    if not fitting:
        return Path(path)
    mount = max(fitting, key=lambda m: len(m.target))
    inside = path[len(mount.target) + 1 :]
    return next((found for layer in mount.layers if (found := Path(layer, inside)).is_file()), None)


def is_same(row: ReadableFile, path: Path) -> bool:
    """Whether ``path`` has the size and modification time that the sandbox listed."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return status.st_size == row.size and status.st_mtime_ns == row.changed_ns


def read_through_sandbox(
    session: Session, rows: Sequence[ReadableFile], max_bytes: int
) -> Iterator[tuple[ReadableFile, bytes]]:
    """Yield files and their bytes as the sandbox shows them; files longer than ``max_bytes`` bytes are left out."""
    batch: list[ReadableFile] = []
    for row in [*rows, None]:
        if batch and (row is None or sum(r.size for r in batch) + row.size > _BATCH):
            yield from _read_batch(session, batch)
            batch = []
        if row is not None and row.size <= max_bytes:
            batch.append(row)


def _read_batch(session: Session, batch: Sequence[ReadableFile]) -> Iterator[tuple[ReadableFile, bytes]]:
    _run(session, "pack", [row.path for row in batch])
    wanted = {row.path.lstrip("/"): row for row in batch}
    with _result(session, "files.tar", 2 * _BATCH + 4096 * len(batch)) as file, tarfile.open(fileobj=file) as archive:
        for member in archive:
            if member.isfile() and member.name in wanted and (content := archive.extractfile(member)) is not None:
                yield wanted[member.name], content.read()
