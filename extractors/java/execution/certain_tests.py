"""Whether a Java test makes the same checks whatever right code does, and compares nothing elsewhere.

Otherwise right solutions would report different values, or a comparison with what is expected would stay in the test.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from tree_sitter import Node

from excise.extractors.java.analysis.grammar import descendants, name_of, text
from excise.extractors.java.execution.checks import arguments

LOOPS = frozenset({"for_statement", "enhanced_for_statement", "while_statement", "do_statement"})
_COMPARISONS = frozenset({"==", "!=", "<", ">", "<=", ">="})
_COMPARING = re.compile(
    r"(?:deep|content)?[eE]quals\w*|compare\w*|contains\w*|startsWith|endsWith|matches|lookingAt|find|(?:last)?[iI]ndexOf\w*"
    r"|regionMatches|is(?:Same|Equal|Before|After|Instance|AssignableFrom)\w*|(?:any|all|none)Match|mismatch|disjoint"
    r"|(?:has|same)\w*(?:Equal|Same)\w*"
)
_FREE = frozenset({
    "block", "expression_statement", "finally_clause", "synchronized_statement", "local_variable_declaration",
    "variable_declarator", "argument_list", "method_invocation", "method_declaration",
})  # fmt: skip
_CONDITIONS = frozenset({"if_statement", "switch_expression", "switch_statement", "ternary_expression"})
_CHANGES = frozenset({"assignment_expression", "update_expression"})
_STEPS = frozenset({"next", "read", "poll", "pop", "incrementAndGet", "getAndIncrement", "remove"})
_TRIES = frozenset({"try_statement", "try_with_resources_statement"})
_JUMPS = frozenset({"break_statement", "continue_statement"})
_ENDS = _JUMPS | {"return_statement", "throw_statement"}
_CHOICES = frozenset({"switch_expression", "yield_statement", "assert_statement", "labeled_statement"})


def may_compare(name: str, depending: Collection[str]) -> bool:
    """Whether a method may compare something with what is expected; ``depending``: names of the code under test and of
    what calls it."""
    return _COMPARING.fullmatch(name) is not None and name not in depending


def is_comparison(node: Node) -> bool:
    """Whether a node compares two values, neither of which is ``null``, or asks for a type."""
    if node.type == "instanceof_expression":
        return True
    is_one = node.type == "binary_expression" and node.children[1].type in _COMPARISONS
    return is_one and "null_literal" not in {child.type for child in node.named_children}


def why_repeated(
    node: Node,
    body: Node,
    is_written: Callable[[Node], bool],
    is_all: Callable[[Node], bool],
    is_failing: Callable[[Node], bool],
) -> str:
    """Why the code may decide whether, or how often, a check is made; empty if it does not.

    ``is_written`` tells whether a value is written out, ``is_all`` whether a call makes checks in functions one after
    the other, ``is_failing`` whether a clause that catches an error only fails the test, or is where the check belongs.
    """
    child, around, why = node, node.parent, ""
    while around is not None and child != body and not why:
        if around.type in LOOPS:
            why = "" if _is_fixed(around, is_written) else "check in a loop over what the code may decide"
        elif around.type in {"lambda_expression", "class_body"}:
            call = around.parent.parent if around.parent is not None else None
            is_called = around.type == "lambda_expression" and call is not None and is_all(call)
            why = "" if is_called else "check in a function that the code may call"
        elif around.type in _TRIES:
            clauses = [each for each in around.named_children if each.type == "catch_clause"]
            is_caught = child.type == "block" and not all(map(is_failing, clauses))
            why = "check whose failure is caught" if is_caught else ""
        elif around.type == "catch_clause":
            why = "" if is_failing(around) else "check under a condition"
        elif around.type not in _FREE:
            why = "check under a condition"
        child, around = around, around.parent
    return why


def _is_fixed(loop: Node, is_written: Callable[[Node], bool]) -> bool:
    """Whether a loop runs as often as is written out."""
    if loop.type == "enhanced_for_statement":
        value = loop.child_by_field_name("value")
        return value is not None and is_written(value)
    condition = loop.child_by_field_name("condition")
    if loop.type != "for_statement" or condition is None or condition.type != "binary_expression":
        return False
    init, update = loop.child_by_field_name("init"), loop.child_by_field_name("update")
    left, right = condition.named_children[0], condition.named_children[-1]
    if init is None or update is None or left.type != "identifier" or not is_written(right):
        return False
    values = [each.child_by_field_name("value") for each in init.children_by_field_name("declarator")]
    is_counting = update.type == "update_expression" or (
        update.type == "assignment_expression" and is_written(update.named_children[-1])
    )
    body = loop.child_by_field_name("body")
    changes = (each for each in descendants(body) if each.type in _CHANGES) if body is not None else ()
    is_changed = any(each.named_children[0].text == left.text for each in changes)
    return len(values) == 1 and values[0] is not None and is_written(values[0]) and is_counting and not is_changed


def why_changed(
    node: Node, source: bytes, depending: Collection[str], has_check: Callable[[Node], bool], body: Node
) -> str:
    """Why a node outside of checks may end the test early, or compares; empty if it does neither."""
    if node.type == "throw_statement" and _is_chosen(node, body):
        return "failure without a check"
    if node.type in _ENDS:
        return "test that may end early" if _ends_test(node, has_check, body) else ""
    is_call = node.type == "method_invocation" and may_compare(name_of(node, source), depending)
    is_other = node.type in _CHOICES or (is_comparison(node) and not is_of_loop(node, source, depending))
    if not (is_call or is_other) or is_given(node, source, depending, body):
        return ""
    return "comparing function" if is_call else "comparison outside a check"


def _ends_test(node: Node, has_check: Callable[[Node], bool], body: Node) -> bool:
    """Whether a statement ends the test, or a loop with checks, and not a function that the code calls."""
    around = node.parent
    while around is not None and around != body:
        is_loop = node.type in _JUMPS and around.type in LOOPS and not has_check(around)
        if is_loop or around.type in {"lambda_expression", "class_body"}:
            return False
        around = around.parent
    return True


def _is_chosen(node: Node, body: Node) -> bool:
    """Whether a statement is under a condition in a function or class."""
    around, chosen = node.parent, False
    while around is not None and around != body:
        if around.type in {"lambda_expression", "class_body"}:
            return chosen
        chosen = chosen or around.type in _CONDITIONS
        around = around.parent
    return False


def is_given(node: Node, source: bytes, depending: Collection[str], body: Node) -> bool:
    """Whether a node is in a function or class that is given to the code under test."""
    around, inside = node.parent, False
    while around is not None and around != body:
        inside = inside or around.type in {"lambda_expression", "class_body"}
        if inside and is_call_of(around, source, depending):
            return True
        around = around.parent
    return False


def has_effect(message: Node, source: bytes) -> bool:
    """Whether what makes a message changes something that the test goes on with."""
    return any(
        each.type in _CHANGES or (each.type == "method_invocation" and name_of(each, source) in _STEPS)
        for each in descendants(message)
    )


def is_call_of(node: Node, source: bytes, depending: Collection[str]) -> bool:
    """Whether a node calls the code under test, or what calls that."""
    if node.type == "method_invocation":
        return name_of(node, source) in depending
    kind = node.child_by_field_name("type") if node.type == "object_creation_expression" else None
    return kind is not None and bool(set(re.findall(r"\w+", text(kind, source))).intersection(depending))


def is_input(node: Node, source: bytes, depending: Collection[str], body: Node) -> bool:
    """Whether a name is given to the code under test."""
    child, around = node, node.parent
    while around is not None and around != body:
        if is_call_of(around, source, depending) and child in (
            around.child_by_field_name("arguments"),
            *arguments(around),
        ):
            return True
        if around.type in {"lambda_expression", "class_body"}:
            return False
        child, around = around, around.parent
    return False


def is_of_loop(node: Node, source: bytes, depending: Collection[str]) -> bool:
    """Whether a comparison ends a loop that counts."""
    parent = node.parent
    is_end = parent is not None and parent.type == "for_statement" and parent.child_by_field_name("condition") == node
    return is_end and not any(is_call_of(each, source, depending) for each in descendants(node))
