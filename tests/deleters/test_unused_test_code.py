"""Helpers and fixtures of tests that only hidden tests used go with these."""

from __future__ import annotations

import pytest

from .test_remove_details import after, delete

CODE = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"
HELPERS = """import pytest

from m import f, g


class Checked(dict):
    def get(self, name):
        return super(Checked, self).get(name)


def count(number):
    return count(number - 1) if number else 0


@pytest.fixture
def box():
    box = Checked()
    box[1] = 2
    return box


def test_f(box):
    assert f() == count(3)


def test_g():
    assert g()
"""


def left_of(files: dict[str, str], path: str) -> str:
    files = {"m.py": CODE, **files}
    return after(files, delete(files, "m.py::f", hide=(f"{path}::test_f",)))[path]


def test_what_only_names_itself_goes() -> None:
    assert left_of({"tests/test_m.py": HELPERS}, "tests/test_m.py") == (
        "from m import g\n\n\ndef test_g():\n    assert g()\n"
    )


@pytest.mark.parametrize(
    ("more", "is_gone"),
    [
        ({}, True),
        ({"tests/conftest.py": "pytest_plugins = ['tests.timeline']\n"}, False),
        ({"tests/test_other.py": "from tests.timeline import *\n\n\ndef test_other(box):\n    assert box\n"}, False),
    ],
)
def test_fixtures_are_those_of_their_file_whatever_it_is_called(more: dict[str, str], *, is_gone: bool) -> None:
    other = {"tests/test_boxes.py": "def test_boxes():\n    box = 3\n    assert box\n"}
    left = left_of({"tests/timeline.py": HELPERS, **other, **more}, "tests/timeline.py")
    assert ("def box" not in left) is is_gone


FAMILY = """from unittest import TestCase

from m import f, g


class TestF(TestCase):
    \"\"\"Of f.\"\"\"

    def call(self):
        return f()

    def test_f(self):
        self.assertTrue(self.call())


class TestAgain(TestF):
    def call(self):
        return f() + 1


class TestG(TestCase):
    def test_g(self):
        self.assertTrue(g())
"""


def test_a_family_of_test_classes_goes_with_its_only_test() -> None:
    files = {"m.py": CODE, "test_m.py": FAMILY}
    tests = ("test_m.py::TestF::test_f", "test_m.py::TestAgain::test_f")
    text = after(files, delete(files, "m.py::f", hide=tests))["test_m.py"]
    assert (
        text
        == "from unittest import TestCase\n\nfrom m import g\n\n\nclass TestG(TestCase):\n"
        + (FAMILY.partition("class TestG(TestCase):\n")[2])
    )


def test_a_helper_of_one_class_is_none_of_another_with_the_same_name() -> None:
    helper = "    def _make(self, x):\n        return x\n\n"
    test = "    def test_{0}(self):\n        assert m.{0}(self._make(1))\n\n\n"
    one, two = (f"class Test{n.upper()}:\n{helper}{test.format(n)}" for n in "fg")
    files = {"m.py": "def f(x):\n    return x\n\n\ndef g(x):\n    return x\n", "test_m.py": f"import m\n\n\n{one}{two}"}
    more = "    def test_h(self):\n        assert 1\n\n\n"
    files["test_m.py"] = f"import m\n\n\n{one.rstrip()}\n\n{more}{two}"
    left = after(files, delete(files, "m.py::f", hide=("test_m.py::TestF::test_f",)))["test_m.py"]
    assert left == f"import m\n\n\nclass TestF:\n{more}{two}"


@pytest.mark.parametrize(
    ("classes", "is_left"),
    [
        ("class TestG:\n    def _make(self, x):\n        return TestF()._make(x)\n", True),
        ("class TestG:\n    def _make(self, x):\n        return self._make(x)\n", False),
        ("class TestG(TestF):\n    def _make(self, x):\n        return self._make(x)\n", True),
    ],
)
def test_a_helper_that_another_class_uses_stays(classes: str, is_left: bool) -> None:
    own = "class TestF:\n    def _make(self, x):\n        return x\n\n"
    own += "    def test_f(self):\n        assert m.f(self._make(1))\n\n"
    more = "    def test_h(self):\n        assert 1\n\n\n"
    classes += "\n    def test_g(self):\n        assert self._make(1)\n"
    files = {"m.py": "def f(x):\n    return x\n", "test_m.py": f"import m\n\n\n{own}{more}{classes}"}
    left = after(files, delete(files, "m.py::f", hide=("test_m.py::TestF::test_f",)))["test_m.py"]
    assert ("return x\n" in left.partition("class TestG")[0]) is is_left


def test_a_helper_that_a_base_uses_stays() -> None:
    helper = "    def _make(self, x):\n        return x\n\n"
    test = "    def test_{0}(self):\n        assert m.{0}(self._make(1))\n\n"
    base = "class Mixin:\n    def check(self):\n        return self._make(2)\n\n\n"
    own = f"class TestF(Mixin):\n{helper}{test.format('f')}    def test_h(self):\n        assert self.check()\n\n\n"
    files = {
        "m.py": "def f(x):\n    return x\n\n\ndef g(x):\n    return x\n",
        "test_m.py": f"import m\n\n\n{base}{own}class TestG(Mixin):\n{helper}{test.format('g')}",
    }
    left = after(files, delete(files, "m.py::f", hide=("test_m.py::TestF::test_f",)))["test_m.py"]
    assert left.count("def _make") == 2


def test_a_constant_with_its_own_name_in_it_goes() -> None:
    constant = "examples = os.path.join(os.path.dirname(__file__), 'examples')\n\n\n"
    tests = "def test_f():\n    assert m.f(examples)\n\n\ndef test_h():\n    assert 1\n"
    files = {"m.py": "def f(x):\n    return x\n", "test_m.py": f"import os\n\nimport m\n\n{constant}{tests}"}
    left = after(files, delete(files, "m.py::f", hide=("test_m.py::test_f",)))["test_m.py"]
    assert left == "def test_h():\n    assert 1\n"


@pytest.mark.parametrize("is_used_by_sources", [True, False])
def test_a_method_of_an_object_that_sources_may_be_given_stays(is_used_by_sources: bool) -> None:
    fake = "class Fake:\n    def save(self, x):\n        self.x = x\n\n    def show(self):\n        return 1\n\n\n"
    tests = "def test_f():\n    fake = Fake()\n    fake.save(m.f(1))\n    assert fake.x\n\n\n"
    tests += "def test_g():\n    m.g(Fake())\n    assert Fake().show()\n"
    body = "fake.save(1)" if is_used_by_sources else "fake.show()"
    files = {
        "m.py": f"def f(x):\n    return x\n\n\ndef g(fake):\n    {body}\n",
        "test_m.py": f"import m\n\n\n{fake}{tests}",
    }
    left = after(files, delete(files, "m.py::f", hide=("test_m.py::test_f",)))["test_m.py"]
    assert ("def save" in left) is is_used_by_sources


@pytest.mark.parametrize(
    ("test", "is_left"),
    [
        ('    """An example of the docs."""\n    assert m.f(1)\n', True),
        ('    assert m.f(1), "see the docs"\n', True),
        ("    docs = m.f(1)\n    assert docs\n", True),
        ("    # docs\n    assert m.f(docs=1)\n", True),
        ("    assert m.f(docs)\n", False),
        ('    assert m.f(globals()["docs"])\n', False),
        ('    """See.\n\n    >>> m.f(docs)\n    1\n    """\n    assert m.f(1)\n', False),
        ('    assert m.f(f"the {docs}")\n', False),
    ],
)
def test_what_no_code_used_before_stays(test: str, *, is_left: bool) -> None:
    tests = f"docs = 'docs'\n\n\ndef test_f():\n{test}\n\ndef test_g():\n    assert m.g(1)\n"
    files = {
        "m.py": "def f(x=1, docs=1):\n    return x\n\n\ndef g(x):\n    return x\n",
        "test_m.py": f"import m\n\n{tests}",
    }
    left = after(files, delete(files, "m.py::f", hide=("test_m.py::test_f",)))["test_m.py"]
    assert ("docs = 'docs'" in left) is is_left


def test_attributes_of_a_class_are_none_of_another_with_the_same_names() -> None:
    one = "class TestF:\n    a = 'x'\n    b = 'y'\n\n    def test_f(self):\n        assert m.f(self.a)\n\n"
    one += "    def test_h(self):\n        assert m.g(1)\n\n\n"
    two = "class TestG:\n    a = 'z'\n    b = 'u'\n\n    def test_g(self):\n        assert m.g(self.a + self.b)\n"
    files = {"m.py": "def f(x):\n    return x\n\n\ndef g(x):\n    return x\n", "test_m.py": f"import m\n\n\n{one}{two}"}
    left = after(files, delete(files, "m.py::f", hide=("test_m.py::TestF::test_f",)))["test_m.py"]
    assert left.endswith(two)
    own = left.removesuffix(two)
    assert "a = 'x'" not in own
    assert "b = 'y'" in own  # nothing used it before


def test_what_another_class_used_of_its_own_is_no_use() -> None:
    one = "class TestF:\n    a = 'x'\n\n    def test_f(self):\n        assert m.f(self.a)\n\n\n"
    two = "class TestG:\n    a = 'z'\n\n    def test_g(self):\n        assert m.g(1)\n"
    files = {"m.py": "def f(x):\n    return x\n\n\ndef g(x):\n    return x\n", "test_m.py": f"import m\n\n\n{one}{two}"}
    left = after(files, delete(files, "m.py::f", hide=("test_m.py::TestF::test_f",)))["test_m.py"]
    assert left == f"import m\n\n\n{two}"


@pytest.mark.parametrize(
    ("lines", "is_left"),
    [
        ("        assert Box().gone_by == x\n", False),
        ("        if x:\n            return\n        assert Box().gone_by == x\n", True),
        ("        if x:\n            assert Box().gone_by == x\n", True),
        ("        assert x or Box().gone_by == x\n", True),
        ("        assert Box().gone_by == x or x\n", False),
        ("        self.later = lambda: Box().gone_by\n", True),
    ],
)
def test_a_test_that_was_not_run_goes_if_its_helper_always_uses_what_is_gone(lines: str, *, is_left: bool) -> None:
    test = (
        "from m import Box\n\n\nclass TestBox:\n    @pytest.mark.slow\n    def test_a(self, benchmark):\n"
        f"        benchmark(self._check, 1)\n\n    def _check(self, x):\n{lines}\n"
        "    def test_b(self):\n        assert Box()\n"
    )
    source = "class Box:\n    @property\n    def gone_by(self):\n        return 1\n\n    other = 2\n"
    files = {"m.py": source, "test_m.py": f"import pytest\n{test}"}
    left = after(files, delete(files, "m.py::Box.gone_by"))["test_m.py"]
    assert ("_check" in left) is ("def test_a" in left) is is_left
    assert "def test_b" in left


@pytest.mark.parametrize(
    ("head", "more", "is_left"),
    [
        ("with warnings.catch_warnings():", "warnings.simplefilter('ignore', DeprecationWarning)", False),
        ("with suppress(ImportError):", "", False),
        ("with warnings.catch_warnings():", "warnings.warn('here')", True),
        ("with open('x'):", "", True),
    ],
)
def test_a_block_that_only_ignores_warnings_goes_with_what_is_in_it(head: str, more: str, *, is_left: bool) -> None:
    more = f"    {more}\n" if more else ""
    test = f"import warnings\nfrom contextlib import suppress\n\nimport m\n\n# it\n{head}\n{more}    from m import f\n"
    tests = "\n\ndef test_f():\n    assert f()\n\n\ndef test_g():\n    assert m.g()\n"
    files = {"m.py": "def f():\n    return 1\n\n\ndef g():\n    return 2\n", "test_m.py": test + tests}
    left = after(files, delete(files, "m.py::f", hide=("test_m.py::test_f",)))["test_m.py"]
    assert (head in left) is ("# it" in left) is is_left
