"""Objects of libraries for command lines in recorded calls."""

from __future__ import annotations

import collections.abc
import json
from collections.abc import Iterator
from typing import Any

import pytest

from excise.extractors.python.execution import compared_outcomes
from excise.extractors.python.execution.compared_outcomes import same_outcome

from .inside_programs import load, outcomes


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


LIST, SHORTER = ["l", [["s", "a"], ["s", "b"]]], ["l", [["s", "b"]]]


@pytest.mark.parametrize(
    ("original", "answer", "is_same"),
    [
        ({"result": ["i", 1], "after": [SHORTER], "given": [LIST]}, [LIST], True),  # used up on the way to a result
        ({"result": ["i", 1], "after": [SHORTER], "given": [LIST]}, [SHORTER], True),
        ({"result": ["i", 1], "after": [SHORTER], "given": [LIST]}, [["l", []]], False),
        ({"result": ["c", None], "after": [SHORTER], "given": [LIST]}, [LIST], False),  # what the call is for
        ({"result": ["i", 1], "after": [SHORTER], "given": [None]}, [LIST], False),  # the receiver
        ({"result": ["i", 1], "after": [LIST], "given": [SHORTER]}, [SHORTER], False),  # filled, not used up
        ({"raised": ["builtins:ValueError"], "after": [SHORTER], "given": [LIST]}, [LIST], True),
        ({"raised": ["builtins:SystemExit"], "said": [["i", 1]], "after": [SHORTER]}, [LIST], False),
    ],
)
def test_arguments_that_a_call_uses_up(original: dict[str, Any], answer: list[Any], *, is_same: bool) -> None:
    found = {key: value for key, value in original.items() if key != "given"} | {"after": answer}
    assert same_outcome(json.dumps(original), json.dumps(found)) is is_same


def seen(name: str, **attributes: Any) -> list[Any]:
    return ["seen", [f"trees:{name}"], [], [[key, value] for key, value in attributes.items()]]


def after(*arguments: Any) -> str:
    return json.dumps({"result": ["c", None], "after": list(arguments)})


def test_nodes_of_a_tree_may_be_linked_in_another_way() -> None:
    """Only those that an argument holds, and not what the classes of arguments themselves hold."""
    leaf, none = seen("Node", key=["i", 1], left=["c", None]), ["c", None]
    deep, other = (seen("Node", key=["i", number], left=leaf) for number in (2, 3))
    assert same_outcome(after(seen("Tree", top=deep)), after(seen("Tree", top=other)))
    assert same_outcome(after(seen("Tree", top=deep)), after(seen("Tree", top=leaf)))
    assert not same_outcome(after(seen("Tree", top=deep)), after(seen("Tree", top=none)))
    assert not same_outcome(after(seen("Tree", top=deep, size=["i", 2])), after(seen("Tree", top=deep, size=["i", 3])))
    assert not same_outcome(after(deep), after(other))
    flat, changed = (seen("Deck", first=seen("Card", face=["i", number])) for number in (1, 2))
    assert not same_outcome(after(flat), after(changed))


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        (["dd", ["c", None], [[["s", "a"], ["i", 1]]]], ["d", [[["s", "a"], ["i", 1]]]], True),
        (["C", [[["s", "a"], ["i", 1]]]], ["d", [[["s", "a"], ["i", 1]]]], True),
        (["C", [[["s", "a"], ["i", 1]]]], ["d", [[["s", "a"], ["i", 2]]]], False),
        (["d", []], ["l", []], False),
    ],
)
def test_kinds_of_dictionaries_are_equal(first: list[Any], second: list[Any], *, is_same: bool) -> None:
    outcomes = [json.dumps({"result": node, "after": []}) for node in (first, second)]
    assert same_outcome(*outcomes) is is_same


@pytest.mark.parametrize(("text", "is_same"), [("--all  each", True), ("--any  every one", False)])
def test_help_in_a_stream_has_the_same_options(text: str, *, is_same: bool) -> None:
    streams = [["io", "StringIO", ["s", f"usage: x\n\n  {each}"], 5] for each in ("--all  every one", text)]
    assert same_outcome(after(streams[0]), after(streams[1])) is is_same


@pytest.mark.parametrize(
    ("wanted", "found", "statement", "is_same"),
    [
        ("RuntimeError", "TypeError", "Raises an error.", True),
        ("RuntimeError", "TypeError", "Raises `RuntimeError`.", False),
        ("RuntimeError", "TypeError", None, False),
        ("RuntimeError", "NotImplementedError", "Raises an error.", False),  # what a stub does
        ("ZeroDivisionError", "TypeError", "Raises an error.", False),
    ],
)
def test_an_error_that_nothing_names(wanted: str, found: str, statement: str | None, *, is_same: bool) -> None:
    outcomes = [json.dumps({"raised": [f"builtins:{name}", "builtins:Exception"]}) for name in (wanted, found)]
    assert same_outcome(*outcomes, statement) is is_same


class Bag(collections.abc.Set):  # type: ignore[type-arg]
    def __init__(self, *items: int) -> None:
        self.items = list(items)

    def __contains__(self, item: object) -> bool:
        return item in self.items

    def __iter__(self) -> Iterator[int]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


def test_sets_have_no_order() -> None:
    """Also those of a project's own classes: what was added first may come first."""
    first, second, third = (
        json.dumps(outcomes.outcome_of(lambda bag=bag: bag, (bag,), lambda cls: False))
        for bag in (Bag(1, 2), Bag(2, 1), Bag(1, 3))
    )
    assert same_outcome(first, second)
    assert not same_outcome(first, third)
