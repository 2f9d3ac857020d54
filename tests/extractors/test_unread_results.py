"""Functions whose results nobody reads."""

from __future__ import annotations

import pytest

from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.execution.unread_results import is_unread


@pytest.mark.parametrize(
    ("use", "doc", "unread"),
    [
        ("    m.clear(1)\n", "", True),
        ("    await clear(\n        1)\n", "Clears.", True),
        ("    m.clear(1)\n", "Returns whether it did.", False),
        ("    m.clear(1)\n    assert m.clear(2)\n", "", False),
        ("    m.clear(1)\n    return m.clear\n", "", False),
        ("    m.clear(1).close()\n", "", False),
        ("    pass\n", "", False),
        ("    assert list(\n        clear(1)\n    )\n", "", False),
        ("    return [\n        clear(n)\n        for n in (1, 2)\n    ]\n", "", False),
        ("    return (\n        clear(1)\n        + 1\n    )\n", "", False),
        ("    clear(1) or m.gone()\n", "", False),
        ("    clear(1); m.clear(\n        n=2\n    )\n", "", True),
    ],
)
def test_results_are_unread_where_all_calls_are_statements(use: str, doc: str, *, unread: bool) -> None:
    files = {
        "m.py": f'def clear(n):\n    """{doc}"""\n    return n > 1\n',
        "test_m.py": f"import m\nfrom m import clear\n\n\nasync def test_clear():\n{use}",
    }
    codebase = PythonCodebase.from_texts(files)
    assert is_unread(codebase, codebase.symbols()["m.py::clear"]) is unread


@pytest.mark.parametrize(("result", "unread"), [("None", True), ("bool", False)])
def test_results_that_a_head_tells_of_are_read(result: str, *, unread: bool) -> None:
    files = {"m.py": f"def clear(n) -> {result}:\n    n.clear()\n", "test_m.py": "from m import clear\nclear([])\n"}
    codebase = PythonCodebase.from_texts(files)
    assert is_unread(codebase, codebase.symbols()["m.py::clear"]) is unread
