"""Encoding of values: they are decoded with type and content, or refused."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import io
import json
import logging
import math
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from excise.extractors.python.execution import compared_outcomes
from excise.extractors.python.execution.pytest_runner import INSIDE

from .inside_programs import DECODERS, Plain, decoding, load, outcomes, values


@pytest.fixture(autouse=True)
def _decoders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "DECODERS", DECODERS)


class Colour(enum.Enum):
    RED = 1


class Slotted:
    __slots__ = ("__private", "a")

    def __init__(self) -> None:
        self.a, self.__private = 1, 2

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slotted) and (self.a, self.__private) == (other.a, other.__private)

    __hash__ = None  # type: ignore[assignment]


Point = collections.namedtuple("Point", "x y")


@pytest.mark.parametrize(
    "value",
    [
        None, True, 3, -(10**40), 1.5, float("inf"), -0.0, 2 + 3j, "é\ud800", b"\0x", bytearray(b"ab"), Ellipsis,
        [1, [2]], (1,), {"b": 1, "a": [2]}, {1, 2}, frozenset({"x"}), collections.OrderedDict(a=1),
        collections.Counter("aab"), collections.deque([1, 2], 5), range(1, 9, 2), slice(1, None), Path("a/b"),
        decimal.Decimal("1.10"), re.compile("a+", re.I), Colour.RED, Point(1, 2), Plain([1]), Slotted(), len, Plain,
        collections.defaultdict(list, {"a": [1]}),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_values_are_decoded_with_their_type(value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    node = json.loads(json.dumps(values.Encoder().encode(value)))
    again = decoding.decode(node)
    assert type(again) is type(value)
    assert again == value
    assert repr(again) == repr(value) or isinstance(value, Plain | Slotted | set | frozenset)


class MisleadingList(list):  # type: ignore[type-arg]
    """A list whose methods misrepresent its content."""

    def __init__(self) -> None:
        super().__init__([1, 2])
        self.ready = True

    def __iter__(self) -> Any:
        return iter("no")

    def extend(self, items: object) -> None:
        raise AttributeError(self.ready)


def test_the_real_content_of_a_container_is_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    again = decoding.decode(values.Encoder().encode(MisleadingList()))
    assert type(again) is MisleadingList
    assert list.__eq__(again, [1, 2])
    assert again.ready


@pytest.mark.parametrize(
    "make",
    [lambda: iter([1, 2, 3]), lambda: iter(range(3)), lambda: iter("abc"), lambda: iter({"a": 1}),
     lambda: {1: 2}.items(), lambda: {1: 2}.keys(), lambda: {1: 2}.values(), lambda: reversed([1, 2])],
)  # fmt: skip
def test_encoding_an_iterator_does_not_consume_it(make: Any) -> None:
    value = make()
    again = decoding.decode(values.Encoder().encode([value])[1][0])
    assert list(again) == list(value) == list(make())


def test_bound_methods_are_decoded_with_their_object() -> None:
    assert decoding.decode(values.Encoder().encode("a-b".partition))("-") == ("a", "-", "b")
    assert decoding.decode(values.Encoder().encode(Path("a").joinpath))("b") == Path("a/b")


def test_an_unnamed_function_is_encoded_by_its_code_if_allowed() -> None:
    step = 2

    def add(n: int, *, by: int = 1) -> int:
        return n + by * step + len(INSIDE.name)

    node = values.Encoder(carried=lambda function: True).encode([add, lambda: add(1)])
    again, lazy = decoding.decode(json.loads(json.dumps(node)))
    assert again is not add
    assert again(1) == add(1) == lazy()
    assert values.Encoder().encode(add) == ["fn"]
    with pytest.raises(values.Unserialisable, match="removed code"):
        values.Encoder(carried=lambda function: False).encode(add)


def test_times_of_a_frozen_clock_are_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    class Frozen(datetime.datetime):
        """What ``freezegun`` puts in the place of ``datetime.datetime``."""

    monkeypatch.setattr(values.datetime, "datetime", Frozen)
    node = json.loads(json.dumps(values.Encoder().encode(Frozen(2020, 1, 2))))
    monkeypatch.undo()
    assert type(decoding.decode(node)) is datetime.datetime
    assert decoding.decode(node) == datetime.datetime(2020, 1, 2)


def test_loggers_and_standard_streams_are_what_the_process_has() -> None:
    logger = logging.getLogger("excise.carried")
    logger.addHandler(handler := logging.StreamHandler())
    try:
        for value in (logger, logging.getLogger(), sys.stdout, sys.stderr):
            assert decoding.decode(values.Encoder().encode([value]))[0] is value
        assert decoding.decode(values.Encoder().encode(logger.info)) == logger.info
    finally:
        logger.removeHandler(handler)


def test_exceptions_have_their_attributes() -> None:
    error = OSError(2, "gone")
    error.place = [1]  # type: ignore[attr-defined]
    again = decoding.decode(json.loads(json.dumps(values.Encoder().encode(error))))
    assert (type(again), again.args, again.place) == (type(error), (2, "gone"), [1])


def noted(text: str, place: object) -> Exception:
    error = KeyError(text)
    error.text, error.place, error._seen = text, place, object()  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (noted("a", 1), noted("b", 1), True),
        (noted("a", 1), noted("a", 2), False),
        (noted("a", 1), KeyError("a"), False),
        (KeyError("a"), noted("a", 1), True),
    ],
)
def test_attributes_of_exceptions_that_are_results_are_compared(
    first: Exception, second: Exception, *, same: bool
) -> None:
    found = [
        json.dumps(outcomes.outcome_of(lambda error=error: error, [], lambda cls: False)) for error in (first, second)
    ]
    assert compared_outcomes.same_outcome(*found) is same


NOTHING = object()


def test_objects_without_anything_are_others_unless_a_module_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    one = decoding.decode(values.Encoder().encode(object()))
    assert type(one) is object
    assert decoding.decode(values.Encoder().encode(NOTHING)) is NOTHING
    encoder = values.Encoder()
    encoder.losing = {__file__}
    with pytest.raises(values.Unserialisable):
        encoder.encode([NOTHING])


STEP = 2


def stepped(n: int) -> int:
    """A function of a file of tests, with names of it."""
    return stepped(n - 1) + STEP if n else decimal.Decimal(0)  # type: ignore[return-value]


def test_a_function_of_a_missing_module_is_encoded_with_the_names_that_it_uses() -> None:
    encoder = values.Encoder(carried=lambda function: True, alone=lambda function: True)
    node = json.loads(json.dumps(encoder.encode([stepped, lambda: stepped(1)])))
    assert __name__ not in encoder.modules
    direct, through = decoding.decode([node[0], [[*each[:1], "gone", *each[2:]] for each in node[1]]])
    assert direct(3) == 6
    assert through() == 2


def test_the_code_before_a_rewriting_is_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str, Any] = {}
    exec("def old():\n    return lambda: 1\ndef new():\n    return lambda: 2", made)
    monkeypatch.setattr(sys, "path", [str(INSIDE), *sys.path])
    monkeypatch.setitem(sys.modules, "excise_values", values)
    load("excise_observed").note_rewritten(made["new"].__code__, made["old"].__code__)
    made["new"].__module__ = __name__
    inner = made["new"]()
    inner.__module__ = __name__
    node = values.Encoder(carried=lambda function: True).encode([inner])
    assert decoding.decode(node)[0]() == 1


def test_removed_code_is_not_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(INSIDE), *sys.path])
    monkeypatch.setitem(sys.modules, "excise_values", values)
    record = load("excise_recorder")
    names: dict[str, Any] = {}
    exec(compile("def outer():\n    return lambda: 1\nfree = lambda: 2\n", "/testbed/m.py", "exec"), names)
    recorder = record.Recorder([("/testbed/m.py", 1, 2)])
    assert not recorder.may_travel(names["outer"]())
    assert recorder.may_travel(names["free"])


def test_nan_is_decoded() -> None:
    assert math.isnan(decoding.decode(values.Encoder().encode(float("nan"))))


@pytest.mark.parametrize(
    "value",
    [(x for x in ()), io.TextIOWrapper(io.BytesIO()), "x" * (1 << 20), list(range(10**5))],
    ids=["generator", "file", "long", "many"],
)
def test_values_that_cannot_be_encoded_are_refused(value: object) -> None:
    with pytest.raises(values.Unserialisable):
        values.Encoder().encode(value)


class Node:
    """A node that knows its parent."""

    def __init__(self, *children: Node) -> None:
        self.children, self.parent, self.table = list(children), None, Table()
        self.table["owner"] = self
        for child in children:
            child.parent = self  # type: ignore[assignment]


class Table(dict[str, object]):
    """A dictionary of a class of its own."""


def decoded(value: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    node = json.loads(json.dumps(values.Encoder().encode(value)))
    again = decoding.decode(node)
    assert json.loads(json.dumps(values.Encoder().encode(again))) == node
    return again


def test_values_that_hold_themselves_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    loop: list[object] = [1]
    loop.append({"loop": loop})
    again = decoded(loop, monkeypatch)
    assert again[1]["loop"] is again
    table = Table()
    table["owner"] = [table]
    again = decoded(table, monkeypatch)
    assert type(again) is Table
    assert again["owner"][0] is again
    again = decoded([Node(Node(Node())), Node()], monkeypatch)[0]
    inner = again.children[0]
    assert inner.parent is again
    assert inner.children[0].parent is inner
    assert inner.children[0].table["owner"] is inner.children[0]


def test_values_that_are_made_from_themselves_are_refused() -> None:
    loop: list[object] = []
    loop.append((loop,))
    assert values.Encoder().encode(loop)[0] == "at"
    with pytest.raises(values.Unserialisable, match="cycle"):
        values.Encoder().encode(loop[0])


@pytest.mark.parametrize(
    "match",
    [
        re.compile(r"(?P<key>\w+)=(\d)?", re.I).search("  ab=1"),
        re.compile(b"b").match(b"ab", 1),
        re.fullmatch("a|ab", "ab"),
        list(re.finditer("a", "aba"))[1],
    ],
    ids=["search", "match", "fullmatch", "another one"],
)
def test_matches_are_found_again(match: re.Match[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    again = decoded(match, monkeypatch)
    assert (again.re, again.string, again.pos, again.endpos, again.regs) == (
        match.re, match.string, match.pos, match.endpos, match.regs,
    )  # fmt: skip


def test_outcomes_with_values_that_hold_themselves_are_compared() -> None:
    encoder = outcomes.ResultEncoder(lambda cls: False)
    assert encoder.encode(Node(Node())) == encoder.encode(Node(Node()))
    assert encoder.encode(Node(Node())) != encoder.encode(Node(Node(), Node()))
    found = outcomes.ResultEncoder(lambda cls: False).encode(re.search("(?:b)(c)", "abc"))
    assert found == outcomes.ResultEncoder(lambda cls: False).encode(re.search("b(.)", "abc"))


class Base:
    """A class of a file of tests."""

    def __init__(self, size: int) -> None:
        self.size = size

    def doubled(self) -> Base:
        return Base(self.size * STEP)


class Carried(Base):
    """One that is based on it."""

    kinds = (Base, "x")

    def __init__(self, size: int) -> None:
        super().__init__(size + 1)

    @property
    def half(self) -> float:
        return self.size / 2

    @staticmethod
    def made() -> Carried:
        return Carried(4)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Carried) and other.size == self.size

    __hash__ = None  # type: ignore[assignment]


def test_classes_of_missing_modules_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "carried_classes", {})
    encoder = values.Encoder(carried=lambda function: True, alone=lambda thing: thing.__module__ == __name__)
    node = json.loads(json.dumps([encoder.encode([Carried(3), Carried]), encoder.classes]).replace(__name__, "gone"))
    decoding.define(node[1])
    one, cls = decoding.decode(node[0])
    assert cls is type(one)
    assert cls is not Carried
    assert (cls.__module__, cls.__mro__[1].__name__, one.size, one.half) == ("gone", "Base", 4, 2)
    assert (cls.made().size, type(one.doubled())) == (5, cls.__mro__[1])
    assert cls(3) == one
    assert cls.kinds == (cls.__mro__[1], "x")
    decoding.define(node[1])
    assert type(decoding.decode(node[0])[0]) is cls
    assert outcomes.ResultEncoder(lambda kind: False).encode(one)[:2] == ["seen", ["gone:Carried", "gone:Base"]]
