"""What parts of JavaScript code are, without which tests are run."""

from __future__ import annotations

import re

from excise.deleters.javascript.stand_ins import BODIES
from excise.deleters.parts_of_functions import ReturnGrammar
from excise.deleters.syntax_parts import PartGrammar
from excise.extractors.javascript.analysis.grammar import CLASSES, FUNCTIONS, TYPED, parse_tree

PARTS = PartGrammar(
    parse_tree=parse_tree,
    conditions=frozenset({"if_statement", "ternary_expression"}),
    loops=frozenset({"for_statement", "for_in_statement"}),
    endless=frozenset({"while_statement", "do_statement"}),
    statements={
        "expression_statement": frozenset(
            {"call_expression", "assignment_expression", "augmented_assignment_expression", "update_expression",
             "await_expression", "unary_expression", "yield_expression"}
        ),
    },
    parentheses=True,
    joining=frozenset({"&&", "||", "??"}),
    any_value=True,
    typed=TYPED,
    rounds=dict.fromkeys(("forEach", "every", "some", "reduce"), b".slice(0, 1)"),
    passes_on=re.compile(r"\(\s*(?:err|error)\s*\)").fullmatch,
    cases=frozenset({"switch_case"}),
)  # fmt: skip
"""Parts of JavaScript and TypeScript code."""

RETURNS = ReturnGrammar(
    parse_tree=parse_tree,
    definitions=FUNCTIONS | CLASSES,
    returns=frozenset({"return_statement"}),
    trivial=frozenset({"identifier", "null", "undefined", "true", "false", "number", "string", "this"}),
    single=frozenset({"return_statement", "expression_statement"}),
    placeholder=BODIES["raise"].encode(),
)
"""Results of functions in JavaScript and TypeScript."""
