"""The configuration of tools and builds does not name files that are gone."""

from __future__ import annotations

import pytest

from .test_remove_details import after, delete


@pytest.mark.parametrize(
    ("path", "before", "expected"),
    [
        ("pyproject.toml", '[a]\nomit = [\n    "pkg/gone.py",\n    "b.py",\n]\n', '[a]\nomit = [\n    "b.py",\n]\n'),
        ("pyproject.toml", '[a]\nomit = ["pkg/gone.py", "b.py"]\n', '[a]\nomit = ["b.py"]\n'),
        ("pyproject.toml", '[a]\nomit = ["b.py", "pkg/gone.py"]\n', '[a]\nomit = ["b.py"]\n'),
        ("pyproject.toml", '[a]\nomit = ["pkg/gone.py"]\n', '[a]\nomit = ["pkg/gone.py"]\n'),
        ("pyproject.toml", '[a]\nomit = ["pkg/gone.pyx", "b.py"]\n', '[a]\nomit = ["pkg/gone.pyx", "b.py"]\n'),
        ("setup.cfg", "[a]\nomit =\n    pkg/gone.py\n    b.py\n", "[a]\nomit =\n    b.py\n"),
        ("tox.ini", "[a]\ncommands =\n    mypy pkg/gone.py b.py\n", "[a]\ncommands =\n    mypy b.py\n"),
        ("tox.ini", "[a]\ncommands =\n    mypy b.py pkg/gone.py\n", "[a]\ncommands =\n    mypy b.py\n"),
        ("tox.ini", "[a]\ncommands =\n    mypy pkg/gone.py\n", "[a]\ncommands =\n    mypy pkg/gone.py\n"),
        ("MANIFEST.in", "include README.md\r\ninclude pkg/gone.py\r\n", "include README.md\r\n"),
        ("notes.txt", "pkg/gone.py\n", "pkg/gone.py\n"),
    ],
)
def test_lists_of_files_lose_those_that_are_gone(path: str, before: str, expected: str) -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/gone.py": "def f(x):\n    return x\n",
        "pkg/m.py": "def other():\n    return 1\n",
        path: before,
    }
    assert after(files, delete(files, "pkg/gone.py"))[path] == expected
