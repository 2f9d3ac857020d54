"""Documents do not ask for the docstrings of what is gone, and keep no pages and sections that only did that."""

from __future__ import annotations

import pytest

from .test_remove_details import after, delete

GONE = "def gone_by(x):\n    return x\n\n\n"


def left_of(document: str, source: str = GONE, path: str = "docs/api.rst", symbol: str = "gone_by") -> str | None:
    files = {"pkg/__init__.py": "", "pkg/m.py": source + "def other():\n    return 1\n", path: document}
    return after(files, delete(files, f"pkg/m.py::{symbol}")).get(path)


def test_directives_for_what_is_gone_go() -> None:
    rest = ".. autofunction:: pkg.m.other\n\ngone_by() is fast.\n"
    heading = "API\n===\n\n"
    assert left_of(f"{heading}.. autofunction:: pkg.m.gone_by\n   :noindex:\n\n{rest}") == heading + rest
    entries = ".. autofunction:: pkg.m.other\n{}\n\nMore\n====\n"
    kept = left_of(entries.format(".. autofunction:: pkg.m.gone_by\n"))
    assert kept == entries.format(""), "a heading keeps the blank lines above it"


@pytest.mark.parametrize(
    ("directive", "is_gone"),
    [
        (".. autofunction:: pkg.m.length", True),
        (".. module:: pkg.m\n.. autofunction:: length", True),
        (".. currentmodule:: pkg.n\n.. autofunction:: length", False),
        ("::: pkg.m.length", True),
        ("::: other.length", False),
    ],
)
def test_a_name_that_something_else_has_is_gone_where_its_module_says_so(directive: str, *, is_gone: bool) -> None:
    source = "def length(x):\n    return x\n\n\ndef first(length):\n    return length\n\n\n"
    left = left_of(f"Text.\n\n{directive}\n", source, symbol="length")
    assert left is not None
    assert ("length" not in left) is is_gone


def test_other_names_that_go_along_lose_their_directives() -> None:
    source = "def gone_by(x):\n    return x\n\n\n#: All of them.\nalias = gone_by\n\n\n"
    assert left_of("Text.\n\n.. autodata:: pkg.m.alias\n\nMore.\n", source) == "Text.\n\nMore.\n"


@pytest.mark.parametrize(
    ("inside", "is_gone"),
    [
        (".. autofunction:: pkg.m.gone_by\n", True),
        ("Those can be used as the `x` argument of\n:func:`f`.\n\n.. autofunction:: pkg.m.gone_by\n", True),
        ("One.\n\nTwo.\n\n.. autofunction:: pkg.m.gone_by\n", False),
        (".. autofunction:: pkg.m.gone_by\n\n.. autofunction:: pkg.m.other\n", False),
        (".. autofunction:: pkg.m.gone_by\n\n* a list\n", False),
        (".. autofunction:: pkg.m.gone_by\n\nInner\n~~~~~\n\nText.\n", False),
    ],
)
def test_a_section_goes_that_only_asked_for_what_is_gone(inside: str, *, is_gone: bool) -> None:
    left = left_of(f"API\n===\n\nFirst\n-----\n\nText.\n\nLast\n----\n\n{inside}\nNext\n----\n\nText.\n")
    assert left is not None
    assert ("Last\n----" not in left) is is_gone
    assert left.endswith("Next\n----\n\nText.\n")


def test_a_page_goes_with_its_entries() -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/m.py": GONE,
        "pkg/n.py": "x = 1\n",
        "docs/api/m.rst": "=======\n pkg.m\n=======\n\n.. contents::\n    :local:\n.. currentmodule:: pkg.m\n\n"
        ".. automodule:: pkg.m\n    :members:\n",
        "docs/m.md": "# m\n\n::: pkg.m.gone_by\n",
        "docs/api/index.rst": "API\n===\n\n.. toctree::\n\n    n\n    m\n",
        "docs/index.rst": "Top\n===\n\n.. toctree::\n\n    The m <api/m>\n    api/n\n    api/mm\n",
        "mkdocs.yml": "nav:\n  - M: m.md\n  - n.md\n",
    }
    left = after(files, delete(files, "pkg/m.py"))
    assert not {"docs/api/m.rst", "docs/m.md"} & left.keys()
    assert left["docs/api/index.rst"] == "API\n===\n\n.. toctree::\n\n    n\n"
    assert left["docs/index.rst"] == "Top\n===\n\n.. toctree::\n\n    api/n\n    api/mm\n"
    assert left["mkdocs.yml"] == "nav:\n  - n.md\n"
