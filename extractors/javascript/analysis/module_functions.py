"""Functions that are called once, when a file is loaded, and hold the code of the module.

``(function () { … })();``, ``var parse = (function () { … })();``, and the two functions of a universal module
definition: ``(function (root, factory) { … })(this, function () { … });``. What they declare is as good as declared at
module level.
"""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from excise.extractors.javascript.analysis.grammar import FUNCTIONS, VARIABLES, children, unwrapped

_CALLERS = frozenset({b"call", b"apply"})


def module_functions(root: Node) -> list[Node]:
    """The functions that hold the code of a file, outer ones first; none if several statements of it have such."""
    found: list[Node] = []
    queue = [root]
    while queue:
        per_statement = [inner for each in children(queue.pop()) if (inner := list(_called_by(each)))]
        if len(per_statement) == 1:
            found += per_statement[0]
            queue += [body for inner in per_statement[0] if (body := inner.child_by_field_name("body")) is not None]
    return found


def module_statements(root: Node, functions: list[Node]) -> Iterator[Node]:
    """The statements at module level, then those of the functions that hold code of the module."""
    yield from children(root)
    for function in functions:
        body = function.child_by_field_name("body")
        if body is not None and body.type == "statement_block":
            yield from children(body)


def _called_by(statement: Node) -> Iterator[Node]:
    """The function that a statement calls where it is written, and those that it gets as arguments."""
    for expression in _values(statement):
        value = unwrapped(expression)
        while value.type == "unary_expression" and (operand := value.child_by_field_name("argument")) is not None:
            value = unwrapped(operand)
        if value.type != "call_expression":
            continue
        called, arguments = value.child_by_field_name("function"), value.child_by_field_name("arguments")
        called = unwrapped(called) if called is not None else value
        if called.type == "member_expression":
            name, owner = called.child_by_field_name("property"), called.child_by_field_name("object")
            called = unwrapped(owner) if owner is not None and name is not None and name.text in _CALLERS else called
        if called.type in FUNCTIONS:
            yield called
            inner = map(unwrapped, children(arguments)) if arguments is not None else ()
            yield from (argument for argument in inner if argument.type in FUNCTIONS)


def _values(statement: Node) -> Iterator[Node]:
    """The expressions that a statement evaluates, assigns or declares names for."""
    if statement.type in VARIABLES:
        values = (child.child_by_field_name("value") for child in children(statement))
        yield from (value for value in values if value is not None)
    elif statement.type == "expression_statement" and children(statement):
        value = children(statement)[0]
        while value.type == "assignment_expression" and (right := value.child_by_field_name("right")) is not None:
            value = unwrapped(right)
        yield value
