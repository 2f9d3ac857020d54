"""Takes what comes out of a container: data from a stranger, written only where it belongs."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from excise.errors import SandboxError


def write_results(folder: Path, results: Mapping[str, bytes]) -> None:
    """Write plain files into a folder; a name that is more than a name is left out."""
    for name, data in results.items():
        if name and name not in {".", ".."} and "/" not in name:
            path = folder / name
            path.unlink(missing_ok=True)
            path.write_bytes(data)


class LayerWriter:
    """Collects the pieces of an archive, and writes it as a layer when the last one has come."""

    def __init__(self, into: Path) -> None:
        self.into = into
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  # closed by __exit__

    def __enter__(self) -> LayerWriter:
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        try:
            if kind is None:
                self._file.seek(0)
                self._write()
        finally:
            self._file.close()

    def feed(self, piece: bytes) -> None:
        """The next piece."""
        self._file.write(piece)

    def _write(self) -> None:
        self.into.mkdir(parents=True, exist_ok=True)
        self.into.chmod(0o777)
        try:
            with tarfile.open(fileobj=self._file, mode="r:") as archive:
                for entry in archive:
                    self._entry(archive, entry)
        except (tarfile.TarError, OSError) as error:
            raise SandboxError(f"no snapshot in {self.into}: {error}") from error

    def _entry(self, archive: tarfile.TarFile, entry: tarfile.TarInfo) -> None:
        path = self.place(entry.name)
        if entry.isdir():
            path.mkdir(exist_ok=True)
            path.chmod(0o777)
        elif entry.issym():
            path.symlink_to(entry.linkname)
        elif entry.isreg():
            source = archive.extractfile(entry)
            assert source is not None
            with source, path.open("xb") as file:
                shutil.copyfileobj(source, file)
            path.chmod((entry.mode & 0o777) | 0o666)
            os.utime(path, (entry.mtime, entry.mtime))

    def place(self, name: str) -> Path:
        """Where an entry goes: below the layer, through plain folders only."""
        parts = PurePosixPath(name).parts
        if not parts or ".." in parts or PurePosixPath(name).is_absolute():
            raise OSError(f"{name!r} is no path inside")
        here = self.into
        for part in parts[:-1]:
            here = here / part
            if not os.path.lexists(here):
                here.mkdir()
                here.chmod(0o777)
            if not stat.S_ISDIR(here.lstat().st_mode):
                raise OSError(f"{name!r} leads through a link")
        return here / parts[-1]

    def hide(self, deleted: Sequence[str]) -> None:
        """Mark what was deleted, as an overlay does: a device with the number 0/0."""
        for name in deleted:
            path = self.place(name)
            with contextlib.suppress(FileExistsError):
                os.mknod(path, stat.S_IFCHR | 0o600, 0)
