"""Selection of the paragraphs of a project's documentation that are about a symbol."""

from __future__ import annotations

from pathlib import Path

import pytest

from excise.deleters.patches.git_patches import unified
from excise.deleters.statement.lost_text import removed_text
from excise.deleters.statement.project_docs import (
    MAX_CHARS,
    MAX_PARAGRAPHS,
    MOST_PARAGRAPHS,
    Quote,
    paragraphs,
    quotes,
    read_documents,
    rendered,
)
from excise.extractors.go.analysis.codebase import GoCodebase
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.rust.analysis.codebase import RustCodebase

SOURCES = {
    "src/pkg/core.py": (
        "def halve(number):\n    return number // 2\n\n\n"
        "def get(number):\n    return number\n\n\n"
        "def filter(number):\n    return number\n\n\n"
        "class Box:\n    def open(self):\n        return 1\n\n    def level(self):\n        return 1\n"
    ),
    "src/pkg/other.py": "class Tin:\n    def open(self):\n        return 1\n\n    def get(self):\n        return 2\n",
}
CODEBASE = PythonCodebase.from_texts(SOURCES)


def found(text: str, *names: str, deleted: str = "") -> list[Quote]:
    symbols = [CODEBASE.symbols()[f"src/pkg/core.py::{name}" if name else "src/pkg/core.py"] for name in names]
    return quotes({"README.md": text}, CODEBASE, symbols, [deleted])


@pytest.mark.parametrize(
    ("text", "name", "is_about"),
    [
        ("Numbers get smaller with `halve` and nothing else.", "halve", True),
        ("Numbers get smaller with ``halve()`` and nothing else.", "halve", True),
        ("Numbers get smaller with the `halve` option set to `true`.", "halve", False),
        ("Numbers get smaller with the parameter ``halve`` set to `true`.", "halve", False),
        ("Numbers get smaller with `halve`, the `halve` option says whether.", "halve", True),
        ("## `numbers.halve(n)`\n\nMakes a number smaller, and nothing else.", "halve", True),
        ("## .halve(n)\n\nMakes a number smaller, and nothing else.", "halve", True),
        ("## .filter(n)\n\nMakes a number smaller, and nothing else.", "filter", True),
        ("## filter(n)\n\nMakes a number smaller, and nothing else.", "filter", False),
        ("## `.halve(n)`\n\nMakes a number smaller, and nothing else.", "halve", True),
        ("## .halve(n) → Number\n\nMakes a number smaller, and nothing else.", "halve", True),
        ("## `halve(n)` => Number\n\nMakes a number smaller, and nothing else.", "halve", True),
        ("## [halve(n)](#halve)\n\nMakes a number smaller, and nothing else.", "halve", True),
        ("## `halve(by: (n) => n)`\n\nMakes a number smaller, and nothing else.", "halve", True),
        ("## halve(by = two())\n\nMakes a number smaller, and nothing else.", "halve", True),
        ("## **.halve()**\n\nMakes a number smaller, and nothing else.", "halve", True),
        ("## halve(n) or get(n)\n\nMakes a number smaller, and nothing else.", "halve", False),
        ("- ## `numbers.halve(n)`\n    Makes a number smaller, and nothing else.", "halve", True),
        ("## Others\n\nThe text `numbers.halve(n)` is about something else.", "halve", False),
        ("Numbers get smaller with ``halve(4)`` and nothing else.", "halve", True),
        ("Numbers get smaller with halve(4) and nothing else.", "halve", True),
        ("Numbers get smaller with [`halve`](api.md) and nothing else.", "halve", True),
        ("Numbers get smaller with :func:`halve` and nothing else.", "halve", True),
        ("Numbers get smaller with :py:func:`~pkg.core.halve` and nothing else.", "halve", True),
        ("Numbers get smaller with `half <pkg.halve>` and nothing else.", "halve", True),
        ("Numbers get smaller with `@halve` and nothing else.", "halve", True),
        ("Numbers get smaller with `numpy.halve` and nothing else.", "halve", False),
        ("We halve numbers and do nothing else here.", "halve", False),
        ("Numbers get smaller with `halve-it` and nothing else.", "halve", False),
        ("Numbers get smaller with behalve(3) and nothing else.", "halve", False),
        ("The value of `get` is ambiguous, as there are two.", "get", False),
        ("The value of `pkg.core.get` is not ambiguous at all.", "get", True),
        ("The builtin `filter` is most often not ours.", "filter", False),
        ("But our own `core.filter` is meant by this.", "filter", True),
        ("A lid comes off with `Box.open` and nothing else.", "Box.open", True),
        ("A lid comes off with `box.open()` and nothing else.", "Box.open", True),
        ("A lid comes off with :meth:`~pkg.core.Box.open` and nothing else.", "Box.open", True),
        ("A lid comes off with `Tin.open` and nothing else.", "Box.open", False),
        ("A lid comes off with `open()` and nothing else.", "Box.open", False),
        ("Set the parameter `level` to what you like.", "Box.level", False),
        ("Its method `level` tells how full it is.", "Box.level", True),
        ("It is told by `level()` how full it is.", "Box.level", True),
        ("All of it stands in `pkg.core` of this package.", "", True),
        ("All of it stands in `core` of this package.", "", False),
    ],
)
def test_what_counts_as_naming(text: str, name: str, is_about: bool) -> None:
    assert bool(found(text, name)) is is_about


@pytest.mark.parametrize(
    "text",
    [
        "```python\nThe function halve(3) is called here, among others.\n```",
        "~~~\nThe function halve(3) is called here, among others.\n~~~",
        "Text:\n\n    The function halve(3) is called here, among others.\n",
        "Example::\n\n  The function halve(3) is called here, among others.\n\n  And halve(4) is called there by us.\n",
        ".. code-block:: python\n\n   The function halve(3) is called here, among others.\n",
        ".. code-block:: python\n   :caption: one\n\n   The function halve(3) is called here, among others.\n",
        ".. The function halve(3) is called here, among others.\n",
        ">>> halve(4)  # the function of which all of this speaks\n2\n",
        "The function `halve` works like this:\n>>> halve(4)\n2\n",
        "Type `>>> halve(4)` at the prompt and see what comes.",
        "from pkg.core import halve; print(halve(number), 'and', 'other', 'long', 'words')",
        "for number in halve(4): print(number, something, other, more, of, it)",
        "result = halve(4)  # which is what we want to know\n",
        "# The title that speaks of `halve` and others\n",
        "The title that speaks of `halve` and others\n===========================================\n",
        "| The table | of `halve` and | others that are here |\n",
        "=======  ==========\nThe name    what `halve` and others do here\n=======  ==========\n",
        "<p>The function `halve` is called here, among others.</p>\n",
        "`halve`, `quarter`, `double`, `Box`, and `Tin`",
        "$ python -c 'halve(4)' and more words than five of them\n",
    ],
)
def test_code_titles_and_tables_are_no_prose(text: str) -> None:
    assert found(text, "halve") == []


def test_prose_around_code_is_kept() -> None:
    text = (
        "Title\n=====\n\nThe function :func:`halve` is\nused like this::\n\n    halve(4)\n\n    halve(5)\n\n"
        ".. note::\n\n    It is said that `halve` rounds towards zero.\n\n"
        ".. versionadded:: 1.2\n   The ``halve`` function is new in this one.\n\n"
        "* use `halve` for all numbers you meet\n* nothing at all for the others\n"
    )
    assert paragraphs(text) == (
        "The function :func:`halve` is used like this",
        "It is said that `halve` rounds towards zero.",
        "1.2 The ``halve`` function is new in this one.",
        "use `halve` for all numbers you meet",
        "nothing at all for the others",
    )


def test_fragments_of_sentences_after_code_are_left_out() -> None:
    assert paragraphs("Call\n\n```\nhalve(4)\n```\n\nand see what becomes of the number.\n") == ()


def test_lines_of_the_deleted_code_are_not_quoted() -> None:
    text = "What `halve` does is to return number // 2 and no more."
    assert found(text, "halve")
    assert found(text, "halve", deleted="def halve(number):\n    return   number // 2\n") == []


def test_paragraphs_that_repeat_a_docstring_are_left_out() -> None:
    codebase = PythonCodebase.from_texts(
        {"a.py": 'def f():\n    """Half of it, says\n    `f()`, or so I think.\n    """\n'}
    )
    documents = {"README": "Half of it, says `f()`, or so I think.\n"}
    assert quotes(documents, codebase, [codebase.symbols()["a.py::f"]], []) == []


def test_quotes_are_few_and_prefer_symbols_not_yet_named() -> None:
    about = [f"Number {n} of the things that `halve` does for us." for n in range(9)]
    text = "\n\n".join([*about, "And the `Box` is made for all of them.", "x" * 2000])
    chosen = found(text, "halve", "Box")
    assert len(chosen) == MAX_PARAGRAPHS == 3
    assert [quote.text for quote in chosen] == [*about[:2], "And the `Box` is made for all of them."]
    long = "\n\n".join(f"Number {n} of what `halve` does: {'very ' * 100}much." for n in range(9))
    assert len(found(long, "halve")) == 2
    assert sum(len(quote.text) for quote in found(long, "halve")) <= MAX_CHARS
    assert found(text, "halve", "Box") == chosen


def test_paragraphs_below_a_heading_with_the_name_are_preferred_to_others_and_to_contents() -> None:
    contents = '* <a href="#halve"><code>numbers.<b>halve(n)</b></code></a>\n'
    text = (
        f"{contents}* Numbers get smaller with `halve()` in the end.\n\n{'So `Box` has a lid as well. ' * 45}\n\n"
        "### `numbers.halve(n)`\n\nGives the half, rounded towards zero.\n"
    )
    assert [quote.text for quote in found(text, "halve")] == [
        "Numbers get smaller with `halve()` in the end.",
        "`numbers.halve(n)`: Gives the half, rounded towards zero.",
    ]
    assert [quote.text[:5] for quote in found(text, "halve", "Box")] == ["So `B", "`numb"]


def test_examples_among_what_a_document_lost_keep_their_lines() -> None:
    before = "They help. Four are there::\n\n    >>> from m import a\n    >>> a()\n\nFast.\n"
    patch = unified({"README": before.encode()}, {"README": b"They help.\nFast.\n"})
    lost = removed_text({"README": before}, CODEBASE, (), patch)["README"]
    assert lost == "Four are there::\n\n    >>> from m import a\n    >>> a()"


def test_rules_below_headings_open_no_examples() -> None:
    before = "Both\n~~~~\n\nThey help.\n\n    >>> a()\n    1\n    >>> b()\n    2\n\nOther\n~~~~~\n\nFast.\n"
    patch = unified({"README": before.encode()}, {"README": before.replace("    >>> b()\n    2\n", "").encode()})
    assert removed_text({"README": before}, CODEBASE, (), patch)["README"].strip() == ">>> b()\n2"


@pytest.mark.parametrize(
    ("row", "is_told"),
    [
        ("|      | `a <https://m.io/api.html#a>`_,  |", False),
        ("| [a](https://m.io), [b][c] |", False),
        ("| Windows | [a](https://m.io) of all kinds |", True),
        ("`rgb_to_hex`, :func:`rgb_to_rgb_percent` and", False),
        ("``a``, ``b``, or `c`.", False),
        ("`a`, `b` and all that", True),
        ("[a](https://m.io) of all kinds", True),
    ],
)
def test_rows_of_links_and_parts_of_lists_that_a_document_lost_say_nothing(row: str, *, is_told: bool) -> None:
    before = f"All:\n\n{row}\n"
    patch = unified({"README": before.encode()}, {"README": b"All:\n\n"})
    assert bool(removed_text({"README": before}, CODEBASE, (), patch)) is is_told


def test_each_of_many_symbols_has_its_paragraph() -> None:
    codebase = PythonCodebase.from_texts({"a.py": "".join(f"def turn_{n}():\n    pass\n" for n in range(15))})
    text = "\n\n".join(f"There is nothing that `turn_{n}` does not turn around." for n in range(15))
    symbols = [codebase.symbols()[f"a.py::turn_{n}"] for n in range(15)]
    assert len(quotes({"README": text}, codebase, symbols, [])) == MOST_PARAGRAPHS
    assert len(quotes({"README": text}, codebase, symbols[:5], [])) == 5


def test_rendering_names_each_document_once() -> None:
    parts = [Quote("README.md", "A " * 80, frozenset()), Quote("README.md", "B", frozenset())]
    text = rendered([*parts, Quote("docs/c.rst", "C", frozenset())])
    assert text.count("From `README.md`:") == 1
    assert text.endswith("> B\n\nFrom `docs/c.rst`:\n\n> C")
    assert all(len(line) <= 112 for line in text.splitlines())


def test_which_files_are_documentation(tmp_path: Path) -> None:
    kept = ["README.rst", "readme", "docs/a.md", "docs/deep/b.rst", "doc/c.txt", "notes.md"]
    left = [
        "CHANGELOG.md", "docs/changelog.md", "docs/changes/1.rst", "docs/news/2.md", "docs/whats_new.rst",
        "HISTORY.rst", "docs/release_notes.md", "docs/versions.rst", "docs/conf.py", "src/README.md",
        "docs/x.ipynb", "notes.txt",
    ]  # fmt: skip
    for path in [*kept, *left]:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(b"text \xff")
    (tmp_path / "docs" / "link.md").symlink_to("/etc/passwd")
    (tmp_path / "docs" / "huge.md").write_bytes(b"x" * (2 << 20))
    paths = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if not path.is_dir()]
    read = read_documents(tmp_path, paths)
    assert list(read) == ["README.rst", "notes.md", "readme", "doc/c.txt", "docs/a.md", "docs/deep/b.rst"]
    assert set(read.values()) == {"text \ufffd"}


def test_paragraphs_below_a_heading_that_is_a_name_are_about_it() -> None:
    text = (
        "# Cases\n\nTurns words into other words and back.\n\n### `lowerFirst(str)`\n\n"
        "Converts the first letter of a word:\n\n"
        "```js\nlowerFirst('A')\n```\n\n### upperFirst(str)\n\n- Makes the first letter of it large\n\n"
        "## Use of `lowerFirst`\n\nNothing is to be said about this here.\n"
    )
    assert paragraphs(text) == (
        "Turns words into other words and back.",
        "`lowerFirst(str)`: Converts the first letter of a word",
        "`upperFirst(str)`: Makes the first letter of it large",
        "Nothing is to be said about this here.",
    )


def test_what_is_gone_begins_with_its_heading_and_keeps_its_fences() -> None:
    before = "# A\n\n```python\nx = 1\n```\n\n## By\n\nText by one two.\n\n```python\ngone_by(1)\n```\n\n## C\n"
    after = "# A\n\n```python\nx = 1\n```\n\n## C\n"
    patch = unified({"README.md": before.encode()}, {"README.md": after.encode()})
    told = removed_text({"README.md": before}, PythonCodebase.from_texts({}), [], patch)
    assert told == {"README.md": "## By\n\nText by one two.\n\n```python\ngone_by(1)\n```"}
    longer = before.replace("## By", "Some of it stays. Some by one two goes.\n\n## By")
    kept = after.replace("## C", "Some of it stays.\n\n## C")
    patch = unified({"README.md": longer.encode()}, {"README.md": kept.encode()})
    told = removed_text({"README.md": longer}, PythonCodebase.from_texts({}), [], patch)
    assert told["README.md"].endswith("```python\ngone_by(1)\n```")


def test_parts_of_statements_and_ends_of_other_examples_are_not_told() -> None:
    before = (
        "# A\n\n```rust\nuse kit::{one, two, three,\n          gone, four};\n\nfn main() {\n"
        "    assert_eq!(gone(1), vec![2,\n        3]);\n    assert!((two(1) - 0.5).abs() < 1.0);\n}\n```\n\n"
        "With a list of all:\n\n```rust\nfn main() {\n    gone(&[1]);\n}\n```\n\n## B\n"
    )
    after = (
        "# A\n\n```rust\nuse kit::{one, two, three, four};\n\nfn main() {\n"
        "    assert!((two(1) - 0.5).abs() < 1.0);\n}\n```\n\n## B\n"
    )
    patch = unified({"README.md": before.encode()}, {"README.md": after.encode()})
    told = removed_text({"README.md": before}, PythonCodebase.from_texts({}), [], patch)["README.md"]
    assert told == (
        "```rust\n    assert_eq!(gone(1), vec![2,\n        3]);\n```\n\n"
        "With a list of all:\n\n```rust\nfn main() {\n    gone(&[1]);\n}\n```"
    )


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("It reads a, gone and b of it.", "It reads a and b of it.", ""),
        ("The values are not read if it is gone.\n\nThe values of a list are read if it is there, and not changed.",
         "The values of a list are read if it is there, and not changed.", "The values are not read if it is gone."),
        ("It has next to go on with.\n\n## About it is\n\nIt is small.", "It is.",
         "It has next to go on with.\n\n## About it is\n\nIt is small."),
        ("```text\n one\n 1) first step\n:-(\n```", "```text\n one\n```", "```text\n 1) first step\n:-(\n```"),
        ("```rust\nfn f<'a>(x: &'a str) -> &'a str {\n    gone(x)\n}\n\nfn b() {}\n```", "```rust\nfn b() {}\n```",
         "```rust\nfn f<'a>(x: &'a str) -> &'a str {\n    gone(x)\n}\n```"),
        ("```rust\nassert!(one(1) <\n    0.1);\n\nassert!(gone(1) <\n    0.1);\n\nassert!(two(1) <\n    0.1);\n```",
         "```rust\nassert!(one(1) <\n    0.1);\n\nassert!(two(1) <\n    0.1);\n```",
         "```rust\nassert!(gone(1) <\n    0.1);\n```"),
    ],
)  # fmt: skip
def test_what_is_told_of_lines_that_are_gone(before: str, after: str, told: str) -> None:
    patch = unified({"README.md": f"{before}\n".encode()}, {"README.md": f"{after}\n".encode()})
    found = removed_text({"README.md": f"{before}\n"}, PythonCodebase.from_texts({}), [], patch)
    assert found.get("README.md", "") == told


def test_what_comments_and_docstrings_of_code_that_stays_lose_is_told() -> None:
    files = {
        "a.go": "package a\n\n// Str tells it.\n//\n// It is quick. If Next was not called, nothing\n// is told.\n"
        "func Str() {}\n\n// Next goes.\nfunc Next() {\n\tx := 1\n\t// It is a step.\n\tuse(x)\n}\n",
        "a.py": 'class Box:\n    """A box.\n\n    What is open can be shut with shut().\n    """\n\n'
        "    def shut(self):\n        # Shut it now.\n        return 1\n",
    }
    after = {
        "a.go": "package a\n\n// Str tells it.\n//\n// It is quick.\nfunc Str() {}\n\n"
        "func Next() {\n\tx := 1\n\tuse(x)\n}\n",
        "a.py": 'class Box:\n    """A box."""\n\n    def shut(self):\n        return 1\n',
    }
    before = {path: text.encode() for path, text in files.items()}
    patch = unified(before, {path: text.encode() for path, text in after.items()})
    go = GoCodebase.from_texts({"a.go": files["a.go"]}, import_paths=["example.com/a"])
    python = PythonCodebase.from_texts({"a.py": files["a.py"]})
    assert removed_text({}, go, ["a.go::Next"], patch) == {"a.go": "If Next was not called, nothing is told."}
    assert removed_text({}, python, ["a.py::Box.shut"], patch) == {"a.py": "What is open can be shut with shut()."}


def test_comments_of_a_file_and_their_examples_are_told_without_their_marks() -> None:
    before = (
        "//! A crate.\n//!\n//! Use it:\n//! ```\n//! let x = next();\n//! let y = other();\n//! ```\n\n"
        "pub fn next() {}\n"
    )
    after = "//! A crate.\n//!\n//! Use it:\n//! ```\n//! let y = other();\n//! ```\n"
    patch = unified({"src/lib.rs": before.encode()}, {"src/lib.rs": after.encode()})
    rust = RustCodebase.from_texts({"src/lib.rs": before})
    told = removed_text({}, rust, ["src/lib.rs::next"], patch)
    assert told == {"src/lib.rs": "```\nlet x = next();\n```"}


@pytest.mark.parametrize("is_above", [True, False])
def test_a_whole_paragraph_of_a_comment_is_told_without_those_around_it(*, is_above: bool) -> None:
    gone = "//! See next(), which goes\n//! on with it."
    around = ["//! A crate.", "//!", "//! ## Other Things that it\n//! has.", "", "pub fn next() {}\n"]
    before = "\n".join([*around[:1], "//!", gone, *around[1:]] if is_above else [*around[:3], "//!", gone, *around[3:]])
    patch = unified({"src/lib.rs": before.encode()}, {"src/lib.rs": "\n".join(around).encode()})
    told = removed_text({}, RustCodebase.from_texts({"src/lib.rs": before}), ["src/lib.rs::next"], patch)
    assert told == {"src/lib.rs": "See next(), which goes\non with it."}


def test_lines_of_an_example_that_stays_are_fenced() -> None:
    before = "# A\n\nText.\n\n```go\na := f()\nb := gone(a)\nuse(a)\nsay(gone(b))\n```\n\nMore.\n"
    after = before.replace("b := gone(a)\n", "").replace("say(gone(b))", "say(1)")
    patch = unified({"README.md": before.encode()}, {"README.md": after.encode()})
    told = removed_text({"README.md": before}, PythonCodebase.from_texts({}), [], patch)
    assert told == {"README.md": "```go\nb := gone(a)\n```\n\n```go\nsay(gone(b))\n```"}


def test_a_heading_in_a_list_is_no_prose() -> None:
    text = "- #### `halve(n)`\n    Makes a number smaller,\n    and nothing else.\n"
    text += "- #### `open()`\n    Opens what was shut before.\n"
    assert paragraphs(text) == (
        "`halve(n)`: Makes a number smaller, and nothing else.",
        "`open()`: Opens what was shut before.",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Splits a text in two halves. For example,", "Splits a text in two halves."),
        ("Splits a text in two halves. Use it like this::", "Splits a text in two halves."),
        ("Splits a text in two halves. It takes these options:", "Splits a text in two halves. It takes these options"),
        ("To split a text, use the following code:", "To split a text, use the following code"),
        ("Splits a text in two halves. For example, it does.", "Splits a text in two halves. For example, it does."),
    ],
)
def test_what_only_announces_an_example_is_left_out(text: str, expected: str) -> None:
    assert paragraphs(f"{text}\n\n    >>> split('a')\n") == (expected,)
