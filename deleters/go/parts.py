"""What parts of Go code are, without which tests are run."""

from __future__ import annotations

import re

from excise.deleters.syntax_parts import PartGrammar
from excise.extractors.go.analysis.grammar import parse_tree

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
