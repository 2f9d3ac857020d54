"""What documents mean by a name, and where their sentences and examples end."""

from __future__ import annotations

import re

import pytest

from excise.deleters.documents.running_text import sentences_of, shortened

from .test_documents import left_of
from .test_remove_details import after, delete

RULES = (
    "class Rules:\n    def rate(self, agent):\n        return self.own\n\n\n"
    "class _Own:\n    def __init__(self):\n        self.known = 1\n\n"
    "    @property\n    def rate(self):\n        return self.known\n\n\n"
)
README = "# Rules\n\nSafe.\n\n- `rate(agent)` is how fast.\n- `kind(agent)` is of which kind.\n"
SHORT = "# Rules\n\nSafe.\n\n- `kind(agent)` is of which kind.\n"


@pytest.mark.parametrize(
    ("more", "is_gone"),
    [
        ("", True),
        ("def faster(rate):\n    return rate\n\n\n", False),
        ("class Other:\n    def rate(self):\n        return 1\n\n\n", False),
        ("class Other:\n    def __init__(self):\n        self.rate = 1\n\n\n", False),
        ("class _Other:\n    def __init__(self):\n        self.rate = 1\n\n\n", True),
        ("class Other:\n    def use(self, rules):\n        rules.rate = 1\n\n\n", True),
        ("rate = 1\n\n\n", False),
        ("from rates import rate\n\n\n", False),
    ],
    ids=["nothing", "parameter", "method", "attribute", "private attribute", "of another object", "variable", "import"],
)
def test_documents_do_not_mean_what_is_private(more: str, is_gone: bool) -> None:
    left = left_of(README, RULES + more, "README.md", "Rules.rate")
    assert (left or README) == (SHORT if is_gone else README)


def test_documents_lose_the_texts_under_which_tables_had_the_code() -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/ve.py": "class Spoken:\n    pass\n",
        "pkg/m.py": "from pkg import ve\n\nKINDS = {\n    'es_VE': ve.Spoken(),\n    'en_IN': 1,\n    'plain': 2,\n}\n",
        "README.md": "# Kinds\n\n* ``en_IN`` (India)\n* ``es_VE`` (Venezuela)\n* ``plain`` (nowhere)\n\nIt is es_VE.\n",
    }
    left = after(files, delete(files, "pkg/ve.py::Spoken"))
    assert left["README.md"] == "# Kinds\n\n* ``en_IN`` (India)\n* ``plain`` (nowhere)\n\nIt is es_VE.\n"
    files["pkg/n.py"] = "def default():\n    return 'es_VE'\n"
    assert after(files, delete(files, "pkg/ve.py::Spoken"))["README.md"] == files["README.md"]


def test_what_takes_the_last_result_of_a_session_goes_with_it() -> None:
    session = ">>> gone_by(1)\n'one'\n>>> parts = other(_)\n>>> parts\n1\n>>> other()\n2\n>>> _\n2\n"
    left = left_of(f"Try:\n\n{session}\nThen:\n", path="README.rst")
    assert left == "Try:\n\n>>> other()\n2\n>>> _\n2\n\nThen:\n"


@pytest.mark.parametrize(
    ("comment", "is_gone"), [("# {'a': [1, -2]}", True), ("# then the other", False), ("# None\n# left", False)]
)
def test_a_comment_with_the_result_of_a_statement_goes_with_it(comment: str, is_gone: bool) -> None:
    example = "```python\nx = other()\ngone_by(x)\n{}print(x)\nprint(2)\n```\n"
    left = left_of(f"Try:\n\n{example.format(comment + chr(10))}", path="README.md") or ""
    assert (comment in left) is not is_gone
    assert "print(x)\nprint(2)\n" in left


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two.", ["One.", "Two."]),
        ("It calls one (resp. `two`) first. Then more.", ["It calls one (resp. `two`) first.", "Then more."]),
        ("Names, e.g. `One`. More.", ["Names, e.g. `One`.", "More."]),
        ("It is (as said. In full) right. Yes.", ["It is (as said. In full) right.", "Yes."]),
        ("It is (never closed. Then more.", ["It is (never closed.", "Then more."]),
        ("(See A. It is long. So there.) And on. The end.", ["(See A. It is long. So there.) And on.", "The end."]),
        (
            "**Use one instead.** This has __two.__ And three.",
            ["**Use one instead.**", "This has __two.__", "And three."],
        ),
        ("Copies what matches *.* Files are hashed. Yes.", ["Copies what matches *.* Files are hashed.", "Yes."]),
        ('The mark is "." Unless told. So *etc.* One.', ['The mark is "." Unless told.', "So *etc.* One."]),
        ("Names, **e.g.** The first. More.", ["Names, **e.g.** The first.", "More."]),
        ("(See A (or B). It is long) and so on. The end.", ["(See A (or B). It is long) and so on.", "The end."]),
    ],
)
def test_sentences_end_neither_behind_abbreviations_nor_in_parentheses(text: str, expected: list[str]) -> None:
    assert sentences_of(text) == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("One has to call ``a``, ``b``, or use the ``@gone``.", "One has to call ``a`` or ``b``."),
        ("One may call `a`, `b`, `c` and then a `gone`; it is fast.", "One may call `a`, `b` and `c`; it is fast."),
        ("One may call `a`, `b`, or use `gone` to go on.", ""),
        ("One may call `a` or use the `gone`.", ""),
        ("`a`, `b` and their `gone` are 1, 2 and 3 respectively.", ""),
    ],
)
def test_a_list_whose_last_name_has_words_before_it_loses_both(sentence: str, expected: str) -> None:
    left = shortened([f"{sentence} All is so."], re.compile(r"\bgone\b"))
    assert left == ([f"{expected} All is so."] if expected else ["All is so."])


def test_what_is_documented_in_a_field_keeps_its_text_whole() -> None:
    text = (
        'def other(reader):\n    """Reads.\n\n    :param reader: Where it is from, when using the\n'
        "        :func:`gone_by` (resp. :func:`more`) function.\n    :param more: Nothing. See :func:`gone_by`.\n"
        '        It is left out.\n    """\n    return reader\n'
    )
    files = {"pkg/__init__.py": "", "pkg/m.py": f"def gone_by(x):\n    return x\n\n\n{text}"}
    left = after(files, delete(files, "pkg/m.py::gone_by"))["pkg/m.py"]
    assert left == text.replace(" See :func:`gone_by`.\n        It", " It")


def test_a_list_that_is_gone_takes_what_introduces_it_along() -> None:
    head = "# Shapes\n\nThey are drawn. The following are there:\n\n"
    document = head + "* `gone_by`: Goes by.\n  It is slow.\n{}\nMore of it.\n"
    assert left_of(document.format(""), path="README.md") == "# Shapes\n\nThey are drawn.\n\nMore of it.\n"
    more = left_of(document.format("* `other`: Stays.\n"), path="README.md")
    assert more == "# Shapes\n\nThey are drawn. The following are there:\n\n* `other`: Stays.\n\nMore of it.\n"
    apart = left_of(document.format("\n* `other`: Stays.\n"), path="README.md") or ""
    assert "The following are there:" in apart


def test_documents_lose_sentences_about_modules_that_are_gone() -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/extra.py": "def gone_by(x):\n    return x\n",
        "pkg/m.py": "def other():\n    return 1\n",
        "README.md": "# Shapes\n\nMore is in the `pkg.extra` module. The rest is in `pkg.m`, an extra.\n",
    }
    left = after(files, delete(files, "pkg/extra.py"))
    assert left["README.md"] == "# Shapes\n\nThe rest is in `pkg.m`, an extra.\n"


def test_a_page_that_is_about_it_goes_with_its_entry() -> None:
    page = "Going by\n========\n\n`gone_by` goes by.\n\n.. code-block:: python\n\n   x = gone_by(1)\n\nIt is slow.\n"
    files = {
        "pkg/__init__.py": "",
        "pkg/m.py": "def gone_by(x):\n    return x\n\n\ndef other():\n    return 1\n",
        "docs/by.rst": page,
        "docs/index.rst": "Pages\n=====\n\n.. toctree::\n\n   by\n   other\n",
        "docs/two.rst": page + "\nOther\n=====\n\nText.\n",
    }
    left = after(files, delete(files, "pkg/m.py::gone_by"))
    assert "docs/by.rst" not in left
    assert left["docs/index.rst"] == "Pages\n=====\n\n.. toctree::\n\n   other\n"
    assert "Text.\n" in left["docs/two.rst"]
    files["docs/by.rst"] = page + "\nPainting is done by `other()`, which stays.\n"
    assert "`other()`" in after(files, delete(files, "pkg/m.py::gone_by"))["docs/by.rst"]


@pytest.mark.parametrize("mark", ["NB: ", "Note: ", ""])
def test_comments_that_begin_with_a_note_are_running_text(mark: str) -> None:
    comment = f"    # {mark}It keeps what is given. See gone_by for the reason.\n"
    files = {"m.py": f"def gone_by(x):\n    return x\n\n\ndef other():\n{comment}    return 1\n"}
    left = after(files, delete(files, "m.py::gone_by"))["m.py"]
    assert left == f"def other():\n    # {mark}It keeps what is given.\n    return 1\n"


def test_the_name_of_a_module_is_no_name_of_a_function_in_it() -> None:
    head = "# Plural\n\n.. automodule:: plural\n\n"
    document = head + "`plural` is a package. `Engine.plural()` makes one. See `plural.Engine`.\n"
    engine = "class Engine:\n    def plural(self, x):\n        return x\n\n    def one(self):\n        return 1\n"
    files = {"plural/__init__.py": engine, "docs/index.rst": document}
    left = after(files, delete(files, "plural/__init__.py::Engine.plural"))["docs/index.rst"]
    assert left == document.replace(" `Engine.plural()` makes one.", "")


@pytest.mark.parametrize(
    ("more", "is_gone"),
    [
        ("", True),
        ('delegates = ["read", "shift"]\n\n\n', False),
        ("from shutil import shift as moved\n\n\n", True),
        ("from other import shift as moved\n\n\n", False),
    ],
)
def test_a_method_that_a_list_names_is_not_gone_from_documents(more: str, *, is_gone: bool) -> None:
    source = "class Box:\n    def shift(self):\n        return 1\n\n    def rest(self):\n        return 2\n"
    readme = "# Box\n\nSafe.\n\n- `shift`\n- `rest`\n"
    left = left_of(readme, f"{more}{source}\n\n", "README.md", "Box.shift")
    assert (left or readme) == (readme.replace("- `shift`\n", "") if is_gone else readme)


def test_names_that_a_decorator_makes_are_gone_too() -> None:
    code = (
        '"""Rows.\n\n>>> Rows().outerHtml()\n1\n>>> Rows().size()\n2\n"""\n\n\n'
        "class Rows:\n    @with_camel_case\n    def outer_html(self):\n        return 1\n\n"
        "    def size(self):\n        return 2\n"
    )
    left = after({"m.py": code}, delete({"m.py": code}, "m.py::Rows.outer_html"))["m.py"]
    assert "outerHtml" not in left
    assert ">>> Rows().size()" in left
    kept = code.replace("return 2", "return self.outerHtml")
    assert "outerHtml()" in after({"m.py": kept}, delete({"m.py": kept}, "m.py::Rows.outer_html"))["m.py"]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("You may break by clusters (using [gone] to get them).", "You may break by clusters."),
        ("It calls `a` (like `gone`) and `b`.", "It calls `a` and `b`."),
        ("It calls `a` (not `gone`) before `gone`.", ""),
        ("It is `a` (or f(gone) here), too.", "It is `a`, too."),
        ("It calls f(gone) first.", ""),
        ("It has tools (`a`, `gone`, `b`), too.", "It has tools (`a`, `b`), too."),
        ("One calls `f (gone)` before.", ""),
        ("(See `gone`.)", ""),
        ("This is therefore a combination of [a], [b], [gone], and [c].", ""),
        ("It consists of `a` and `gone`.", ""),
        ("One may call any of [a], [b], [gone], and [c].", "One may call any of [a], [b], and [c]."),
    ],
)
def test_parentheses_go_alone_and_lists_of_parts_stay_whole(sentence: str, expected: str) -> None:
    left = shortened([f"{sentence} All is so."], re.compile(r"\bgone\b"))
    assert left == ([f"{expected} All is so."] if expected else ["All is so."])
