"""Rows that parametrised tests of JUnit 5 get and a statement shows: with an error, with something empty."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set

from tree_sitter import Node

from excise.deleters.statement.chosen_rows import MAX_LINE, Row, chosen_rows, shown_table
from excise.extractors.java.analysis.grammar import descendants, modifiers_of, name_of, parse_tree, text

_ARGUMENTS = frozenset({"arguments", "Arguments.of", "Arguments.arguments", "argumentSet"})
_ERROR = re.compile(r"\w*(?:Exception|Error)\.class\b")
_EMPTY = re.compile(
    r'(?<![\w"\\])""(?!")|^(?:\([^()]*\)\s*)?null$|\{\s*\}$|\bnew [\w.]+\[0\]$|\b(?:empty\w*|[A-Z]\w*\.of)\(\)$'
)
_EMPTY_CELL = re.compile(r"^\"\s*,|,\s*(?=,)|,\s*\"$|''")


def table_rows(source: bytes, start: int, end: int, names: Set[str]) -> str:
    """Some of the rows of a test method, and the line that uses each; empty if there are none, or if the method, from
    ``start`` to ``end``, has none of ``names``."""
    root = parse_tree(source).root_node
    methods = [each for each in descendants(root) if each.type == "method_declaration"]
    method = next((each for each in methods if start <= each.start_byte < end), None)
    body = method.child_by_field_name("body") if method is not None else None
    modifiers = modifiers_of(method) if method is not None else None
    if method is None or body is None or modifiers is None:
        return ""
    lines = [line.strip() for line in text(body, source).splitlines()]
    use = next((line for line in lines if len(line) <= MAX_LINE and not names.isdisjoint(re.findall(r"\w+", line))), "")
    for annotation in modifiers.named_children if use else ():
        kind = name_of(annotation, source).rpartition(".")[2] if annotation.type == "annotation" else ""
        rows = list(_csv_rows(annotation, source)) if kind == "CsvSource" else []
        if kind == "MethodSource":
            given = re.search(r'"(\w+)"', text(annotation, source))
            maker = given[1] if given is not None else name_of(method, source)
            rows = [
                row
                for each in methods
                if name_of(each, source) == maker and each != method
                for row in _made_rows(each, source)
            ]
        if shown := chosen_rows(rows, len(rows)):
            taken = method.child_by_field_name("parameters")
            head = f"// {name_of(method, source)}{' '.join(text(taken, source).split()) if taken is not None else ''}"
            return shown_table([head, *(f"{row.text}," for row in shown), "// …"], use)
    return ""


def _csv_rows(annotation: Node, source: bytes) -> Iterator[Row]:
    """The rows of ``@CsvSource``, each a literal."""
    given = annotation.child_by_field_name("arguments")
    for node in descendants(given) if given is not None else ():
        around = node.parent
        is_row = around is not None and around.type in {"annotation_argument_list", "element_value_array_initializer"}
        if is_row and node.type == "string_literal" and not text(node, source).startswith('"""'):
            row = text(node, source)
            yield Row(node.start_byte, row, _ERROR.search(row) is not None, _EMPTY_CELL.search(row) is not None)


def _made_rows(maker: Node, source: bytes) -> Iterator[Row]:
    """The rows that a method makes: calls of ``Arguments.of``, or arrays of objects."""
    for node in descendants(maker):
        cells: Node | None = None
        if node.type == "method_invocation":
            called = text(node, source).partition("(")[0]
            cells = node.child_by_field_name("arguments") if called in _ARGUMENTS else None
        elif node.type == "array_creation_expression" and text(node, source).startswith("new Object[]"):
            cells = node.child_by_field_name("value")
            cells = cells if cells is not None and "new Object[]" not in text(cells, source) else None
        if cells is not None and not any(_needs_lines(each, source) for each in descendants(node)):
            values = [text(each, source) for each in cells.named_children if not each.type.endswith("comment")]
            is_error = any(_ERROR.fullmatch(value) for value in values)
            row = re.sub(r"\n\s*", " ", text(node, source))
            yield Row(node.start_byte, row, is_error, any(_EMPTY.search(value) for value in values))


def _needs_lines(node: Node, source: bytes) -> bool:
    """Whether a node says something else when it is written in one line."""
    return node.type == "line_comment" or (node.type == "string_literal" and text(node, source).startswith('"""'))
