"""Documentation of code that stays, without what it says of removed code."""

from __future__ import annotations

import pytest

from excise.deleters.documents.code_comments import comment_edits
from excise.deleters.documents.gone_names import GoneCode, GoneNames
from excise.deleters.edits.byte_edits import apply_edits
from excise.extractors.go.analysis import grammar as go
from excise.extractors.rust.analysis import grammar as rust


def left(source: str, *names: str, is_rust: bool = False) -> str:
    """A file in Go or Rust whose comments are documentation, without mentions of functions."""
    language = rust if is_rust else go
    dotted = frozenset(f"kit.{name}" for name in names)
    nodes = language.descendants(language.parse_tree(source.encode()).root_node)
    comments = [node for node in nodes if node.type in {"comment", "line_comment"}]
    edits = comment_edits(source.encode(), comments, GoneCode(GoneNames(names, dotted), dotted), lambda _: True)
    return apply_edits(source.encode(), edits).decode()


def test_a_table_directly_below_text_loses_rows() -> None:
    rows = ("//   | ToKebab(s)  | any-kind |\n", "//   | ToSnake(s)  | any_kind |\n")
    head = "// Package a converts. See below:\n//   | Function    | Result   |\n//   |-------------|----------|\n"
    assert left(f"{head}{''.join(rows)}package a\n", "ToKebab") == f"{head}{rows[1]}package a\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("/// The return type of [`gone_by`].\n", ""),
        ("/// Error returned by `gone_by()`\n///\n/// Has a cause.\n", "/// Has a cause.\n"),
        ("/// The options for gone_by. All are optional.\n", "/// All are optional.\n"),
        ("/// Reads the values of [`gone_by`].\n", None),
        ("/// The parser reads values from `gone_by`.\n", None),
        ("/// The type of [`gone_by`] and others.\n", None),
        ("/// The return type of [`kept_by`] and [`gone_by`].\n", "/// The return type of [`kept_by`].\n"),
    ],
)
def test_a_first_sentence_goes_that_only_says_whose_thing_it_is(before: str, after: str | None) -> None:
    code = "#[derive(Debug)]\npub struct A;\n"
    assert left(before + code, "gone_by", is_rust=True) == (before if after is None else after) + code


def test_documentation_that_a_compiler_asks_for_stays() -> None:
    code = "#![deny(missing_docs)]\n/// The return type of [`gone_by`].\npub struct A;\n"
    assert left(code, "gone_by", is_rust=True) == code
