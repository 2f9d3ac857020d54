"""Parts of functions that stay and use removed code, but of which other code has need: they cannot go with it."""

from __future__ import annotations

from tree_sitter import Node

from excise.extractors.python.analysis.grammar import DEFINITIONS, field, statements, text_of

_REPORTING = frozenset(
    {"print", "debug", "info", "warning", "warn", "error", "exception", "critical", "log", "echo", "secho"}
)
"""Functions that tell users of something: what they tell of removed code goes with it."""


def takes_its_result(statement: Node, use: Node) -> bool:
    """Whether a statement is a call that does more than to use removed code: it writes, or stores, what that gives, as
    in ``write(gone(x))``."""
    child, parent, is_called = use, use.parent, False
    while parent is not None and parent != statement:
        if parent.type == "call":
            is_function = field(parent, "function") == child
            last = text_of(field(parent, "function")).rpartition(".")[2]
            around = parent.parent
            if around is not None and around.type == "await":
                around = around.parent
            if is_called and not is_function and around == statement:
                return last not in _REPORTING or _is_in_branch(statement)
            is_called |= is_function
        child, parent = parent, parent.parent
    return False


def _is_in_branch(statement: Node) -> bool:
    """Whether a statement is one of several of a branch or loop, which is there for what it prints."""
    block = statement.parent
    owner = block.parent if block is not None else None
    is_inside = owner is not None and owner.type not in {"function_definition", "module"}
    return is_inside and block is not None and len(statements(block)) > 1


def leaves_a_raise(statement: Node) -> bool:
    """Whether a statement is all that a handler of exceptions does before it raises them again."""
    block = statement.parent
    if block is None or block.parent is None or block.parent.type != "except_clause":
        return False
    rest = [each for each in statements(block) if each != statement]
    return len(rest) == 1 and rest[0].type == "raise_statement" and not rest[0].named_children


def is_one_of_two_values(use: Node) -> bool:
    """Whether a use is a part of one value of ``a if b else c``: the other one is of code that stays."""
    child, parent = use, use.parent
    while parent is not None and not parent.type.endswith(("_statement", "_clause", "block", "lambda")):
        if parent.type == "conditional_expression" and parent.named_children[1] != child:
            return True
        child, parent = parent, parent.parent
    return False


def is_default_branch(arm: Node) -> bool:
    """Whether an ``else`` is for all values that an ``if`` and its ``elif`` do not compare with a text of their own:
    without it, nothing would be done for the usual one."""
    owner = arm.parent
    if arm.type != "else_clause" or owner is None or owner.type != "if_statement":
        return False
    others = [each for each in owner.children_by_field_name("alternative") if each.type == "elif_clause"]
    conditions = [each.child_by_field_name("condition") for each in (owner, *others)]
    asked = {_compared_with_a_text(each) for each in conditions if each is not None}
    return len(conditions) > 1 and len(asked) == 1 and asked != {""}


def _compared_with_a_text(condition: Node) -> str:
    """What ``x == "text"`` compares with a text; empty for another condition."""
    if condition.type != "comparison_operator" or [each.type for each in condition.children][1:] != ["==", "string"]:
        return ""
    return text_of(condition.children[0])


def is_last_way_out(arm: Node) -> bool:
    """Whether a function would end without a value or an exception where an ``else`` at its end gives one."""
    owner, body = arm.parent, arm.child_by_field_name("body")
    if arm.type != "else_clause" or owner is None or owner.type != "if_statement" or body is None:
        return False
    last = statements(body)[-1:]
    if not last or last[0].type not in {"return_statement", "raise_statement"} or not last[0].named_children:
        return False
    while owner is not None and owner.type not in DEFINITIONS:
        block = owner.parent
        if owner.type in {"for_statement", "while_statement"} or block is None:
            return False
        if block.type == "block" and statements(block)[-1] != owner:
            return False
        owner = block
    return owner is not None and owner.type == "function_definition"
