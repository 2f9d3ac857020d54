"""Loops, conditions and callbacks of which nothing is left."""

from __future__ import annotations

from collections.abc import Iterable

from tree_sitter import Node

from excise.deleters.javascript.byte_spans import Range
from excise.extractors.javascript.analysis.grammar import FUNCTIONS, children, parse_tree

_LOOPS = frozenset({"for_statement", "for_in_statement", "while_statement", "statement_block"})


def with_emptied(source: bytes, statements: Iterable[Range]) -> list[Range]:
    """The bytes of statements that go, and of those around them of which nothing would be left: a loop, an ``if``
    without ``else``, and a call such as ``cases.forEach(…)``. None of them is in another one."""
    root, found = parse_tree(source).root_node, sorted(statements)
    staying: dict[int, int] = {}
    """Where a block begins to the number of its statements that stay."""
    pending = list(found)
    while pending:
        start, end = pending.pop()
        block = _block_around(root, start, end)
        if block is None:
            continue
        staying[block.start_byte] = staying.get(block.start_byte, len(children(block))) - 1
        holder = _holder(block) if not staying[block.start_byte] else None
        if holder is not None:
            pending.append((holder.start_byte, holder.end_byte))
            found.append(pending[-1])
    outer: list[Range] = []
    for start, end in sorted(found, key=lambda each: (each[0], -each[1])):
        if not outer or end > outer[-1][1]:
            outer.append((start, end))
    return outer


def _block_around(root: Node, start: int, end: int) -> Node | None:
    """The block that a statement stands in; ``None`` for one of the top level."""
    node = root.descendant_for_byte_range(start, max(start, end - 1))
    while node is not None and (node.type != "statement_block" or (node.start_byte, node.end_byte) == (start, end)):
        node = node.parent
    return node


def _holder(block: Node) -> Node | None:
    """The statement that does nothing if a block is empty."""
    around = block.parent
    if around is None or around.type in _LOOPS:
        return around
    if around.type == "if_statement":
        return around if around.child_by_field_name("alternative") is None else None
    if around.type not in FUNCTIONS or around.parent is None or around.parent.type != "arguments":
        return None
    call = around.parent.parent
    while call is not None and call.type in {"call_expression", "await_expression"}:
        call = call.parent
    return call if call is not None and call.type == "expression_statement" else None
