"""Expected values that are written out in a test, and neutral ones of the same types."""

from __future__ import annotations

import re
from typing import NamedTuple

from tree_sitter import Node

from excise.extractors.divided_tests import Edit
from excise.extractors.rust.analysis.grammar import LITERALS, descendants, parse_tree, text
from excise.extractors.rust.execution.mirrored_tests import is_plain_node

_HEAD = b"fn f() { let _ = "
_FOREIGN_CONSTANT = re.compile(r"(?:[iuf](?:8|16|32|64|128|size)|(?:std|core|alloc)::.*)::[A-Z_0-9]+$")
_LETTER = re.compile(r"\\x..|\\u\{[^}]*\}|\\.|[^\\]", re.DOTALL)


class NeutralValue(NamedTuple):
    """An expression without its literals."""

    text: str
    """The expression with zeros, empty texts and ``false``."""
    variables: frozenset[str]
    """Names of variables in it."""


def parsed(expression: str) -> tuple[Node | None, bytes]:
    """The syntax tree of an expression, and the source that it is in; the tree is ``None`` if there is no such.

    A vector is read as an array, so that what is in it is.
    """
    source = _HEAD + expression.encode() + b"; }"
    root = parse_tree(source.replace(b"vec!", b"    ")).root_node
    let = next((node for node in descendants(root) if node.type == "let_declaration"), None)
    value = let.child_by_field_name("value") if let is not None else None
    whole = len(_HEAD) + len(expression.encode())
    if root.has_error or value is None or value.end_byte != whole:
        return None, source
    return value, source


def place_in(expression_start: int, node: Node) -> tuple[int, int]:
    """Where a node of a :func:`parsed` expression is in the file that has the expression at ``expression_start``."""
    offset = expression_start - len(_HEAD)
    return node.start_byte + offset, node.end_byte + offset


def neutral_value(expression: str) -> NeutralValue | None:
    """The neutral form of an expression that is written out; ``None`` for one that calls code, or names constants."""
    value, source = parsed(expression)
    if value is None:
        return None
    variables, edits, end = set(), list[Edit](), 0
    for node in descendants(value):
        if node.type == "identifier" and _is_variable(node, source):
            variables.add(text(node, source))
        elif node.is_named and not (is_plain_node(node, source) and _is_known(node, source)):
            return None
        if node.start_byte < end or not _is_value(node):
            continue
        literal = node.named_children[0] if node.type == "unary_expression" else node
        changed = neutral_literal(text(literal, source), literal.type)
        if not changed:
            return None
        edits.append(Edit(node.start_byte, node.end_byte, changed.encode()))
        end = node.end_byte
    result = bytearray(source[: value.end_byte])
    for edit in reversed(edits):
        result[edit.start : edit.end] = edit.text
    return NeutralValue(bytes(result[len(_HEAD) :]).decode(), frozenset(variables))


def _is_variable(node: Node, source: bytes) -> bool:
    parent = node.parent
    is_part = parent is not None and parent.type in {"scoped_identifier", "call_expression", "macro_invocation"}
    return not is_part and not text(node, source)[:1].isupper()


def _is_known(node: Node, source: bytes) -> bool:
    """Whether a name is no constant, which could stand for a value of the test, unless the standard library has it."""
    word = text(node, source)
    if node.type == "scoped_identifier":
        last = word.rpartition("::")[2]
        return not last.isupper() or _FOREIGN_CONSTANT.match(word) is not None
    if node.type != "identifier" or not word.isupper():
        return True
    return node.parent is not None and node.parent.type in {"scoped_identifier", "call_expression"}


def _is_value(node: Node) -> bool:
    """Whether a node is a literal, with its sign, and says no index, field or length."""
    if node.type == "unary_expression":
        inner = node.named_children
        return (
            len(inner) == 1 and inner[0].type in {"integer_literal", "float_literal"} and node.children[0].type == "-"
        )
    parent = node.parent
    if node.type not in LITERALS or parent is None:
        return False
    is_length = parent.type == "array_expression" and parent.child_by_field_name("length") == node
    return not is_length and parent.child_by_field_name("field") != node


def neutral_literal(word: str, kind: str) -> str:
    """The neutral literal of the same type; empty if none is known."""
    suffix = next(iter(re.findall(r"[iuf](?:8|16|32|64|128|size)$", word)), "")
    numbers = {"boolean_literal": "false", "integer_literal": f"0{suffix}", "float_literal": f"0.0{suffix}"}
    if kind in numbers:
        return numbers[kind]
    if kind == "char_literal":
        return "b' '" if word.startswith("b") else "' '"
    if not word.startswith("b"):
        return '""' if word[:1] in {'"', "r"} else ""
    inside = word[word.index('"') + 1 : word.rindex('"')]
    size = len(inside.encode()) if word.startswith("br") else len(_LETTER.findall(inside))
    return "" if re.search(r"\\\n", inside) else f'b"{"x" * size}"'
