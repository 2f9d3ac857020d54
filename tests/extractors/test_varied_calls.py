"""New calls made from recorded ones, and examples made from calls and results."""

from __future__ import annotations

import json

import pytest

from excise.extractors.python.execution.call_examples import example, told_outcome
from excise.extractors.python.execution.compared_outcomes import same_outcome
from excise.extractors.python.execution.varied_calls import MAX_VARIED, varied


def call(name: str, *args: object, kind: str = "function", **kwargs: object) -> str:
    named = [[key, value] for key, value in kwargs.items()]
    return json.dumps({"name": f"m:{name}", "kind": kind, "args": list(args), "kwargs": named})


RECORDED = [
    call("parse", ["s", "P1Y2M"], ["i", "3"]),
    call("parse", ["s", "P9D"], ["i", "5"], deep=["c", True]),
    call("join", ["l", [["s", "a b"], ["s", "c"]]]),
]


def test_new_calls_differ_from_the_recorded_ones_and_are_the_same_each_time() -> None:
    found = varied(RECORDED)
    assert found == varied(RECORDED)
    assert 10 < len(found) <= MAX_VARIED
    texts = {json.dumps(json.loads(text), sort_keys=True) for text in found}
    assert len(texts) == len(found)
    assert not texts & {json.dumps(json.loads(text), sort_keys=True) for text in RECORDED}
    assert {json.loads(text)["name"] for text in found} == {"m:parse", "m:join"}


def test_values_keep_their_types_and_calls_their_shape() -> None:
    for text in varied(RECORDED):
        new = json.loads(text)
        tags = [node[0] for node in new["args"]]
        assert tags == (["s", "i"] if new["name"] == "m:parse" else ["l"])


def test_receivers_and_objects_are_left_as_they_are() -> None:
    receiver = ["made", "m:Box", [["i", "4"]], [], []]
    other = ["obj", "m:Thing", None, [["size", ["i", "1"]]]]
    for text in varied([call("Box.grow", receiver, ["i", "1"], other, kind="method")]):
        new = json.loads(text)
        assert new["args"][0] == receiver
        assert new["args"][2] == other


def test_a_method_without_arguments_is_varied_by_what_made_its_object() -> None:
    made = ["made", "m:Bag", [["i", "3"]], [], [["add", [["s", "cup"]], []]]]
    found = [json.loads(text) for text in varied([call("Bag.show", made, kind="method")])]
    receivers = [each["args"][0] for each in found]
    assert all(node[:2] == ["made", "m:Bag"] and node[4][0][0] == "add" for node in receivers)
    assert {node[2][0][1] for node in receivers} - {"3"}
    assert {node[4][0][1][0][1] for node in receivers} - {"cup"}


def test_an_attribute_named_as_the_mark_of_a_text_is_none() -> None:
    value = ["obj", "m:Size", None, [["s", ["i", "5"]]]]
    assert len(varied([call("grow", value, ["i", "3"])])) > 5


def test_half_of_the_new_texts_have_words_of_other_calls() -> None:
    texts = ["mouse", "octopus", "category", "web service"]
    found = [json.loads(text)["args"][0][1] for text in varied([call("plural", ["s", text]) for text in texts])]
    mixed = [text for text in found if set(text.split()) <= {*" ".join(texts).split()}]
    assert {"web octopus", "mouse service"} & set(mixed)
    assert set(found) > set(mixed)


def test_calls_without_plain_arguments_are_not_varied() -> None:
    assert varied([call("f"), call("g", ["obj", "m:Thing", None, []])]) == []
    assert varied([]) == []


@pytest.mark.parametrize(
    ("made", "result", "expected"),
    [
        (call("f", ["i", "-3"], key=["s", "x'y"]), ["c", None], 'f(-3, key="x\'y")  # None'),
        (call("f", ["f", "3ff8000000000000"]), ["t", [["i", "0x10"]]], "f(1.5)  # (16,)"),
        (call("f", ["b", "YWI="]), ["S", []], "f(b'ab')  # set()"),
        (call("f", ["S", [["i", "1"], ["i", "2"], ["i", "1"]]]), ["i", "2"], "f({1, 2})  # 2"),
        (call("f"), ["it", [["i", "1"]], "end"], "list(f())  # [1]"),
        (call("f"), ["it", [], "builtins:ValueError"], "list(f())  # raises ValueError"),
        (call("f"), ["it", [["i", "1"]], "m:Odd"], "list(f())  # raises Odd after 1 items"),
        (call("f"), ["it", [["i", "1"]], "more"], ""),
        (call("f"), ["d", [[["s", "a"], ["e", "m:Color", "RED"]]]], "f()  # {'a': Color.RED}"),
        (call("Box", ["i", "1"], kind="class"), ["nt", "m:P", [["i", "1"]]], "Box(1)  # P(1)"),
        (call("Box.get", ["made", "m:Box", [["i", "1"]], [], []], ["i", "2"], kind="method"), ["c", True],
         "Box(1).get(2)  # True"),
        (call("Box.__eq__", ["made", "m:Box", [["i", "1"]], [], []], ["i", "2"], kind="method"), ["c", False],
         "Box(1) == 2  # False"),
        (call("Box.__contains__", ["made", "m:Box", [], [], []], ["i", "2"], kind="method"), ["c", False],
         "2 in Box()  # False"),
        (call("Box.__iter__", ["made", "m:Box", [], [], [["put", [], []]]], kind="method"), ["it", [["i", "1"]], "end"],
         "x = Box(); x.put(); list(x)  # [1]"),
        (call("f"), ["new", "datetime:date", [["b", "B+QBBQ=="]]], "f()  # datetime.date(2020, 1, 5)"),
        (call("f"), ["new", "datetime:timedelta", [["i", "1"], ["i", "2"], ["i", "0"]]],
         "f()  # datetime.timedelta(days=1, seconds=2)"),
        (call("f"), ["new", "datetime:date", [["obj", "m:T", None, []]]], ""),
        (call("f", ["obj", "m:Thing", None, []]), ["c", True], ""),
        (call("Box.get", ["made", "m:Box", [], [], [["put", [["i", "1"]], [["to", ["c", None]]]]]], kind="method"),
         ["c", True], "x = Box(); x.put(1, to=None); x.get()  # True"),
        (call("f", ["made", "m:Box", [], [], [["put", [], []]]]), ["c", True], ""),
        (call("Box.__call__", ["made", "m:Box", [], [], []], ["i", "2"], kind="method"), ["c", True],
         "Box()(2)  # True"),
        (call("Box.get", ["made", "m:Box", [], [], [["__call__", [["i", "1"]], []]]], kind="method"), ["c", True],
         "x = Box(); x(1); x.get()  # True"),
        (call("f", ["ma", ["re", ["s", "a+"], 32], "search", ["s", "ba"], ["i", "0"], ["i", "2"]]), ["s", "a"],
         "f(re.compile('a+').search('ba'))  # 'a'"),
        (call("f", ["ma", ["re", ["s", "a+"], 34], "search", ["s", "ba"], ["i", "0"], ["i", "2"]]), ["s", "a"], ""),
        (call("f", ["ma", ["re", ["s", "a+"], 32], "match", ["s", "ba"], ["i", "1"], ["i", "2"]]), ["s", "a"], ""),
    ],
)  # fmt: skip
def test_examples_are_code(made: str, result: list[object], expected: str) -> None:
    assert example(made, json.dumps({"result": result})) == expected


@pytest.mark.parametrize(
    ("made", "after", "expected"),
    [
        (call("f", ["l", [["i", "2"], ["i", "1"]]]), [["l", [["i", "1"], ["i", "2"]]]],
         "x = [2, 1]; f(x)  # x == [1, 2]"),
        (call("Box.put", ["made", "m:Box", [], [], []], ["i", "1"], kind="method"), [["nt", "m:Box", [["i", "1"]]]],
         "x = Box(); x.put(1)  # x == Box(1)"),
        (call("f", ["i", "1"], ["l", []]), [["i", "1"], ["l", [["i", "1"]]]], "x = []; f(1, x)  # x == [1]"),
        (call("f", ["l", []], ["l", []]), [["l", [["i", "1"]]], ["l", [["i", "1"]]]], ""),
        (call("f", ["i", "1"]), [["i", "1"]], "f(1)  # None"),
        (call("f", ["made", "m:Box", [], [], []]), [["seen", ["m:Box"]]], ""),
        (call("Box.__delitem__", ["made", "m:Box", [], [], []], ["s", "a"], kind="method"),
         [["seen", ["m:Box"], ["d", [[["s", "b"], ["i", "1"]]]]]], "x = Box(); del x['a']  # dict(x) == {'b': 1}"),
        (call("Box.put", ["made", "m:Box", [], [], [["put", [["i", "1"]], []]]], ["i", "2"], kind="method"),
         [["seen", ["m:Box"], ["l", [["i", "1"], ["i", "2"]]], "end"]],
         "x = Box(); x.put(1); x.put(2)  # list(x) == [1, 2]"),
        (call("Box.put", ["made", "m:Box", [], [], [["put", [["i", "1"]], []]]], ["i", "2"], kind="method"),
         [["seen", ["m:Box"], None, [["size", ["i", "1"]]]]], ""),
        (call("Box.__setitem__", ["made", "m:Box", [], [], []], ["s", "a"], ["i", "1"], kind="method"),
         [["seen", ["m:Box"], ["d", []]]], "x = Box(); x['a'] = 1  # dict(x) == {}"),
    ],
)  # fmt: skip
def test_a_call_without_a_result_shows_what_it_changes(made: str, after: list[object], expected: str) -> None:
    assert example(made, json.dumps({"result": ["c", None], "after": after})) == expected


@pytest.mark.parametrize(
    ("made", "after", "expected"),
    [
        (call("Box.get", ["made", "m:Box", [], [], []], ["i", "1"], kind="method"), ["seen", ["m:Box"], None, []],
         "Box().get(1)  # None"),
        (call("Box.get", ["made", "m:Box", [], [], [["put", [], []]]], kind="method"), ["seen", ["m:Box"], None, []],
         "x = Box(); x.put(); x.get()  # None"),
        (call("Box.get", ["made", "m:Box", [], [], []], kind="method"), ["seen", ["m:Box"], ["d", []]],
         "x = Box(); x.get()  # dict(x) == {}"),
        (call("Box.__setitem__", ["made", "m:Box", [], [], []], ["s", "a"], ["i", "1"], kind="method"),
         ["seen", ["m:Box"], None, []], ""),
    ],
)  # fmt: skip
def test_a_method_that_changes_nothing_may_return_nothing(made: str, after: list[object], expected: str) -> None:
    outcome = {"result": ["c", None], "after": [after, *json.loads(made)["args"][1:]]}
    assert example(made, json.dumps({**outcome, "kept": True})) == expected
    whole = json.dumps({**outcome, "kept": True})
    assert told_outcome(made, whole) == (whole if expected else "")
    is_shown = "dict(x)" in expected
    assert bool(told_outcome(made, json.dumps(outcome))) is is_shown, "nobody knows whether it changes its object"


def test_of_a_call_that_may_change_its_arguments_only_a_result_is_told() -> None:
    made = call("Box.pop", ["made", "m:Box", [], [], []], kind="method")
    outcome = {"result": ["i", "3"], "printed": "", "after": [["seen", ["m:Box"], ["l", []], "end"]]}
    told = told_outcome(made, json.dumps(outcome))
    assert json.loads(told) == {"result": ["i", "3"], "printed": ""}
    assert same_outcome(told, json.dumps({**outcome, "after": [["seen", ["m:Box"], ["l", [["i", "1"]]], "end"]]}))
    assert not same_outcome(told, json.dumps({**outcome, "result": ["i", "4"]}))
    printing = json.dumps({**outcome, "printed": "x: 3\n"})
    assert example(made, printing) == "Box().pop()  # 3, and prints 'x: 3\\n'"
    assert same_outcome(told_outcome(made, printing), printing)
    assert not same_outcome(told_outcome(made, printing), json.dumps(outcome))


@pytest.mark.parametrize(
    ("sizes", "shown"), [([5] * 4, 4), ([60] * 9, 2), ([100, 100], 1), ([120, 1], 2), ([300], 1), ([300, 1], 2)]
)
def test_of_long_results_the_first_items_are_shown(sizes: list[int], shown: int) -> None:
    """If they are short themselves."""
    texts = ["x" * size for size in sizes]
    items = [["s", text] for text in texts]
    part = f"[:{shown}]" if shown < len(texts) else ""
    assert example(call("f"), json.dumps({"result": ["l", items]})) == f"f(){part}  # {texts[:shown]}"
    assert example(call("f"), json.dumps({"result": ["it", items, "end"]})) == f"list(f()){part}  # {texts[:shown]}"


@pytest.mark.parametrize(("size", "shown"), [(10, 3), (20, 2), (40, 1)])
def test_of_long_results_the_last_items_are_shown_too(size: int, shown: int) -> None:
    texts = [f"{number:0{size}}" for number in range(20)]
    outcome = json.dumps({"result": ["l", [["s", text] for text in texts]]})
    parts = f"(20, {texts[:shown]}, {texts[-shown:]})"
    assert example(call("f"), outcome) == f"y = f(); len(y), y[:{shown}], y[-{shown}:]  # {parts}"
    made = ["made", "m:Box", [], [], [["put", [["i", "1"]], []]]]
    line = example(call("Box.get", made, kind="method"), outcome)
    assert line.startswith("x = Box(); x.put(1); y = x.get(); len(y), y[:") or size == 40


def test_an_object_whose_history_raised_is_no_example() -> None:
    made = call("Box.get", ["made", "m:Box", [], [], [["put", [["i", "1"]], []]]], kind="method")
    assert example(made, json.dumps({"result": ["c", True]}))
    assert example(made, json.dumps({"result": ["c", True], "uneven": True})) == ""


def test_an_example_of_a_property_reads_it() -> None:
    box = ["made", "m:Box", [["i", "2"]], [], []]
    assert example(call("Box.size", box, kind="property"), json.dumps({"result": ["i", "4"]})) == "Box(2).size  # 4"
    assert example(call("Box.size", box, kind="property"), json.dumps({"result": ["c", None]})) == "Box(2).size  # None"
    filled = ["made", "m:Box", [], [], [["put", [["i", "1"]], []]]]
    line = "x = Box(); x.put(1); x.size  # raises ValueError"
    assert example(call("Box.size", filled, kind="property"), json.dumps({"raised": ["builtins:ValueError"]})) == line


def test_an_example_shows_the_exception() -> None:
    assert (
        example(call("f"), json.dumps({"raised": ["m:Odd.Error", "builtins:ValueError"]})) == "f()  # raises Odd.Error"
    )


def test_parts_of_results_are_true() -> None:
    """A slice would be that of the last operand; and an iterator that raises gives no list."""
    items = [["s", "x" * 90], ["s", "y" * 90]]
    vector = ["made", "m:Vec", [["i", "1"]], [], []]
    added = call("Vec.__add__", vector, ["i", "2"], kind="method")
    assert "[:1]" not in example(added, json.dumps({"result": ["l", items]}))
    raising = example(call("f", ["s", "z" * 200]), json.dumps({"result": ["it", items, "m:Odd"]}))
    assert raising.endswith("# raises Odd after 2 items")


@pytest.mark.parametrize(
    ("method", "history", "line"),
    [
        ("__str__", ["__str__", "__repr__"], "str(Box(4))"),
        ("__str__", ["add", "__repr__"], "x = Box(4); x.add(); str(x)"),
        ("__str__", ["__contains__"], "x = Box(4); x.__contains__(); str(x)"),
        ("__str__", ["__len__", "add"], "x = Box(4); x.__len__(); x.add(); str(x)"),
        ("__str__", ["__iter__"], "x = Box(4); x.__iter__(); str(x)"),
        ("size", ["__len__"], "x = Box(4); x.__len__(); x.size()"),
    ],
)
def test_examples_do_not_read_an_object_twice(method: str, history: list[str], line: str) -> None:
    receiver = ["made", "m:Box", [["i", "4"]], [], [[name, [], []] for name in history]]
    made = {"name": f"m:Box.{method}", "kind": "method", "args": [receiver], "kwargs": []}
    outcome = {"result": ["s", "four"], "after": []}
    assert example(json.dumps(made), json.dumps(outcome)) == f"{line}  # 'four'"
