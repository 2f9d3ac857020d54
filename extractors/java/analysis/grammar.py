"""The grammar of Java, and names of node types that have something in common."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache

import tree_sitter_java
from tree_sitter import Language, Node, Parser, Tree

TYPES = frozenset(
    {"class_declaration", "interface_declaration", "enum_declaration", "record_declaration",
     "annotation_type_declaration"}
)  # fmt: skip
"""Declarations of types."""
FUNCTIONS = frozenset({"method_declaration", "constructor_declaration", "compact_constructor_declaration"})
"""Declarations that may have a body."""
CONSTRUCTORS = frozenset({"constructor_declaration", "compact_constructor_declaration"})
MEMBERS = TYPES | FUNCTIONS | {"field_declaration", "constant_declaration", "static_initializer", "block"}
"""What the body of a type holds."""
NAMES = frozenset({"identifier", "type_identifier"})
"""Leaves that are names."""
COMMENTS = frozenset({"line_comment", "block_comment"})
BRANCHES = frozenset(
    {"if_statement", "for_statement", "enhanced_for_statement", "while_statement", "do_statement", "catch_clause",
     "ternary_expression", "switch_label"}
)  # fmt: skip
"""Statements and clauses that add a path."""


@cache
def _language() -> Language:
    return Language(tree_sitter_java.language())


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


def members_of(declaration: Node) -> Iterator[Node]:
    """The members in the body of a type, in order."""
    body = declaration.child_by_field_name("body")
    stack = [body] if body is not None else []
    while stack:
        for child in stack.pop().named_children:
            if child.type in MEMBERS:
                yield child
            elif child.type == "enum_body_declarations":
                stack.append(child)


def name_of(node: Node, source: bytes) -> str:
    """The name that a declaration gives; empty if it gives none."""
    name = node.child_by_field_name("name")
    return text(name, source) if name is not None else ""


def modifiers_of(node: Node) -> Node | None:
    """The modifiers and annotations before a declaration."""
    return next((child for child in node.children if child.type == "modifiers"), None)


def has_modifier(node: Node, *words: str) -> bool:
    """Whether a declaration has one of the modifiers."""
    found = modifiers_of(node)
    return found is not None and any(child.type in words for child in found.children)


def annotations_of(node: Node, source: bytes) -> tuple[str, ...]:
    """Source text of the annotations before a declaration, without ``@``."""
    found = modifiers_of(node)
    kinds = {"annotation", "marker_annotation"}
    return tuple(
        text(child, source)[1:] for child in (found.children if found is not None else ()) if child.type in kinds
    )


def statements(block: Node) -> list[Node]:
    """The statements of a block, without comments."""
    return [child for child in block.named_children if child.type not in COMMENTS]


def comments_above(node: Node) -> list[Node]:
    """The comments directly above a declaration, without a blank line between, in order."""
    found: list[Node] = []
    line, above = node.start_point[0], node.prev_sibling
    while above is not None and above.type in COMMENTS:
        if above.end_point[0] < line - 1 or above.end_point[0] == line:
            break
        before = above.prev_sibling
        if before is not None and before.end_point[0] == above.start_point[0] and before.type != "{":
            break  # it stands behind code
        found.insert(0, above)
        line = above.start_point[0]
        above = before
    return found


def line_end(end: int, source: bytes) -> int:
    """The end of the line, as far as nothing else stands on it but a comment."""
    line = source.find(b"\n", end)
    line = len(source) if line < 0 else line
    rest = source[end:line].strip()
    return min(len(source), line + 1) if not rest or rest.startswith(b"//") else end
