"""What interfaces say of their methods: the words above each, and the types by which a method is known to be one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tree_sitter import Node

from excise.extractors.go.analysis.grammar import descendants, parse_tree, text
from excise.extractors.go.analysis.parsed_file import comment_above
from excise.types import Symbol

_PARAMETERS = frozenset({"parameter_declaration", "variadic_parameter_declaration"})


class Shape(NamedTuple):
    """What a method must have in common with one of an interface."""

    name: str
    """Name."""
    parameters: tuple[str, ...]
    """Types of the parameters, as they are written."""
    results: tuple[str, ...]
    """Types of the results."""


CONVENTIONS = frozenset(
    {
        Shape("Len", (), ("int",)),
        Shape("Swap", ("int", "int"), ()),
        Shape("Read", ("[]byte",), ("int", "error")),
        Shape("Write", ("[]byte",), ("int", "error")),
        Shape("WriteString", ("string",), ("int", "error")),
        Shape("ReadByte", (), ("byte", "error")),
        Shape("WriteByte", ("byte",), ("error",)),
        Shape("Seek", ("int64", "int"), ("int64", "error")),
        Shape("Close", (), ("error",)),
        Shape("Unwrap", (), ("error",)),
    }
)
"""Methods of interfaces of Go's library that do the same for every type."""


def documented_methods(source: bytes) -> Iterator[tuple[str, Shape, str]]:
    """(name of the interface, shape, documentation) of the documented methods of a file's interfaces."""
    for spec in (node for node in descendants(parse_tree(source).root_node) if node.type == "type_spec"):
        kind, name = spec.child_by_field_name("type"), spec.child_by_field_name("name")
        if kind is None or name is None or kind.type != "interface_type":
            continue
        for method in kind.named_children:
            if method.type in {"method_elem", "method_spec"} and (words := comment_above(method, source)):
                yield text(name, source), _shape(method, source), words


def shape_of(symbol: Symbol, source: bytes) -> Shape | None:
    """The shape of a method; ``None`` if it cannot be told."""
    found = parse_tree(source).root_node.descendant_for_byte_range(symbol.start, symbol.end)
    return _shape(found, source) if found is not None and found.type == "method_declaration" else None


def _shape(method: Node, source: bytes) -> Shape:
    name = method.child_by_field_name("name")
    given, result = method.child_by_field_name("parameters"), method.child_by_field_name("result")
    parameters = tuple(_types(given, source)) if given is not None else ()
    if result is None:
        results: tuple[str, ...] = ()
    elif result.type == "parameter_list":
        results = tuple(_types(result, source))
    else:
        results = (text(result, source),)
    return Shape(text(name, source) if name is not None else "", parameters, results)


def _types(declared: Node, source: bytes) -> Iterator[str]:
    for each in (node for node in declared.named_children if node.type in _PARAMETERS):
        kind = each.child_by_field_name("type")
        mark = "..." if each.type == "variadic_parameter_declaration" else ""
        for _ in range(max(1, len(each.children_by_field_name("name")))):
            yield mark + (text(kind, source) if kind is not None else "")
