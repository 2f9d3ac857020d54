"""Recorded calls of objects whose class stays: they are made by the calls that made them, or from their state."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import pytest

from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.execution.recorded_calls import public_names

from .inside_programs import decoding, recorded_module

SHELF = """
class Shelf:
    def __init__(self, size, items=()):
        self.size = size
        self.items = list(items)
    def add(self, item):
        self.add_all(iter([item]))
    def add_all(self, items):
        self.items.extend(items)
    def free(self):
        return self.size - len(self.items)
    def has(self, other):
        return other.size
    def each(self):
        yield self.missing
"""
WITH_COUNTER = SHELF.replace("list(items)", "list(items); self.count = len(self.items)").replace(
    "extend(items)", "extend(items); self.count = len(self.items)"
).replace("len(self.items)\n    def has", "self.count\n    def has")  # fmt: skip


@pytest.fixture
def shelves(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """A module with a class, of which calls of the method ``free`` are recorded, and the recorder."""
    module, recorder = recorded_module(monkeypatch, "recorded_shelves", SHELF)
    recorder.watch("recorded_shelves:Shelf.free")
    recorder.watch("recorded_shelves:Shelf.has")
    recorder.watch("recorded_shelves:Shelf.each")
    recorder.follow()
    return module, recorder


def test_objects_of_classes_that_stay_are_made_by_their_history(shelves: tuple[Any, Any]) -> None:
    module, recorder = shelves
    shelf = module.Shelf(5, items=["a"])
    shelf.add("b")
    shelf.add_all(iter("cd"))
    assert shelf.free() == 1
    made = ["made", "recorded_shelves:Shelf", [["i", "5"]], [["items", ["l", [["s", "a"]]]]]]
    history = [["add", [["s", "b"]], []], ["add_all", [["it", [["s", "c"], ["s", "d"]]]], []]]
    assert recorder.calls[0]["args"] == [[*made, history]]
    exec(WITH_COUNTER, module.__dict__)  # a solution with an attribute of its own
    assert decoding.decode(recorder.calls[0]["args"][0]).free() == 1


def test_objects_are_made_from_their_state_where_their_history_does_not_tell(shelves: tuple[Any, Any]) -> None:
    module, recorder = shelves
    shelf = module.Shelf(5)
    shelf.size = 7  # by no call
    other = module.Shelf(2)
    with contextlib.suppress(TypeError):
        other.add_all(3)
    unknown = module.Shelf(3)
    unknown.add(threading.Lock())  # cannot be repeated
    assert (shelf.free(), other.has(shelf)) == (7, 7)
    with contextlib.suppress(TypeError):
        unknown.free()
    assert [call["args"][0][0] for call in recorder.calls] == ["obj", "made"]
    assert recorder.calls[1]["args"][1][0] == "obj"


def test_objects_that_hold_each_other_do_not_double_what_is_noted(shelves: tuple[Any, Any]) -> None:
    module, recorder = shelves
    shelf = module.Shelf(1)
    for _ in range(60):
        shelf = module.Shelf(2, [shelf, shelf])
        shelf.free()
    recorded = [len(repr(call)) for call in recorder.calls]
    assert recorded[1] > 1.5 * recorded[0]
    assert len(recorded) < 12
    assert max(map(len, map(repr, recorder.recipes.values()))) < 50_000
    assert recorder.refused.keys() == {"too large"}


def test_objects_without_state_whose_class_leaves_making_them_to_python_are_made_by_it(
    shelves: tuple[Any, Any],
) -> None:
    module, recorder = shelves
    source = "class Rule:\n    def holds(self, text):\n        return not text\n"
    exec(source + "class Noted(Rule):\n    def __new__(cls):\n        return super().__new__(cls)\n", module.__dict__)
    module.Rule.__module__ = module.Noted.__module__ = module.__name__
    recorder.watch("recorded_shelves:Rule.holds")
    assert module.Rule().holds("")
    module.Noted().holds("")
    rule = module.Rule()
    rule.name = "long"
    rule.holds("")
    assert not recorder.refused
    assert [call["args"][0][:2] for call in recorder.calls] == [
        ["made", "recorded_shelves:Rule"], ["obj", "recorded_shelves:Noted"], ["obj", "recorded_shelves:Rule"],
    ]  # fmt: skip


def test_how_a_call_ends_in_the_tests_is_noted(shelves: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """One that returns once and raises once has both ends."""
    module, recorder = shelves
    assert module.Shelf(5).free() == 5
    for _ in range(2):
        with pytest.raises(AttributeError):
            module.Shelf(5).has(3)
    assert module.Shelf(2).free() == 2
    monkeypatch.setitem(module.__dict__, "len", None)
    with pytest.raises(TypeError):
        module.Shelf(2).free()
    assert list(recorder.ends.values()) == [{True}, {False}, {True, False}]


def test_how_a_call_ends_that_does_nothing_yet_is_not_known(shelves: tuple[Any, Any]) -> None:
    module, recorder = shelves
    with pytest.raises(AttributeError):
        list(module.Shelf(5).each())
    assert (len(recorder.calls), recorder.ends) == (1, {})


def test_private_functions_that_tests_name_are_recorded() -> None:
    source = "def _used():\n    pass\n\n\ndef _left():\n    return _used()\n\n\n"
    source += "class _Box:\n    def _open(self):\n        pass\n"
    files = {"m.py": source, "tests/test_m.py": "import m\n\n\ndef test_a():\n    m._used()\n    m._Box()._open()\n"}
    codebase = PythonCodebase.from_texts(files)
    symbols = ["m.py::_used", "m.py::_left", "m.py::_Box._open"]
    assert public_names(codebase, symbols, [""]) == ["m:_used"]


def test_what_only_copies_of_objects_use_is_not_recorded() -> None:
    source = "".join(f"    def {name}(self):\n        return self\n" for name in ("__getstate__", "__len__", "free"))
    codebase = PythonCodebase.from_texts({"m.py": f"class Shelf:\n{source}"})
    symbols = [f"m.py::Shelf.{name}" for name in ("__getstate__", "__len__", "free")]
    assert public_names(codebase, symbols, [""]) == ["m:Shelf.__len__", "m:Shelf.free"]
