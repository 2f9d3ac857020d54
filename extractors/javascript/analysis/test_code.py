"""The code of one test in a JavaScript file: its own block, and what that uses of the rest of the file."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

from tree_sitter import Node

from excise.extractors.javascript.analysis.grammar import VARIABLES, descendants, parse_tree, text
from excise.extractors.javascript.analysis.test_blocks import TestBlock, blocks_of

_NAMES = frozenset({"identifier", "shorthand_property_identifier", "type_identifier"})
_PATTERNS = frozenset({"identifier", "shorthand_property_identifier_pattern"})


def code_of_test(source: bytes, test: str) -> tuple[tuple[int, int], ...]:
    """(first byte, one past the last) of the parts of a test file that a test consists of.

    These are the innermost block that defines it, statements beside the blocks around that, such as hooks, and
    declarations whose names these use, one by way of another. All of the file, if no block is known to define the test.
    """
    found = blocks_of(source, [test])
    way = _way_to(found.blocks, test)
    if not way:
        return ((0, len(source)),)
    chosen = {(way[-1].start, way[-1].end)}
    around = [(0, len(source), found.blocks), *((each.start, each.end, each.blocks) for each in way[:-1])]
    declared: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for start, end, blocks in around:
        for node in _beside(source, start, end, tuple((block.start, block.end) for block in blocks)):
            names, span = _declared(node, source), (node.start_byte, node.end_byte)
            for name in names:
                declared[name].add(span)
            if not names and node.type == "expression_statement":
                chosen.add(span)
    queue = list(chosen)
    while queue:
        used = set().union(*(declared.get(name, set()) for name in _used(source, *queue.pop())))
        queue += used - chosen
        chosen |= used
    return tuple(sorted(chosen))


@lru_cache(maxsize=1024)
def span_of_test(source: bytes, test: str) -> tuple[int, int] | None:
    """(first byte, one past the last) of the innermost block that defines a test; ``None`` if none is known to."""
    way = _way_to(blocks_of(source, [test]).blocks, test)
    return (way[-1].start, way[-1].end) if way else None


def nodes_in(source: bytes, start: int, end: int) -> Sequence[Node]:
    """The named nodes that begin in a range of bytes, each before those in it."""
    nodes, starts = _nodes(source)
    return nodes[bisect_left(starts, start) : bisect_left(starts, end)]


def _way_to(blocks: Sequence[TestBlock], test: str) -> list[TestBlock]:
    """The blocks around a test, the outermost first; empty if none defines it."""
    for block in blocks:
        if test in block.tests:
            return [block]
        if inner := _way_to(block.blocks, test):
            return [block, *inner]
    return []


@lru_cache(maxsize=256)
def _beside(source: bytes, start: int, end: int, blocks: tuple[tuple[int, int], ...]) -> tuple[Node, ...]:
    """The outermost statements from ``start`` to ``end`` that hold no block and are in none."""
    found = []
    queue = list(_root(source).named_children)
    while queue:
        node = queue.pop()
        first, last = node.start_byte, node.end_byte
        if last <= start or first >= end or any(begin <= first and last <= stop for begin, stop in blocks):
            continue
        if (first <= start and end <= last) or any(first <= begin and stop <= last for begin, stop in blocks):
            queue += node.named_children
        elif node.type.endswith(("_statement", "_declaration")):
            found.append(node)
    return tuple(found)


def _declared(node: Node, source: bytes) -> set[str]:
    """The names that a statement declares."""
    if node.type in VARIABLES:
        targets = [child.child_by_field_name("name") for child in node.named_children]
        return {text(n, source) for t in targets if t is not None for n in descendants(t) if n.type in _PATTERNS}
    name = node.child_by_field_name("name")
    return {text(name, source)} if name is not None else set()


def _used(source: bytes, start: int, end: int) -> frozenset[str]:
    return frozenset(text(node, source) for node in nodes_in(source, start, end) if node.type in _NAMES)


@lru_cache(maxsize=16)
def _nodes(source: bytes) -> tuple[Sequence[Node], Sequence[int]]:
    nodes = tuple(descendants(_root(source)))
    return nodes, [node.start_byte for node in nodes]


@lru_cache(maxsize=16)
def _root(source: bytes) -> Node:
    return parse_tree(source).root_node
