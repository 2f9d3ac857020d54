"""New calls with values that removed code compares with."""

from __future__ import annotations

import json

from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.execution.values_of_code import CodeValues, values_of, with_values_of_code
from excise.extractors.python.execution.varied_calls import MAX_OF_CODE, MAX_VARIED, varied

SOURCE = '''
class Address:
    def parse(self, line, limit=9, scheme=None):
        """A line 'not a value'."""
        if scheme is None:
            return line
        if isinstance(line, (bytes, str)) and line.startswith("#"):
            return "told"
        if limit == -1 or line in ("a", "b"):
            return _rest(line)
        return {7: "seven", "key": 8}.get(limit)


def _rest(line):
    return line.partition("@")[0] if len(line) > 40 else line
'''


def call(name: str, *args: object, kind: str = "function", **kwargs: object) -> str:
    named = [[key, value] for key, value in kwargs.items()]
    return json.dumps({"name": f"m:{name}", "kind": kind, "args": list(args), "kwargs": named})


def values_in(*removed: str) -> dict[str, CodeValues]:
    codebase = PythonCodebase.from_texts({"shop.py": SOURCE})
    return values_of(codebase, [f"shop.py::{name}" for name in removed])


def test_texts_numbers_types_and_none_are_those_that_code_compares_with() -> None:
    found = values_in("Address", "_rest")["Address.parse"]
    assert found.parameters == ("self", "line", "limit", "scheme")
    assert set(found.texts) == {"#", "a", "b", "key", "@"}
    assert set(found.numbers) == {-1, 7, 40}
    assert found.absent == {"scheme"}
    assert found.types == {"line": ("bytes", "str")}
    assert values_in("_rest").keys() == {"_rest"}


def made(recorded: str, values: CodeValues) -> list[dict[str, object]]:
    asked = json.loads(recorded)
    return list(with_values_of_code({asked["name"]: [asked]}, {asked["name"].partition(":")[2]: values}))


def test_one_argument_of_a_recorded_call_gets_a_value_of_the_code() -> None:
    receiver = ["made", "m:Address", [], [], []]
    recorded = call("Address.parse", receiver, ["s", "cd"], ["i", "3"], kind="method", scheme=["s", "http"])
    known = CodeValues(("self", "line", "limit", "scheme"), ("#",), (-1,), frozenset({"scheme"}), {"line": ("bytes",)})
    found = made(recorded, known)
    assert all(each["args"][0] == receiver for each in found)
    assert {json.dumps(each["args"][1]) for each in found} == {
        json.dumps(node) for node in (["s", "cd"], ["b", "Y2Q="], ["s", "#"], ["s", "cd#"], ["s", "#cd"], ["s", "c#d"])
    }
    assert {each["args"][2][1] for each in found} == {"3", "-1", "0", "-2"}
    assert {json.dumps(each["kwargs"][0][1]) for each in found} >= {'["c", null]', '["s", "http"]', '["s", "#"]'}
    changed = [sum(a != b for a, b in zip(each["args"], json.loads(recorded)["args"], strict=True)) for each in found]
    assert max(changed) == 1


def test_containers_get_an_item_or_a_key() -> None:
    known = CodeValues(("of",), ("id",))
    assert [each["args"] for each in made(call("load", ["l", [["s", "x"]]]), known)] == [
        [["l", [["s", "x"], ["s", "id"]]]],
        [["l", [["s", "id"]]]],
    ]
    pair = made(call("load", ["t", [["i", "1"], ["i", "2"]]]), CodeValues(("of",), numbers=(64,)))
    assert [each["args"] for each in pair] == [[["t", [["i", "64"], ["i", "2"]]]]]
    table = ["d", [[["s", "x"], ["i", "1"]]]]
    (one,) = made(call("load", table), known)
    assert one["args"] == [["d", [[["s", "x"], ["i", "1"]], [["s", "id"], ["i", "1"]]]]]


def test_the_calls_follow_the_others_and_are_few() -> None:
    recorded = [call("load", ["s", f"text {n}"]) for n in range(9)]
    known = {"load": CodeValues(("text",), tuple("#@%&!"))}
    plain, more = varied(recorded), varied(recorded, values=known)
    assert more[: len(plain)] == plain
    assert len(plain) <= MAX_VARIED
    assert len(more) - len(plain) == MAX_OF_CODE
    assert len(set(more)) == len(more)
