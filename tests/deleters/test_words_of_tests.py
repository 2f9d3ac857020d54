"""Statements quote what hidden tests say of themselves."""

from __future__ import annotations

from excise.deleters.statement.problem_statement import write_statement
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.types import Visibility

from .planned_deletions import REPO, delete_symbol


def test_tests_out_of_sight_are_quoted_where_there_is_no_example() -> None:
    files = {
        "m.py": 'def gone(x):\n    """Clear, then bind."""\n    return x\n',
        "test_m.py": (
            'from m import gone\n\n\ndef test_gone():\n    """gone() keeps the values\n'
            '    of the configuration.\n\n    More.\n    """\n'
            '    assert gone(1)\n\n\ndef test_short():\n    """It works."""\n    assert gone(2)\n'
        ),
    }
    codebase, tests = PythonCodebase.from_texts(files), ("test_m.py::test_gone", "test_m.py::test_short")
    deletion = delete_symbol(codebase, "m.py::gone", tests, "stub")
    text = write_statement(codebase, deletion, REPO, tests).text
    assert "descriptions:\n\n- gone() keeps the values of the configuration.\n\n## How" in text
    assert "descriptions" not in write_statement(codebase, deletion, REPO, tests, examples=["gone(1)  # 1"]).text
    assert "descriptions" not in write_statement(codebase, deletion, REPO, tests, Visibility.SIGNATURE).text
