"""Name resolution across files, the reference graph, and the lookup of test files and lines."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.analysis.suite_files import collected_from


@pytest.fixture(name="project")
def make_project() -> PythonCodebase:
    return PythonCodebase.from_texts(
        {
            "src/pkg/__init__.py": (
                "from .core import *\nfrom .core import Base as Root, helper as help_me\nfrom . import sub\n"
            ),
            "src/pkg/core.py": (
                "__all__ = ['run']\n\ndef helper():\n    return 1\n\ndef run():\n    return helper()\n\n"
                "class Base:\n    def go(self):\n        return self.stop()\n\n"
                "    def stop(self):\n        return 0\n\n"
                "class Child(Base):\n    def go(self):\n        return super().go() + self.stop()\n\nalias = helper\n"
            ),
            "src/pkg/sub/__init__.py": "",
            "src/pkg/sub/deep.py": (
                "import pkg.core as c\nfrom .. import run\nfrom pkg import Root\n\n"
                "def use():\n    import pkg\n    return c.helper() + run() + pkg.help_me()\n\n"
                "def build(x):\n    return Root().go() + x.only_here() + x.get()\n\n"
                "class Odd:\n    def only_here(self):\n        pass\n\n    def get(self):\n        pass\n\n"
                "def through():\n    return c.alias()\n"
            ),
            "ns/plug.py": "def p():\n    return 1\n",
            "ns/other.py": "from ns.plug import p\n\nq = p()\n",
            "tests/helpers.py": "def check():\n    pass\n",
            "tests/test_core.py": (
                "from helpers import check\nfrom pkg import run\n\ndef test_run():\n    check()\n    run()\n"
            ),
        }
    )


CORE, DEEP = "src/pkg/core.py", "src/pkg/sub/deep.py"


@pytest.mark.parametrize(
    ("symbol", "callees"),
    [
        (f"{CORE}::run", {f"{CORE}::helper"}),
        (f"{DEEP}::use", {f"{CORE}::helper", f"{CORE}::run"}),
        (f"{DEEP}::through", {f"{CORE}::helper"}),
        (f"{DEEP}::build", {f"{CORE}::Base", f"{DEEP}::Odd.only_here"}),
        (f"{CORE}::Base.go", {f"{CORE}::Base.stop"}),
        (f"{CORE}::Child.go", {f"{CORE}::Base.go", f"{CORE}::Base.stop"}),
        ("tests/test_core.py::test_run", {"tests/helpers.py::check", f"{CORE}::run"}),
        ("ns/other.py", {"ns/plug.py::p"}),
    ],
)
def test_callees(project: PythonCodebase, symbol: str, callees: set[str]) -> None:
    assert project.callees(symbol) == callees


def test_callers(project: PythonCodebase) -> None:
    assert project.callers(f"{CORE}::helper") == {CORE, f"{CORE}::run", f"{DEEP}::use", f"{DEEP}::through"}
    assert project.callers(f"{CORE}::Base") == {f"{CORE}::Child", f"{CORE}::Child.go", f"{DEEP}::build"}
    assert project.callers("ns/plug.py") == {"ns/other.py"}


@pytest.mark.parametrize(
    ("path", "is_test"),
    [
        ("tests/test_core.py", True),
        ("tests/helpers.py", True),
        ("pkg/tests/__init__.py", True),
        ("pkg/foo_test.py", True),
        ("conftest.py", True),
        ("test_toplevel.py", True),
        ("src/pkg/core.py", False),
        ("pkg/testing.py", False),
        ("pkg/testing/tools.py", False),
        ("pkg/contest.py", False),
        ("pkg/latest/x.py", False),
    ],
)
def test_what_is_a_test(project: PythonCodebase, path: str, is_test: bool) -> None:
    assert project.is_test(path) is is_test


TEST = "def test_it():\n    assert True\n"
CODE = "def work():\n    return 1\n"
CLIENT = "class TestResponse:\n    def get(self):\n        return 1\n"
UNITTEST = "import unittest\n\n\nclass More(unittest.TestCase):\n    def test_it(self):\n        pass\n"


@pytest.mark.parametrize(
    ("files", "packages", "collected", "tests"),
    [
        ({"test_plus/__init__.py": "", "test_plus/core.py": CODE, "tests/test_a.py": TEST}, ["test_plus"], [],
         ["tests/test_a.py"]),
        ({"ab_test/__init__.py": "", "ab_test/core.py": CODE, "ab_test/core_test.py": TEST}, ["ab_test"], [],
         ["ab_test/core_test.py"]),
        ({"ab_test/core.py": CODE, "ab_test/tests/test_a.py": TEST}, ["ab_test"], ["ab_test/tests/test_a.py"],
         ["ab_test/tests/test_a.py"]),
        ({"pkg/core.py": CODE, "pkg_tests/tools.py": CODE, "pkg_tests/test_a.py": TEST}, ["pkg", "pkg_tests"], [],
         ["pkg_tests/tools.py", "pkg_tests/test_a.py"]),
        ({"pkg/core.py": CODE, "test_pkg/checks.py": CODE}, ["pkg", "test_pkg"], ["test_pkg/checks.py"],
         ["test_pkg/checks.py"]),
        ({"pkg/core.py": CODE, "test_pkg/tools.py": CODE}, ["pkg"], [], ["test_pkg/tools.py"]),
        ({"src/kit/test.py": CLIENT, "src/kit/core.py": CODE}, ["kit"], [], []),
        ({"src/kit/tests.py": TEST, "src/kit/core.py": "from .tests import test_it\n"}, ["kit"], [], []),
        ({"src/kit/tests.py": TEST, "src/kit/core.py": CODE}, ["kit"], [], ["src/kit/tests.py"]),
        ({"src/kit/tests.py": UNITTEST, "src/kit/test_more.py": "from .tests import More\n"}, ["kit"], [],
         ["src/kit/tests.py", "src/kit/test_more.py"]),
        ({"src/kit/tests.py": TEST, "src/kit/core.py": "from .tests import test_it\n"}, ["kit"], ["src/kit/tests.py"],
         ["src/kit/tests.py"]),
        ({"kit/core.py": CODE, "kit/checks.py": TEST}, ["kit"], ["kit/checks.py"], ["kit/checks.py"]),
        ({"kit/testutils.py": CODE, "kit/a_test.py": "import kit.testutils\n"}, ["kit"], ["kit/a_test.py"],
         ["kit/testutils.py", "kit/a_test.py"]),
        ({"kit/testutils.py": CODE, "kit/core.py": "import kit.testutils\n"}, ["kit"], [], []),
        ({"kit/testing.py": CODE, "kit/core.py": CODE}, ["kit"], [], []),
        ({"test.py": CODE}, ["test"], [], []),
        ({"tests.py": CODE, "kit.py": CODE}, ["kit"], [], ["tests.py"]),
    ],
)  # fmt: skip
def test_names_alone_make_no_tests(
    files: dict[str, str], packages: list[str], collected: list[str], tests: list[str]
) -> None:
    code = PythonCodebase.from_texts(files, collected=collected, packages=packages)
    for same in (code, pickle.loads(pickle.dumps(code))):
        assert [path for path in files if same.is_test(path)] == tests


def test_examples_in_documentation_make_no_tests_of_code() -> None:
    ids = [
        "tests/test_a.py::test_a[1.5]",
        "tests/test_b.py::TestB::test_b",
        "pkg/core.py::pkg.core.f",
        "checks.py::test",
    ]
    assert collected_from(ids) == {"tests/test_a.py", "tests/test_b.py", "checks.py"}


def test_names_of_modules(project: PythonCodebase) -> None:
    assert project.names.name_of(DEEP) == "pkg.sub.deep"
    assert project.names.name_of("src/pkg/sub/__init__.py") == "pkg.sub"
    assert project.names.absolute("pkg.core", "tests/test_core.py") == CORE
    assert project.names.absolute("core", "tests/test_core.py") is None
    assert project.names.relative(2, "core", DEEP) == CORE
    assert project.names.relative(9, "core", DEEP) is None


def test_import_cycles_end() -> None:
    code = PythonCodebase.from_texts(
        {"a.py": "from b import x\nfrom b import *\n", "b.py": "from a import x\nfrom a import *\n"}
    )
    assert code.resolver.name("a.py", "x") is None


def test_lines_to_symbols() -> None:
    source = (
        "import os\n\n"  # 1, 2
        "class A:\n    x = 1\n\n    @property\n    def m(self):\n        '''Doc.'''\n        return 1\n\n"  # 3-10
        "def f(): return 2\n"  # 11
        "def g(a,\n      b):\n    def inner():\n        pass\n    return inner\n"  # 12-16
    )
    code = PythonCodebase.from_texts({"m.py": source})
    hit = lambda *lines: code.symbols_of_lines("m.py", lines)  # noqa: E731
    assert hit(1) == {"m.py"}
    assert hit(4) == hit(6) == hit(7) == {"m.py", "m.py::A"}
    assert hit(9) == {"m.py", "m.py::A", "m.py::A.m"}
    assert hit(11) == {"m.py", "m.py::f"}
    assert hit(12) == {"m.py"}
    assert hit(15, 9) == {"m.py", "m.py::g", "m.py::A", "m.py::A.m"}
    assert hit(0, -3, 900) <= {"m.py", "m.py::g"}
    assert hit() == frozenset()
    assert code.symbols_of_lines("none.py", [1]) == frozenset()
    assert code.is_one_liner("m.py::f")
    assert not code.is_one_liner("m.py::g")


def test_parse_reads_what_it_can(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"def f():\n    pass\n")
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    os.symlink("a.py", tmp_path / "link.py")
    os.symlink("nowhere.py", tmp_path / "broken.py")
    (tmp_path / "a.py").chmod(0o755)
    code = PythonCodebase.parse(tmp_path, ["a.py", "link.py", "broken.py", "missing.py", "readme.md"])
    assert set(code.modules) == {"a.py"}
    assert code.executable == {"a.py"}
    assert set(code.manifests) == {"pyproject.toml"}
    assert set(pickle.loads(pickle.dumps(code)).symbols()) == set(code.symbols())


def test_what_reads_a_property_does_not_call_its_setter() -> None:
    source = (
        "class Box:\n    @property\n    def f(self):\n        return 1\n\n"
        "    @f.setter\n    def f(self, value):\n        pass\n\n"
        "    def read(self):\n        return self.f\n\n    def write(self):\n        self.f = 2\n\n"
        "    def add(self):\n        self.f += 2\n\n    def drop(self):\n        del self.f\n\n"
        "    def deep(self):\n        self.f.g = 1\n"
    )
    codebase = PythonCodebase.from_texts({"m.py": source})
    assert codebase.callers("m.py::Box.f#2") == {"m.py::Box.write", "m.py::Box.add", "m.py::Box.drop"}
    assert codebase.callers("m.py::Box.f") >= {"m.py::Box.read", "m.py::Box.deep", "m.py::Box.write"}
    assert codebase.group("m.py::Box.f#2") == ("m.py::Box.f#2",)
    assert codebase.group("m.py::Box.f") == ("m.py::Box.f", "m.py::Box.f#2")
