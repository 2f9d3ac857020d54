"""New calls with arguments for parameters that no test uses."""

from __future__ import annotations

import json
import struct

import pytest

from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.execution.added_arguments import FAR, canonical, parameters_of, without_added
from excise.extractors.python.execution.varied_calls import MAX_ADDED, MAX_VARIED, varied

SOURCE = '''
class Box:
    def __init__(self, size=3, *, name="box", lid=None):
        """Makes a box.
At the margin."""

    def open(self, far: bool = False, /, by=1.5):
        return far

    @classmethod
    def of(cls, size=3):
        return cls(size)


async def wait(n=2): ...


def free(*args, **kwargs): ...
'''


def call(name: str, kind: str, /, *args: object, **kwargs: object) -> str:
    return json.dumps({"name": f"m:{name}", "kind": kind, "args": list(args), "kwargs": [*map(list, kwargs.items())]})


def added(calls: list[str], removed: str = "m.py::Box") -> list[dict[str, object]]:
    codebase = PythonCodebase.from_texts({"m.py": SOURCE})
    made = [json.loads(text) for text in varied(calls, parameters_of(codebase, [removed]))]
    return [each for each in made if "added" in each]


def test_plain_defaults_are_parameters() -> None:
    found = parameters_of(PythonCodebase.from_texts({"m.py": SOURCE}), ["m.py::Box", "m.py::wait", "m.py::free"])
    assert {name: [(each.name, each.model) for each in own] for name, own in found.items()} == {
        "Box.__init__": [("size", ["i", "3"]), ("name", ["s", "box"]), ("lid", [])],
        "Box.open": [("by", ["f", "3ff8000000000000"])],  # the other one has no keyword
        "Box.of": [("size", ["i", "3"])],
        "wait": [("n", ["i", "2"])],
        "free": [],
    }


RECEIVER = ["made", "m:Box", [], [], []]


@pytest.mark.parametrize(
    ("made", "names"),
    [
        (call("Box", "class"), {"size", "name"}),
        (call("Box", "class", ["i", "1"]), {"name"}),
        (call("Box", "class", name=["s", "x"]), {"size"}),
        (call("Box.open", "method", RECEIVER), {"by"}),
        (call("Box.open", "method", RECEIVER, ["c", True], ["f", "3ff8000000000000"]), set()),
        (call("Box.of", "classmethod"), {"size"}),
        (call("Box.of", "classmethod", ["i", "1"]), set()),
    ],
)
def test_parameters_that_no_call_uses_get_arguments(made: str, names: set[str]) -> None:
    found = added([made])
    assert {each["added"] for each in found} == names
    for each in found:
        assert canonical(without_added(each)) == canonical(json.loads(made))
        assert [pair[0] for pair in each["kwargs"]][-1] == each["added"]


@pytest.mark.parametrize(
    ("annotation", "tag"),
    [
        ("int | None", "i"),
        ("None | str", "s"),
        ("t.Optional[float]", "f"),
        ("'bool | None'", "c"),
        ("Optional[Box]", ""),
    ],
)
def test_parameters_that_may_be_none_get_values_of_their_type(annotation: str, tag: str) -> None:
    codebase = PythonCodebase.from_texts({"m.py": f"def f(x, a: {annotation} = None): ...\n"})
    calls = [call("f", "function", ["i", str(number)]) for number in range(3)]
    made = [json.loads(text) for text in varied(calls, parameters_of(codebase, ["m.py::f"]))]
    values = [each["kwargs"][-1][1] for each in made if "added" in each]
    assert {value[0] for value in values} == ({tag} if tag else set())
    assert ["c", None] not in values


@pytest.mark.parametrize(
    ("words", "code", "model"),
    [
        (":param int end: The last one.", "", ["i", "2"]),
        (":param end: The last one.\n    :type end: str", "", ["s", "a"]),
        ("Args:\n        end (bool): The last one.", "", ["c", True]),
        ("Parameters\n    ----------\n    end : float, optional", "", ["f", "3ff8000000000000"]),
        ("In the end: int", "", []),
        ("", "if end is None:\n        end = len(x)", ["i", "2"]),
        ("", "end = end or 'utf-8'", ["s", "utf-8"]),
        ("", "end = 7 if end is None else end", ["i", "7"]),
        ("", "end = end or []", []),
    ],
)
def test_parameters_that_may_be_none_are_of_the_kind_that_words_or_code_tell(
    words: str, code: str, model: list[object]
) -> None:
    source = f'def f(x, end=None):\n    """{words}\n    """\n    {code or "pass"}\n    return x[:end]\n'
    codebase = PythonCodebase.from_texts({"m.py": source})
    assert [each.model for each in parameters_of(codebase, ["m.py::f"])["f"]] == [model]


def test_a_parameter_that_only_gets_its_default_is_unused() -> None:
    """A command line may hand on all of its options."""
    calls = [call("Box.of", "classmethod", size=["i", "3"]), call("Box.of", "classmethod", ["i", "3"])]
    assert not added(calls)  # none is free for another value
    (made, *_) = added([*calls, call("Box.of", "classmethod")])
    assert made["added"] == "size"
    assert not added([*calls, call("Box.of", "classmethod"), call("Box.of", "classmethod", ["i", "4"])])


def test_each_parameter_comes_before_a_second_value() -> None:
    calls = [call("Box", "class", lid=["i", str(n)]) for n in range(5)]
    found = added(calls)
    assert [each["added"] for each in found] == ["size", "name"] * 3
    assert added(calls) == found


def test_other_new_calls_stay() -> None:
    source = "\n".join(f"def f{n}(x, a=1, b=2):\n    return x\n" for n in range(20))
    calls = [call(f"f{n}", "function", ["i", "7"]) for n in range(20)]
    codebase = PythonCodebase.from_texts({"m.py": source})
    found = varied(calls, parameters_of(codebase, [f"m.py::f{n}" for n in range(20)]))
    assert len(found) == MAX_VARIED + MAX_ADDED
    assert not any("added" in json.loads(text) for text in found[:MAX_VARIED])
    assert sum("added" in json.loads(text) for text in found) == MAX_ADDED


@pytest.mark.parametrize("default", [3, 0, 1.5, -1])
def test_numbers_stay_on_their_side_of_zero(default: float) -> None:
    names = [f"f{n}" for n in range(10)]
    codebase = PythonCodebase.from_texts({"m.py": "\n".join(f"def {name}(x, a={default}): ..." for name in names)})
    calls = [call(name, "function", ["i", "7"]) for name in names]
    made = [json.loads(text) for text in varied(calls, parameters_of(codebase, [f"m.py::{name}" for name in names]))]
    nodes = [each["kwargs"][-1][1] for each in made if "added" in each]
    values = [int(text, 0) if tag == "i" else struct.unpack(">d", bytes.fromhex(text))[0] for tag, text in nodes]
    assert len(values) == 10
    assert default not in values
    assert all(value >= 0 for value in values) or default < 0


@pytest.mark.parametrize(
    ("made", "args", "kwargs"),
    [
        (call("Box.of", "classmethod", ["i", "1"]), [], []),
        (call("Box.of", "classmethod", size=["i", "1"]), [], []),
        (call("Box.open", "method", RECEIVER, ["c", True], ["f", "3ff8000000000000"]), [RECEIVER, ["c", True]], []),
    ],
)
def test_an_argument_that_all_calls_give_is_left_out_once(made: str, args: list[object], kwargs: list[object]) -> None:
    codebase = PythonCodebase.from_texts({"m.py": SOURCE})
    found = [json.loads(text) for text in varied([made], parameters_of(codebase, ["m.py::Box"]))]
    assert (args, kwargs) in [(each["args"], each["kwargs"]) for each in found]
    other = call("Box.of", "classmethod")
    more = [json.loads(text) for text in varied([other], parameters_of(codebase, ["m.py::Box"]))]
    assert all("added" in each for each in more)


def test_an_integer_gets_a_value_that_is_far_from_its_default() -> None:
    values = {each["kwargs"][-1][1][1] for each in added([call("Box.of", "classmethod")] * 3)}
    assert str(3 + FAR) in values


@pytest.mark.parametrize(
    "source",
    [
        "@only\ndef f(x, mode='a'): ...\n",
        "if NEW:\n    def f(x, mode='a'): ...\nelse:\n    def f(x): ...\n",
    ],
)
def test_parameters_that_may_be_others_get_no_arguments(source: str) -> None:
    codebase = PythonCodebase.from_texts({"m.py": source})
    removed = [symbol for symbol in codebase.symbols() if "::" in symbol]
    assert not any(parameters_of(codebase, removed).values())


def test_overloads_have_the_parameters_of_their_implementation() -> None:
    source = "@overload\ndef f(x: int) -> int: ...\n@overload\ndef f(x: str) -> str: ...\ndef f(x, size=1): ...\n"
    codebase = PythonCodebase.from_texts({"m.py": source})
    found = parameters_of(codebase, [symbol for symbol in codebase.symbols() if "::" in symbol])
    assert {name: [each.name for each in own] for name, own in found.items()} == {"f": ["size"]}


def test_functions_of_one_name_in_several_files_get_no_arguments() -> None:
    codebase = PythonCodebase.from_texts({"a.py": "def f(x, a=1): ...\n", "b.py": "def f(x, y): ...\n"})
    assert parameters_of(codebase, ["a.py::f", "b.py::f"]) == {}
    assert parameters_of(codebase, ["a.py::f"]).keys() == {"f"}


def test_where_no_value_is_known_those_of_other_functions_are_given() -> None:
    source = "def f(seq, key: Callable | None = None, alg=E.A): ...\n\n\ndef g(seq, key=None, alg=E.A): ...\n"
    codebase = PythonCodebase.from_texts({"m.py": source})
    key, alg = ["new", "operator:itemgetter", ["i", "1"]], ["e", "m:E", "B"]
    calls = [
        call("f", "function", ["l", []]),
        call("g", "function", ["l", []], key=key),
        call("g", "function", alg=alg),
    ]
    made = [json.loads(text) for text in varied(calls, parameters_of(codebase, ["m.py::f", "m.py::g"]))]
    found = {(each["name"], each["added"], json.dumps(each["kwargs"][-1][1])) for each in made if "added" in each}
    assert found == {("m:f", "key", json.dumps(key)), ("m:f", "alg", json.dumps(alg))}
