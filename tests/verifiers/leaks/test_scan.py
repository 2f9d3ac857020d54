"""Which code counts as a leak, and which is too common to be one."""

from __future__ import annotations

import _collections_abc
import importlib.util
import mailbox
import marshal
import weakref
from pathlib import Path

import pytest

from excise.verifiers.leaks.content_cache import ContentCache, read_content
from excise.verifiers.leaks.fingerprint_index import FingerprintIndex
from excise.verifiers.leaks.fingerprints import EMPTY
from excise.verifiers.leaks.fragments import FragmentKind
from excise.verifiers.leaks.scan import Leak, Level, PlaceRules, ScannedFiles, keep_distinctive, leaks_in
from excise.verifiers.leaks.targets import Target, target

LARGE = b"""
def merge_runs(runs, weights, limit):
    merged = []
    for first, last in sorted(runs):
        if merged and first <= merged[-1][1] + limit:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    total = sum(weights.get(first, 1) * (last - first) for first, last in merged)
    return merged, total / max(1, len(merged))
"""
SMALL = b"""
def discard(self, item):
    try:
        self.remove(item)
    except KeyError:
        pass
"""
NAMESAKE = SMALL.replace(b"item", b"key")


@pytest.fixture(scope="module")
def targets() -> list[Target]:
    """Both definitions, without the fingerprints that a part of the standard library has, too."""
    contents = ContentCache()
    files = [Path(str(module.__file__)) for module in (_collections_abc, mailbox, weakref)]
    library = FingerprintIndex.build((str(path), 0, contents.of_file(path)) for path in files)
    found = [
        target("m.py::merge_runs", "merge_runs", LARGE, ["runs", "weights", "limit"]),
        target("m.py::discard", "discard", SMALL, ["self", "item"]),
    ]
    return keep_distinctive(found, library, EMPTY, keep_bodies=False)


def compiled(source: bytes) -> bytes:
    return importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(compile(source, "m.py", "exec"))


def found(data: bytes, wanted: list[Target]) -> dict[str, Leak]:
    leaks = leaks_in(ScannedFiles([("/x", read_content(data))]), wanted, PlaceRules())
    return {leak.symbol.rpartition("::")[2]: leak for leak in leaks if leak.level >= Level.L3}


def test_byte_code_of_each_definition_is_found(targets: list[Target]) -> None:
    leaks = found(compiled(LARGE + SMALL), targets)
    assert {leak.what for leak in leaks.values()} == {"byte code"}
    assert set(leaks) >= {"merge_runs", "discard"}


def test_a_short_function_with_the_same_name_is_no_leak(targets: list[Target]) -> None:
    assert not found(compiled(NAMESAKE), targets)
    assert not found(b"\n\nclass Box:\n" + NAMESAKE, targets)


def test_short_code_with_common_names_is_no_leak(targets: list[Target]) -> None:
    setup = b"def __init__(self, exc, func, handler):\n    self.exc, self.func, self.handler = exc, func, handler\n"
    few = [target("m.py::Excepts.__init__", "__init__", setup, ["self", "exc", "func", "handler"])]
    assert not found(compiled(setup), few)
    many = setup + b"    self.log, self.retries, self.delay_s = func.log, handler.retries, exc.delay_s\n"
    assert found(
        compiled(many), [target("m.py::Excepts.__init__", "__init__", many, ["self", "exc", "func", "handler"])]
    )


def test_the_locals_of_a_large_function_are_found_under_another_name(targets: list[Target]) -> None:
    assert found(compiled(LARGE.replace(b"def merge_runs", b"def joined")), targets)["merge_runs"].what == "locals"


def test_methods_are_distinguished_from_those_of_sibling_classes() -> None:
    body = b"    def remove(self, value):\n        if value in self.kept:\n            self.kept.discard(value)\n"
    gone, stays = b"class Sorted:\n" + body, b"class Keyed:\n" + body
    ours = [target("m.py::Sorted.remove", "remove", body, ["self", "value"], enclosing="Sorted")]
    (fragment,) = [numbers for kind, numbers in read_content(compiled(stays)).fragments if kind is FragmentKind.CODE]
    wanted = keep_distinctive(ours, FingerprintIndex.build([]), fragment, keep_bodies=False)
    assert not found(compiled(stays), wanted)
    assert found(compiled(gone + stays), wanted)["Sorted.remove"].what == "byte code"


@pytest.mark.parametrize("comment", [b"", b"        # runs that touch are one run, as they are on paper\n"])
def test_comments_do_not_change_the_result(targets: list[Target], comment: bytes) -> None:
    line = b"        if merged and"
    assert found(LARGE.replace(line, comment + line), targets)["merge_runs"].level is Level.L4
