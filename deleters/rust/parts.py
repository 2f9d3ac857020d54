"""What parts of Rust code are, without which tests are run."""

from __future__ import annotations

from excise.deleters.parts_of_functions import ReturnGrammar
from excise.deleters.rust.bodies import PLACEHOLDER
from excise.deleters.syntax_parts import PartGrammar
from excise.extractors.rust.analysis.grammar import LITERALS, TYPES, parse_tree

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
