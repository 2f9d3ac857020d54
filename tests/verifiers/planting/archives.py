"""Archives, compressed streams and databases that contain the source (leak level L4)."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import pickle
import random
import sqlite3
import struct
import subprocess
import tarfile
import zipapp
import zipfile
import zlib
from pathlib import Path


def _tar(source: bytes, mode: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for name, data in (("pkg-1.0/README", b"nothing\n"), ("pkg-1.0/module.py", source)):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def _zip(source: bytes, how: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", how) as archive:
        archive.writestr("pkg/__init__.py", "")
        archive.writestr("pkg/module.py", source)
    return out.getvalue()


def wheel(source: bytes, folder: Path) -> None:
    (folder / "pkg-1.0-py3-none-any.whl").write_bytes(_zip(source))


def zip_stored(source: bytes, folder: Path) -> None:
    (folder / "data.bin").write_bytes(_zip(source, zipfile.ZIP_STORED))


def zip_lzma(source: bytes, folder: Path) -> None:
    (folder / "data.zip").write_bytes(_zip(source, zipfile.ZIP_LZMA))


def zip_torn(source: bytes, folder: Path) -> None:
    data = _zip(source)
    (folder / "part.zip").write_bytes(data[: data.rindex(b"PK\x01\x02")])


def program_with_zip(source: bytes, folder: Path) -> None:
    pkg = folder.parent / f"{folder.name}-app"
    pkg.mkdir()
    (pkg / "__main__.py").write_bytes(source)
    zipapp.create_archive(pkg, folder / "tool.pyz", "/usr/bin/env python3", compressed=True)


def tar_plain(source: bytes, folder: Path) -> None:
    (folder / "backup").write_bytes(_tar(source, "w:"))


def tar_gz(source: bytes, folder: Path) -> None:
    (folder / "pkg-1.0.tar.gz").write_bytes(_tar(source, "w:gz"))


def tar_xz(source: bytes, folder: Path) -> None:
    (folder / "pkg.txz").write_bytes(_tar(source, "w:xz"))


def tar_bz2(source: bytes, folder: Path) -> None:
    (folder / "pkg.tbz").write_bytes(_tar(source, "w:bz2"))


def gz(source: bytes, folder: Path) -> None:
    (folder / "module.py.gz").write_bytes(gzip.compress(source))


def bz(source: bytes, folder: Path) -> None:
    (folder / "module.bz2").write_bytes(bz2.compress(source))


def xz(source: bytes, folder: Path) -> None:
    (folder / "module.xz").write_bytes(lzma.compress(source))


def lzma_alone(source: bytes, folder: Path) -> None:
    (folder / "module.lzma").write_bytes(lzma.compress(source, lzma.FORMAT_ALONE))


def zstd(source: bytes, folder: Path) -> None:
    import pyarrow

    (folder / "module.zst").write_bytes(bytes(pyarrow.compress(source, "zstd", asbytes=True)))


def brotli(source: bytes, folder: Path) -> None:
    import pyarrow

    (folder / "module.js.br").write_bytes(bytes(pyarrow.compress(source, "brotli", asbytes=True)))


def nested(source: bytes, folder: Path) -> None:
    (folder / "outer.tgz").write_bytes(_tar(gzip.compress(_zip(source)), "w:gz"))


def gz_torn(source: bytes, folder: Path) -> None:
    noise = random.Random(0).randbytes(3000)
    data = gzip.compress(source + b"\n" + noise)
    (folder / "log.gz").write_bytes(data[:-1000])


def zlib_in_binary(source: bytes, folder: Path) -> None:
    noise = random.Random(1).randbytes(500)
    (folder / "cache.pack").write_bytes(noise + zlib.compress(source) + noise)


def strings_in_binary(source: bytes, folder: Path) -> None:
    lines = b"\0".join(source.splitlines())
    (folder / "core").write_bytes(b"\x7fCORE\0\0" + struct.pack("<40I", *range(40)) + lines + b"\0\1\2\3")


def object_file(source: bytes, folder: Path) -> None:
    escaped = "".join(f"\\{byte:03o}" for byte in source)
    code = folder.parent / f"{folder.name}.c"
    code.write_text(f'const char text[] = "{escaped}";\n')
    subprocess.run(["gcc", "-c", str(code), "-o", str(folder / "module.o")], check=True, timeout=60)


def _database(path: Path, source: bytes) -> sqlite3.Connection:
    base = sqlite3.connect(path)
    base.execute("PRAGMA secure_delete=OFF")
    base.execute("CREATE TABLE files (name TEXT, body TEXT, packed BLOB)")
    return base


def sqlite_row(source: bytes, folder: Path) -> None:
    with _database(folder / "index.db", source) as base:
        base.execute("INSERT INTO files VALUES (?, ?, NULL)", ("module.py", source.decode()))
    base.close()


def sqlite_blob(source: bytes, folder: Path) -> None:
    with _database(folder / "blobs.db", source) as base:
        base.execute("INSERT INTO files VALUES (?, '', ?)", ("module.py", zlib.compress(source)))
    base.close()


def sqlite_pickle(source: bytes, folder: Path) -> None:
    with _database(folder / "pickles.db", source) as base:
        base.execute("INSERT INTO files VALUES (?, '', ?)", ("x", pickle.dumps({"text": source.decode()})))
    base.close()


def sqlite_deleted(source: bytes, folder: Path) -> None:
    base = _database(folder / "history.db", source)
    with base:
        base.execute("INSERT INTO files VALUES (?, ?, NULL)", ("module.py", source.decode()))
    with base:
        base.execute("DELETE FROM files")
    base.close()


def sqlite_log(source: bytes, folder: Path) -> None:
    base = sqlite3.connect(folder / "live.db")
    base.execute("PRAGMA journal_mode=WAL")
    base.execute("CREATE TABLE files (body TEXT)")
    base.execute("INSERT INTO files VALUES (?)", (source.decode(),))
    base.commit()
    log = (folder / "live.db-wal").read_bytes()
    base.close()
    os.unlink(folder / "live.db")
    (folder / "live.db-wal").write_bytes(log)


def pickled(protocol: int):  # type: ignore[no-untyped-def]
    def plant(source: bytes, folder: Path) -> None:
        lines = source.decode().splitlines()
        (folder / "state.pickle").write_bytes(pickle.dumps({"lines": lines, "again": lines}, protocol))

    plant.__name__ = f"pickle_protocol_{protocol}"
    return plant


ARCHIVES = (
    wheel, zip_stored, zip_lzma, zip_torn, program_with_zip, tar_plain, tar_gz, tar_xz, tar_bz2, gz, bz, xz, lzma_alone,
    zstd, brotli, nested, gz_torn, zlib_in_binary, strings_in_binary, object_file, sqlite_row, sqlite_blob,
    sqlite_pickle, sqlite_deleted, sqlite_log, pickled(0), pickled(2), pickled(5),
)  # fmt: skip
