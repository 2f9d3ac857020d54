"""The grammar of Rust, and names of node types that have something in common."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import tree_sitter_rust
from tree_sitter import Language, Node, Parser, Tree

TYPES = frozenset({"struct_item", "enum_item", "union_item", "trait_item"})
"""Items that define a type or a trait."""
NAMES = frozenset({"identifier", "type_identifier", "field_identifier", "shorthand_field_identifier"})
"""Leaves that are names."""
COMMENTS = frozenset({"line_comment", "block_comment"})
BEFORE_ITEMS = COMMENTS | {"attribute_item"}
"""What stands before an item and belongs to it."""
LITERALS = frozenset(
    {
        "string_literal", "raw_string_literal", "char_literal", "boolean_literal", "integer_literal", "float_literal",
    }
)  # fmt: skip
BRANCHES = frozenset({"if_expression", "match_arm", "while_expression", "for_expression", "loop_expression"})
"""Nodes that add a path."""

_WITH_FUNCTIONS = frozenset(
    {"default", "with", "serialize_with", "deserialize_with", "skip_serializing_if", "getter"}
)  # fmt: skip
"""What of serde's attributes names a function in a text, or a module of two functions."""


@cache
def _language() -> Language:
    return Language(tree_sitter_rust.language())


def parse_tree(source: bytes) -> Tree:
    """The syntax tree of a file; it has nodes of the type ``ERROR`` where the syntax is wrong."""
    return Parser(_language()).parse(source)


def text(node: Node, source: bytes) -> str:
    """The source text of a node."""
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def field_text(node: Node, field: str, source: bytes) -> str:
    """The source text of a field of a node; empty if it has none."""
    found = node.child_by_field_name(field)
    return text(found, source) if found is not None else ""


def descendants(node: Node) -> Iterator[Node]:
    """The node and all nodes below it, in the order of the source."""
    stack = [node]
    while stack:
        found = stack.pop()
        yield found
        stack.extend(reversed(found.children))


def named_in_attribute(leaf: Node, source: bytes) -> list[tuple[str, str]]:
    """The functions that a text in an attribute of serde names, each with the module or type before its name:
    ``default = "a::b"``."""
    sign = leaf.prev_sibling if leaf.type == "string_literal" else None
    key = sign.prev_sibling if sign is not None and sign.type == "=" else None
    told = text(key, source) if key is not None else ""
    path = text(leaf, source).strip('"') if told in _WITH_FUNCTIONS else ""
    if not re.fullmatch(r"\w+(?:::\w+)*", path):
        return []
    *_, module, name = ["", *path.split("::")]
    return [(name, "serialize"), (name, "deserialize")] if told == "with" else [(module, name)]


def before_item(node: Node) -> list[Node]:
    """Attributes and documentation of an item, in order: what stands directly above it, without a blank line between.

    Attributes belong to it at any distance.
    """
    found: list[Node] = []
    line, above = node.start_point[0], node.prev_sibling
    while above is not None and above.type in BEFORE_ITEMS:
        ends = above.end_point[0] - (above.end_point[1] == 0)  # documentation ends on the next line
        if above.type in COMMENTS:
            before = above.prev_sibling
            if ends < line - 1 or (
                before is not None and before.end_point[0] == above.start_point[0] != 0 and before.end_point[1] != 0
            ):
                break
        found.insert(0, above)
        line = above.start_point[0]
        above = above.prev_sibling
    return found


def attributes_of(node: Node, source: bytes) -> list[str]:
    """Texts of the attributes of an item, without ``#[`` and ``]``, white space folded."""
    attributes = (each for each in before_item(node) if each.type == "attribute_item")
    return [" ".join(text(each, source).strip()[2:-1].split()) for each in attributes]


def is_test_code(attributes: list[str]) -> bool:
    """Whether attributes say that an item exists for tests only."""
    return any("test" in _all_of("".join(each.split())) for each in attributes)


def _all_of(attribute: str) -> list[str]:
    """The conditions of ``cfg(A)`` and ``cfg(all(A, B))``, without blanks; none of other attributes."""
    inner = attribute.removeprefix("cfg(").removesuffix(")") if attribute.startswith("cfg(") else ""
    if not (inner.startswith("all(") and inner.endswith(")")):
        return [inner]
    found, depth = [""], 0
    for letter in inner[4:-1]:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return found


def is_test_function(attributes: list[str]) -> bool:
    """Whether attributes make a function a test that the standard library's runner knows."""
    return any(each.replace(" ", "").rpartition("::")[2] == "test" for each in attributes)
