"""Edits that remove elements of comma-separated lists: displays, import clauses, targets of ``del``."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from tree_sitter import Node

from excise.deleters.edits.byte_edits import Edit
from excise.extractors.python.analysis.grammar import comments

Span = tuple[int, int]

_AFTER = re.compile(rb"[ \t]*,?[ \t]*(#[^\r\n]*)?\r?(\n|\Z)")
_DIRECTIVE = re.compile(rb"#.*\b(?:noqa|fmt|type):")
_COMMA = re.compile(rb"\s*,")
_TUPLES = frozenset({"tuple", "expression_list"})
_IMPORTS = frozenset({"import_statement", "import_from_statement", "future_import_statement"})


class _Run(NamedTuple):
    """Consecutive elements to remove, and the elements before and after them, which stay."""

    before: Node | None
    gone: list[Node]
    after: Node | None


def elements_of(container: Node) -> list[Node]:
    """The elements of a container; for an import statement its clauses."""
    if container.type in _IMPORTS:
        return container.children_by_field_name("name")
    return [c for c in container.named_children if c.type not in {"comment", "line_continuation"}]


def remove_elements(source: bytes, container: Node, gone: Collection[Span]) -> list[Edit]:
    """Edits that remove the elements with the spans ``gone`` from a list, tuple, set, dict or import list."""
    elements = elements_of(container)
    kept = [e for e in elements if (e.start_byte, e.end_byte) not in gone]
    if not kept:
        return [_emptied(container)]
    headings = _comment_lines(source, container)
    edits = [edit for run in _runs(elements, gone) for edit in _remove_run(source, run, headings)]
    if container.type in _TUPLES and len(kept) == 1:
        return _with_comma(source, kept[0], edits)
    return edits


def _emptied(container: Node) -> Edit:
    if container.type == "expression_list":
        return Edit(container.start_byte, container.end_byte, b"()")
    if container.type == "set":
        return Edit(container.start_byte, container.end_byte, b"set()")
    return Edit(container.children[0].end_byte, container.children[-1].start_byte)


def _runs(elements: list[Node], gone: Collection[Span]) -> list[_Run]:
    runs: list[_Run] = []
    current: list[Node] = []
    before: Node | None = None
    for element in elements:
        if (element.start_byte, element.end_byte) in gone:
            current.append(element)
            continue
        if current:
            runs.append(_Run(before, current, element))
            current = []
        before = element
    return [*runs, _Run(before, current, None)] if current else runs


def _remove_run(source: bytes, run: _Run, headings: Collection[int]) -> list[Edit]:
    lines = [edit for e in run.gone if (edit := _own_lines(source, e)) is not None]
    if len(lines) == len(run.gone):
        return _with_headings(source, lines, headings)
    first, last = run.gone[0], run.gone[-1]
    if run.after is not None:
        return [_leading(source, run, first, last, run.after)]
    before = run.before or first
    if b"#" in source[before.end_byte : first.start_byte]:
        return [Edit(first.start_byte, _past_comma(source, last))]
    return [Edit(before.end_byte, last.end_byte)]


def _with_headings(source: bytes, lines: list[Edit], headings: Collection[int]) -> list[Edit]:
    """Edits that remove lines, and the comments above them that head no other lines."""
    starts = [_comment_start(source, edit.start, headings) for edit in lines]
    headed = [number for number, edit in enumerate(lines) if starts[number] < edit.start]
    following = source[lines[-1].end :].split(b"\n", 1)[0].strip()
    if headed and following and not following.startswith((b"#", b")", b"]", b"}")):
        starts[headed[-1]] = lines[headed[-1]].start  # it heads what follows, too
    return [Edit(start, edit.end) for start, edit in zip(starts, lines, strict=True)]


def _comment_lines(source: bytes, container: Node) -> frozenset[int]:
    """Where the lines of a container begin that have nothing but a comment, which may head an element."""
    found: set[int] = set()
    for each in comments(container):
        line = source.rfind(b"\n", 0, each.start_byte) + 1
        if not source[line : each.start_byte].strip() and not _DIRECTIVE.match(source, each.start_byte, each.end_byte):
            found.add(line)
    return frozenset(found)


def _comment_start(source: bytes, start: int, headings: Collection[int]) -> int:
    """Where the comment lines directly above a line begin; that line if there are none."""
    while (line := source.rfind(b"\n", 0, max(start - 1, 0)) + 1) < start and line in headings:
        start = line
    return start


def _own_lines(source: bytes, element: Node) -> Edit | None:
    """The edit that removes an element with its lines, if nothing else but its comma and comment is on them."""
    line_start = source.rfind(b"\n", 0, element.start_byte) + 1
    after = _AFTER.match(source, element.end_byte)
    continued = source[:line_start].rstrip(b"\r\n").endswith(b"\\")
    if source[line_start : element.start_byte].strip() or not after or continued:
        return None
    return Edit(line_start, after.end())


def _leading(source: bytes, run: _Run, first: Node, last: Node, after: Node) -> Edit:
    """The edit that removes elements before one that stays, with the line break after or before them."""
    gap = source[last.end_byte : after.start_byte]
    if b"\n" not in gap:
        return Edit(first.start_byte, after.start_byte)
    if run.before is not None and b"\n" not in source[run.before.end_byte : first.start_byte]:
        comma = _past_comma(source, run.before)
        return Edit(comma, _past_comma(source, last))
    return Edit(first.start_byte, _past_comma(source, last) if b"#" in gap else after.start_byte)


def _past_comma(source: bytes, element: Node) -> int:
    comma = _COMMA.match(source, element.end_byte)
    return comma.end() if comma else element.end_byte


def _with_comma(source: bytes, kept: Node, edits: list[Edit]) -> list[Edit]:
    """The edits, with a comma after the only element that a tuple keeps."""
    end = kept.end_byte
    overlapping = next((e for e in edits if e.start == end < e.end), None)
    comma = _COMMA.match(source, overlapping.end if overlapping else end)
    if comma:
        return edits
    if overlapping is None:
        return [*edits, Edit(end, end, b",")]
    return [*(e for e in edits if e is not overlapping), Edit(end, overlapping.end, b",")]
