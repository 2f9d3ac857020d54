"""Takes what is expected out of the rows that a parametrised test of JUnit 5 gets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tree_sitter import Node

from excise.extractors.divided_tests import Edit
from excise.extractors.java.analysis.grammar import COMMENTS, descendants, modifiers_of, name_of, statements, text
from excise.extractors.java.execution.checks import arguments
from excise.extractors.java.execution.expected_values import is_written_out
from excise.extractors.java.execution.test_class import TestClass

_INPUTS = frozenset({"ValueSource", "EnumSource", "NullSource", "EmptySource", "NullAndEmptySource", "MethodSource",
                     "CsvSource", "CsvFileSource", "ArgumentsSource", "ArgumentsSources"})  # fmt: skip


class Unseparable(Exception):
    """Raised where the values of a parameter cannot be taken out; the message is the reason."""


def column_edits(holder: TestClass, method: Node, columns: Sequence[int], size: int) -> Iterator[Edit]:
    """The edits that take the numbered columns out of the rows of a test with ``size`` parameters.

    Raises :class:`Unseparable`.
    """
    source = holder.file.source
    modifiers = modifiers_of(method)
    found = [node for node in modifiers.named_children if node.type.endswith("annotation")] if modifiers else []
    sources = [node for node in found if name_of(node, source).rpartition(".")[2] in _INPUTS]
    if len(sources) != 1:
        raise Unseparable("rows of several sources")
    (rows,) = sources
    kind = name_of(rows, source).rpartition(".")[2]
    if kind == "CsvSource":
        yield from _csv_edits(rows, source, columns, size)
    elif kind == "MethodSource":
        yield from _method_edits(holder, rows, method, columns, size)
    else:
        raise Unseparable("rows of another source")


def _values(annotation: Node, source: bytes, allowed: Sequence[str]) -> tuple[list[Node], dict[str, str]]:
    """The values of an annotation, and its other settings."""
    values, settings = list[Node](), dict[str, str]()
    given = annotation.child_by_field_name("arguments")
    for child in given.named_children if given is not None else ():
        if child.type in COMMENTS:
            continue
        value: Node | None = child
        if child.type == "element_value_pair":
            key, value = child.child_by_field_name("key"), child.child_by_field_name("value")
            if key is None or value is None or text(key, source) not in {"value", *allowed}:
                raise Unseparable("rows in another form")
            if text(key, source) != "value":
                settings[text(key, source)] = text(value, source)
                continue
        assert value is not None
        is_array = value.type == "element_value_array_initializer"
        values += [each for each in value.named_children if each.type not in COMMENTS] if is_array else [value]
    return values, settings


def _csv_edits(annotation: Node, source: bytes, columns: Sequence[int], size: int) -> Iterator[Edit]:
    values, settings = _values(annotation, source, ["delimiter", "nullValues", "emptyValue"])
    delimiter = settings.get("delimiter", "','")[1:-1]
    for row in values:
        found = text(row, source)
        if row.type != "string_literal" or found.startswith('"""') or len(delimiter) != 1:
            raise Unseparable("rows in another form")
        cells = re.findall(
            rf"(?:'[^']*'|[^'{re.escape(delimiter)}])+|(?<={re.escape(delimiter)})(?={re.escape(delimiter)}|$)",
            found[1:-1],
        )
        if delimiter.join(cells) != found[1:-1] or len(cells) != size:
            raise Unseparable("rows in another form")
        kept = delimiter.join(cell for number, cell in enumerate(cells) if number not in columns)
        if not kept.strip():
            raise Unseparable("rows of nothing but what is expected")
        yield Edit(row.start_byte, row.end_byte, f'"{kept}"'.encode())


def _method_edits(
    holder: TestClass, annotation: Node, method: Node, columns: Sequence[int], size: int
) -> Iterator[Edit]:
    source = holder.file.source
    values, _ = _values(annotation, source, [])
    names = [text(value, source).strip('"') for value in values] or [name_of(method, source)]
    makers = holder.methods.get(names[0], []) if len(names) == 1 else []
    makers = [each for each in makers if each != method]
    named = len(re.findall(rb"\b%s\b" % re.escape(names[0].encode()), source))
    if len(makers) != 1 or named != 2:
        raise Unseparable("rows of a method that others use")
    body = makers[0].child_by_field_name("body")
    lines = statements(body) if body is not None else []
    made = lines[0].named_children[0] if len(lines) == 1 and lines[0].type == "return_statement" else None
    if made is None or made.type != "method_invocation" or name_of(made, source) not in {"of", "asList"}:
        raise Unseparable("rows that are computed")
    for row in arguments(made):
        cells = _cells(row, source)
        if len(cells) != size:
            raise Unseparable("rows in another form")
        for number in columns:
            if not is_written_out(cells[number], source, holder.file.depending):
                raise Unseparable("expected value that is computed")
        kept = [text(cell, source) for number, cell in enumerate(cells) if number not in columns]
        if not kept:
            raise Unseparable("rows of nothing but what is expected")
        yield Edit(cells[0].start_byte, cells[-1].end_byte, ", ".join(kept).encode())


def _cells(row: Node, source: bytes) -> list[Node]:
    if row.type == "method_invocation" and name_of(row, source) in {"of", "arguments"}:
        return arguments(row)
    if row.type == "array_creation_expression":
        value = row.child_by_field_name("value")
        return [child for child in value.named_children if child.type not in COMMENTS] if value is not None else []
    return []


def names_in(node: Node, source: bytes) -> set[str]:
    """All names below a node."""
    return {text(each, source) for each in descendants(node) if each.type in {"identifier", "type_identifier"}}
