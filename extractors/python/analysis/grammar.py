"""The tree-sitter grammar of Python, and functions on its nodes that several modules use."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache, lru_cache

import tree_sitter_python
from tree_sitter import Language, Node, Parser, Query, QueryCursor, Tree

DEFINITIONS = frozenset({"function_definition", "class_definition"})
COMPOUND = frozenset(
    {"if_statement", "try_statement", "with_statement", "for_statement", "while_statement", "match_statement"}
)


@cache
def _language() -> Language:
    return Language(tree_sitter_python.language())


@lru_cache(maxsize=64)
def parse_tree(source: bytes) -> Tree:
    """The syntax tree, which nobody changes. Never raises: syntax errors are nodes of the tree."""
    return Parser(_language()).parse(source)


@cache
def _types_query(types: tuple[str, ...]) -> Query:
    return Query(_language(), f"[{' '.join(f'({name})' for name in types)}] @found")


def of_types(root: Node, *types: str) -> list[Node]:
    """The node and all nodes below it that have one of the types, in the order of the text: :func:`descendants`, which
    visits all nodes, takes ten times as long."""
    return QueryCursor(_types_query(types)).captures(root).get("found", [])


def comments(root: Node) -> list[Node]:
    """All comments below a node."""
    return of_types(root, "comment")


def text_of(node: Node) -> str:
    """The source text of a node whose tree keeps its source."""
    return (node.text or b"").decode(errors="replace")


def text(node: Node, source: bytes) -> str:
    """Source text of a node; bytes that are not UTF-8 become replacement characters."""
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def field(node: Node, name: str) -> Node:
    """The child in a field that the grammar requires; the node itself if a syntax error left it out."""
    return node.child_by_field_name(name) or node


def descendants(node: Node) -> Iterator[Node]:
    """The node and all named nodes below it, in no particular order."""
    queue = [node]
    while queue:
        current = queue.pop()
        yield current
        queue += current.named_children


def inner_definition(node: Node) -> Node:
    """The function or class inside a ``decorated_definition``; other nodes unchanged."""
    if node.type == "decorated_definition":
        return node.child_by_field_name("definition") or node
    return node


def statements(block: Node) -> list[Node]:
    """The statements of a block or module, without comments."""
    return [c for c in block.named_children if c.type not in {"comment", "line_continuation"}]


def docstring_node(block: Node) -> Node | None:
    """The docstring statement of a block; ``None`` if it has none."""
    body = statements(block)
    if not body or body[0].type != "expression_statement" or body[0].named_child_count != 1:
        return None
    value = body[0].named_children[0]
    parts = value.named_children if value.type == "concatenated_string" else [value]
    strings = all(p.type == "string" and _is_plain_string(p) for p in parts if p.type != "comment")
    return body[0] if strings else None


def _is_plain_string(node: Node) -> bool:
    opening = (node.children[0].text or b"") if node.children else b""
    return opening.strip(b"uUrR")[:1] in {b'"', b"'"}


def clean_docstring(statement: Node, source: bytes) -> str:
    """Value of a docstring statement, without indentation."""
    raw = text(statement, source)
    try:
        value = ast.literal_eval(raw)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        value = raw.strip("uUrR").strip("\"'")
    return inspect.cleandoc(value) if isinstance(value, str) else ""


def chain_of(node: Node, source: bytes) -> str:
    """``a.b.c`` for a name or a pure attribute chain; empty for anything else."""
    parts: list[str] = []
    while node.type == "attribute" and node.child_count:
        parts.append(text(node.children[-1], source))
        node = node.children[0]
    if node.type != "identifier":
        return ""
    return ".".join([text(node, source), *reversed(parts)])
