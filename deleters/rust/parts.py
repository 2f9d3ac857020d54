"""What parts of Rust code are, without which tests are run."""

from __future__ import annotations

from tree_sitter import Node

from excise.deleters.parts_of_functions import ReturnGrammar
from excise.deleters.rust.bodies import PLACEHOLDER
from excise.deleters.syntax_parts import PartGrammar
from excise.extractors.rust.analysis.grammar import LITERALS, TYPES, descendants, field_text, parse_tree, text


def _is_first_value(node: Node, source: bytes) -> bool:
    """Whether a statement gives a variable its first value: ``let size;`` stands before it."""
    assigned, around = node.named_children[0], node.parent
    left = assigned.child_by_field_name("left") if assigned.type == "assignment_expression" else None
    while around is not None and around.type != "function_item":
        around = around.parent
    if left is None or left.type != "identifier" or around is None:
        return False
    return any(
        each.type == "let_declaration"
        and each.child_by_field_name("value") is None
        and field_text(each, "pattern", source) == text(left, source)
        for each in descendants(around)
    )


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
