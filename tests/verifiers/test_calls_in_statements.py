"""How many different calls of a function a statement shows."""

from __future__ import annotations

import time

import pytest

from excise.verifiers.build_candidate import num_calls, without_known


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
