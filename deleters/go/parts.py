"""What parts of Go code are, without which tests are run."""

from __future__ import annotations

import re

from excise.deleters.go.bodies import PLACEHOLDER
from excise.deleters.parts_of_functions import ReturnGrammar
from excise.deleters.syntax_parts import PartGrammar
from excise.extractors.go.analysis.grammar import FUNCTIONS, parse_tree

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
)
"""Parts of Go code."""

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
)
"""Results of functions in Go."""
