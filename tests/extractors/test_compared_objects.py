"""Objects of libraries for command lines in recorded calls."""

from __future__ import annotations

import builtins
import collections.abc
import json
from collections.abc import Iterator
from typing import Any

import pytest

from excise.extractors.python.execution import compared_outcomes
from excise.extractors.python.execution.compared_outcomes import distinguish_from_stub, same_outcome
from excise.types import RecordedCall

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


LIST, SHORTER, EMPTY = ["l", [["s", "a"], ["s", "b"]]], ["l", [["s", "b"]]], ["l", []]


@pytest.mark.parametrize(
    ("original", "answer", "is_same"),
    [
        ({"result": ["i", 1], "after": [EMPTY], "given": [LIST]}, [LIST], True),  # used up on the way to a result
        ({"result": ["i", 1], "after": [EMPTY], "given": [LIST]}, [EMPTY], True),
        ({"result": ["i", 1], "after": [EMPTY], "given": [LIST]}, [SHORTER], False),
        ({"result": ["i", 1], "after": [SHORTER], "given": [LIST]}, [LIST], False),  # one was taken out
        ({"result": ["c", None], "after": [EMPTY], "given": [LIST]}, [LIST], False),  # what the call is for
        ({"result": ["i", 1], "after": [EMPTY], "given": [None]}, [LIST], False),  # the receiver
        ({"result": ["i", 1], "after": [LIST], "given": [SHORTER]}, [SHORTER], False),  # filled, not used up
        ({"raised": ["builtins:ValueError"], "after": [SHORTER], "given": [LIST]}, [LIST], True),
        ({"raised": ["builtins:SystemExit"], "said": [["i", 1]], "after": [SHORTER]}, [LIST], False),
    ],
)
def test_arguments_that_a_call_uses_up(original: dict[str, Any], answer: list[Any], *, is_same: bool) -> None:
    found = {key: value for key, value in original.items() if key != "given"} | {"after": answer}
    assert same_outcome(json.dumps(original), json.dumps(found)) is is_same


DICT = "builtins:dict"


def after(*arguments: Any) -> str:
    return json.dumps({"result": ["c", None], "after": list(arguments)})


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        (["dd", ["c", None], [[["s", "a"], ["i", 1]]]], ["d", [[["s", "a"], ["i", 1]]]], True),
        (["C", [[["s", "a"], ["i", 1]]]], ["d", [[["s", "a"], ["i", 1]]]], True),
        (["C", [[["s", "a"], ["i", 1]]]], ["d", [[["s", "a"], ["i", 2]]]], False),
        (["d", []], ["l", []], False),
        (["d", [[["s", "a"], ["i", 1]]]], ["seen", ["m:Box", DICT], ["d", [[["s", "a"], ["i", 1]]]]], True),
        (["d", [[["s", "a"], ["i", 1]]]], ["seen", ["m:Box", DICT], ["d", [[["s", "a"], ["i", 2]]]]], False),
        (["d", []], ["seen", ["m:Box"], ["d", []]], False),
        (["seen", ["m:Box", DICT], ["d", []]], ["d", []], False),
        (["l", [["i", 1]]], ["seen", ["m:Row", "builtins:list"], ["l", [["i", 1]]], "end"], True),
    ],
)
def test_kinds_of_dictionaries_are_equal(first: list[Any], second: list[Any], *, is_same: bool) -> None:
    outcomes = [json.dumps({"result": node, "after": []}) for node in (first, second)]
    assert same_outcome(*outcomes) is is_same


@pytest.mark.parametrize(
    ("usage", "text", "is_same"),
    [
        ("[-h]", "add    adds\n  --all  each", True),
        ("[-h]", "add    adds it\n  --any  every one", False),
        ("[-h]", "rm     adds it\n  --all  every one", False),
        ("12 MB", "add    adds\n  --all  each", False),  # no help
    ],
)
def test_help_in_a_stream_has_the_same_options(usage: str, text: str, *, is_same: bool) -> None:
    texts = (f"usage: x {usage}\n\n  {each}\n" for each in ("add    adds it\n  --all  every one", text))
    first, second = (["io", "StringIO", ["s", each], 5] for each in texts)
    assert same_outcome(after(first), after(second)) is is_same


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("semver [-h] FILE", "python -m semver [-h] FILE", True),
        ("run.py bump [-h] {a,b}", "/usr/bin/python3.14 -m my.tool bump [-h] {a,b}", True),
        ("x FILE [-h]", "y [-h]", False),
        ("python -m x [-h] FILE", "x [-h] PATH", False),
        ("python -m x [-h]", "x [-h] [-m M]", False),
    ],
)
def test_help_is_compared_without_the_name_of_the_program(one: str, other: str, *, is_same: bool) -> None:
    texts = (f"usage: {usage}\n\n  -h  help\n" for usage in (one, other))
    first, second = (json.dumps({"result": ["c", None], "printed": text}) for text in texts)
    assert same_outcome(first, second) is is_same


@pytest.mark.parametrize(
    "found",
    [
        {"printed": 5}, {"after": [["seen", 3]]}, {"after": [["seen"]]}, {"result": ["seen", ["m:D", 5], [], []]},
        {"result": [[["d"]]], "after": 7}, {"raised": 4}, {"raised": [[1]]},
    ],
)  # fmt: skip
def test_what_is_no_outcome_is_no_other_one(found: dict[str, Any]) -> None:
    """A solution's process may send anything."""
    original = {"result": ["seen", ["m:D"], [], []], "printed": "x", "after": [["seen", ["m:D"], [], []]]}
    texts = [json.dumps(original), json.dumps(original | found)]
    assert not same_outcome(*texts, "It fails.")
    assert distinguish_from_stub([RecordedCall(call="{}", outcome=texts[0])], texts[1:]) in {True, False}


def test_stubs_that_raise_another_error_are_not_told_apart() -> None:
    """A statement may name none of them."""
    calls = [
        RecordedCall(call="{}", outcome=json.dumps({"raised": [f"builtins:{name}"], "after": []}))
        for name in ("KeyError", "ValueError")
    ]
    stub = json.dumps({"raised": ["builtins:NotImplementedError"], "after": []})
    assert not distinguish_from_stub(calls, [stub, stub])


@pytest.mark.parametrize(
    ("wanted", "found", "statement", "is_same"),
    [
        ("RuntimeError", "TypeError", "Raises an error.", True),
        ("RuntimeError", "TypeError", "Raises `RuntimeError`.", False),
        ("RuntimeError", "TypeError", None, False),
        ("ValueError", "NotImplementedError", "Raises an error.", False),  # what a stub does
        ("ZeroDivisionError", "TypeError", "Raises an error.", False),
        ("KeyError", "TypeError", "Raises LookupError.", False),  # it is one
    ],
)
def test_an_error_that_nothing_names(wanted: str, found: str, statement: str | None, *, is_same: bool) -> None:
    classes = [[each.__name__ for each in getattr(builtins, name).__mro__[:-1]] for name in (wanted, found)]
    raised = [json.dumps({"raised": [f"builtins:{name}" for name in names]}) for names in classes]
    assert same_outcome(*raised, statement) is is_same


class Bag(collections.abc.Set):  # type: ignore[type-arg]
    def __init__(self, *items: int) -> None:
        self.items = list(items)

    def __contains__(self, item: object) -> bool:
        return item in self.items

    def __iter__(self) -> Iterator[int]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


class Line(Bag):
    def __reversed__(self) -> Iterator[int]:
        return reversed(self.items)


LINES = Line(1, 2), Line(2, 1)


def test_sets_have_no_order() -> None:
    """Also those of a project's own classes: what was added first may come first."""
    first, second, third = (
        json.dumps(outcomes.outcome_of(lambda bag=bag: bag, (bag,), lambda cls: False))
        for bag in (Bag(1, 2), Bag(2, 1), Bag(1, 3))
    )
    assert same_outcome(first, second)
    assert not same_outcome(first, third)
    ordered = [json.dumps(outcomes.outcome_of(lambda bag=bag: bag, (), lambda cls: False)) for bag in LINES]
    assert not same_outcome(*ordered)


@pytest.mark.parametrize("name", ["seen", "d", "S", "f", "z", "io", "x", "cm", "plain"])
def test_an_attribute_may_be_named_like_a_kind_of_values(name: str) -> None:
    def of(value: list[Any]) -> str:
        return json.dumps({"result": ["seen", ["kit:Box"], None, [[name, value]]]})

    for value, other in ((["i", "3"], ["i", "4"]), (["f", "1.0"], ["f", "2.0"]), (["l", [["i", "1"]]], ["l", []])):
        assert same_outcome(of(value), of(value))
        assert not same_outcome(of(value), of(other))


def test_a_long_name_of_a_program_takes_no_time() -> None:
    found = json.dumps({"result": ["c", None], "printed": f"usage: [-h]{'python' * 60_000}\n"})
    assert same_outcome(found, found)


QUOTED = (
    "- Raises `ParseError`; messages contain `'duplicate name {name!r}'`, `'no section header'`, `'{a}:'`.\n"
    "- Raises `KeyError` for `E`; the message contains `'%s is empty'`.\n"
    "- Raises `TypeError`; the message contains `'must be text' if strict else 'is no text'`.\n"
    "- Raises `SystemExit`; the message contains `'must be text'`.\n"
    "- The message contains `'at line'`.\n"
)


@pytest.mark.parametrize(
    ("name", "expected", "found", "is_same"),
    [
        ("KeyError", ["Cache is empty"], ["other IS  empty!"], True),
        ("KeyError", ["Cache is empty"], ["'x is empty'"], True),
        ("KeyError", ["Cache is empty"], ["nothing there"], False),
        ("KeyError", ["Cache is empty"], [], False),
        ("KeyError", ["Cache is empty"], None, True),  # what cannot be encoded
        ("KeyError", ["Cache is empty"], ["at line 3"], True),
        ("KeyError", ["a"], ["b"], True),  # not the one that is quoted
        ("TypeError", ["it must be text"], ["this is no text"], True),
        ("TypeError", ["it must be text"], ["this is wrong"], False),
        ("ValueError", ["it must be text"], ["this is wrong"], True),
        ("SystemExit", ["it must be text"], ["this is wrong"], True),
    ],
)
def test_an_exception_has_a_part_of_a_quoted_message(
    name: str, expected: list[str], found: list[str] | None, *, is_same: bool
) -> None:
    both = [
        json.dumps({"raised": [f"builtins:{name}"], "said": None if said is None else [["s", each] for each in said]})
        for said in (expected, found)
    ]
    assert same_outcome(*both, QUOTED) is is_same
    assert same_outcome(*both)


def test_a_quoted_message_that_is_all_placeholders_is_any() -> None:
    both = [json.dumps({"raised": ["m:ParseError"], "said": [["s", said]]}) for said in ("duplicate name 'a'", "wrong")]
    assert same_outcome(*both, QUOTED)
    quoted = QUOTED.replace(", `'{a}:'`", "")
    assert not same_outcome(*both, quoted)
    assert same_outcome(*both, f"{quoted}class ParseError(Exception)\n")  # which may make its message itself
    assert same_outcome(both[0], both[1].replace("wrong", "no section header defined"), quoted)
