"""What parts of Rust code are, without which tests are run."""

from __future__ import annotations

from excise.deleters.syntax_parts import PartGrammar
from excise.extractors.rust.analysis.grammar import parse_tree

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
