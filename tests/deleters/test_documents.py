"""Documents do not ask for the docstrings of what is gone, and keep no pages and sections that only did that."""

from __future__ import annotations

from pathlib import Path

import pytest

from excise.deleters.statement.lost_text import removed_text
from excise.deleters.statement.problem_statement import write_statement
from excise.extractors.python.analysis.codebase import PythonCodebase

from .planned_deletions import REPO, delete_symbol
from .test_remove_details import after, delete

GONE = "def gone_by(x):\n    return x\n\n\n"


def left_of(document: str, source: str = GONE, path: str = "docs/api.rst", symbol: str = "gone_by") -> str | None:
    files = {"pkg/__init__.py": "", "pkg/m.py": source + "def other():\n    return 1\n", path: document}
    return after(files, delete(files, f"pkg/m.py::{symbol}")).get(path)


def test_directives_for_what_is_gone_go() -> None:
    rest = ".. autofunction:: pkg.m.other\n\nIt is fast.\n"
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


IMPORT = "from pkg.m import other, gone_by\n"


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("It is fast. See gone_by() for more.\n", "It is fast.\n"),
        ("One.\n\nSee gone_by() for more.\n\nTwo.\n", "One.\n\nTwo.\n"),
        ("* one\n* `gone_by`: two\n* three\n", "* one\n* three\n"),
        ("One. So it is used:\n\n```python\ngone_by(1)\n```\n\nTwo.\n", "One.\n\nTwo.\n"),
        ("One.\n\nSo it is used::\n\n    x = 1\n\n    gone_by(x)\n\nTwo.\n", "One.\n\nTwo.\n"),
        (
            f"::\n\n    {IMPORT}\n    # first\n    other()\n\n    # then\n    y = gone_by(2)\n    print(y)\n\nTwo.\n",
            "::\n\n    from pkg.m import other\n\n    # first\n    other()\n\nTwo.\n",
        ),
        (
            ">>> from pkg.m import gone_by\n>>> other()\n1\n>>> gone_by(\n...     2)\n2\n\nTwo.\n",
            ">>> other()\n1\n\nTwo.\n",
        ),
        (".. code-block:: python\n   :linenos:\n\n   gone_by(1)\n\nTwo.\n", "Two.\n"),
        ("```bash\ngone_by --help\n```\n", "```bash\ngone_by --help\n```\n"),
        ("```\nif gone_by(\n```\n", "```\nif gone_by(\n```\n"),
        (
            "Text.\n\nUse\n---\n\n::\n\n    gone_by(1)\n\nNext\n----\n\nMore.\n",
            "Text.\n\nNext\n----\n\nMore.\n",
        ),
        ("Text.\n\nUse\n---\n\nSee gone_by().\n\nNext\n----\n\nMore.\n", "Text.\n\nNext\n----\n\nMore.\n"),
    ],
)
def test_text_and_examples_that_name_it_go(before: str, expected: str) -> None:
    assert left_of(before, path="docs/use.rst") == expected
    assert left_of(before, path="CHANGELOG.rst") == before


OTHER = GONE + "def other():\n    return 1\n"


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("Use it:\n\n```python\n>>> gone_by(2)\n4\n```\n\nEnd.\n", "End.\n"),
        (
            "```python\n# make it\nfrom pkg.m import gone_by, other\n\ngone_by(1)\n\n\n# then\nother()\n```\n\n"
            "A. See gone_by().\n",
            "```python\n# make it\nfrom pkg.m import other\n\n# then\nother()\n```\n\nA.\n",
        ),
        ("a | b\n--- | ---\ngone_by | x\nother | y\n\nSee gone_by().\n", "a | b\n--- | ---\nother | y\n"),
        ("Names:\ngone_by - does it\nother - does more\n", "Names:\nother - does more\n"),
        ("* fast\n* used so:\n\n```python\ngone_by(1)\n```\n", "* fast\n* used so:\n"),
        ("So:\n\n```\ngone_by(1)\n```\n\n```\nother()\n```\n", "So:\n\n```\nother()\n```\n"),
        ("<p>\nSee gone_by().\n</p>\n", "<p>\n</p>\n"),
        ("<p>See gone_by().</p>\n", "<p>See gone_by().</p>\n"),
        ("A. See gone_by(). And\r\nmore of it.\r\n", "A. And more of it.\r\n"),
        ("```python\nx = 1; y = 2\ngone_by(x)\n```\n", "```python\nx = 1; y = 2\ngone_by(x)\n```\n"),
        ("```python\ny = other()\ngone_by(1)\n```\n", "```python\ny = other()\n```\n"),
        ("```python\ny = other()\ngone_by(y)\n```\n\nA.\n", "A.\n"),
        ("```python\ngone_by = other()\nprint(gone_by)\n```\n", "```python\ngone_by = other()\nprint(gone_by)\n```\n"),
        ("### Build\n\nx\n\n# Use\n\nSee gone_by().\n\n## More\n\ny\n", "### Build\n\nx\n\n# Use\n\n## More\n\ny\n"),
        ("# pkg\n\nSee gone_by().\n", "# pkg\n"),
        ("A.\n\nUse `a`, `gone_by()`, `b`, and `c`.", "A.\n\nUse `a`, `b`, and `c`."),
        ("Use ``a``, :func:`b` or ``gone_by``.\n\nA.\n\n", "Use ``a`` or :func:`b`.\n\nA.\n\n"),
        ("```python\nbox = gone_by(1)\n```\n\nThen:\n\n```python\nbox.open()\n```\n\nA.\n", "A.\n"),
        (
            "```python\nbox = gone_by(1)\n```\n\n```python\nbox = other()\nbox.open()\n```\n",
            "```python\nbox = other()\nbox.open()\n```\n",
        ),
        ("```python\ndef f(x):\n    return x\n\ngone_by(f)\n```\n\nA.\n", "A.\n"),
        ("| A | `a <u>`_, |\n|   | `gone_by <u>`_, |\n|   | `b <u>`_ |\n", "| A | `a <u>`_, |\n|   | `b <u>`_ |\n"),
        ("| A | `gone_by <u>`_, |\n|   | `b <u>`_ |\n", "| A | `gone_by <u>`_, |\n|   | `b <u>`_ |\n"),
        ("A.\n\nUse `a` or `gone_by`.\n", "A.\n\nUse `a`.\n"),
        ("A.\n\nUse both `gone_by` and `a` for it.\n", "A.\n\nUse `a` for it.\n"),
        ("A.\n\n`a` and `gone_by` do it. It is so between `a` and `gone_by`.\n", "A.\n"),
        ("A.\n\nThat `a` or `gone_by` are fast.\n", "A.\n"),
        ("A:\n\n- The `gone_by` function is fast.\n- `a` is, too. Not\n  so gone_by().\n", "A:\n\n- `a` is, too.\n"),
        ("1. Call gone_by(). Then\n   call it.\n\n2. End.\n", "1. Then call it.\n\n2. End.\n"),
        ("A.\n\n.. seealso::\n\n   * :func:`gone_by`\n   * :func:`a`\n", "A.\n\n.. seealso::\n\n   * :func:`a`\n"),
        ("A.  See gone_by().  So do\nit so::\n\n    other()\n", "A. So do it so::\n\n    other()\n"),
        ("A.\n\nUse `a`, `b` or `gone_by`, as gone_by says.\n", "A.\n"),
        ("A.\n\nCall gone_by(). It is fast. Others are, too.\n", "A.\n\nOthers are, too.\n"),
        ("A.\n\nCall it. Or gone_by(). It is fast.\n", "A.\n\nCall it. It is fast.\n"),
        ("A.\n\nCall gone_by(). This package is fast.\n", "A.\n\nThis package is fast.\n"),
        ("```python\ny = other()\ny.add(gone_by)\nprint(y)\n```\n\nA.\n", "A.\n"),
        ("```python\n>>> y = other()\n>>> y.add(gone_by)\n1\n>>> y\n```\n", "```python\n>>> y = other()\n>>> y\n```\n"),
        ("See gone_by().\n", "See gone_by().\n"),
        (".. py:function:: gone_by(x)\n\n   Does it.\n\n.. py:function:: other()\n", ".. py:function:: other()\n"),
    ],
)  # fmt: skip
def test_what_is_no_running_text_stays_whole(before: str, expected: str) -> None:
    assert left_of(before, source=OTHER, path="docs/use.md") == expected


def test_an_item_that_begins_with_a_plain_word_stays() -> None:
    text = "- install the package\n- install(): does it\n"
    source = OTHER.replace("gone_by", "install")
    assert left_of(text, source=source, path="docs/use.md", symbol="install") == "- install the package\n"


@pytest.mark.parametrize("word", ["", "a"])
def test_many_dots_cost_no_time(word: str) -> None:
    text = f"{f'{word}.' * 200_000} See total().\n"
    assert left_of(text, source=OTHER.replace("gone_by", "total"), path="docs/use.md", symbol="total") is not None


@pytest.mark.parametrize("data", [b"Mid \xff. See gone_by().\n", b"Mid \x00. See gone_by().\n"])
def test_a_document_that_is_no_text_stays_as_it_is(tmp_path: Path, data: bytes) -> None:
    for path, content in {"pkg/m.py": OTHER.encode(), "docs/use.md": data}.items():
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_bytes(content)
    codebase = PythonCodebase.parse(tmp_path, ["docs/use.md", "pkg/m.py"])
    assert "docs/use.md" not in delete_symbol(codebase, "pkg/m.py::gone_by", ()).source_patch


def test_entries_of_other_lists_than_tables_of_contents_stay() -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/m.py": GONE,
        "docs/m.rst": "The m\n=====\n\n.. automodule:: pkg.m\n",
        "docs/index.rst": "Top\n===\n\n.. toctree::\n\n   m\n   n\n\nTree::\n\n   m\n   n\n",
    }
    left = after(files, delete(files, "pkg/m.py"))
    assert left["docs/index.rst"] == "Top\n===\n\n.. toctree::\n\n   n\n\nTree::\n\n   m\n   n\n"


def test_sentences_that_stay_are_not_told_as_gone() -> None:
    text = "# p\n\nIt is fast. See gone_by() for more than\nthat. And it is good for all.\n"
    files = {"pkg/__init__.py": "", "pkg/m.py": OTHER, "README.md": text}
    deletion = delete(files, "pkg/m.py::gone_by")
    codebase = PythonCodebase.from_texts(files)
    told = removed_text({"README.md": files["README.md"]}, codebase, deletion.removed, deletion.source_patch)
    assert told == {"README.md": "See gone_by() for more than that."}


def test_examples_that_docstrings_lose_are_told() -> None:
    user = 'def other():\n    """First. See gone_by() too.\n\n    >>> gone_by(1)\n    1\n    """\n    return 1\n'
    files = {"pkg/__init__.py": "", "pkg/m.py": GONE + user}
    deletion = delete(files, "pkg/m.py::gone_by")
    told = removed_text({}, PythonCodebase.from_texts(files), deletion.removed, deletion.source_patch)
    assert told == {"pkg/m.py": "See gone_by() too.\n\n>>> gone_by(1)\n1"}


def test_blank_lines_that_other_text_takes_the_place_of_are_no_text() -> None:
    patch = "diff --git a/a.md b/a.md\n--- a/a.md\n+++ b/a.md\n@@ -1,3 +1,2 @@\n One.\n-\n-\n+Two.\n"
    assert removed_text({"a.md": "One.\n\n\n"}, PythonCodebase.from_texts({}), [], patch) == {}


def test_what_is_gone_from_documents_is_in_the_statement() -> None:
    text = "# pkg\n\nCall `gone_by` with a number:\n\n```python\nprint(gone_by(1))\n```\n\nIt knows more.\n"
    documents = {"README.md": text, "README": text}
    files = {"pkg/__init__.py": "", "pkg/m.py": GONE + "def other():\n    return 1\n", **documents}
    codebase, tests = PythonCodebase.from_texts(files), ("tests/test_m.py::test_m",)
    deletion = delete_symbol(codebase, "pkg/m.py::gone_by", tests)
    statement = write_statement(codebase, deletion, REPO, tests, documents=documents).text
    assert (
        "## What the documentation says\n\n"
        "From `README`, `README.md` (removed from there as well; it need not be restored):\n\n"
        "> Call `gone_by` with a number:\n> \n> ```python\n> print(gone_by(1))\n> ```\n"
    ) in statement
    assert "It knows more" not in statement


def test_documents_keep_more_text_than_a_statement_can_show() -> None:
    text = "One.\n\n" + "See gone_by() for more than that.\n\n" * 400
    assert left_of(text, path="README.rst") == text


def test_a_module_that_goes_since_nothing_is_left_has_no_page_and_the_statement_says_so() -> None:
    page = "The m\n=====\n\n.. automodule:: pkg.m\n   :members:\n"
    files = {"pkg/__init__.py": "", "pkg/m.py": GONE, "docs/m.rst": page}
    deletion = delete(files, "pkg/m.py::gone_by")
    assert after(files, deletion).keys() == {"pkg/__init__.py"}
    text = write_statement(PythonCodebase.from_texts(files), deletion, REPO, ()).text
    assert "### `pkg/m.py` (the file is gone as well)" in text


def test_links_to_pages_that_are_gone_go_from_lists() -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/m.py": GONE + "def other():\n    return 1\n",
        "docs/gone.md": "# Gone\n\n::: pkg.m.gone_by\n",
        "docs/index.md": "# API\n\n- [Gone](gone.md)\n- [Other](other.md)\n* [G](./gone.md#g)\n- See [it](gone.md).\n",
        "docs/other.md": "# Other\n",
    }
    left = after(files, delete(files, "pkg/m.py::gone_by"))
    assert "docs/gone.md" not in left
    assert left["docs/index.md"] == "# API\n\n- [Other](other.md)\n- See [it](gone.md).\n"


@pytest.mark.parametrize(
    ("heading", "is_gone"),
    [
        ("gone_by()", True),
        ("``pkg.m.gone_by(x)``", True),
        ("The gone_by function", True),
        ("gone_by - what goes", False),
        ("Who is gone by noon", False),
        ("gone_by and other", False),
    ],
)
def test_a_section_whose_heading_is_the_name_goes(heading: str, *, is_gone: bool) -> None:
    section = f"{heading}\n{'-' * 30}\n\nIt is slow.\n\nMore\n~~~~\n\nIt waits.\n\n"
    document = "API\n===\n\nText.\n\n{}Others\n------\n\nMore.\n"
    left = left_of(document.format(section)) or document.format(section)
    assert (left == document.format("")) is is_gone


@pytest.mark.parametrize(
    ("heading", "more"),
    [
        ("## `gone_by()` - `other()`", ""),
        ("## `gone_by`: replaced by `other`", ""),
        ("## `gone_by` - and all the others", "### `other`\n\nIt stays.\n\n"),
        ("## `gone_by` - what goes", ""),
        ("## *gone_by*: what goes", ""),
    ],
)
def test_a_heading_that_says_more_heads_a_section_about_one_thing(heading: str, more: str) -> None:
    document = "# API\n\nText.\n\n## More\n\nMore.\n\n"
    files = {"pkg/__init__.py": "", "pkg/m.py": GONE, "README.md": f"{document}{heading}\n\nIt is slow.\n\n{more}"}
    left = after(files, delete(files, "pkg/m.py::gone_by"))["README.md"]
    assert (left == document.rstrip() + "\n") is heading.endswith("what goes"), left


def test_paragraphs_below_an_item_go_with_it() -> None:
    item = "* ``gone_by(x: int) -> int``\n\n  Gives it back.\n\n  It is slow.\n\n"
    document = "API\n===\n\n* ``first()``\n\n  One.\n\n{}* ``other()``\n\n  Two.\n\nMore.\n"
    assert left_of(document.format(item)) == document.format("")


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (
            "More:\n\n``gone_by``:\n    It says so.\n\n    And more.\n\n``other``:\n    Else.\n",
            "More:\n\n``other``:\n    Else.\n",
        ),
        ("More:\n\n``x.gone_by(**kw)``:\n    It says so.\n\nEnd.\n", "More:\n\nEnd.\n"),
    ],
)
def test_terms_go_with_their_definitions(before: str, expected: str) -> None:
    assert left_of(before) == expected


def test_what_an_example_printed_goes_with_its_last_statement_and_imports_lose_names() -> None:
    example = (
        "# Box\n\nAll together:\n\n```python\nfrom pkg import Big, small\n\na = small()\n"
        "for x in gone_by(Big()):\n    print(x)\n```\n"
    )
    rest = "\nOutput:\n\n```\n1\n```\n\nEnd.\n"
    left = left_of(example + rest, path="README.md")
    assert left == "# Box\n\nAll together:\n\n```python\nfrom pkg import small\n\na = small()\n```\n\nEnd.\n"
    more = example.replace("    print(x)\n", "    print(x)\nprint(a)\n")
    assert left_of(more + rest, path="README.md") == (
        "# Box\n\nAll together:\n\n```python\nfrom pkg import small\n\na = small()\nprint(a)\n```\n" + rest
    )


@pytest.mark.parametrize(
    ("more", "is_gone"),
    [
        ("", True),
        ("\n```bash\ncurl box\n```\n", True),
        ("\n```python\nother()\n```\n", False),
        ("\n### Inner\n\nText.\n", False),
    ],
)
def test_a_section_about_it_goes_whole(more: str, *, is_gone: bool) -> None:
    """Its first sentence and its examples say so, whatever its heading is."""
    section = (
        f"## Boxes\n\nUse gone_by() for boxes.\n\n* Boxes are small.\n\n```python\nboxes()\ngone_by(1)\n```\n{more}\n"
    )
    left = left_of(
        f"# Box\n\nText.\n\n- [Boxes](#boxes)\n- [End](#end)\n\n## More\n\nMore.\n\n{section}## End\n\nEnd.\n",
        path="README.md",
    )
    assert left is not None
    assert ("Boxes are small" not in left) is is_gone
    assert ("- [Boxes]" not in left) is is_gone
    assert "More." in left
    assert "End." in left


def test_a_section_with_a_list_of_several_is_not_about_one() -> None:
    section = "## Boxes\n\n- `gone_by()`: some\n- `other()`: more\n\n```python\nother()\ngone_by(1)\n```\n"
    left = left_of(f"# Box\n\nText.\n\n## More\n\nMore.\n\n{section}", path="README.md")
    assert left is not None
    assert left.endswith("## Boxes\n\n- `other()`: more\n\n```python\nother()\n```\n")


def test_examples_in_python_that_use_nothing_gone_stay() -> None:
    before = "Text.\n\n```\nimport box\nbox.get(1, gone_by=5)\n```\n\nSee gone_by().\n"
    assert left_of(before, path="README.md") == before.replace("\n\nSee gone_by().", "")


def test_imports_that_a_later_example_needs_stay() -> None:
    first = "```python\nfrom pkg import Lid\n\nx = 1\nprint(x)\n{}```\n"
    rest = "\nThen:\n\n```python\nLid().close()\n```\n"
    left = left_of("Text.\n\n" + first.format("gone_by(Lid())\n") + rest, path="README.md")
    assert left == "Text.\n\n" + first.format("") + rest


def test_what_is_below_an_item_that_stays_in_part_stays() -> None:
    item = "- Opens a box quickly and without any noise. {}It never fails.\n\n  More of it.\n\nEnd.\n"
    assert left_of(item.format("It is like `gone_by()`. "), path="README.md") == item.format("")


def test_a_lost_coroutine_is_run_no_more() -> None:
    before = "Text.\n\n```python\nasync def main():\n    gone_by()\n\nasyncio.run(main())\nx()\n```\n"
    assert left_of(before, path="README.md") == "Text.\n\n```python\nx()\n```\n"


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("Use `one`, `two` (or 2), `gone_by`, `three`.\n", "Use `one`, `two` (or 2), `three`.\n"),
        ("Text.\n\n.. caution::\n\n    gone_by() is slow.\n\nEnd.\n", "Text.\n\nEnd.\n"),
        ("Text.\n\n.. caution::\n\n    gone_by() is slow. So am I.\n", "Text.\n\n.. caution::\n\n    So am I.\n"),
        (
            "# A\n\nText.\n\n#### `m.gone_by` {: #by}\n\nIt is.\n\n#### `m.other`\n\nB.\n",
            "# A\n\nText.\n\n#### `m.other`\n\nB.\n",
        ),
        (
            "# A\n\nSee gone_by(). It is.\n\n## Changes\n\nSee gone_by(). So.\n",
            "# A\n\nIt is.\n\n## Changes\n\nSee gone_by(). So.\n",
        ),
        ("Not 'gone_by', but gone_by. Two.\n", "Two.\n"),
    ],
)
def test_what_documents_lose_of_lists_directives_headings_and_history(before: str, expected: str) -> None:
    assert left_of(before) == expected


def test_a_section_goes_when_nothing_is_left_of_its_examples() -> None:
    section = "## Files\n\nSome stand in files. Use gone_by(). All is well.\n\n```python\nx = gone_by()\nx.y\n```\n\n"
    left = left_of(f"# A\n\nText.\n\n## B\n\nB.\n\n{section}## C\n\nC.\n", path="README.md")
    assert left == "# A\n\nText.\n\n## B\n\nB.\n\n## C\n\nC.\n"


def test_a_section_without_text_loses_no_more_than_its_example() -> None:
    section = "## Use\n\n```python\nimport m\n\nother()\nother()\nother()\n\nwhile True:\n    gone_by()\n```\n"
    left = left_of(f"# A\n\nText.\n\n## B\n\nB.\n\n{section}", path="README.md")
    assert left is not None
    assert left.endswith("## Use\n\n```python\nimport m\n\nother()\nother()\nother()\n```\n")


BELOW_RULE = "m\n-\n\nText.\n\n# Recent Changes\n\n"
"""The beginning of a document whose title has a short line below it."""


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (
            "- The function `other` closes.\n- The function `gone_by` opens.\n\n  It does so slowly.\n\nEnd.\n",
            "- The function `other` closes.\n\nEnd.\n",
        ),
        (
            "- `gone_by` opens.\n- See `gone_by`. Everything else is here.\n\n  More of it.\n",
            "- Everything else is here.\n\n  More of it.\n",
        ),
        (f"{BELOW_RULE}- Add `gone_by`.\n", f"{BELOW_RULE}- Add `gone_by`.\n"),
        (
            "`a`, `b`, `c` respectively map to `x`, `gone_by`, `z`. End.\n",
            "End.\n",
        ),
        ("Text.\n\n.. note::\n   `gone_by` is slow.\n\nEnd.\n", "Text.\n\nEnd.\n"),
        ("Text.\n\n.. note::\n\n   .. caution::\n\n      See `gone_by`.\n\nEnd.\n", "Text.\n\nEnd.\n"),
        ("# A\n\nA.\n\n## News feeds\n\nSee `gone_by`. It is.\n", "# A\n\nA.\n\n## News feeds\n\nIt is.\n"),
        ("# A\n\nA.\n\n## What's new in 2.1\n\nSee `gone_by`.\n\n## B\n\nSee `gone_by`. B.\n",
         "# A\n\nA.\n\n## What's new in 2.1\n\nSee `gone_by`.\n\n## B\n\nB.\n"),
    ],
)  # fmt: skip
def test_what_goes_with_items_and_directives(before: str, expected: str) -> None:
    assert left_of(before) == expected


def test_a_section_with_more_than_its_examples_stays() -> None:
    section = (
        "## Start\n\nSettings are read. Then `gone_by` opens it.\n\n```sh\npip install p\n```\n\n"
        "```python\ngone_by()\n```\n"
    )
    left = left_of(f"# A\n\nText.\n\n## B\n\nB.\n\n{section}", path="README.md")
    assert left is not None
    assert left.endswith("## Start\n\nSettings are read.\n\n```sh\npip install p\n```\n")


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ("a, gone_by, b", "a, b"),
        ("gone_by, b", "b"),
        ("a,\n        gone_by, b", "a, b"),
        ("a,\n        gone_by", "a"),
        ("a, gone_by_it", "a, gone_by_it"),
    ],
)
def test_members_of_a_class_that_directives_list(members: str, expected: str) -> None:
    source = "class Box:\n    def gone_by(self):\n        return 1\n\n    def b(self):\n        return 2\n"
    text = "Boxes\n=====\n\n.. autoclass:: pkg.m.Box\n    :members: {}\n    :undoc-members:\n"
    left = left_of(text.format(members), source, symbol="Box.gone_by")
    assert left is not None
    assert " ".join(left.split()) == " ".join(text.format(expected).split())
