"""Stored indexes of what an agent can read: what is left out of them, and their eviction."""

from __future__ import annotations

import os
import py_compile
import time
from pathlib import Path

import pytest

from excise.verifiers.leaks.surface import evict_old, is_derived

DAY_S = 86_400


def _index(kept: Path, name: str, *, unused_s: float, size: int = 1000) -> Path:
    folder = kept / name
    folder.mkdir()
    (folder / "hashes.npy").write_bytes(bytes(size))
    used = time.time() - unused_s
    os.utime(folder, (used, used))
    return folder


def test_indexes_unused_for_a_month_are_removed(tmp_path: Path) -> None:
    old = _index(tmp_path, "old", unused_s=31 * DAY_S)
    young = _index(tmp_path, "young", unused_s=29 * DAY_S)
    evict_old(tmp_path, max_bytes=10_000)
    assert not old.exists()
    assert young.exists()


def test_least_recently_used_indexes_are_removed_until_the_rest_fits(tmp_path: Path) -> None:
    folders = [_index(tmp_path, name, unused_s=(1 + place) * 3600) for place, name in enumerate("abcde")]
    evict_old(tmp_path, max_bytes=2500)
    assert [folder.exists() for folder in folders] == [True, True, False, False, False]


def test_a_recently_used_index_is_kept(tmp_path: Path) -> None:
    fresh = [_index(tmp_path, name, unused_s=place) for place, name in enumerate("abc")]
    _index(tmp_path, "old", unused_s=3600)
    evict_old(tmp_path, max_bytes=0)
    assert sorted(tmp_path.iterdir()) == fresh


@pytest.mark.parametrize("change", [None, "edited source", "no plain byte code", "plain byte code"])
def test_only_optimized_byte_code_of_the_same_source_is_a_duplicate(tmp_path: Path, change: str | None) -> None:
    source = tmp_path / "module.py"
    source.write_text("def f(x):\n    assert x\n    return x\n")
    plain = Path(py_compile.compile(str(source), optimize=0))
    if change == "edited source":
        source.write_text("def another(y):\n    return y\n")
    optimized = Path(py_compile.compile(str(source), optimize=2))
    if change == "no plain byte code":
        plain.unlink()
    assert is_derived(plain if change == "plain byte code" else optimized, keep_plain=True) is (change is None)


@pytest.mark.parametrize("change", [None, "edited source", "no source", "checked by hash", "damaged"])
def test_byte_code_beside_its_unchanged_source_is_derived(tmp_path: Path, change: str | None) -> None:
    source = tmp_path / "module.py"
    source.write_text("def f(x):\n    return x\n")
    mode = py_compile.PycInvalidationMode.CHECKED_HASH if change == "checked by hash" else None
    plain = Path(py_compile.compile(str(source), invalidation_mode=mode))
    if change == "edited source":
        source.write_text("def another(y):\n    return y\n")
    if change == "no source":
        source.unlink()
    if change == "damaged":
        plain.write_bytes(plain.read_bytes()[:10])
    assert is_derived(plain, keep_plain=False) is (change is None)


def test_only_native_code_is_taken_for_an_interpreter(tmp_path: Path) -> None:
    program, script = tmp_path / "python3.11", tmp_path / "libpython3.11.so.1.0"
    program.write_bytes(b"\x7fELF" + bytes(100))
    script.write_text("def f(x): return x\n")
    assert is_derived(program, keep_plain=True)
    assert not is_derived(script, keep_plain=True)
    assert not is_derived(program.rename(tmp_path / "another"), keep_plain=True)
