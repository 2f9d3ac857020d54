"""Trivial programs in place of removed code, tried in processes that are forked for each."""

from __future__ import annotations

import pytest

from excise.types import Status

CODE = """
class Figure:
    def __init__(self, name, size=3):
        self.name = name
        self.size = size

    def is_round(self):
        return self.name in ("circle", "disc")

    def scaled(self, factor, offset):
        return offset if factor else factor

    def parts(self):
        yield from range(self.size - 3)

    def grown(self):
        self.size = self.size
        return self


class Other(Figure):
    def is_round(self):
        return self.name.startswith("c")


def parse_line(text):
    return text.split(",")


def parse_lines(text):
    return text.strip().split(",")


def width(text):
    return len(text.expandtabs())


def hang(number):
    return number * 7


def marked(name):
    def mark(function):
        function.mark = name
        return function

    return mark
"""
TESTS = """
from shapes.lazy import Figure, Other, hang, marked, parse_lines, width

def test_marked():
    assert marked("x")(test_round) is test_round

def test_round():
    assert Figure("circle").is_round()

def test_scaled():
    assert Figure("x").scaled(2, 5) == 5

def test_parts():
    assert list(Figure("x").parts()) == []

def test_grown():
    assert Figure("x").grown().grown().size == 3

def test_init():
    assert Figure("x").size == 3

def test_other():
    assert Other("circle").is_round() and not Other("disk").is_round()

def test_lines():
    assert parse_lines("a,b") == ["a", "b"]

def test_width():
    assert width("abc") == 3

def test_hang():
    while hang(3) != 21:
        pass
"""


@pytest.mark.parametrize("collected", [False, True])
def test_programs_that_pass_are_found(vary, collected: bool) -> None:
    bench = vary({"src/shapes/lazy.py": CODE, "tests/test_lazy.py": TESTS}, baseline=True)
    if collected:
        bench.starts.collect_now()

    def passing(name: str, test: str) -> list[str]:
        stubs = dict(bench.editor.stand_ins(bench.codebase, [f"src/shapes/lazy.py::{name}"]))
        edits = bench.edits_of(stubs["trivial"])
        run = bench.run(edits, ids=[f"tests/test_lazy.py::test_{test}"], forked=True, programs=True)
        statuses = run.statuses()
        assert len(statuses) > 10
        failed = {result.message for result in run.results if result.status is Status.FAILED}
        assert failed <= {f"tests/test_lazy.py::test_{test}"}, "the first test that fails is told"
        return [program for program, status in statuses.items() if status is Status.PASSED]

    assert passing("Figure.is_round", "round") == ["True", "1", "iter(())", "lambda x: x", "self"]
    assert passing("marked", "marked") == ["lambda x: x"]
    assert passing("Figure.scaled", "scaled") == ["second argument"]
    assert set(passing("Figure.parts", "parts")) == {"''", "b''", "()", "[]", "{}", "set()", "iter(())"}
    assert passing("Figure.grown", "grown") == ["self"]
    assert len(passing("Figure.__init__", "init")) > 10
    assert passing("Other.is_round", "other") == ["namesake"]
    assert passing("parse_lines", "lines") == ["namesake"]
    assert passing("width", "width") == ["len(first argument)"]
    assert passing("hang", "hang") == []
    if collected:
        assert bench.starts.can_collect
