"""The types of receivers, parameters and variables in Go, as far as the syntax of a file tells them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache

from tree_sitter import Node

from excise.extractors.field_uses import around
from excise.extractors.go.analysis.grammar import FUNCTIONS, descendants, parse_tree, text

FUNCTION_NODES = FUNCTIONS | {"func_literal"}
"""Nodes that have parameters and variables."""
_PARAMETERS = frozenset({"parameter_declaration", "variadic_parameter_declaration"})
_PAIRS = frozenset({"short_var_declaration", "range_clause", "receive_statement"})
"""Nodes with names on the left and values on the right."""


class VariableTypes:
    """The types of the variables in the functions of a file, each of which is read once."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._known: dict[tuple[int, int], dict[str, set[str]]] = {}

    def of(self, name: Node | None) -> str:
        """The plain name of the type of a variable in a function; empty where syntax does not tell it."""
        if name is None or name.type != "identifier":
            return ""
        function = around(name, FUNCTION_NODES)
        while function is not None:
            found = self._bound(function).get(text(name, self._source), set())
            if found:
                return next(iter(found)) if len(found) == 1 else ""
            function = around(function, FUNCTION_NODES)
        return ""

    def _bound(self, function: Node) -> dict[str, set[str]]:
        key = function.start_byte, function.end_byte
        if key not in self._known:
            found: dict[str, set[str]] = defaultdict(set)
            for name, type_ in _bound_in(function, self._source):
                found[name].add(type_)
            self._known[key] = found
        return self._known[key]


def plain_type(node: Node | None, source: bytes) -> str:
    """The plain name of a type of the same package, or of what a pointer points to; empty for every other type."""
    while node is not None and node.type in {"pointer_type", "generic_type"} and node.named_children:
        node = node.child_by_field_name("type") or node.named_children[0]
    return text(node, source) if node is not None and node.type == "type_identifier" else ""


def _bound_in(function: Node, source: bytes) -> Iterator[tuple[str, str]]:
    """(name, plain type) of all that a function binds, in the functions inside it as well."""
    for node in descendants(function):
        if node.type in _PARAMETERS:
            is_list = node.type != "parameter_declaration"
            type_ = "" if is_list else plain_type(node.child_by_field_name("type"), source)
            yield from ((text(each, source), type_) for each in node.children_by_field_name("name"))
        elif node.type in {"var_spec", "const_spec"}:
            names, value = node.children_by_field_name("name"), node.child_by_field_name("value")
            type_ = plain_type(node.child_by_field_name("type"), source)
            types = [type_] * len(names) if type_ else _types_of(value, len(names), source)
            yield from ((text(each, source), found) for each, found in zip(names, types, strict=True))
        elif node.type in _PAIRS:
            left = node.child_by_field_name("left")
            names = left.named_children if left is not None else []
            is_pair = node.type == "short_var_declaration"
            right = node.child_by_field_name("right") if is_pair else None
            types = _types_of(right, len(names), source)
            yield from ((text(each, source), found) for each, found in zip(names, types, strict=True))
        elif node.type == "type_switch_statement":
            alias = node.child_by_field_name("alias")
            yield from ((text(each, source), "") for each in (alias.named_children if alias is not None else []))


def _types_of(values: Node | None, count: int, source: bytes) -> list[str]:
    """The plain types of the values of so many names; the first one alone where one call gives them all."""
    found = [_value_type(each, source) for each in (values.named_children if values is not None else [])]
    return found if len(found) == count else [*found[:1], *[""] * (count - 1)] if len(found) == 1 else [""] * count


def _value_type(value: Node, source: bytes) -> str:
    """The plain type of ``T{…}``, ``&T{…}``, ``new(T)`` and of a call of a function that the same file declares."""
    operand = value.child_by_field_name("operand") if value.type == "unary_expression" else None
    if operand is not None and text(value, source).startswith("&"):
        value = operand
    if value.type == "composite_literal":
        return plain_type(value.child_by_field_name("type"), source)
    called = value.child_by_field_name("function") if value.type == "call_expression" else None
    if called is None or called.type != "identifier":
        return ""
    arguments = value.child_by_field_name("arguments")
    if text(called, source) == "new" and arguments is not None:
        return plain_type(arguments.named_children[0], source) if arguments.named_children else ""
    return _result_types(source).get(text(called, source), "")


@lru_cache(maxsize=4)
def _result_types(source: bytes) -> dict[str, str]:
    """The functions that a file declares, to the plain types of their first results."""
    found: dict[str, str] = {}
    for each in parse_tree(source).root_node.named_children:
        name = each.child_by_field_name("name") if each.type == "function_declaration" else None
        if name is not None:
            result = each.child_by_field_name("result")
            first = result.named_children[:1] if result is not None and result.type == "parameter_list" else [result]
            type_ = next((_declared_type(node, source) for node in first if node is not None), "")
            found.setdefault(text(name, source), type_)
    return found


def _declared_type(result: Node, source: bytes) -> str:
    declared = result.child_by_field_name("type") if result.type == "parameter_declaration" else result
    return plain_type(declared, source)
