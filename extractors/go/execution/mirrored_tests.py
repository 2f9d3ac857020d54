"""Mirrored tests: the checks of a test turned round, so that no right solution passes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tree_sitter import Node

from excise.extractors.go.analysis.grammar import FUNCTIONS, descendants, parse_tree, text
from excise.extractors.go.analysis.parsed_file import name_of

_FAILING = frozenset({"Error", "Errorf", "Fatal", "Fatalf", "Fail", "FailNow"})


def mirrored(source: bytes, functions: Sequence[str]) -> bytes | None:
    """The test file with the conditions of failing checks in ``functions`` negated; ``None`` if there are none.

    ``if got != want { t.Errorf(…) }`` fails the test if the values are equal. What a helper checks stays as it is.
    """
    wanted, edits = set(functions), list[tuple[int, int]]()
    for node in parse_tree(source).root_node.named_children:
        if node.type in FUNCTIONS and name_of(node, source) in wanted:
            edits += _conditions(node, source)
    if not edits:
        return None
    found, place = bytearray(), 0
    for start, end in sorted(edits):
        if start >= place:
            found += source[place:start] + b"!(" + source[start:end] + b")"
            place = end
    return bytes(found + source[place:])


def _conditions(function: Node, source: bytes) -> Iterator[tuple[int, int]]:
    """Byte ranges of the conditions of ``if`` statements whose own block fails the test."""
    for node in descendants(function):
        if node.type != "if_statement":
            continue
        condition, block = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
        if condition is not None and block is not None and any(_fails(child, source) for child in descendants(block)):
            yield condition.start_byte, condition.end_byte


def _fails(node: Node, source: bytes) -> bool:
    if node.type != "call_expression":
        return False
    function = node.child_by_field_name("function")
    if function is None or function.type != "selector_expression":
        return False
    field = function.child_by_field_name("field")
    return field is not None and text(field, source) in _FAILING
