"""Where a Java test expects an error: in its annotation, and in statements that fail it unless one is thrown."""

from __future__ import annotations

import re
from typing import NamedTuple

from tree_sitter import Node

from excise.extractors.java.analysis.grammar import COMMENTS, descendants, modifiers_of, name_of, statements, text

_EXPECTED = re.compile(rb",?\s*\bexpected\s*=\s*([\w.]+)\.class\s*,?")
_TOLD = frozenset({"getMessage", "getLocalizedMessage", "getCause", "toString", "printStackTrace"})
"""Methods that all errors have."""


class FailingTry(NamedTuple):
    """A ``try`` whose body ends with a failure, so that it must throw something."""

    clause: Node
    kind: Node
    """The types that are caught."""
    classes: tuple[str, ...]
    """Their names."""
    name: str
    """The variable of the error."""
    block: Node
    """What is done with it."""


def expected_class(method: Node, source: bytes) -> tuple[str, int, int] | None:
    """(name, first byte, one past the last) of the error that ``@Test(expected = X.class)`` asks for."""
    modifiers = modifiers_of(method)
    found = _EXPECTED.search(source, modifiers.start_byte, modifiers.end_byte) if modifiers is not None else None
    return (found[1].decode(), found.start(), found.end()) if found is not None else None


def try_that_fails(failure: Node, source: bytes) -> FailingTry | None:
    """The ``try`` whose last statement is a failure, if it only makes checks with the error that it catches."""
    block = failure.parent
    outer = block.parent if block is not None else None
    if block is None or outer is None or outer.type not in {"try_statement", "try_with_resources_statement"}:
        return None
    clauses = [child for child in outer.named_children if child.type == "catch_clause"]
    if outer.child_by_field_name("body") != block or statements(block)[-1] != failure or len(clauses) != 1:
        return None
    body = clauses[0].child_by_field_name("body")
    parameter = next((child for child in clauses[0].named_children if child.type == "catch_formal_parameter"), None)
    kind = (
        next((child for child in parameter.named_children if child.type == "catch_type"), None) if parameter else None
    )
    if body is None or parameter is None or kind is None:
        return None
    name = name_of(parameter, source)
    if not is_of_error(name, body, source) or any(each.type != "expression_statement" for each in statements(body)):
        return None
    names = tuple(text(each, source) for each in kind.named_children if each.type not in COMMENTS)
    return FailingTry(clauses[0], kind, names, name, body)


def is_of_error(name: str, body: Node, source: bytes) -> bool:
    """Whether a variable is only asked what every error can tell."""
    for each in descendants(body):
        parent = each.parent
        if each.type != "identifier" or text(each, source) != name or parent is None:
            continue
        if (
            parent.type in {"variable_declarator", "catch_formal_parameter"}
            and parent.child_by_field_name("name") == each
        ):
            continue
        is_target = parent.type == "method_invocation" and parent.child_by_field_name("object") == each
        if not is_target or name_of(parent, source) not in _TOLD:
            return False
    return True
