"""Reports of lifted tests: which values an observing run reports, and which a judging run accepts."""

from __future__ import annotations

import collections
import decimal
import enum
import json
import operator
from typing import Any

import pytest

from excise.extractors.python.execution.python_grading import PythonGrading

from .inside_programs import decoding, load, values

assert values is not decoding  # both are loaded before the module that imports them
inside = load("excise_lifted")


class Colour(enum.Enum):
    RED = 1


class Text(str):
    pass


Pair = collections.namedtuple("Pair", "one two")


class Counted(collections.defaultdict):  # type: ignore[type-arg]
    def __eq__(self, other: object) -> bool:
        return type(other) is Counted and dict(self) == dict(other)

    __hash__ = None  # type: ignore[assignment]


class Ordered(collections.OrderedDict):  # type: ignore[type-arg]
    def __eq__(self, other: object) -> bool:
        return type(other) is Ordered and list(self.items()) == list(other.items())

    __hash__ = None  # type: ignore[assignment]


class Queue(collections.deque):  # type: ignore[type-arg]
    def __eq__(self, other: object) -> bool:
        return type(other) is Queue and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


class Channel:
    """Keeps what an observer writes."""

    def __init__(self) -> None:
        self.written: list[list[Any]] = []

    def write(self, kind: str, place: int, value: object) -> None:
        assert kind == "see"
        self.written.append([place, value])


def judged(value: object, *names: str, by_identity: bool = False) -> Any:
    """A value after it was reported and read; ``names`` are accepted in objects."""
    channel = Channel()
    inside.Observer(channel, ["Removed"]).see(7, value, by_identity)
    judge = inside.Judge({"test": channel.written}, {"test": names})
    judge.begin("test")
    return judge.value(7, by_identity)


@pytest.mark.parametrize(
    "value",
    [1, True, None, 2.5, "text", b"bytes", [1, (2, {"a": {3}})], decimal.Decimal("1.5"), int, Colour.RED, Colour,
     range(3), collections.Counter("aab"), collections.defaultdict(int, a=1)],
    ids=str,
)  # fmt: skip
def test_plain_values_are_read_as_they_were(value: object) -> None:
    found = judged(value)
    assert (found, type(found)) == (value, type(value))


def test_objects_of_derived_classes_are_read_as_the_builtin_value() -> None:
    assert (judged(Text("a")), judged(Pair(1, 2))) == ("a", (1, 2))
    assert type(judged(Text("a"))) is str


@pytest.mark.parametrize("value", [Counted(int, {"a": 1}), Ordered([("b", 1), ("a", 2)]), Queue([1, 2], 3)], ids=repr)
def test_objects_of_classes_derived_from_collections_are_made_again(value: object) -> None:
    found = judged(value, f"{__name__}:{type(value).__name__}", "builtins:int")
    assert found == value
    for each in ("default_factory", "maxlen"):
        assert getattr(found, each, None) == getattr(value, each, None)


def test_what_cannot_be_reported_can_only_be_compared_by_identity() -> None:
    found = judged(object())
    assert found is not None
    with pytest.raises(AssertionError):
        assert found != 1
    inner = judged({"key": [object(), 2]})
    assert ("key" in inner, len(inner["key"]), inner["key"][1]) == (True, 2, 2)
    with pytest.raises(AssertionError):
        assert inner == {"key": [1, 2]}
    endless: list[object] = []
    endless += [endless, endless]
    assert judged(endless) is not None
    assert judged("x" * (inside.MAX_VALUE + 1)) is not None
    with pytest.raises(AssertionError):
        assert judged("x" * (inside.MAX_VALUE + 1)) == "x"


class Spot(collections.namedtuple("Spot", "x y")):
    """A named tuple that compares in its own way."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is Spot and self.x == other.x

    __hash__ = None  # type: ignore[assignment]


def test_named_tuples_are_made_again_if_their_class_is_accepted() -> None:
    name = f"{__name__}:Spot"
    found = judged([Spot(1, 2)], name)
    assert (found, type(found[0]), found[0].y) == ([Spot(1, 3)], Spot, 2)
    with pytest.raises(AssertionError):
        judged([Spot(1, 2)])
    for other in ("builtins:eval", "os:system", f"{__name__}:Place"):
        judge = inside.Judge({"test": [[0, ["nt", other, [["i", "1"]]]]]}, {"test": [other]})
        judge.begin("test")
        with pytest.raises(AssertionError):
            judge.value(0)


class Place:
    """An object with a slot, an attribute, a class and a function."""

    __slots__ = ("__dict__", "x")

    def __init__(self, x: int) -> None:
        self.x, self.kind, self.compare = x, int, operator.eq

    def __eq__(self, other: object) -> bool:
        return type(other) is Place and self.compare((self.x, self.kind), (other.x, other.kind))

    __hash__ = None  # type: ignore[assignment]


class Removed(Place):
    """An object whose state a solution may represent freely."""


NAMES = [f"{__name__}:Place", "builtins:int", "_operator:eq"]
MARK = object()


def test_objects_are_made_of_what_the_original_reported() -> None:
    found = judged([Place(3)], *NAMES)
    assert (found, found == [Place(4)]) == ([Place(3)], False)
    with pytest.raises(AssertionError):
        assert judged(Removed(3), f"{__name__}:Removed", *NAMES) == Removed(3)
    for n in range(3):
        with pytest.raises(AssertionError):
            judged(Place(3), *NAMES[:n], *NAMES[n + 1 :])


@pytest.mark.parametrize("attribute", ["__class__", "__dict__", "__eq__"])
def test_objects_get_no_special_attributes(attribute: str) -> None:
    node = ["obj", NAMES[0], None, [[attribute, ["c", None]]]]
    judge = inside.Judge({"test": [[0, node]]}, {"test": NAMES})
    judge.begin("test")
    with pytest.raises(AssertionError):
        judge.value(0)


def test_objects_of_which_there_is_one_are_known_by_name_where_identity_is_compared() -> None:
    assert judged(MARK, by_identity=True) is MARK
    assert judged(object(), by_identity=True) is not MARK
    assert judged(None, by_identity=True) is None
    judge = inside.Judge({"test": [[0, ["global", ["unittest.mock:ANY"]]], [1, ["global", ["no_such:name"]]]]})
    judge.begin("test")
    with pytest.raises(AssertionError):
        judge.value(0)
    with pytest.raises(AssertionError, match="nothing has this name"):
        judge.value(1, True)


def test_what_nested_functions_report_is_compared_or_is_the_originals() -> None:
    judge = inside.Judge({"test": [[-3, ["i", "1"]], [4, ["i", "2"]]]})
    judge.begin("test")
    with pytest.raises(AssertionError, match="not compared"):
        judge.end()
    assert judge.value(-3) == 1
    judge.end()
    original = inside.Judge(judge.seen, nested={"test": [[-3, ["i", "1"]]]})
    original.begin("test")
    original.end()


def test_errors_are_raised_again_with_their_class_and_text() -> None:
    class Own(KeyError):
        def __init__(self, number: int) -> None:
            super().__init__(number)

        def __str__(self) -> str:
            return "text of its own"

    channel = Channel()
    with inside.Observer(channel).raising(3) as caught:
        raise Own(5)
    assert caught.value.args == (5,)
    with inside.Observer(channel).raising(4):
        pass
    with inside.Observer(channel).raising(5):
        raise SystemExit(3)
    judge = inside.Judge({"test": channel.written})
    judge.begin("test")
    with pytest.raises(SystemExit):
        judge.raise_again(5)
    with pytest.raises(KeyError, match="text of its own"):
        judge.raise_again(3)
    judge.raise_again(4)
    with pytest.raises(AssertionError, match="nothing was reported"):
        judge.raise_again(3)


@pytest.mark.parametrize(
    "node",
    [
        ["n", "os:system", "true"], ["new", "os:system", [["s", "true"]]], ["ref", "unittest.mock:ANY"],
        ["obj", "unittest.mock:_ANY", None, []], ["m", "this"], ["fn", "os", "", []], ["e", "os:environ", "PATH"],
        ["l", [["n", "os:system", "true"]]], ["d", [[["s", "a"], ["made", "os:system", [], [], []]]]],
        ["dd", ["ref", "os:getpid"], []], ["pa", [["ref", "os:getpid"], ["t", []], ["d", []]]],
        ["type", ["no_such_module:name", "os:environ"]], ["global", ["os:environ"]],
        ["dd", ["type", ["subprocess:Popen"]], []],
    ],
    ids=str,
)  # fmt: skip
def test_reports_that_would_import_or_call_something_are_refused(node: list[Any]) -> None:
    judge = inside.Judge({"test": [[0, node]]})
    judge.begin("test")
    with pytest.raises(AssertionError):
        judge.value(0)


@pytest.mark.parametrize(("levels", "kept"), [(100, True), (299, True), (301, False), (5000, False)])
def test_values_that_are_nested_too_deeply_are_not_passed_on(levels: int, kept: bool) -> None:
    supervisor = load("excise_grade_supervisor")
    value: list[Any] = []
    for n in range(levels - 1):
        value = [value, n]
    found = supervisor.Lifted()
    found.see("test", 1, value, 10)
    assert (found.seen["test"] == [[1, ["opaque"]]]) is not kept


@pytest.mark.parametrize("line", [b"[" * 100_000, b'{"t": "see", "value": ' * 20_000, b"\xff", b"7"])
def test_a_message_that_cannot_be_read_is_left_out(line: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    supervisor = load("excise_grade_supervisor")
    worker = object.__new__(supervisor.Worker)
    worker.pending, worker.pipe = b"", 7
    monkeypatch.setattr(supervisor.os, "read", lambda fd, size: line + b"\n")
    assert worker.read_messages()


@pytest.mark.parametrize(
    ("values", "telling"),
    [([True], False), ([True, True], False), ([None], False), ([True, False], True), ([1], True), ([True, "a"], True)],
)
def test_one_constant_over_and_over_tells_nothing(values: list[object], telling: bool) -> None:
    channel = Channel()
    for place, value in enumerate(values):
        inside.Observer(channel).see(place, value)
    assert PythonGrading().reported(json.dumps(channel.written)).telling is telling
