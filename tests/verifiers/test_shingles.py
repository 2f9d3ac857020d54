"""Fingerprints of code: what counts as the same, and where it is found."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from excise.verifiers.shingles import Index, file_shingles, files_below, normal_lines, shingles, texts_of

CODE = """\
def total(prices, tax):
    result = 0
    for price in prices:
        result += price * tax
    return result
"""


def share(code: str, text: str) -> float:
    wanted = shingles(code)
    return len(wanted & file_shingles(text)) / len(wanted)


def test_white_space_and_blank_lines_do_not_count() -> None:
    assert normal_lines("  a   b\n\n\tc \r\n") == ["a b", "c"]
    other = CODE.replace("    ", "\t").replace("\n", "\r\n\r\n")
    assert share(CODE, f"# something before\n{other}# and after\n") == 1


def test_one_changed_line_leaves_the_rest() -> None:
    changed = CODE.replace("result = 0", "result = 0.0")
    assert 0 < share(CODE, changed) < 1
    assert share(CODE, "def other(a):\n    return a\n" * 9) == 0


def test_short_code_has_one_fingerprint_or_none() -> None:
    assert shingles("return x\n") == set()
    assert len(shingles("return sorted(registry.items(), key=by_name)\n")) == 1
    two = "value = compute(first, second)\nreturn value * factor\n"
    assert len(shingles(two)) == 1
    assert share(two, f"def f():\n    {two.splitlines()[0]}\n    {two.splitlines()[1]}\n") == 1
    assert shingles("") == set()


def archive(kind: str, path: Path, name: str, data: bytes) -> None:
    if kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr(name, data)
    elif kind == "gz":
        path.write_bytes(gzip.compress(data))
    else:
        with tarfile.open(path, f"w:{kind}") as file:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            file.addfile(info, io.BytesIO(data))


@pytest.mark.parametrize("kind", ["zip", "gz", "", "xz", "bz2"])
def test_archives_are_opened_whatever_they_are_called(tmp_path: Path, kind: str) -> None:
    archive(kind, tmp_path / "notes.txt", "inner.py", CODE.encode())
    assert Index.build([tmp_path]).hits(shingles(CODE)) == shingles(CODE)


def test_archives_in_archives(tmp_path: Path) -> None:
    archive("zip", tmp_path / "inner", "x.py", CODE.encode())
    archive("xz", tmp_path / "outer", "inner.whl", (tmp_path / "inner").read_bytes())
    (tmp_path / "inner").unlink()
    assert Index.build([tmp_path]).hits(shingles(CODE)) == shingles(CODE)


@pytest.mark.parametrize("data", [b"PK\x03\x04broken", b"\x1f\x8bbroken", b"\xfd7zXZ\x00broken", b"BZhbroken", b""])
def test_broken_archives_hold_nothing(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x").write_bytes(data)
    assert Index.build([tmp_path]).hits(shingles(CODE)) == set()


def test_binaries_are_skipped_and_odd_text_is_read(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\0\1" + CODE.encode())
    assert list(texts_of(tmp_path / "binary")) == []
    (tmp_path / "latin").write_bytes(b"# caf\xe9\n" + CODE.encode())
    assert Index.build([tmp_path / "latin"]).hits(shingles(CODE)) == shingles(CODE)
    assert list(texts_of(tmp_path / "missing")) == []


def test_links_and_pipes_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "x.py").write_text(CODE)
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "link").symlink_to(tmp_path / "real" / "x.py")
    (tmp_path / "tree" / "folder").symlink_to(tmp_path / "real")
    os.mkfifo(tmp_path / "tree" / "pipe")
    assert list(files_below([tmp_path / "tree"])) == []
    assert list(files_below([tmp_path / "real"], frozenset({".txt"}))) == []


def test_an_index_is_the_same_after_saving(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(CODE)
    index = Index.build([tmp_path / "x.py"])
    index.save(tmp_path / "deep" / "index.bin")
    again = Index.load(tmp_path / "deep" / "index.bin")
    assert again.hashes == index.hashes
    assert list(again.hashes) == sorted(file_shingles(CODE))
    assert again.hits({0, *shingles(CODE)}) == shingles(CODE)
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["index.bin"]
