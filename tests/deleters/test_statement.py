"""The deterministic problem statement."""

from __future__ import annotations

import pytest

from excise.deleters.registry import get
from excise.deleters.statement import without_examples, write_statement
from excise.extractors.python.codebase import PythonCodebase
from excise.types import Feature, FeatureKind, Repo, Visibility

FILES = {
    "pkg/__init__.py": "from .core import Box, halve\n\n__all__ = ['Box', 'halve']\n",
    "pkg/core.py": (
        "def halve(number, *, exact=False):\n"
        '    """Half of ``number``.\n\n    >>> halve(4)\n    2\n\n    Exact halves are fractions.\n    """\n'
        "    return secret_recipe(number, exact)\n\n\n"
        "def secret_recipe(number, exact):\n    return number / 2 if exact else number // 2\n\n\n"
        "def quarter(number):\n    return halve(halve(number))\n\n\n"
        "class Box:\n"
        '    """Holds one thing."""\n\n'
        "    def __init__(self, thing):\n        self._thing = thing\n\n"
        "    def open(self):\n"
        '        """What is inside."""\n        return self._thing\n\n'
        "    def _shake(self):\n        return 'rattle'\n"
    ),
    "tests/test_core.py": (
        "from pkg.core import Box, halve\n\n\n"
        "def test_halve():\n    assert halve(4) == 2\n\n\n"
        "def test_box():\n    assert Box(1).open() == 1\n    assert Box(1)._shake()\n"
    ),
}
REPO = Repo(repo="pkg", base_commit="0" * 40, tree="1" * 40, source="dir:pkg", version="1.2")


def statement(symbol: str, tests: tuple[str, ...], deleter: str = "remove", **options: object) -> tuple[str, str]:
    codebase = PythonCodebase.from_texts(FILES)
    feature = Feature(
        feature_id="f", kind=FeatureKind.FUNCTION, tier=1, entry=(symbol,), symbols=(symbol,), tests=tests
    )
    deletion = get(deleter).delete(codebase, feature)
    return write_statement(codebase, deletion, REPO, tests, **options)  # type: ignore[arg-type]


def test_a_function_is_named_with_signature_place_docstring_and_callers() -> None:
    text, interface = statement("pkg/core.py::halve", ("tests/test_core.py::test_halve",))
    assert text.startswith("# Bring back `halve`\n\npkg 1.2 used to offer")
    assert "### `pkg/core.py`" in text
    assert "def halve(number, *, exact=False)" in text
    assert "> Half of ``number``." in text
    assert "- `pkg/core.py::quarter`: `return halve(halve(number))`" in text
    assert "- `pkg/__init__.py` offered `halve` as well." in text
    assert "One test that is not in this checkout (from `tests/test_core.py`)" in text
    assert interface == "pkg/core.py: def halve(number, *, exact=False)"


def test_the_code_is_not_in_it() -> None:
    text, _ = statement("pkg/core.py::halve", ("tests/test_core.py::test_halve",))
    assert "secret_recipe" not in text


def test_a_class_comes_with_its_public_members_and_private_ones_that_tests_use() -> None:
    text, interface = statement("pkg/core.py::Box", ("tests/test_core.py::test_box",))
    assert "class Box" in text
    assert "def open(self)" in text
    assert "def _shake(self)" in interface


def test_a_stub_is_called_one() -> None:
    text, _ = statement("pkg/core.py::halve", ("tests/test_core.py::test_halve",), deleter="stub")
    assert text.startswith("# Implement `halve`")


@pytest.mark.parametrize(("visibility", "shown"), [(Visibility.DOCSTRING, True), (Visibility.SIGNATURE, False)])
def test_visibility_decides_about_docstrings(visibility: Visibility, shown: bool) -> None:
    text, _ = statement("pkg/core.py::halve", ("tests/test_core.py::test_halve",), visibility=visibility)
    assert ("Half of" in text) is shown


def test_examples_that_are_hidden_tests_are_left_out() -> None:
    text, _ = statement("pkg/core.py::halve", ("tests/test_core.py::test_halve", "pkg/core.py::pkg.core.halve"))
    assert ">>>" not in text
    assert "Exact halves are fractions." in text


def test_without_examples_keeps_prose() -> None:
    assert without_examples("a\n\n>>> f(1)\n1\n2\n\nb") == "a\n\n\nb".replace("\n\n\n", "\n\n")
