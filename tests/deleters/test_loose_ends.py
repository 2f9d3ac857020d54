"""Removed code stays as a stub where documents would still name it, or explain what they lost."""

from __future__ import annotations

import pytest

from excise.deleters.documents.gone_names import GoneCode, GoneNames
from excise.deleters.documents.loose_ends import loose_ends, mentions_left
from excise.extractors.python.analysis.codebase import PythonCodebase

from .planned_deletions import delete_symbol
from .test_remove_details import after, delete

SOURCE = "def gone_by(x):\n    return x\n\n\ndef other(x):\n    return x\n"


def told(
    document: str, path: str = "README.md", more: dict[str, str] | None = None, name: str = "gone_by"
) -> list[str]:
    """What would be left in documents of a project that loses a function."""
    files = {"pkg/__init__.py": "", "pkg/m.py": SOURCE, "test_m.py": "def test_m():\n    assert 1\n", **(more or {})}
    codebase = PythonCodebase.from_texts({**files, path: document})
    return [
        text
        for where, text in delete_symbol(codebase, f"pkg/m.py::{name}", ("test_m.py::test_m",)).uses_left
        if where == path
    ]


@pytest.mark.parametrize(
    ("document", "is_left"),
    [
        ("# pkg\n\nCall `gone_by` with a number.\n", False),
        ("# pkg\n\n| a | gone_by | it counts. It is fast. |\n", True),
        ("# pkg\n\n```python\nx = gone_by(\n```\n", True),
        ("# pkg\n\n## Changes\n\n| 1.0 | gone_by is new. It is fast. |\n", False),
    ],
)
def test_a_document_that_still_names_it(document: str, *, is_left: bool) -> None:
    assert bool(told(document)) is is_left
    assert not told(document, "CHANGES.md")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("So:\n\n```\na()\n```\n\nEnd.\n", "So:\n\nEnd.\n", ["So:"]),
        ("So:\n\n* a\n", "So:\n\n* b\n", []),
        ("So:\n\nEnd.\n", "So:\n\nEnd.\n", []),
        ("```\na()\n```\n\nHere, we call it.\n", "\nHere, we call it.\n", ["Here, we call it."]),
        ("```\na()\nb()\n```\n\nHere, we call it.\n", "```\na()\n```\n\nHere, we call it.\n", []),
        ("```\na()\n```\n\n...and it is called.\n", "\n...and it is called.\n", ["...and it is called."]),
        ("# A\n\nIt is so:\n\n```\na()\n```\n\nMore.\n", "# A\n\nMore.\n", ["# A"]),
        ("# A\n\nMore.\n\n```\na()\n```\n", "# A\n\n```\nb()\n```\n\nMore.\n", []),
        ("```\nclass MyForm:\n    a = 1\n```\n\nA MyForm is one.\n", "A MyForm is one.\n", ["MyForm"]),
        ("```\nclass MyForm:\n    a = 1\n```\n\nA form is one.\n", "A form is one.\n", []),
        ("```\ncall(my_size=1)\n```\n\nSet my_size.\n", "Set my_size.\n", []),
        ("## \U0001f680\n\n```\na()\n```\n\nMore.\n", "## \U0001f680\n\nMore.\n", [""]),
    ],
)
def test_text_about_what_a_document_lost(before: str, after: str, expected: list[str]) -> None:
    names = GoneCode(GoneNames(("gone_by",), frozenset({"pkg.gone_by"})), frozenset({"pkg.gone_by"}))
    found = [each for each in loose_ends(before, after, names) if not each.startswith(("a()", "call(", "class "))]
    assert found == expected


@pytest.mark.parametrize(
    ("text", "is_left"),
    [
        ("# Forms\n\nThey are classes:\n\n```python\nmake(1)\n```\n", True),
        ("# Forms\n\nThey are gone then:\n\n```python\nmake(1)\n```\n", False),
        ("# What is gone\n\nSo:\n\n```python\nmake(1)\n```\n", False),
    ],
)
def test_examples_that_are_lost_although_they_show_something_else(text: str, *, is_left: bool) -> None:
    names = GoneCode(GoneNames(("gone_by",), frozenset({"pkg.gone_by"})), frozenset({"pkg.gone_by"}))
    assert ("make(1)" in loose_ends(text, "# Other\n", names)) is is_left


@pytest.mark.parametrize(
    ("command", "document", "is_left"),
    [
        ("pkg", "# pkg\n\nTo run it:\n\n```sh\npkg --all\n```\n", True),
        ("pkg", "# pkg\n\nIt has an API.\n", False),
        ("pkg-run", "# pkg\n\nTo run it:\n\n```sh\npkg-run --all\n```\n", False),
    ],
)
def test_the_program_that_a_project_is_stays(command: str, document: str, *, is_left: bool) -> None:
    manifest = f'[project]\nname = "pkg"\n\n[project.scripts]\n{command} = "pkg.m:gone_by"\n'
    assert bool(told(document, more={"pyproject.toml": manifest})) is is_left


def test_a_section_that_keeps_a_half_of_its_example() -> None:
    names = GoneCode(GoneNames(("gone_by",), frozenset({"pkg.gone_by"})), frozenset({"pkg.gone_by"}))
    before = "# Matching\n\nUse `gone_by` so.\n\n```python\nwith a() as b:\n    gone_by(b)\n    c(b)\n```\n"
    after = "# Matching\n\n```python\nwith a() as b:\n    c(b)\n```\n"
    assert list(loose_ends(before, after, names)) == ["# Matching"]
    assert not list(
        loose_ends(before.replace("Use `gone_by` so.", "So."), after.replace("ing\n", "ing\n\nSo.\n"), names)
    )


@pytest.mark.parametrize(
    ("page", "path", "is_left"),
    [
        (".TH PKG 1\n.B pkg.m.gone_by(x)\n", "docs/pkg.1", True),
        (".TH PKG 3\n.B \\fBgone_by\\fP(x)\n", "pkg.3", True),
        (".TH PKG 3\n.B \\fBgone\\_by\\fP(x)\n", "pkg.3", True),
        (".TH PKG 1\n.B other(x)\n", "docs/pkg.1", False),
        ("gone_by is new\n", "notes/1.1", False),
    ],
)
def test_pages_of_a_manual_are_not_edited(page: str, path: str, *, is_left: bool) -> None:
    assert bool(told(page, path)) is is_left


@pytest.mark.parametrize(
    ("document", "mentions"),
    [
        ("a_ and thaw_ are here.\n\n.. _a:\n.. _thaw:\n\na and thaw\n~~~~~~~~~~\n\nSo will thaw do.\n", 4),
        ("Snow may thaw.\n", 0),
        (".. _thaw:\n\nThawing\n=======\n\nTo thaw it, wait.\n", 0),
        (".. _thaw:\n\n====\nthaw\n====\n\nTo thaw it, wait.\n", 3),
        ("See thaw_.\n\n.. _thaw: https://pkg.io\n", 0),
        ("- [thaw](#thaw)\n\n## Of thaw\n", 2),
        ("(thaw)=\n\n## Of pkg.thaw\n\nIt thaws.\n", 1),
    ],
)
def test_a_word_that_is_a_label_in_a_document_is_a_name_there(document: str, mentions: int) -> None:
    names = GoneCode(GoneNames(("thaw",), frozenset({"pkg.m.thaw"})), frozenset({"pkg.m.thaw"}))
    assert [found for _, found in mentions_left(document, names)] == ["thaw"] * mentions


def test_a_document_with_what_help_prints() -> None:
    names = GoneCode(GoneNames((), frozenset()), frozenset({"pkg.Box.clear"}))
    assert [found for _, found in mentions_left("# A\n\n    |  clear(self, keep=False)\n", names)] == ["clear(self,"]


@pytest.mark.parametrize(
    ("document", "more", "is_left"),
    [
        ("# Dates\n\n| Greek | a date |\n", "", True),
        ("# Dates\n\n| Greek | a date |\n", "GREEK_MONTHS = 1\n", False),
        ("# Dates\n\n| Greeks | a date |\n", "", False),
        ("# Dates\n\n## Changes\n\n| 1.0 | Greek dates |\n", "", False),
    ],
)
def test_a_word_of_a_name_that_no_code_has_any_more(document: str, more: str, *, is_left: bool) -> None:
    source = f"def parse_greek(x):\n    return x\n\n\ndef parse(x):\n    return x\n\n\n{more}"
    assert bool(told(document, more={"pkg/m.py": source}, name="parse_greek")) is is_left


@pytest.mark.parametrize(
    ("document", "more", "is_left"),
    [
        ("# A\n\nSo:\n\n```python\nvalues = {tap(x, 'x'): 1 for x in y\n```\n", "", True),
        ("# A\n\nIt has ``one()``, ``tap()``.\n", "class Box:\n    def tap(self):\n        return 1\n", True),
        ("# A\n\nUse tap(x) or not.\n", "", False),
        ("# A\n\n```python\nx.tap(1) for x in y\n```\n", "", False),
        ("# A\n\n```python\ndef tap(x) {\ntap(1\n```\n", "", False),
        (
            "# A\n\n```python\nvalues = {tap(x, 'x'): 1 for x in y\n```\n",
            "class Box:\n    def tap(self):\n        return 1\n",
            True,
        ),
        (
            "# A\n\n```python\nvalues = {tap(x, 'x'): 1 for x in y\n```\n",
            "try:\n    from dom import tap\nexcept E:\n    x = 1\n",
            False,
        ),
        ("# A\n\n```python\nfrom dom import tap\ntap(1\n```\n", "", False),
        ("# A\n\n```sql\nselect tap(1\n```\n", "", False),
        ("# A\n\n## Changes\n\n```python\nvalues = {tap(x, 'x'): 1 for x in y\n```\n", "", False),
    ],
)
def test_a_call_of_a_word_in_an_example(document: str, more: str, *, is_left: bool) -> None:
    """Of a function with the name of a word, code means the name, where no module has another one."""
    files = {"pkg/m.py": "def tap(x):\n    return x\n", "pkg/n.py": more}
    assert bool(told(document, more=files, name="tap")) is is_left


def test_a_page_does_not_stay_with_nothing_but_its_title() -> None:
    page = "Sums\n====\n\nTo count, call :func:`gone_by` with a number.\n"
    text = "the document would have nothing but its title"
    assert text in told(page, "docs/sums.rst")
    assert text not in told(f"{page}\nNothing else is here to be called.\n", "docs/sums.rst")
    assert text not in told(page, "README.rst")


@pytest.mark.parametrize(("more", "is_lost"), [("", True), ("Call `other` with a number, too.\n", False)])
def test_the_only_example_of_code_that_stays_is_not_lost(more: str, *, is_lost: bool) -> None:
    example = "# pkg\n\nCounting with `gone_by`:\n\n```python\nx = gone_by(2)\nprint(other(x))\n```\n\nIt is fast.\n\n"
    found = told(f"{example}{more}")
    assert ("no document would call other any more, which stays" in found) is is_lost


@pytest.mark.parametrize(
    ("text", "is_left"),
    [
        ("    e = Box()\n    print(e.send(1))\n", True),
        ("    e = pkg.m.Box(1)\n    e.send\n", True),
        ("    e = Other()\n    e.send(1)\n", False),
        ("    e = Box()\n    e = Other()\n    e.send(1)\n", False),
        ("    e = Box()\n    e.take(1)\n", False),
        ("Call ``boxes['a'].send_it_all(1)`` for it.\n", True),
        ("Call ``boxes['a'].take_it_all(1)`` for it.\n", False),
    ],
)
def test_what_examples_call_of_objects_stays(text: str, *, is_left: bool) -> None:
    box = (
        "class Box:\n    def send(self, x):\n        return x\n\n    def send_it_all(self, x):\n        return x\n\n"
        "    def take(self):\n        return 1\n\n\nclass Other:\n    def send(self, x):\n        return 2 * x\n"
    )
    files = {"pkg/m.py": box, "README.rst": f"Boxes\n=====\n\nSome text::\n\n{text}"}
    deletion = delete(files, "pkg/m.py::Box.send", "pkg/m.py::Box.send_it_all")
    found = [what for path, what in deletion.uses_left if path == "README.rst"]
    assert bool(found) is is_left, found


LIST = "Kinds\n=====\n\n{head}\n\n- ``gone_by``: one of them.\n- ``other``: another one.\n- ``third``: the last one.\n"


@pytest.mark.parametrize(
    ("head", "is_left"),
    [
        ("There are three kinds:", True),
        ("It contains three kinds:", True),
        ("It has both kinds:", True),
        ("These kinds are there:", False),
        ("There may be forty of them:", False),
        ("The former counts, with ``gone_by``. Those are:", False),
    ],
)
def test_documents_do_not_count_what_is_gone(head: str, *, is_left: bool) -> None:
    found = told(LIST.format(head=head))
    assert any(head.rstrip(":") in what for what in found) is is_left, found


def test_an_item_about_the_one_above_it_is_told() -> None:
    text = LIST.format(head="These kinds are there:")
    assert any("another" in what for what in told(text.replace("another one", "also another one")))
    assert told(text.replace("another one", "one that is so")) == told(text)


def test_sections_of_indented_headings_go() -> None:
    box = "class Box:\n    pass\n\n\nclass BigBox:\n    pass\n"
    head, rest = (
        "Boxes\n=====\n\n.. note::\n\n   m.Box\n   ^^^^^\n\n   It is small.\n\n",
        "   Others\n   ^^^^^^\n\n   None.\n",
    )
    files = {"m.py": box, "README.rst": f"{head}   m.BigBox\n   ^^^^^^^^\n\n   It is large.\n\n{rest}"}
    assert after(files, delete(files, "m.py::BigBox"))["README.rst"] == f"{head}{rest}"
