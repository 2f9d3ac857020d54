"""What parts of Go code are, without which tests are run."""

from __future__ import annotations

import re

from tree_sitter import Node

from excise.deleters.go.bodies import PLACEHOLDER
from excise.deleters.parts_of_functions import ReturnGrammar
from excise.deleters.syntax_parts import PartGrammar
from excise.extractors.go.analysis.grammar import FUNCTIONS, descendants, parse_tree, text

PARTS = PartGrammar(
    parse_tree=parse_tree,
    conditions=frozenset({"if_statement"}),
    loops=frozenset({"for_statement"}),
    endless=frozenset(),
    statements={
        "expression_statement": frozenset({"call_expression"}),
        "assignment_statement": frozenset(),
        "inc_statement": frozenset(),
        "dec_statement": frozenset(),
        "send_statement": frozenset(),
    },
    parentheses=False,
    passes_on=re.compile(r"\w*err\w*\s*!=\s*nil", re.IGNORECASE).fullmatch,
    hands_on=re.compile(r"return\b.*err", re.IGNORECASE | re.DOTALL).match,
    cases=frozenset({"expression_case", "type_case"}),
    values=frozenset({"expression_list"}),
)
"""Parts of Go code."""


def _unused(body: list[Node], returned: Node, source: bytes) -> list[str]:
    """``_ = n`` for each variable that only the result uses: Go asks for a use."""
    counts: dict[str, int] = {}
    declared: set[str] = set()
    for node in (each for statement in body for each in descendants(statement)):
        if node.type == "identifier" and not returned.start_byte <= node.start_byte < returned.end_byte:
            counts[text(node, source)] = counts.get(text(node, source), 0) + 1
        if node.type in {"short_var_declaration", "var_spec", "range_clause"} and node.named_children:
            declared |= {
                text(each, source) for each in descendants(node.named_children[0]) if each.type == "identifier"
            }
    used = {text(each, source) for each in descendants(returned) if each.type == "identifier"}
    return [f"_ = {name}" for name in sorted(used & declared) if counts.get(name) == 1]


RETURNS = ReturnGrammar(
    parse_tree=parse_tree,
    definitions=FUNCTIONS | {"func_literal"},
    returns=frozenset({"return_statement"}),
    trivial=frozenset(
        {"identifier", "nil", "true", "false", "int_literal", "float_literal", "interpreted_string_literal"}
    ),
    single=frozenset(
        {"return_statement", "expression_statement", "assignment_statement", "inc_statement", "dec_statement"}
    ),
    placeholder=PLACEHOLDER.encode(),
    uses=_unused,
)
"""Results of functions in Go."""
