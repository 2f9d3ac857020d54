"""Objects of libraries for command lines in recorded calls."""

from __future__ import annotations

import json

import pytest

from excise.extractors.python.execution import compared_outcomes

from .inside_programs import load


def test_objects_of_command_lines_with_items_are_compared_by_these() -> None:
    for content in ([["d", [[["s", "help"], ["i", "1"]]]]], [["l", [["i", "1"]]], "end"], [["builtins:KeyError"]]):
        found = json.dumps({"result": ["seen", ["click:Many"], *content]})
        other = found.replace("1", "2").replace("Key", "Index")
        assert [compared_outcomes.same_outcome(found, each) for each in (found, other)] == [True, False]


@pytest.mark.parametrize(
    ("result", "is_few"),
    [
        (["a", "b"], True),
        (("a", "b", "c"), True),
        ({"x": ["a", "b"]}, True),
        (["a"], False),
        (["a", "a"], False),
        (["a", 1], False),
        ([1, 2], False),
        (list("abcde"), False),
        ({"a": 1, "b": 2}, False),
    ],
)
def test_a_list_of_few_texts_may_have_the_order_of_hashes(result: object, is_few: bool) -> None:
    assert compared_outcomes.has_few_in_order({"result": load("excise_values").Encoder().encode(result)}) is is_few
