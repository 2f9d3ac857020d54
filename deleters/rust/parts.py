"""What parts of Rust code are, without which tests are run."""

from __future__ import annotations

from tree_sitter import Node

from excise.deleters.parts_of_functions import ReturnGrammar
from excise.deleters.rust.bodies import PLACEHOLDER
from excise.deleters.syntax_parts import PartGrammar, declared_before
from excise.extractors.rust.analysis.grammar import LITERALS, TYPES, field_text, parse_tree, text


def _is_first_value(node: Node, source: bytes) -> bool:
    """Whether a statement gives a variable its first value: ``let size;`` stands before it."""
    assigned = node.named_children[0]
    left = assigned.child_by_field_name("left") if assigned.type == "assignment_expression" else None
    if left is None or left.type != "identifier":
        return False
    name = text(left, source)
    return any(
        each.child_by_field_name("value") is None and field_text(each, "pattern", source) == name
        for each in declared_before(node, frozenset({"let_declaration"}))
    )


def _binds(condition: Node) -> bool:
    """Whether a condition gives names values: ``if let Some(x) = y``."""
    inner = {child.type for child in condition.named_children}
    return condition.type in {"let_condition", "let_chain"} or "let_condition" in inner


PARTS = PartGrammar(
    parse_tree=parse_tree,
    conditions=frozenset({"if_expression"}),
    loops=frozenset({"for_expression"}),
    endless=frozenset({"while_expression", "loop_expression"}),
    statements={
        "expression_statement": frozenset(
            {"call_expression", "assignment_expression", "compound_assignment_expr", "try_expression"}
        ),
    },
    parentheses=False,
    keeps=_is_first_value,
    binds=_binds,
    cases=frozenset({"match_arm"}),
    values=frozenset({"or_pattern"}),
    exhaustive=frozenset({"match_arm"}),
    failing_arm=b"if true { unimplemented!() } else { %s }",
    returns=frozenset({"return_expression"}),
    has_tail=True,
    rounds=dict.fromkeys(("for_each", "all", "any", "fold", "try_for_each", "try_fold"), b".take(1)"),
)
"""Parts of Rust code."""

RETURNS = ReturnGrammar(
    parse_tree=parse_tree,
    definitions=frozenset({"function_item", "closure_expression", "async_block"}) | TYPES,
    returns=frozenset({"return_expression"}),
    trivial=LITERALS | {"identifier", "self", "unit_expression"},
    single=frozenset(
        {"expression_statement", "return_expression", "call_expression", "binary_expression", "field_expression",
         "macro_invocation", "unary_expression", "reference_expression", "index_expression", "struct_expression",
         "tuple_expression", "array_expression", "type_cast_expression", "try_expression", "await_expression",
         "parenthesized_expression", "range_expression", "scoped_identifier"}
    ),
    placeholder=PLACEHOLDER.encode(),
    has_tail=True,
)  # fmt: skip
"""Results of functions in Rust."""
