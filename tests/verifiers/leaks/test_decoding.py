"""Decoding of untrusted files: code is found, nothing raises, nothing is unpacked without a limit."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import lzma
import marshal
import os
import pickle
import random
import sqlite3
import tarfile
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pytest

from excise.verifiers.leaks import decoding
from excise.verifiers.leaks.content_cache import ContentCache, read_content
from excise.verifiers.leaks.decoders.hex_dumps import HexDump
from excise.verifiers.leaks.decoding import fragments, read_file
from excise.verifiers.leaks.fingerprints import hashes_of, windows, words_of
from excise.verifiers.leaks.fragments import MAX_DEPTH, DecodingLimits, FragmentKind
from excise.verifiers.leaks.marshal_reader import CodeObject, MarshalReader, Unreadable

CODE = b"""\
def total(prices, tax):
    result = 0
    for price in prices:
        result += price * tax
    return result
"""


def texts(data: bytes, limits: DecodingLimits | None = None) -> bytes:
    return b"\n".join(fragment.data for fragment in fragments(data, limits or DecodingLimits()))


def zipped(members: dict[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", how) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def tarred(members: dict[str, bytes], how: str = "") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=f"w:{how}") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def database(body: bytes) -> bytes:
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE t (a, b)")
    base.execute("INSERT INTO t VALUES (?, ?)", ("x", body))
    base.commit()
    return base.serialize()


def dumped(data: bytes, place: int, offset: str, group: int) -> bytes:
    """A line of a dump: the offset, the bytes in groups, and what of them can be printed."""
    own = data[place : place + 16]
    shown = "".join(chr(each) if 32 < each < 127 else "." for each in own)
    return f"{offset % place}{own.hex(' ', group)}  |{shown}|\n".encode()


MAKERS: dict[str, Callable[[bytes], bytes]] = {
    "zip": lambda data: zipped({"a": b"x", "b.py": data}),
    "tar": lambda data: tarred({"a": b"x", "b.py": data}),
    "tar.gz": lambda data: tarred({"b.py": data}, "gz"),
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "brotli": lambda data: bytes(pyarrow.compress(data, "brotli", asbytes=True)),
    "sqlite": database,
    "pickle": lambda data: pickle.dumps({"x": [data.decode(), data]}),
    "base64": lambda data: b"x = '" + base64.b64encode(data) + b"'",
    "hex": lambda data: b"x = '" + data.hex().encode() + b"'",
    "xxd -p": lambda data: b"\n".join(data[at : at + 30].hex().encode() for at in range(0, len(data), 30)),
    "xxd": lambda data: b"".join(dumped(data, at, "%08x: ", 2) for at in range(0, len(data), 16)),
    "hexdump": lambda data: b"".join(dumped(data, at, "%08x  ", 1) for at in range(0, len(data), 16)),
    "hex of gz": lambda data: gzip.compress(data).hex().encode(),
    "loose": lambda data: zlib.compress(b"blob %d\0" % len(data) + data),
    "html": lambda data: b"<pre>" + data.replace(b"result", b"<b>result</b>") + b"</pre>",
    "json": lambda data: b'{"a": "' + data.replace(b"\n", b"\\n") + b'"}',
}


@pytest.mark.parametrize("kind", MAKERS)
def test_wrapped_code_is_read(kind: str) -> None:
    assert windows_of(CODE) <= windows_of(texts(MAKERS[kind](CODE)))


def windows_of(text: bytes) -> set[int]:
    return {int(x) for x in windows(hashes_of(words_of(text)))}


@pytest.mark.parametrize("kind", MAKERS)
def test_damaged_files_raise_nothing(kind: str) -> None:
    data = MAKERS[kind](CODE * 3)
    step = max(1, len(data) // 60)
    for place in range(0, len(data), step):
        read_content(data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :])
        read_content(data[:place])


def test_damaged_byte_code_raises_nothing() -> None:
    data = b"\xa7\r\r\n" + bytes(12) + marshal.dumps(compile(CODE, "x.py", "exec"))
    rng = random.Random(0)
    for _ in range(400):
        place = rng.randrange(len(data))
        read_content(data[:place] + bytes([rng.randrange(256)]) + data[place + 1 :])


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "gz", "bz2", "xz", "brotli"])
def test_bombs_are_not_unpacked(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("archives", "compressed", "strings", "git_objects"):
        monkeypatch.setattr(f"excise.verifiers.leaks.decoders.{module}.MAX_PART", 1 << 20)
    bomb = MAKERS[kind](bytes(48 << 20))
    limits = DecodingLimits(bytes_left=4 << 20)
    tracemalloc.start()
    list(fragments(bomb, limits))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 24 << 20
    assert limits.partial


def test_a_file_that_contains_itself_ends() -> None:
    data = CODE
    for _ in range(MAX_DEPTH + 3):
        data = gzip.compress(data)
    limits = DecodingLimits()
    assert texts(data, limits) == b""
    assert limits.partial


def test_deep_nesting_is_no_recursion_error() -> None:
    deep = b"(" + b"\x01\0\0\0"
    with pytest.raises(Unreadable):
        MarshalReader(deep * 100_000).read()
    with pytest.raises(Unreadable):
        MarshalReader(b"(\xff\xff\xff\x7f").read()
    read_content(pickle.dumps([]) + b"(" * 100_000)


def test_the_marshal_reader_agrees_with_the_library() -> None:
    code = compile(CODE, "x.py", "exec")
    read = MarshalReader(marshal.dumps(code)).read()
    assert isinstance(read, CodeObject)
    assert read.name == "<module>"
    (inner,) = [value for value in read.consts if isinstance(value, CodeObject)]
    (known,) = [value for value in code.co_consts if hasattr(value, "co_name")]
    assert (inner.name, inner.parameters) == ("total", ("prices", "tax"))
    assert set(known.co_varnames) <= set(inner.names)
    assert inner.code == known.co_code


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    class Touch:
        def __reduce__(self) -> tuple[object, ...]:
            return (os.mkdir, (str(tmp_path / "made"),))

    read_content(pickle.dumps(Touch()))
    assert list(tmp_path.iterdir()) == []


def test_views_and_virtual_tables_of_databases_are_not_run() -> None:
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE t (a)")
    base.execute("INSERT INTO t VALUES (?)", (CODE,))
    base.execute(
        "CREATE VIEW endless AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
    )
    base.commit()
    assert windows_of(CODE) <= windows_of(texts(base.serialize()))


def test_links_and_pipes_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/etc/passwd")
    assert read_file(tmp_path / "pipe") is None
    assert read_file(tmp_path / "link") is None
    assert read_file(tmp_path / "missing") is None


def test_large_files_are_read_at_both_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "MAX_PART", 1000)
    (tmp_path / "x").write_bytes(b"a" * 600 + b"b" * 5000 + b"c" * 600)
    assert read_file(tmp_path / "x") == b"a" * 500 + b"c" * 500


def test_contents_are_kept(tmp_path: Path) -> None:
    made = ContentCache(tmp_path).of(zipped({"a.py": CODE}))
    again = ContentCache(tmp_path).of(zipped({"a.py": CODE}))
    assert made.decoders == again.decoders == ("zip",)
    assert [(kind, list(found)) for kind, found in made.fragments] == [
        (kind, list(found)) for kind, found in again.fragments
    ]
    assert FragmentKind.TEXT in {kind for kind, _ in made.fragments}


def test_line_numbers_and_diff_marks_are_ignored() -> None:
    plain = words_of(CODE)
    lines = CODE.splitlines()
    assert words_of(b"\n".join(b"%4d  %s" % (n, line) for n, line in enumerate(lines, 1))) == plain
    assert words_of(b"\n".join(b"%d: %s" % (n, line) for n, line in enumerate(lines, 1))) == plain
    assert words_of(b"\n".join(b"+ # " + line for line in lines)) == plain


def test_text_after_apparent_byte_code_is_read() -> None:
    looks = b"\xe3" + bytes(12) + b"\xff\xff"
    for head in (b"\x7fELF" + bytes(12), b"\xcb\r\r\n" + bytes(12), b"\0\1\2\3"):
        assert b"price" in texts(head + looks + b"\0\0\n" + CODE + bytes(40))


def test_bare_code_objects_are_found_in_anything() -> None:
    code = marshal.dumps(compile(CODE, "x", "exec"))
    data = b"\x7fELF" + random.Random(1).randbytes(5000) + code + bytes(100) + code[:60]
    found = [fragment.code for fragment in fragments(data, DecodingLimits(only_python=True)) if fragment.code]
    assert [code.name for code in found] == ["total", "<module>"]
    assert {"prices", "tax"} <= found[0].words


def test_hashes_and_numbers_are_no_dumps() -> None:
    rng = random.Random(1)
    hashes = b"\n".join(rng.randbytes(32).hex().encode() for _ in range(200))
    assert not list(HexDump().parts(hashes, DecodingLimits()))
    assert not list(HexDump().parts(b"1234567890" * 10, DecodingLimits()))
