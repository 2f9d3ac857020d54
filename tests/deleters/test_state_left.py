"""State, types and helpers of tests that nothing needs without the removed code."""

from __future__ import annotations

import pytest

from .test_remove_details import after, delete

BOX = (
    "from typing import Literal\n\nKind = Literal['a', 'b']\n\n\nclass Box:\n    def __init__(self, size):\n"
    "        self.size = size\n        self.shape = 'round'\n        self.other = size\n\n"
    "    def look(self, kind: Kind = 'a'):\n        return self.shape, kind\n\n"
    "    def big(self):\n        return self.size\n"
)


def test_a_public_attribute_and_the_name_of_a_type_go_that_nothing_else_in_the_project_has() -> None:
    left = after({"m.py": BOX}, delete({"m.py": BOX}, "m.py::Box.look"))["m.py"]
    assert left == (
        "class Box:\n    def __init__(self, size):\n        self.size = size\n        self.other = size\n\n"
        "    def big(self):\n        return self.size\n"
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [("README.md", "Its `shape` and `Kind`.\n"), ("n.py", "from m import Kind\n\nprint(box.shape, Kind)\n")],
)
def test_they_stay_where_something_else_names_them(name: str, text: str) -> None:
    files = {"m.py": BOX, name: text}
    left = after(files, delete(files, "m.py::Box.look"))["m.py"]
    assert "self.shape = 'round'" in left
    assert "Kind = Literal" in left


@pytest.mark.parametrize(
    ("other", "is_gone"), [("import m\n\ncheck = 1\n", True), ("from test_m import TestA\n\nTestA().check(1)\n", False)]
)
def test_a_method_goes_from_a_class_of_tests_that_no_other_file_has(other: str, is_gone: bool) -> None:
    tests = (
        "import m\n\n\nclass TestA:\n    def check(self, x):\n        assert x\n\n"
        "    def test_f(self):\n        self.check(m.f())\n\n    def test_g(self):\n        assert m.g()\n"
    )
    files = {"m.py": "def f():\n    return 1\n\n\ndef g():\n    return 2\n", "test_m.py": tests, "test_n.py": other}
    left = after(files, delete(files, "m.py::f", hide=("test_m.py::TestA::test_f",)))["test_m.py"]
    assert ("check" not in left) is is_gone


def test_inherited_tests_are_hidden_in_order_and_above_a_blank_line() -> None:
    tests = (
        "import m\n\n\nclass Mixin:\n    def test_a(self):\n        assert m.f()\n\n"
        "    def test_b(self):\n        assert m.f()\n\n    def test_c(self):\n        assert m.g()\n\n\n"
        "class TestF(Mixin):\n    def make(self):\n        return 1\n\n"
        "    def test_d(self):\n        assert m.g()\n\n\n"
        "class TestG(Mixin):\n    pass\n"
    )
    files = {"m.py": "def f():\n    return 1\n\n\ndef g():\n    return 2\n", "test_m.py": tests}
    hide = ("test_m.py::TestF::test_a", "test_m.py::TestF::test_b")
    left = after(files, delete(files, "m.py::f", hide=hide))["test_m.py"]
    assert "class TestF(Mixin):\n    test_a = None\n    test_b = None\n\n    def make(self):" in left


@pytest.mark.parametrize("more", ["print(vars(box))\n", "print(getattr(box, name))\n", "print(box.__dict__)\n"])
def test_attributes_stay_where_code_takes_them_without_their_names(more: str) -> None:
    files = {"m.py": f"{BOX}\n\ndef tell(box, name):\n    {more}"}
    assert "self.shape = 'round'" in after(files, delete(files, "m.py::Box.look"))["m.py"]


def test_a_method_that_a_base_elsewhere_may_call_stays() -> None:
    files = {
        "m.py": "def f():\n    return 1\n\n\ndef g():\n    return 2\n",
        "base.py": "class Base:\n    def test_common(self):\n        assert self.make()\n",
        "test_m.py": (
            "import m\nfrom base import Base\n\n\nclass TestA(Base):\n    def make(self):\n        return 1\n\n"
            "    def test_f(self):\n        assert self.make() == m.f()\n\n"
            "    def test_g(self):\n        assert m.g()\n"
        ),
    }
    left = after(files, delete(files, "m.py::f", hide=("test_m.py::TestA::test_f",)))["test_m.py"]
    assert "def make(self):" in left
