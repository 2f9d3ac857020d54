"""The stub in a source file: where it is, what is around it, and what an answer replaces."""

from __future__ import annotations

import pytest

from excise.trainer.rollouts.stub_context import NoStub, UnusableCode, decode_file, find_stub
from excise.types import Task

from .stub_example import SOURCE, one_line


def test_an_answer_replaces_the_stubbed_function(stub: Task) -> None:
    place = find_stub(one_line(stub), SOURCE)
    whole = "```python\nclass Square:\n    def area(self, unit='m'):\n        return 4\n```"
    expected = SOURCE.replace(
        '    def area(self, unit: str = "m") -> float:\n        raise NotImplementedError\n',
        "    def area(self, unit='m'):\n        return 4\n",
    )
    assert place.with_answer(whole) == expected
    assert place.with_answer("```\nx = 1\nreturn x\n```").count("        x = 1\n        return x\n\n\ndef area") == 1
    assert (
        "raise" not in find_stub(one_line(stub, "Square.side"), SOURCE).with_body("return 1").partition("def area")[0]
    )
    with pytest.raises(UnusableCode, match="parse"):
        place.with_body("return (")


def test_an_undecodable_file_has_no_stub() -> None:
    for data in (b"x = '\xe9'\n", b"# coding: nothing\n"):
        with pytest.raises(NoStub):
            decode_file(data)


@pytest.mark.parametrize("qualname", ["Square.round", "Square", "Circle.area"])
def test_a_missing_function_has_no_stub(stub: Task, qualname: str) -> None:
    with pytest.raises(NoStub):
        find_stub(one_line(stub, qualname), SOURCE)


def test_the_excerpt_is_around_the_stub(stub: Task) -> None:
    lines = [f"x{n} = {n}\n" for n in range(300)]
    source = "".join(lines[:150]) + SOURCE + "".join(lines[150:])
    around = find_stub(one_line(stub), source).around(30)
    assert "def area(self" in around
    assert 28 <= around.count("\n") <= 33
    assert around.startswith("# ...\n")
    assert around.endswith("# ...\n")
