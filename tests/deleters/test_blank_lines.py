"""Blank lines around what a removal took out."""

from __future__ import annotations

import pytest

from excise.deleters.edits.blank_lines import evened, without_odd

BEFORE = b"""\
import a;

import b;

import c;
class A {

  first() {
    one()

    two()
  }

  last() {
  }
}
let text = `

x`
"""


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (b"import a;\n\n\nimport c;\nclass A {\n", b"import a;\n\nimport c;\nclass A {\n"),
        (b"  first() {\n\n    two()\n  }\n", b"  first() {\n    two()\n  }\n"),
        (b"    two()\n  }\n\n}\nlet text = `\n\nx`\n", b"    two()\n  }\n}\nlet text = `\n\nx`\n"),
        (b"class A {\n\n  last() {\n", b"class A {\n\n  last() {\n"),
        (b"\nclass A {\n", b"class A {\n"),
        (b"let text = `\n\nx`\n\n\n", b"let text = `\n\nx`\n"),
        (b"import a;\r\n\r\n\r\nimport c;\r\n", b"import a;\r\n\r\nimport c;\r\n"),
        (b"    one()\n\n\nx`\n", b"    one()\n\nx`\n"),
        (BEFORE, BEFORE),
        (b"", b""),
    ],
    ids=["imports", "opening", "closing", "kept", "start", "end", "line ends", "one", "nothing", "empty"],
)
def test_blank_lines_are_no_more_than_one_side_had(after: bytes, expected: bytes) -> None:
    assert without_odd(BEFORE, after) == expected


def test_documents_and_removed_files_stay_as_they_are() -> None:
    changed = {"a.js": (BEFORE, None), "README.md": (b"a\n", b"\n\na\n"), "b.js": (b"a\n", b"\n\na\n")}
    assert evened(changed, frozenset({"a.js", "b.js"})) == {
        **changed, "b.js": (b"a\n", b"a\n"),
    }  # fmt: skip
