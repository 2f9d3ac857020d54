"""Statements that are all that a function without a result always does, in languages with braces."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

_FUNCTIONS = frozenset(
    {"function_declaration", "method_declaration", "function_item", "method_definition", "function_expression",
     "constructor_declaration"}
)  # fmt: skip
_RESULTS = ("result", "return_type", "type")
"""Fields of functions with the type of what they return."""
_NO_RESULT = frozenset({"void", ": void", "()"})
_CALL = re.compile(r"(?!(?:return|throw|panic)\b)[\w$.:]+!?\(")
_GUARDING = re.compile(r"[\w$.]*\b(?:un)?r?lock\(", re.IGNORECASE)
"""Calls that only keep others out."""
_ACTING = frozenset({"expression_statement", "assignment_statement", "inc_statement", "dec_statement"})
"""Statements that do something whenever the function is called."""


def is_only_effect(statement: Node) -> bool:
    """Whether a statement calls something, and is the only one at the top of a function without a result that acts."""
    block = statement.parent
    if block is not None and block.type == "statement_list":
        block = block.parent
    function = block.parent if block is not None else None
    if block is None or function is None or function.type not in _FUNCTIONS:
        return False
    if function.child_by_field_name("body") != block or not _is_effect(statement) or _has_result(function):
        return False
    others = (each for each in statements_of(block) if each != statement)
    return not any(each.type in _ACTING and not _GUARDING.match(_text(each)) for each in others)


def statements_of(block: Node) -> list[Node]:
    """The statements of a block, without comments."""
    inner = [child for child in block.named_children if "comment" not in child.type]
    return inner[0].named_children if len(inner) == 1 and inner[0].type == "statement_list" else inner


def _is_effect(statement: Node) -> bool:
    text = _text(statement)
    return _CALL.match(text) is not None and _GUARDING.match(text) is None


def _has_result(function: Node) -> bool:
    types = (function.child_by_field_name(name) for name in _RESULTS)
    if any(each is not None and _text(each).strip() not in _NO_RESULT for each in types):
        return True
    return any(each.named_child_count for each in _returns(function))


def _returns(function: Node) -> Iterator[Node]:
    """The statements that return from a function, without those of inner functions."""
    pending = [*function.named_children]
    while pending:
        node = pending.pop()
        if node.type in {"return_statement", "return_expression"}:
            yield node
        elif node.type not in _FUNCTIONS | {
            "arrow_function",
            "func_literal",
            "lambda_expression",
            "closure_expression",
        }:
            pending += node.named_children


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")
