"""Loops that would not end, or not leave a state, without a part of them that uses removed code."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from excise.extractors.python.analysis.grammar import DEFINITIONS, descendants, text_of

_VARIABLES = frozenset({"identifier", "attribute"})
_PATTERNS = frozenset({"pattern_list", "tuple_pattern", "list_pattern"})
_WAYS_OUT = frozenset({"break_statement", "return_statement", "raise_statement"})


def ends_a_loop(span: tuple[int, int], inside: Node) -> bool:
    """Whether a loop around the removed part would not end, or would not leave a state, without it.

    The part gives a variable a new value that a condition in the loop has, or has the only way out of a ``while``, or
    all uses of what its condition asks for.
    """
    conditions: list[Node] = []
    loop, around = None, inside.parent
    while around is not None and around.type not in DEFINITIONS:
        if around.type in {"for_statement", "while_statement"}:
            loop = loop or around
            if around.type == "while_statement" and (_has_only_way_out(around, span) or _changes_alone(around, span)):
                return True
        condition = around.child_by_field_name("condition")
        if condition is not None and not span[0] <= condition.start_byte < span[1]:
            conditions.append(condition)
        around = around.parent
    if loop is None:
        return False
    assigned = set(_assigned(inside))
    return any(text_of(n) in assigned for each in conditions for n in descendants(each) if n.type in _VARIABLES)


def _has_only_way_out(loop: Node, span: tuple[int, int]) -> bool:
    """Whether the statements in a span leave a loop that always goes on, and no others do."""
    condition = loop.child_by_field_name("condition")
    if condition is None or condition.type not in {"true", "integer"}:
        return False
    ways = [n.start_byte for n in descendants(loop) if n.type in _WAYS_OUT]
    return bool(ways) and all(span[0] <= way < span[1] for way in ways)


def _changes_alone(loop: Node, span: tuple[int, int]) -> bool:
    """Whether what the condition of a loop asks for is changed by statements in a span alone: ``take(queue.pop())``."""
    condition, body = loop.child_by_field_name("condition"), loop.child_by_field_name("body")
    if condition is None or body is None:
        return False
    asked = {text_of(n) for n in descendants(condition) if n.type in _VARIABLES}
    used = [n.start_byte for n in descendants(body) if n.type in _VARIABLES and text_of(n) in asked]
    return bool(used) and all(span[0] <= start < span[1] for start in used)


def _assigned(node: Node) -> Iterator[str]:
    """The variables and attributes that a part of a function gives values to."""
    for each in descendants(node):
        if each.type in {"assignment", "augmented_assignment", "named_expression"}:
            left = each.child_by_field_name("name" if each.type == "named_expression" else "left")
            if left is not None:
                targets = left.named_children if left.type in _PATTERNS else [left]
                yield from (text_of(target) for target in targets if target.type in _VARIABLES)
