"""Stubs of functions that run while modules are imported are refused: nothing of the project could be imported."""

from __future__ import annotations

import pytest

from excise.deleters.python.stub import Stub
from excise.errors import DeletionRefused
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.types import Feature, FeatureKind

CODE = """def low(text):
    return text.lower()


class Table:
    def __init__(self, rows):
        self.rows = rows

    def add(self, row):
        self.rows.append(row)
"""


def refusal(after: str, symbol: str = "low", other: str = "", path: str = "other.py") -> str:
    """Why a stub of ``symbol`` is refused in a file that ends with ``after``; empty if it is not."""
    files = {"pkg/__init__.py": "", "pkg/m.py": f"{CODE}\n\n{after}", f"pkg/{path}": other}
    symbols = (f"pkg/m.py::{symbol}",)
    feature = Feature(feature_id="f", kind=FeatureKind.FUNCTION, tier=1, entry=symbols, symbols=symbols, tests=())
    try:
        Stub().delete(PythonCodebase.from_texts(files), feature)
    except DeletionRefused as refused:
        return f"{refused.reason}: {refused}"
    return ""


@pytest.mark.parametrize(
    ("after", "symbol"),
    [
        ("NAMES = dict((low(name), name) for name in ('A', 'B'))\n", "low"),
        ("@low\ndef use():\n    pass\n", "low"),
        ("class Own:\n    name = low('A')\n", "low"),
        ("def use(name=low('A')):\n    pass\n", "low"),
        ("TABLE = Table([])\n", "Table"),
    ],
)
def test_what_is_called_at_import_is_refused(after: str, symbol: str) -> None:
    assert "is called while the module is imported" in refusal(after, symbol)


@pytest.mark.parametrize(
    ("after", "symbol"),
    [
        ("USED = low\n", "low"),
        ("def use():\n    return low('A')\n", "low"),
        ("if __name__ == '__main__':\n    print(low('A'))\n", "low"),
        ("make = lambda: low('A')\n", "low"),
        ("TABLE = Table([])\n", "Table.add"),
        ("KIND = Table\n", "Table"),
        ("TABLE = Table.add\nlow = Table.low('A')\n", "low"),
    ],
)
def test_what_is_not_called_is_not(after: str, symbol: str) -> None:
    assert refusal(after, symbol) == ""


def test_other_modules_count_and_tests_do_not() -> None:
    other = "from pkg.m import low\n\nNAME = low('A')\n"
    assert refusal("", other=other).startswith("import_time_reference: pkg/other.py:3: `low` is called")
    assert refusal("", other=other, path="test_m.py") == ""
