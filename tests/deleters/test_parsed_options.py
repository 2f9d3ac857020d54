"""Options of command lines stay with what obeys them."""

from __future__ import annotations

import pytest

from excise.extractors.python.analysis.codebase import PythonCodebase

from .planned_deletions import delete_symbol


@pytest.mark.parametrize(
    ("rest", "is_left"),
    [
        ("", True),
        ("def main(args):\n    return args.list_fixes\n", False),
        ("def check(parser, args):\n    parser.add_argument('x')\n    return args.list_fixes or args.all\n", True),
    ],
)
def test_an_option_that_nothing_obeys_any_more(rest: str, *, is_left: bool) -> None:
    source = "def gone(args):\n    return 1 if args.list_fixes else 2\n\n\n"
    source += f"def make(parser):\n    parser.add_argument('--list-fixes')\n\n\n{rest}"
    files = {"pkg/__init__.py": "", "pkg/m.py": source, "test_m.py": "def test_m():\n    assert 1\n"}
    deletion = delete_symbol(PythonCodebase.from_texts(files), "pkg/m.py::gone", ("test_m.py::test_m",))
    assert any("--list-fixes" in text for _, text in deletion.uses_left) is is_left


@pytest.mark.parametrize(
    ("rest", "is_left"),
    [
        ("", True),
        ("def main(args):\n    return args.format == 'quiet'\n", True),
        ("def main(args):\n    args.format = 'quiet'\n", True),
        ("def main(args):\n    return args.other == 'quiet'\n", False),
        ("def main(args):\n    return args.format != 'quiet'\n", False),
        ("def main(args):\n    return {'quiet': 1}[args.format]\n", False),
        (None, False),
    ],
)
def test_a_value_of_an_option_whose_branch_is_gone(rest: str | None, *, is_left: bool) -> None:
    source = "def gone(args):\n    return 2\n\n\ndef show(args):\n    if args.format == 'quiet':\n"
    source += "        print(gone(args))\n    elif args.format == 'long':\n        print(args)\n\n\n"
    source += f"def make(parser):\n    parser.add_argument('--format', choices=('long', 'quiet'))\n\n\n{rest}"
    source = source.replace(", 'quiet')", ", 'other')") if rest is None else source
    files = {"pkg/__init__.py": "", "pkg/m.py": source, "test_m.py": "def test_m():\n    assert 1\n"}
    deletion = delete_symbol(PythonCodebase.from_texts(files), "pkg/m.py::gone", ("test_m.py::test_m",))
    assert any("'quiet'" in text for _, text in deletion.uses_left) is is_left
