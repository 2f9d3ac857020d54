"""Patches are exact with plain ``git apply``, in both directions."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from excise.deleters.patches.git_patches import apply_patch, touched, unified
from excise.deleters.patches.patience_diff import changes
from excise.errors import PatchError

CASES: dict[str, tuple[dict[str, bytes], dict[str, bytes]]] = {
    "change": ({"a": b"1\n2\n3\n"}, {"a": b"1\n3\n"}),
    "no newline before": ({"a": b"1\n2"}, {"a": b"1\n2\n"}),
    "no newline after": ({"a": b"1\n2\n"}, {"a": b"1\n2"}),
    "no newline both": ({"a": b"1\n2\n3"}, {"a": b"2\n3"}),
    "carriage returns": ({"a": b"1\r\n2\r\n3\r\n"}, {"a": b"1\r\n3\r\n"}),
    "only carriage returns change": ({"a": b"1\r\n2\r\n"}, {"a": b"1\n2\n"}),
    "lone carriage return and form feed": ({"a": b"1\r2\n\x0c3\n\x1c4\n"}, {"a": b"1\r2\n\x0c3\n"}),
    "line separators": ({"a": "1\u20282\u0085\n3\n".encode()}, {"a": b"3\n"}),
    "created": ({}, {"d/new": b"x\n"}),
    "deleted": ({"d/old": b"x\ny"}, {}),
    "emptied": ({"a": b"x\n"}, {"a": b""}),
    "filled": ({"a": b""}, {"a": b"x"}),
    "empty created": ({}, {"e": b""}),
    "empty deleted": ({"e": b""}, {}),
    "odd names": (
        {"a b.py": b"1\n", "tab\t.py": b"1\n", "qu\"ote\\.py": b"1\n", "é.py": b"1\n"},
        {"a b.py": b"2\n", "tab\t.py": b"2\n", "qu\"ote\\.py": b"2\n", "é.py": b"2\n"},
    ),
    "lines that look like a patch": ({"a": b"--- a\n+++ b\n@@ -1 +1 @@\n"}, {"a": b"diff --git a/x b/x\n-\n\\ x\n"}),
    "far apart": (
        {"a": b"".join(b"%d\n" % i for i in range(100))},
        {"a": b"".join(b"%d\n" % i for i in range(100) if i not in {0, 50, 99})},
    ),
}  # fmt: skip


def write(root: Path, files: dict[str, bytes]) -> None:
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)


def read(root: Path) -> dict[str, bytes]:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def git(root: Path, patch: str, *options: str) -> None:
    subprocess.run(["git", "apply", *options, "-"], cwd=root, input=patch.encode(), check=True)


def check(root: Path, before: dict[str, bytes], after: dict[str, bytes]) -> None:
    patch = unified(before, after)
    assert set(touched(patch)) == {p for p in {*before, *after} if before.get(p) != after.get(p)}
    forward = {**before, **apply_patch(before, patch)}
    assert {p: d for p, d in forward.items() if d is not None} == after
    backward = {**after, **apply_patch(after, patch, reverse=True)}
    assert {p: d for p, d in backward.items() if d is not None} == before
    write(root, before)
    git(root, patch)
    assert read(root) == after
    git(root, patch, "-R")
    assert read(root) == before


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, tmp_path: Path) -> None:
    check(tmp_path, *CASES[name])


@pytest.mark.parametrize("seed", range(12))
def test_random_files(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    lines = [chance.choice([b"\n", b"a\n", b"b\r\n", b"  c\n", b"-\n", b"+\n"]) for _ in range(chance.randrange(120))]
    changed = [x for x in lines if chance.random() > 0.2]
    for _ in range(chance.randrange(6)):
        changed.insert(chance.randrange(len(changed) + 1), b"new %d\n" % chance.randrange(9))
    tail = [b"", b"end"][seed % 2]
    before, after = {"f": b"".join(lines) + tail}, {"f": b"".join(changed)}
    if before != after:
        check(tmp_path, before, after)


def test_executable_files(tmp_path: Path) -> None:
    patch = unified({"run": b"x\n"}, {}, {"run": 0o100755})
    write(tmp_path, {"run": b"x\n"})
    (tmp_path / "run").chmod(0o755)
    git(tmp_path, patch)
    assert read(tmp_path) == {}
    git(tmp_path, patch, "-R")
    assert (tmp_path / "run").stat().st_mode & 0o111


@pytest.mark.parametrize(("data", "reason"), [(b"\xff\n", "not_utf8"), (b"\0\n", "binary_file")])
def test_content_that_a_text_patch_cannot_represent(data: bytes, reason: str) -> None:
    with pytest.raises(PatchError) as caught:
        unified({"a": data}, {"a": b""})
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    "files",
    [{}, {"a": b"1\n2\n4\n"}, {"a": b"0\n1\n2\n3\n"}, {"a": b"1\n2\n3"}, {"a": b"1\n2\n3\n4\n"}],
    ids=["missing", "other line", "shifted", "no newline", "longer"],
)
def test_a_patch_that_does_not_apply_is_an_error(files: dict[str, bytes]) -> None:
    patch = unified({"a": b"1\n2\n3\n"}, {"a": b"1\n3\n"})
    with pytest.raises(PatchError):
        apply_patch(files, patch)


@pytest.mark.parametrize("patch", ["x", "x\n", "diff --git a/x b/y\n", "diff --git a/x b/x\nGIT binary patch\n"])
def test_malformed_patches_are_errors(patch: str) -> None:
    with pytest.raises(PatchError):
        apply_patch({"x": b""}, patch)


def test_large_files_are_fast_and_small() -> None:
    old = [b"\n" if i % 3 else b"line %d\n" % i for i in range(60_000)]
    new = old[:1000] + old[1010:40_000] + [b"\n"] * 5 + old[40_020:]
    found = changes(old, new)
    assert sum(c.a2 - c.a1 + c.b2 - c.b1 for c in found) <= 60
