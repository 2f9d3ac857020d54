"""Loops, and calls that do something for each item, that end after one round, in languages with braces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tree_sitter import Node

BLOCKS = frozenset({"block", "statement_block", "statement_list", "constructor_body"})
"""Nodes with statements."""
_ENDING = frozenset(
    {"return_statement", "throw_statement", "break_statement", "continue_statement", "goto_statement",
     "return_expression", "break_expression", "continue_expression"}
)  # fmt: skip
"""Statements behind which nothing is done."""
_FUNCTIONS = frozenset(
    {"arrow_function", "function_expression", "lambda_expression", "closure_expression", "method_reference"}
)
"""Functions that are written where they are given away."""
_MAX_GIVEN = 2
"""Number of arguments of a call for each item: a function and, maybe, a first value."""


def round_of_loop(loop: Node, source: bytes) -> tuple[int, bytes] | None:
    """Where to write what, so that a loop ends after its first round; ``None`` if no end of its body is reached."""
    body = loop.child_by_field_name("body")
    if body is None or body.type not in {"block", "statement_block"} or not body.named_children:
        return None
    last = body.named_children[-1]
    while last.type in {"statement_list", "expression_statement", "labeled_statement"} and last.named_children:
        last = last.named_children[-1]
    if _ends(last) or "comment" in last.type:
        return None
    place = body.end_byte - 1
    text = b"\nbreak;\n" if source[place : place + 1] == b"}" else b""
    if last.type.endswith("expression") or last.type == "macro_invocation":
        text = b";" + text if not source[last.end_byte : place].strip() else text
    return (place, text) if text else None


def round_of_call(call: Node, source: bytes, methods: Mapping[str, bytes]) -> tuple[int, bytes] | None:
    """Where to write what, so that a call of one of the ``methods``, which is given a function, is for one item."""
    function, arguments = call.child_by_field_name("function") or call, call.child_by_field_name("arguments")
    held, name = (_first_field(function, fields) for fields in (("object", "value"), ("property", "name", "field")))
    if held is None or name is None or arguments is None or b"?" in source[held.end_byte : name.start_byte]:
        return None
    text = methods.get(source[name.start_byte : name.end_byte].decode("utf-8", "replace"))
    given = [each.type for each in arguments.named_children if "comment" not in each.type]
    is_for_each = len(given) <= _MAX_GIVEN and not _FUNCTIONS.isdisjoint(given)
    return (held.end_byte, text) if text and is_for_each else None


def _first_field(node: Node, names: Sequence[str]) -> Node | None:
    found = (node.child_by_field_name(name) for name in names)
    return next((each for each in found if each is not None), None)


def _ends(node: Node) -> bool:
    """Whether nothing behind a statement is done; of a choice, if all of its branches end."""
    if node.type in {"statement_list", "expression_statement", "labeled_statement", "else_clause", *BLOCKS}:
        return bool(node.named_children) and _ends(node.named_children[-1])
    then, other = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
    if then is not None and other is not None:
        return _ends(then) and _ends(other)
    return node.type in _ENDING
