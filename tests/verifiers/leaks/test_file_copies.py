"""Copies of files from before a deletion are found even if what was deleted is a line."""

from __future__ import annotations

import gzip

from excise.envs.sandbox.mount_points import REPO
from excise.verifiers.leaks.content_cache import read_content
from excise.verifiers.leaks.file_copies import MIN_WINDOWS, copies_of_files
from excise.verifiers.leaks.scan import ScannedFiles

BODY = "    return join(parts.first, 0)\n"
FILE = "".join(
    f"def number_{number}(first_{number}, last_{number}):\n    return first_{number} + last_{number} * {number}\n\n\n"
    for number in range(12)
)
BEFORE = f"{FILE}def text_of(parts):\n{BODY}\n\n{FILE.replace('number', 'count')}".encode()
AFTER = BEFORE.replace(BODY.encode(), b"    raise NotImplementedError\n")


def copies(data: bytes, path: str = "/opt/old.dat", before: bytes = BEFORE, after: bytes | None = AFTER) -> list[str]:
    """What is said of one file, where another one was changed."""
    files = ScannedFiles([(path, read_content(data))])
    return [f"{leak.file}: {leak.what}" for leak in copies_of_files({"m.py": (before, after)}, [files])]


def test_copies_are_found_in_any_form() -> None:
    assert copies(BEFORE) == ["/opt/old.dat: copy of m.py"]
    assert copies(gzip.compress(BEFORE)) == ["/opt/old.dat: copy of m.py"]
    assert copies(b"text of a bundle " * 900 + BEFORE) == ["/opt/old.dat: copy of m.py"]
    assert copies(BEFORE[len(BEFORE) // 4 :]) == ["/opt/old.dat: copy of m.py"], "a large part"
    assert copies(BEFORE, after=None) == ["/opt/old.dat: copy of m.py"]


def test_what_lacks_the_code_or_what_is_around_it_is_none() -> None:
    assert copies(AFTER) == []
    assert copies(BEFORE, path=f"{REPO}/m.py") == []
    assert copies(b"def text_of(parts):\n" + BODY.encode() + b"\n\ndef count_0(first_0, last_0): pass\n") == []
    short = b"def text_of(parts):\n" + BODY.encode()
    assert copies(short, before=short, after=b"def text_of(parts):\n    raise NotImplementedError\n") == []
    assert MIN_WINDOWS > 6


def test_a_licence_is_no_part_of_a_file() -> None:
    words = " ".join(f"word{number}" for number in range(90))
    licence = f"# Permission is granted: {words}\n".encode()
    before = licence + b"def text_of(parts):\n" + BODY.encode() + FILE.encode()
    after = before.replace(BODY.encode(), b"    raise NotImplementedError\n")
    other = licence + b"def text_of(parts):\n" + BODY.encode() + b"\n\nclass Other:\n    pass\n"
    assert copies(other, before=before, after=after) == []
    assert copies(before[len(licence) :], before=before, after=after) == ["/opt/old.dat: copy of m.py"]
