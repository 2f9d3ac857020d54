"""Deletions of the setter or the deleter of a property that can still be read."""

from __future__ import annotations

import pytest

from excise.deleters.all_deleters import get
from excise.deleters.patches.git_patches import apply_patch
from excise.errors import DeletionRefused
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.types import Deletion, Feature, FeatureKind

INIT = "class Box:\n    def __init__(self, w):\n        self._w = w\n"
GETTER = f"{INIT}\n    @property\n    def width(self):\n        return self._w\n"
SETTER = (
    "\n    @width.setter\n    def width(self, value):\n"
    "        if value < 0:\n            raise ValueError\n        self._w = value\n"
)
DELETER = "\n    @width.deleter\n    def width(self):\n        del self._w\n"
AREA = "\n    def area(self):\n        return self.width**2\n"


def delete(source: str, *symbols: str, deleter: str = "remove") -> tuple[Deletion, str]:
    """The deletion of symbols of a module, and what is left of it."""
    ids = tuple(f"m.py::{symbol}" for symbol in symbols)
    feature = Feature(feature_id="f", kind=FeatureKind.MULTI, tier=1, entry=ids, symbols=ids, tests=())
    deletion = get(deleter).delete(PythonCodebase.from_texts({"m.py": source}), feature)
    left = apply_patch({"m.py": source.encode()}, deletion.source_patch)["m.py"]
    return deletion, (left or b"").decode()


@pytest.mark.parametrize(
    ("symbol", "left"),
    [
        ("Box.width#2", GETTER + DELETER + AREA),
        ("Box.width#3", GETTER + SETTER + AREA),
        ("Box.width", INIT + AREA),
    ],
)
def test_accessors_go_alone_and_with_their_property(symbol: str, left: str) -> None:
    deletion, after = delete(GETTER + SETTER + DELETER + AREA, symbol)
    assert after == left
    assert (symbol == "Box.width") == bool(deletion.uses_left), "what reads the property uses no setter"


def test_stub_of_a_setter_leaves_the_getter() -> None:
    _, after = delete(GETTER + SETTER + AREA, "Box.width#2", deleter="stub")
    head = SETTER.partition("        if")[0]
    assert after == GETTER + head + "        raise NotImplementedError\n" + AREA


@pytest.mark.parametrize(
    ("use", "is_use"),
    [
        ("self.width = 2", True),
        ("self.width += 2", True),
        ("x, self.width = 1, 2", True),
        ("for self.width in (1, 2):\n            pass", True),
        ("with open('a') as self.width:\n            pass", True),
        ("del self.width", True),
        ("del self.width[0]", False),
        ("x = self.width", False),
        ("self.width.x = 2", False),
        ("self.width[0] = 2", False),
    ],
)
def test_assignments_in_code_that_stays_are_uses_of_the_setter(use: str, is_use: bool) -> None:
    source = f"{GETTER}{SETTER}\n    def fit(self):\n        {use}\n        print(self)\n"
    deletion, _ = delete(source, "Box.width#2")
    assert bool(deletion.uses_left) == is_use
    if is_use:
        with pytest.raises(DeletionRefused):
            delete(source, "Box.width#2", deleter="remove_and_stub")


def test_what_deletes_uses_the_deleter() -> None:
    source = f"{GETTER}{DELETER}\n    def drop(self):\n        del self.width\n        print(self)\n"
    assert delete(source, "Box.width#2")[0].uses_left
    assert not delete(source, "Box.width#2", "Box.drop")[0].uses_left


def test_features_of_several_keep_the_setter_that_is_used() -> None:
    setter = SETTER.replace("self._w = ", "self._w = rounded() and ")
    source = f"{GETTER}{setter}\n    def fit(self):\n        self.width = 2\n\n\ndef rounded():\n    return 1\n"
    deletion, after = delete(source, "Box.width#2", "rounded", deleter="remove_and_stub")
    assert "raise NotImplementedError" in after
    assert "return self._w" in after
    assert "def rounded" not in after
    assert set(deletion.removed) == {"m.py::Box.width#2", "m.py::rounded"}
