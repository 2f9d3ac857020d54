"""The grammar of Go, and names of node types that have something in common."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache

import tree_sitter_go
from tree_sitter import Language, Node, Parser, Tree

FUNCTIONS = frozenset({"function_declaration", "method_declaration"})
"""Declarations with a body."""
DECLARATIONS = FUNCTIONS | {"type_declaration", "const_declaration", "var_declaration"}
"""Declarations of a file, besides imports."""
NAMES = frozenset({"identifier", "type_identifier", "field_identifier", "package_identifier", "label_name"})
"""Leaves that are names."""
BRANCHES = frozenset({"if_statement", "for_statement", "expression_case", "type_case", "communication_case"})
"""Statements and clauses that add a path."""


@cache
def _language() -> Language:
    return Language(tree_sitter_go.language())


@lru_cache(maxsize=32)
def parse_tree(source: bytes) -> Tree:
    """The syntax tree of a file; it has nodes of the type ``ERROR`` where the syntax is wrong."""
    return Parser(_language()).parse(source)


def text(node: Node, source: bytes) -> str:
    """The source text of a node."""
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def descendants(node: Node) -> Iterator[Node]:
    """The node and all nodes below it, in the order of the source."""
    stack = [node]
    while stack:
        found = stack.pop()
        yield found
        stack.extend(reversed(found.children))


def names_in(node: Node, source: bytes) -> Iterator[str]:
    """All names in a node, in order."""
    return (text(leaf, source) for leaf in descendants(node) if leaf.type in NAMES)


def statements(block: Node) -> list[Node]:
    """The statements of a block, without comments."""
    found: list[Node] = []
    for child in block.named_children:
        found += statements(child) if child.type == "statement_list" else [child] if child.type != "comment" else []
    return found
