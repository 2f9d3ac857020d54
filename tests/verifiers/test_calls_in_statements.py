"""How many different calls of a function a statement shows, and by which name."""

from __future__ import annotations

import time

import pytest

from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.verifiers.build_candidate import name_in_calls, num_calls, untold_by_words, without_known


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("function join(...parts: string[]): string\njoin('/a', '../b')\n### `join()`\njoin('/a', '../b')", 2),
        ("function join(a, b)\njoin('a', 'b') // 1\njoin('a', 'c') // 2", 3),
        ("fn join<T>(a: T)\njoin::<u8>(1)\nrejoin(2)\n$join(3)", 2),
        ("func now() int\nnow() // 1\nnow() // 2", 3),
        ("nothing", 0),
    ],
)
def test_equal_calls_count_once(text: str, number: int) -> None:
    name = "now" if "now()" in text else "join"
    assert num_calls(text, name) == number


def test_long_texts_are_searched_once() -> None:
    began = time.process_time()
    num_calls("join<" * 200_000 + "join[" * 200_000, "join")
    assert time.process_time() - began < 60, "each place is looked at for a limited length"


def test_calls_of_a_docstring_that_is_shown_are_no_further_examples() -> None:
    text = "> Halve a number.\n>\n>     >>> half(8)\n>     4\n"
    assert without_known(["half(8)  # 4", "half(80)  # 40"], text) == ["half(80)  # 40"]


@pytest.mark.parametrize(
    ("symbol", "name"), [("C.at#2", "C.at"), ("C.size", "C.size"), ("C.size#2", "C.size#2"), ("gone", "gone")]
)
def test_implementations_of_overloads_are_found_among_recorded_calls(symbol: str, name: str) -> None:
    source = (
        "class C:\n    @overload\n    def at(self, n: int) -> int: ...\n    def at(self, n):\n        return n\n"
        "    @property\n    def size(self):\n        return 1\n    @size.setter\n    def size(self, n):\n        pass\n"
    )
    assert name_in_calls(PythonCodebase.from_texts({"m.py": source}), f"m.py::{symbol}") == name


@pytest.mark.parametrize(
    ("deleter", "untold"),
    [("path", ["m.py::f", "m.py::g"]), ("line", ["m.py::f", "m.py::g"]), ("proposed", ["m.py::f"])],
)
def test_words_do_not_tell_what_a_part_does(deleter: str, untold: list[str]) -> None:
    assert untold_by_words(["m.py::f"], {"m.py::g": {"m.py:1"}, "m.py::f": {"m.py:9"}}, deleter) == untold
