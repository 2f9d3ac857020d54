"""Fingerprints of code: what counts as the same, and where it is found."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import random
import tarfile
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from excise.verifiers import shingles as module
from excise.verifiers.shingles import Index, Reader, file_shingles, files_below, normal_lines, runs, shingles

CODE = """\
def total(prices, tax):
    result = 0
    for price in prices:
        result += price * tax
    return result
"""
OTHER = """\
def lengths(words):
    counted = {word: len(word) for word in words}
    longest = max(counted.values(), default=0)
    return counted, longest
"""


def share(code: str, text: str) -> float:
    wanted = shingles(code)
    return len(wanted & file_shingles(text)) / len(wanted)


def test_white_space_and_blank_lines_do_not_count() -> None:
    assert normal_lines("  a   b\n\n\tc \r\n") == ["a b", "c"]
    other = CODE.replace("    ", "\t").replace("\n", "\r\n\r\n")
    assert share(CODE, f"# something before\n{other}# and after\n") == 1


@pytest.mark.parametrize("mark", ["+", "-", " ", "> ", "# ", "    // ", " * ", "| ", "... "])
def test_marks_before_lines_do_not_hide_them(mark: str) -> None:
    marked = "".join(f"{mark}{line}\n" for line in CODE.splitlines())
    assert share(CODE, marked) == 1
    assert share(CODE, f"diff --git a/x b/x\n@@ -0,0 +1,6 @@\n{marked}{mark.strip()}\nother\n") == 1
    assert share(marked, CODE) == 1


def test_examples_for_the_prompt() -> None:
    first, *rest = CODE.splitlines()
    assert share(CODE, "\n".join([f">>> {first}", *(f"... {line}" for line in rest), "...", ">>> total([1], 2)"])) == 1


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
    assert runs("a\n" * 9) == []
    assert len(runs(CODE)) == len(shingles(CODE)) == 3


def archive(kind: str, path: Path, name: str, data: bytes) -> None:
    many(kind, path, {name: data})


def many(kind: str, path: Path, members: dict[str, bytes]) -> None:
    if kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            for name, data in members.items():
                file.writestr(name, data)
    elif kind == "gz":
        path.write_bytes(gzip.compress(b"".join(members.values())))
    else:
        with tarfile.open(path, f"w:{kind.partition(':')[0]}") as file:
            for name, data in members.items():
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


def test_programs_that_are_zip_files(tmp_path: Path) -> None:
    archive("zip", tmp_path / "x.pyz", "__main__.py", CODE.encode())
    (tmp_path / "x.pyz").write_bytes(b"#!/usr/bin/env python3\n" + (tmp_path / "x.pyz").read_bytes())
    assert Index.build([tmp_path]).hits(shingles(CODE)) == shingles(CODE)


def test_a_compressed_file_alone(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(lzma.compress(CODE.encode()))
    (tmp_path / "b").write_bytes(bz2.compress(OTHER.encode()))
    assert Index.build([tmp_path]).hits(shingles(CODE) | shingles(OTHER)) == shingles(CODE) | shingles(OTHER)


@pytest.mark.parametrize("data", [b"PK\x03\x04broken", b"\x1f\x8b\x08broken", b"\xfd7zXZ\x00broken", b"BZh91AY&SY"])
def test_broken_archives_hold_nothing(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x").write_bytes(data)
    index = Index.build([tmp_path])
    assert index.hits(shingles(CODE)) == set()
    assert index.skipped == 1


@pytest.mark.parametrize("kind", ["zip", "gz", "", "gz:tar", "xz", "bz2"])
def test_damage_anywhere_is_survived(tmp_path: Path, kind: str) -> None:
    """Every archive with a byte changed, and cut anywhere: no exception, whatever the parsers raise."""
    many(kind, tmp_path / "sound", {"a.py": CODE.encode(), "b.py": OTHER.encode()})
    data = (tmp_path / "sound").read_bytes()
    step = max(1, len(data) // 150)
    for place in range(0, len(data), step):
        flipped = data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :]
        for damaged in (flipped, data[:place]):
            (tmp_path / "x").write_bytes(damaged)
            Index.build([tmp_path / "x"])


def test_members_beside_a_damaged_one_are_read(tmp_path: Path) -> None:
    noise = random.Random(0).randbytes(3000).hex().encode()
    many("zip", tmp_path / "x", {"a": noise, "b.py": CODE.encode()})
    data = bytearray((tmp_path / "x").read_bytes())
    data[500:900] = bytes(400)
    (tmp_path / "x").write_bytes(data)
    index = Index.build([tmp_path / "x"])
    assert index.hits(shingles(CODE)) == shingles(CODE)
    assert index.skipped == 1


def test_the_sound_beginning_of_a_damaged_archive_is_read(tmp_path: Path) -> None:
    noise = random.Random(0).randbytes(200_000).hex().encode()
    for kind in ("gz:tar", "xz"):
        many(kind, tmp_path / "x", {"a.py": CODE.encode(), "b": noise, "c": noise})
        data = (tmp_path / "x").read_bytes()
        (tmp_path / "x").write_bytes(data[: len(data) // 2])
        index = Index.build([tmp_path / "x"])
        assert index.hits(shingles(CODE)) == shingles(CODE), kind
        assert index.skipped >= 1


def test_a_tar_with_a_damaged_header_is_read_on(tmp_path: Path) -> None:
    many("", tmp_path / "x", {"a.py": OTHER.encode(), "b.py": OTHER.encode(), "c.py": CODE.encode()})
    data = bytearray((tmp_path / "x").read_bytes())
    place = data.index(b"b.py")
    data[place : place + 500] = b"?" * 500
    (tmp_path / "x").write_bytes(data)
    assert Index.build([tmp_path / "x"]).hits(shingles(CODE)) == shingles(CODE)


@pytest.mark.parametrize("kind", ["zip", "gz", "gz:tar", "xz", "bz2"])
def test_bombs_are_not_unpacked(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_FILE", 1 << 20)
    bomb = bytes(32 << 20)
    many(kind, tmp_path / "bomb", {"a.py": CODE.encode()} if kind == "gz" else {"zeros": bomb, "a.py": CODE.encode()})
    if kind == "gz":
        (tmp_path / "bomb").write_bytes(gzip.compress(bomb))
    tracemalloc.start()
    index = Index.build([tmp_path / "bomb"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20
    assert index.skipped >= 1
    assert index.hits(shingles(CODE)) == (set() if kind == "gz" else shingles(CODE)), "the bomb is stepped over"


@pytest.mark.parametrize("kind", ["zip", "gz:tar", ""])
def test_all_members_together_are_limited(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TOTAL", 1 << 20)
    many(kind, tmp_path / "x", {**{f"{n}.txt": b"x" * 65_000 for n in range(30)}, "a.py": CODE.encode()})
    reader = Reader()
    texts = list(reader.texts(tmp_path / "x"))
    assert sum(len(text) for _, text in texts) <= 1 << 20
    assert len(texts) >= 15
    assert str(tmp_path / "x") in reader.skipped
    (tmp_path / "y").write_text(CODE)
    assert [text for _, text in reader.texts(tmp_path / "y")] == [CODE], "the next file has a budget of its own"


@pytest.mark.parametrize("notebook", [True, False])
def test_code_in_json_strings(tmp_path: Path, notebook: bool) -> None:
    code = CODE.replace("result = 0", 'result = sum([]) if "\\n" else "\\t"')
    source = code.splitlines(keepends=True) if notebook else f"import os\n\n{code}"
    text = json.dumps({"cells": [{"cell_type": "code", "source": source}]}, indent=1 if notebook else None)
    (tmp_path / "x").write_text(text)
    assert Index.build([tmp_path]).hits(shingles(code)) == shingles(code)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"])
def test_other_encodings(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "x").write_bytes(CODE.encode(encoding))
    assert Index.build([tmp_path]).hits(shingles(CODE)) == shingles(CODE)


def test_binaries_are_skipped_and_odd_text_is_read(tmp_path: Path) -> None:
    reader = Reader()
    (tmp_path / "binary").write_bytes(b"\0\1" + CODE.encode())
    assert list(reader.texts(tmp_path / "binary")) == []
    (tmp_path / "latin").write_bytes(b"# caf\xe9\n" + CODE.encode())
    index = Index.build([tmp_path / "latin"])
    assert index.hits(shingles(CODE)) == shingles(CODE)
    assert index.skipped == 0
    assert list(reader.texts(tmp_path / "missing")) == []
    (tmp_path / "large").write_bytes(b"x\n" * (module.MAX_FILE // 2) + b"x")
    assert list(reader.texts(tmp_path / "large")) == []
    assert reader.skipped == {str(tmp_path / name) for name in ("binary", "missing", "large")}
    assert Index.build([tmp_path]).skipped == 2


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
    (tmp_path / "x.so").write_bytes(b"\0")
    index = Index.build([tmp_path / "x.py", tmp_path / "x.so"])
    index.save(tmp_path / "deep" / "index.bin")
    again = Index.load(tmp_path / "deep" / "index.bin")
    assert again == index
    assert again.skipped == 1
    assert list(again.hashes) == sorted(file_shingles(CODE))
    assert again.hits({0, *shingles(CODE)}) == shingles(CODE)
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["index.bin"]
