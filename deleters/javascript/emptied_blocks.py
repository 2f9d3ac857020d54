"""Loops, conditions and callbacks of which nothing is left."""

from __future__ import annotations

from collections.abc import Iterable

from tree_sitter import Node

from excise.deleters.javascript.byte_spans import Range
from excise.extractors.javascript.analysis.grammar import FUNCTIONS, children, parse_tree, text

_LOOPS = frozenset({"for_statement", "for_in_statement", "while_statement", "statement_block"})
_PLACES = frozenset({"statement_block", "program"})
"""What a statement can be taken out of."""
_EACH = frozenset({"forEach", "each"})
"""Methods that do nothing but call what they are given."""


def with_emptied(source: bytes, statements: Iterable[Range]) -> list[Range]:
    """The bytes of statements that go, and of those around them of which nothing would be left: a loop, an ``if``
    without ``else``, and ``cases.forEach(…)``. None of them is in another one."""
    root, found = parse_tree(source).root_node, sorted(statements)
    staying: dict[int, int] = {}
    """Where a block begins to the number of its statements that stay."""
    pending = list(found)
    while pending:
        block = _block_of(root, *pending.pop())
        if block is None:
            continue
        if block.start_byte not in staying:
            staying[block.start_byte] = len(children(block))
        staying[block.start_byte] -= 1
        holder = _holder(block, source) if not staying[block.start_byte] else None
        if holder is not None and holder.parent is not None and holder.parent.type in _PLACES:
            pending.append((holder.start_byte, holder.end_byte))
            found.append(pending[-1])
    outer: list[Range] = []
    for start, end in sorted(found, key=lambda each: (each[0], -each[1])):
        if not outer or end > outer[-1][1]:
            outer.append((start, end))
    return outer


def _block_of(root: Node, start: int, end: int) -> Node | None:
    """The block of which the bytes are a statement, its semicolon perhaps left out; ``None`` if they are none."""
    node = root.descendant_for_byte_range(start, max(start, end - 1))
    while node is not None and node.parent is not None and node.parent.type != "statement_block":
        node = node.parent
    is_whole = node is not None and node.start_byte == start and node.end_byte in {end, end + 1}
    return node.parent if node is not None and is_whole else None


def _holder(block: Node, source: bytes) -> Node | None:
    """The statement that does nothing if a block is empty."""
    around = block.parent
    if around is None or around.type in _LOOPS:
        return around
    if around.type == "if_statement":
        return around if around.child_by_field_name("alternative") is None else None
    if around.type not in FUNCTIONS or around.parent is None or len(children(around.parent)) != 1:
        return None
    call = around.parent.parent if around.parent.type == "arguments" else None
    called = call.child_by_field_name("function") if call is not None else None
    name = called.child_by_field_name("property") if called is not None else None
    if call is None or name is None or text(name, source) not in _EACH:
        return None
    return call.parent if call.parent is not None and call.parent.type == "expression_statement" else None
