"""Lays out the fields of structs and elements with keys as gofmt does, after one of them is gone.

gofmt aligns the cells of lines that follow each other: names, types, tags and comments; keys, values and comments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from tree_sitter import Node

from excise.deleters.edits.byte_edits import Edit, apply_edits
from excise.extractors.go.analysis.grammar import descendants, parse_tree

_LISTS = frozenset({"field_declaration_list", "literal_value"})
"""Nodes with aligned lines."""
Cell = tuple[int, int]
"""First byte and end of a cell of a line."""
Line = dict[int, Cell]
"""Column to cell, in order; columns that a line passes over are empty."""


def realigned(before: bytes, after: bytes) -> bytes:
    """The file ``after`` with aligned lines in those lists that ``before`` does not have."""
    known = {before[each.start_byte : each.end_byte] for each in _lists(before)}
    changed = [each for each in _lists(after) if after[each.start_byte : each.end_byte] not in known]
    return apply_edits(after, (edit for each in changed for edit in _edits(each, after)))


def _lists(source: bytes) -> Iterator[Node]:
    return (node for node in descendants(parse_tree(source).root_node) if node.type in _LISTS)


def _edits(found: Node, source: bytes) -> Iterator[Edit]:
    """The edits that give the blanks between the cells of a list their sizes."""
    lines: dict[int, Line] = {}
    for child in found.named_children:
        row, last = child.start_point[0], child.end_point[0]
        is_field = child.type == "field_declaration"
        if row not in lines and (is_field or (child.type == "keyed_element" and row == last)):
            lines.update({each: {} for each in range(row + 1, last + 1)})
            lines[row] = _field(child) if is_field else _element(child)
        elif child.type == "comment" and row == last and lines.get(row):
            lines[row][max(3, *lines[row]) if 3 not in lines[row] else 4] = child.start_byte, child.end_byte
        else:
            lines.update({each: {} for each in range(row, last + 1)})
    rows = sorted(row for row, cells in lines.items() if cells)
    for _, group in groupby(enumerate(rows), key=lambda pair: pair[1] - pair[0]):
        yield from _of_block([lines[row] for _, row in group], source)


def _field(node: Node) -> Line:
    """The cells of a field: its name in column 0, its type in 1, its tag in 3; an embedded type in 0, its tag in 1."""
    kind, tag = node.child_by_field_name("type"), node.child_by_field_name("tag")
    names = [each for each in node.children_by_field_name("name") if each.is_named]
    if kind is None:
        return {}
    line = {0: (names[0].start_byte, names[-1].end_byte)} if names else {}
    line[len(line)] = (kind if names else node).start_byte, kind.end_byte
    if node.start_point[0] != node.end_point[0]:
        return line
    if tag is not None:
        line[3 if names else 1] = tag.start_byte, tag.end_byte
    return line


def _element(node: Node) -> Line:
    """The cells of an element: its key with the colon in column 0, its value with the comma in 1."""
    key, value = node.child_by_field_name("key"), node.child_by_field_name("value")
    if key is None or value is None:
        return {}
    return {0: (key.start_byte, key.end_byte + 1), 1: (value.start_byte, value.end_byte + 1)}


def _of_block(lines: Sequence[Line], source: bytes) -> Iterator[Edit]:
    """The edits of lines that follow each other."""
    widths: list[dict[int, int]] = [{} for _ in lines]
    _measure(list(zip(lines, widths, strict=True)), 0, source)
    for line, width in zip(lines, widths, strict=True):
        for (column, (start, end)), (following, (other, _)) in pairwise(sorted(line.items())):
            blanks = sum(width[each] for each in range(column, following)) - _size(source[start:end])
            if source[end:other] != b" " * blanks and not source[end:other].strip():
                yield Edit(end, other, b" " * blanks)


def _measure(lines: Sequence[tuple[Line, dict[int, int]]], column: int, source: bytes) -> None:
    """Note the width of a column, and of those behind it, in the lines that have more: a last cell has no column.

    A column without content has none; the others are followed by one blank.
    """
    for has_more, group in groupby(lines, key=lambda pair: max(pair[0]) > column):
        block = list(group)
        if has_more:
            size = max(_size(source[slice(*line.get(column, (0, 0)))]) for line, _ in block)
            for _, widths in block:
                widths[column] = size + 1 if size else 0
            _measure(block, column + 1, source)


def _size(data: bytes) -> int:
    return len(data.decode("utf-8", "replace"))
