"""What parts of Java code are, without which tests are run."""

from __future__ import annotations

from tree_sitter import Node

from excise.deleters.java.bodies import PLACEHOLDER
from excise.deleters.parts_of_functions import ReturnGrammar
from excise.deleters.syntax_parts import PartGrammar
from excise.extractors.java.analysis.grammar import CONSTRUCTORS, FUNCTIONS, TYPES, parse_tree


def _is_first_value(node: Node, _source: bytes) -> bool:
    """Whether a statement gives a field its value in a constructor: a final one needs it."""
    if node.named_children[0].type != "assignment_expression":
        return False
    around = node.parent
    while around is not None and around.type not in CONSTRUCTORS:
        around = around.parent
    return around is not None


PARTS = PartGrammar(
    parse_tree=parse_tree,
    conditions=frozenset({"if_statement", "ternary_expression"}),
    loops=frozenset({"for_statement", "enhanced_for_statement"}),
    endless=frozenset({"while_statement", "do_statement"}),
    statements={
        "expression_statement": frozenset({"method_invocation", "assignment_expression", "update_expression"}),
    },
    parentheses=True,
    keeps=_is_first_value,
)
"""Parts of Java code."""

RETURNS = ReturnGrammar(
    parse_tree=parse_tree,
    definitions=FUNCTIONS | TYPES | {"lambda_expression", "class_body"},
    returns=frozenset({"return_statement"}),
    trivial=frozenset(
        {"identifier", "null_literal", "true", "false", "this", "string_literal", "character_literal",
         "decimal_integer_literal", "decimal_floating_point_literal"}
    ),
    single=frozenset({"return_statement", "expression_statement"}),
    placeholder=PLACEHOLDER.encode(),
)  # fmt: skip
"""Results of methods in Java."""
