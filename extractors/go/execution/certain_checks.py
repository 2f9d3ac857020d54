"""Whether a test makes the same checks whatever right code does, and compares nothing elsewhere.

Otherwise right solutions would report different values, or a comparison with what is expected would stay in the test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tree_sitter import Node

from excise.extractors.go.analysis.grammar import descendants
from excise.extractors.go.execution.declared_names import is_within

_ENDS = frozenset({"return_statement", "break_statement", "continue_statement", "goto_statement"})
_CHOICES = frozenset({"expression_switch_statement", "type_switch_statement", "select_statement"})
_COMPARISONS = frozenset({"==", "!=", "<", ">", "<=", ">="})


def why_uncertain(
    function: Node,
    checks: Sequence[Node],
    calls: Sequence[Node],
    table: Callable[[Node], object],
    method: Callable[[Node], str],
) -> str:
    """Why a test may make other checks, or compares elsewhere; empty if it does neither.

    ``checks`` and ``calls`` are its statements that check, and its calls of helpers that do. ``table`` gives what the
    clause of a loop ranges over, if that is written out, ``method`` the method of a test that is called.
    """
    if function.child_by_field_name("type_parameters") is not None:
        return "helper with parameters that are types"

    def is_subtest(literal: Node) -> bool:
        call = literal.parent.parent if literal.parent is not None else None
        return call is not None and method(call) == "Run"

    why = (_why_repeated(each, function, table, is_subtest) for each in (*checks, *calls))
    outside = [node for node in descendants(function) if not any(is_within(node, check) for check in checks)]
    heads = (check.child_by_field_name("initializer") for check in checks)
    outside += [node for head in heads if head is not None for node in descendants(head)]
    why_else = (_why_changed(node, function, method, is_subtest) for node in outside)
    return next(filter(None, (*why, *why_else)), "")


def _why_repeated(
    check: Node, function: Node, table: Callable[[Node], object], is_subtest: Callable[[Node], bool]
) -> str:
    """Why the code may decide how often a check is made; empty if it does not."""
    around = check.parent
    while around is not None and around != function:
        clauses = [child for child in around.named_children if child.type == "range_clause"]
        is_fixed = all(table(clause) is not None for clause in clauses) if clauses else _is_counting(around)
        if around.type == "for_statement" and not is_fixed:
            return "check in a loop over what the code may decide"
        if around.type == "func_literal" and not is_subtest(around):
            return "check in a function that the code may call"
        around = around.parent
    return ""


def _why_changed(node: Node, function: Node, method: Callable[[Node], str], is_subtest: Callable[[Node], bool]) -> str:
    """Why a node outside of checks may end the test early, or compare; empty if it does not."""
    is_skip = node.type == "call_expression" and method(node) in {"Skip", "Skipf", "SkipNow"}
    if node.type in _ENDS or is_skip:
        around = node.parent
        while around is not None and around != function:
            if around.type == "func_literal" and not is_subtest(around):
                return ""  # it ends a function that the code calls
            around = around.parent
        return "test that may end early"
    is_comparing = node.type in _CHOICES or (is_comparison(node) and not _is_of_loop(node))
    return "comparison outside a check" if is_comparing else ""


def is_comparison(node: Node) -> bool:
    """Whether a node compares two values, neither of which is ``nil``."""
    is_one = node.type == "binary_expression" and node.children[1].type in _COMPARISONS
    return is_one and "nil" not in {child.type for child in node.named_children}


def _is_counting(loop: Node) -> bool:
    """Whether a loop counts to a number that is written out."""
    clause = next((child for child in loop.named_children if child.type == "for_clause"), None)
    below = list(descendants(clause)) if clause is not None else []
    names = {each.text for each in below if each.type == "identifier"}
    return len(names) == 1 and not any(each.type in {"call_expression", "selector_expression"} for each in below)


def _is_of_loop(node: Node) -> bool:
    """Whether a comparison ends a loop that counts."""
    return node.parent is not None and node.parent.type == "for_clause"
