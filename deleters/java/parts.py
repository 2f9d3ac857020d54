"""What parts of Java code are, without which tests are run."""

from __future__ import annotations

from tree_sitter import Node

from excise.deleters.java.bodies import PLACEHOLDER
from excise.deleters.parts_of_functions import ReturnGrammar
from excise.deleters.syntax_parts import PartGrammar, declared_before
from excise.extractors.java.analysis.grammar import (
    CONSTRUCTORS,
    FUNCTIONS,
    TYPES,
    descendants,
    name_of,
    parse_tree,
    text,
)


def _is_first_value(node: Node, source: bytes) -> bool:
    """Whether a statement gives a field its value in a constructor, since a final one needs it, or a variable its first
    one."""
    assigned = node.named_children[0]
    if assigned.type != "assignment_expression":
        return False
    left, around = assigned.child_by_field_name("left"), node.parent
    while around is not None and around.type not in FUNCTIONS:
        around = around.parent
    if around is None or around.type in CONSTRUCTORS:
        return True
    if left is None or left.type != "identifier":
        return False
    declared = declared_before(node, frozenset({"local_variable_declaration"}))
    variables = (each for found in declared for each in found.named_children if each.type == "variable_declarator")
    name = text(left, source)
    return any(name_of(each, source) == name and each.child_by_field_name("value") is None for each in variables)


def _binds(condition: Node) -> bool:
    """Whether a condition gives a name to what it asks for: ``o instanceof String s``."""
    return any(
        node.type == "instanceof_expression"
        and (node.child_by_field_name("name") is not None or node.child_by_field_name("pattern") is not None)
        for node in descendants(condition)
    )


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
    binds=_binds,
    cases=frozenset({"switch_block_statement_group", "switch_rule"}),
    values=frozenset({"switch_label"}),
    exhaustive=frozenset({"switch_rule"}),
    rounds=dict.fromkeys(("allMatch", "anyMatch", "noneMatch", "forEachOrdered", "reduce"), b".limit(1)"),
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
    closed=frozenset({"try_statement", "try_with_resources_statement"}),
)  # fmt: skip
"""Results of methods in Java."""
