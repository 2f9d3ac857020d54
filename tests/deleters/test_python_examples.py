"""Examples in Python lose parts of statements: elements of lists, statements of classes and functions."""

from __future__ import annotations

import pytest

from .test_documents import GONE, after, delete, left_of


def example(code: str) -> str | None:
    """What is left of an example of a document in which ``gone_by`` is gone."""
    left = left_of(f"# pkg\n\nSo:\n\n```python\n{code}```\n\nEnd.\n", path="README.md")
    return None if left is None else left.partition("```python\n")[2].partition("```")[0]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (
            "setup(\n    steps=[\n        # The first.\n        first(),\n        # It goes.\n        gone_by(1),\n"
            "    ],\n)\n",
            "setup(\n    steps=[\n        # The first.\n        first(),\n    ],\n)\n",
        ),
        ("setup(steps=[gone_by(1), first()])\n", "setup(steps=[first()])\n"),
        ("setup(steps=[first(), gone_by(1), gone_by(2)])\n", "setup(steps=[first()])\n"),
        ('setup({"a": gone_by, "b": 2})\n', 'setup({"b": 2})\n'),
        ('setup([["a", {"x": gone_by, "é": 2}], 1])\n', 'setup([["a", {"é": 2}], 1])\n'),
        ("# both\nsetup(\n    [\n        # Two.\n        gone_by,\n        first,\n    ]\n)\n",
         "# both\nsetup(\n    [\n        # Two.\n        first,\n    ]\n)\n"),
        ("setup([gone_by(1)])\nrest()\n", "rest()\n"),
        ("setup([gone_by(1), 2], gone_by)\nrest()\n", "rest()\n"),
        ("assert total([gone_by(1), 2]) == 3\nrest()\n", "rest()\n"),
        ("x = [gone_by(1), 2]\nuse(x)\n", "x = [2]\nuse(x)\n"),
    ],
)  # fmt: skip
def test_elements_that_use_what_is_gone_go_alone(before: str, expected: str) -> None:
    assert example(before) == expected


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("class Form:\n    a = 1\n    b = gone_by(2)\n", "class Form:\n    a = 1\n"),
        ('class Form:\n    """It."""\n\n    b = gone_by(2)\n\n\nrest()\n', "rest()\n"),
        (
            "class Form:\n    # One.\n    a = 1\n\n    # Two.\n    b = gone_by(2)\n\n"
            "    def c(self):\n        return 3\n",
            "class Form:\n    # One.\n    a = 1\n\n    def c(self):\n        return 3\n",
        ),
        ("def f():\n    # It must.\n    gone_by(1)\n    ...\n    return 2\n", "def f():\n    ...\n    return 2\n"),
        ("class Form(gone_by):\n    a = 1\n\n\nrest()\n", "rest()\n"),
        ("def run(a):\n    b = gone_by(a)\n    use(b)\n    other(a)\n", "def run(a):\n    other(a)\n"),
        ("def run(a):\n    use(a)\n    return gone_by(a)\n\n\nrest()\n", "rest()\n"),
        ("with box as a:\n    if a:\n        gone_by(a)\n    use(a)\n", "with box as a:\n    use(a)\n"),
        ("with box as a:\n    use(a)\n    gone_by(a)\nrest()\n", "rest()\n"),
        ("if a:\n    use(a)\nelse:\n    gone_by(a)\nrest()\n", "rest()\n"),
        # a name that a lost statement made, and another one makes anew
        ("with gone_by() as a:\n    a.use()\nwith box as b:\n    with other() as a:\n        a.use(b)\n",
         "with box as b:\n    with other() as a:\n        a.use(b)\n"),
        ("a = gone_by()\nfor a in rest():\n    use(a)\n", "for a in rest():\n    use(a)\n"),
        ("a = gone_by()\nfor b in rest(a):\n    use(b)\nrest()\n", "rest()\n"),
        ("class Form:\n    a = 1; b = gone_by(2)\n\n\nrest()\n", "rest()\n"),
        ("class Form:\n    @old\n    def c(self):\n        gone_by(2)\n\n    d = 4\n", "class Form:\n    d = 4\n"),
    ],
)  # fmt: skip
def test_statements_of_blocks_go_alone(before: str, expected: str) -> None:
    assert example(before) == expected


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (">>> a = 1\n>>> # It counts.\n>>> # Twice.\n>>> gone_by(a)\n2\n>>> a\n1\n", ">>> a = 1\n>>> a\n1\n"),
        (
            ">>> # Both.\n>>> from pkg import gone_by, other\n>>> other()\n",
            ">>> # Both.\n>>> from pkg import other\n>>> other()\n",
        ),
        (">>> # It.\n\n>>> gone_by(1)\n>>> other()\n", ">>> # It.\n\n>>> other()\n"),
    ],
)
def test_comments_of_a_session_go_with_the_statement_below(before: str, expected: str) -> None:
    assert example(before) == expected


def test_what_is_said_of_the_next_example_of_a_session_stays() -> None:
    session = ">>> gone_by(1)\nTraceback (most recent call last):\nValueError: no\n# Another one.\n# And it is fast.\n"
    assert example(session + ">>> first(2)\n3\n") == "# Another one.\n# And it is fast.\n>>> first(2)\n3\n"


FN = """class Query:
    class Fn:
        \"\"\"A hook for functions of one's own:

        .. sourcecode:: python

         >>> fn = lambda: this.map(lambda each: gone_by(each))
         >>> Query.fn.names = fn
         >>> S = Query(
         ...   '<li>Tea</li>')
         >>> S('li').names()
         ['<li>Tea</li>']

        It is used often.
        \"\"\"
"""


def test_an_example_loses_what_uses_an_attribute_that_lost_lines_gave() -> None:
    files = {"pkg/__init__.py": "", "pkg/m.py": GONE + "\n\n" + FN}
    left = after(files, delete(files, "pkg/m.py::gone_by"))["pkg/m.py"]
    assert ">>>" not in left
    assert "sourcecode" not in left
    assert "It is used often." in left


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("a.b = gone_by(1)\nuse(a.b)\nrest(c.b)\n", "rest(c.b)\n"),
        ("Box.b = gone_by(1)\nuse(a.b)\nrest(a.c)\n", "rest(a.c)\n"),
        ("a.b = gone_by(1)\na.b = 2\nuse(a.b)\n", "a.b = 2\nuse(a.b)\n"),
    ],
)
def test_uses_of_attributes_that_lost_statements_set_go(before: str, expected: str) -> None:
    assert example(before) == expected


TREE = "class Tree:\n    def chop(self, x):\n        self.x = x\n\n    def size(self):\n        return self.x\n\n\n"


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (">>> t = Tree(1)\n>>> t.chop(1)\n>>> t\nTree(2)\n>>> other()\n3\n", ">>> other()\n3\n"),
        (">>> t = Tree(1)\n>>> t.chop(1)\n>>> t = Tree(3)\n>>> t\nTree(3)\n",
         ">>> t = Tree(1)\n>>> t = Tree(3)\n>>> t\nTree(3)\n"),
        (">>> t = Tree(1)\n>>> t.chop(1)\n5\n>>> t\nTree(1)\n", ">>> t = Tree(1)\n>>> t\nTree(1)\n"),  # it has a result
        (">>> t.x(1)\n2\n>>> t.chop(1)\n5\n>>> t.x(1)\n3\n>>> t.y(2)\n3\n>>> u()\n1\n", ">>> t.x(1)\n2\n>>> u()\n1\n"),
        (">>> t.x(1)\n2\n>>> t.chop(1)\n5\n>>> t.x(1)\n2\n", ">>> t.x(1)\n2\n>>> t.x(1)\n2\n"),
    ],
)  # fmt: skip
def test_what_a_lost_call_changed_is_not_shown_later_in_a_session(before: str, expected: str) -> None:
    document = f"# pkg\n\nSo:\n\n```python\n{before}```\n\nEnd.\n"
    left = left_of(document, source=TREE, path="README.md", symbol="Tree.chop")
    assert left is not None
    assert left.partition("```python\n")[2].partition("```")[0] == expected


def test_an_object_of_an_earlier_example_is_changed_too() -> None:
    first = "```python\n>>> t = Tree(1)\n>>> t\nTree(1)\n```\n"
    second = "```python\n>>> t.chop(1)\n>>> t\nTree(2)\n```\n"
    left = left_of(f"# pkg\n\nSo:\n\n{first}\nAnd so:\n\n{second}\nEnd.\n", TREE, "README.md", "Tree.chop")
    assert left == f"# pkg\n\nSo:\n\n{first}\nEnd.\n"


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (">>> import asyncio\n>>> asyncio.run(gone_by(1))\n>>> asyncio.run(other())\n1\n",
         ">>> import asyncio\n>>> asyncio.run(other())\n1\n"),
        (">>> from pkg import m\n>>> m.gone_by(1)\n>>> m.other()\n1\n", ">>> from pkg import m\n>>> m.other()\n1\n"),
        (">>> print(gone_by(1), file=f)\n>>> print(other())\n1\n", ">>> print(other())\n1\n"),
    ],
)  # fmt: skip
def test_modules_are_not_changed_by_calls(before: str, expected: str) -> None:
    assert example(before) == expected


def test_names_of_items_are_no_objects_above() -> None:
    before = ">>> t.chop(1)\n>>> [t for t in trees()]\n[]\n>>> for t in trees(): print(t)\n1\n>>> t\n2\n"
    left = left_of(f"# pkg\n\nSo:\n\n```python\n{before}```\n\nEnd.\n", TREE, "README.md", "Tree.chop")
    assert left is not None
    assert ">>> [t for t in trees()]\n[]\n>>> for t in trees(): print(t)\n1\n" in left


@pytest.mark.parametrize(
    ("heading", "last", "text", "is_whole"),
    [
        ("Going with Boxes", "assert ask(1) == 2", "You can ask, strictly or not.", True),
        ("Going with Boxes", "assert ask(1) == 2", "Boxes work with `other()`, too.", False),
        ("Going with Boxes", "ask(1)", "You can ask, strictly or not.", False),
        ("Asking for Paper", "assert ask(1) == 2", "You can ask, strictly or not.", False),
    ],
)
def test_answers_that_a_lost_call_prepared_go_with_it_and_with_the_section(
    heading: str, last: str, text: str, *, is_whole: bool
) -> None:
    code = "@pkg.on\ndef test_it():\n    pkg.add(match=gone_boxes(1))\n    # now\n    {}\n"
    section = f"## {heading}\n\n{text}\n\n```python\n{code}```\n\n"
    source = "def gone_boxes(x):\n    return x\n\n\ndef add(match):\n    return match\n\n\ndef other():\n    return 2\n"
    document = "# pkg\n\nText.\n\n## More\n\nMore.\n\n{}## End\n\nEnd.\n"
    text = document.format(section.format(last))
    left = left_of(text, source, symbol="gone_boxes", path="README.md")
    assert left is not None
    assert (left == document.format("")) is is_whole
    assert "def test_it" not in left or last == "ask(1)"


def test_a_title_in_bold_goes_with_all_that_is_below_it() -> None:
    titled = "**Example {}: it reports**\n\n    >>> {}(1)\n    1\n\n"
    left = left_of("Boxes\n=====\n\n" + titled.format(1, "gone_by") + titled.format(2, "other"))
    assert left == "Boxes\n=====\n\n" + titled.format(2, "other")


@pytest.mark.parametrize(
    ("text", "code", "below", "expected"),
    [
        ("Sometimes things go by:", "{}", "Use it:\n\n>>> other()\n1\n\n", "Use it:\n\n>>> other()\n1\n"),
        ("Things can have gone.", "gone_by(1)", "", ""),
        ("Things can have gone.", "gone_by(1)\nother()", "", None),
        ("Things can have gone.", "gone_by(1)", "It is fast.\n\n", None),
        ("They tell what has gone. Also by name:", "gone_by(1)", "", ""),
        ("It is fast. By name:", "gone_by(1)", "", "It is fast.\n"),
        ("It is fast.", "gone_by(1)", "", None),
        ("- Things can have gone.", "gone_by(1)", "", None),
        ("So:", "gone_by(1)", "Likewise, you can go:\n\n>>> other()\n1\n\n", "You can go:\n\n>>> other()\n1\n"),
    ],
)
def test_the_topic_of_an_example_goes_with_all_of_it(text: str, code: str, below: str, expected: str | None) -> None:
    setting = "import logging\n\nlogging.basicConfig(level=1)\nlogger = logging.getLogger()\n\n"
    document = "# pkg\n\n## Calls\n\nCall it:\n\n```python\nother()\n```\n\n{}## End\n\nEnd.\n"
    called = code.format("gone_by(logger)")
    left = left_of(document.format(f"{text}\n\n```python\n{setting}{called}\n```\n\n{below}"), path="README.md")
    assert left is not None
    if expected is None:
        assert text in left
        assert ("basicConfig" in left) is ("other" in code)
    else:
        assert left == document.format(f"{expected}\n" if expected else "")
