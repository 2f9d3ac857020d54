"""Documentation of code that stays, without what it says of removed code."""

from __future__ import annotations

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
