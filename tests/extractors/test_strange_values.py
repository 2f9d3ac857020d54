"""Values that make trouble where they are recorded, encoded or decoded."""

from __future__ import annotations

import builtins
import importlib
import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from .inside_programs import DECODERS, decoding, load, outcomes, values

CODE = """
class Record:
    def __init__(self):
        self.data = {}

    def __getattr__(self, name):
        return self.__dict__["data"][name]


class Proxy:
    @property
    def __class__(self):
        raise RuntimeError("unbound")


def made(kind, value=None):
    return kind()


def wrapped(function):
    def inner(first, *, second=2):
        return function(first + second)
    return inner
"""


@pytest.fixture(autouse=True)
def _decoders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "DECODERS", DECODERS)


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    file = tmp_path / "strange_code.py"
    file.write_text(CODE)
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(load("excise_values").__file__).rpartition("/")[0], *sys.path])
    monkeypatch.delitem(sys.modules, "strange_code", raising=False)
    monkeypatch.setitem(sys.modules, "strange_code", importlib.import_module("strange_code"))
    inside = load("excise_recorder")
    recorder = inside.Recorder([(str(file), 19, 40)])
    monkeypatch.setattr(builtins, inside.NAME, recorder.called, raising=False)
    assert recorder.watch("strange_code:made") + recorder.watch("strange_code:wrapped") == 2
    return sys.modules["strange_code"]


@pytest.mark.parametrize("kind", ["Record", "Proxy"])
def test_objects_that_raise_exceptions_when_they_are_asked_are_passed_on(recorded: Any, kind: str) -> None:
    cls = getattr(recorded, kind)
    one = recorded.made(cls)
    assert type(one) is cls
    assert type(recorded.made(cls, one)) is cls


def test_functions_that_calls_return_keep_their_parameters(recorded: Any) -> None:
    function = recorded.wrapped(abs)
    assert (function(-3), function(-3, second=1)) == (1, 2)
    assert [*inspect.signature(function).parameters] == ["first", "second"]
    assert inspect.getfullargspec(function).kwonlyargs == ["second"]


def test_objects_without_state_of_classes_of_tests_are_carried() -> None:
    inside = load("excise_recorder")
    recorder = inside.Recorder([], [__file__])
    assert recorder.encode(Stateless(), "f")[0] == "obj"
    assert recorder.classes.keys() == {f"{__name__}:Stateless"}
    assert inside.Recorder().encode(Stateless(), "f")[0] == "made"


class Stateless:
    """An object in the place of another one."""

    def run(self) -> int:
        return 1


def test_a_match_is_not_searched_for_in_other_ways() -> None:
    found = re.compile(r"(a+)+").search("a" * 60 + "b")
    assert values.Encoder().encode(found)[2] == "match"


def test_an_exception_that_holds_itself_is_encoded_without_that() -> None:
    error = KeyError("a")
    error.own, error.n = [error], 1  # type: ignore[attr-defined]
    again = decoding.decode(json.loads(json.dumps(values.Encoder().encode([error]))))[0]
    assert (again.args, vars(again)) == (("a",), {"n": 1})


def local_class(number: int) -> type:
    class Local:
        """A class that each call defines anew."""

        def __init__(self) -> None:
            super().__init__()

        def value(self) -> int:
            return number

    return Local


def encoder_of_all() -> Any:
    return values.Encoder(carried=lambda function: True, alone=lambda thing: thing.__module__ == __name__)


def test_classes_of_one_name_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "carried_classes", {})
    with pytest.raises(values.Unserialisable):
        encoder_of_all().encode([local_class(1), local_class(2)])
    encoders = [encoder_of_all(), encoder_of_all()]
    nodes = [encoder.encode(local_class(number)) for number, encoder in enumerate(encoders)]
    for number, (node, encoder) in enumerate(zip(nodes, encoders, strict=True)):
        decoding.define(json.loads(json.dumps(encoder.classes)))
        assert decoding.decode(node)().value() == number


def test_classes_are_defined_after_others_that_could_not_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "carried_classes", {})
    encoder = encoder_of_all()
    node = encoder.encode(local_class(1))
    with pytest.raises(ModuleNotFoundError):
        decoding.define({**encoder.classes, "gone:A": [[["ref", "gone_too:B"]], []]})
    decoding.define(encoder.classes)
    assert decoding.decode(node)().value() == 1


def test_results_that_nobody_reads_need_not_be_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    inside = load("excise_replay")
    call = {"name": "threading:Lock", "kind": "function", "args": [], "kwargs": [], "unread": True}
    assert inside.outcome(call, frozenset())["result"] == ["unread"]
    with pytest.raises(outcomes.values.Unserialisable):
        inside.outcome({**call, "unread": False}, frozenset())
