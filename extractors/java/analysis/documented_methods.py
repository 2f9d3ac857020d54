"""What types say of their methods, those without a body included: methods that override them inherit the words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tree_sitter import Node

from excise.extractors.java.analysis.grammar import FUNCTIONS, TYPES, members_of, name_of, parse_tree
from excise.extractors.java.analysis.parsed_file import documentation
from excise.types import Symbol

CONVENTIONS = frozenset(
    {
        "equals",
        "hashCode",
        "compareTo",
        "clone",
        "iterator",
        "hasNext",
        "next",
        "size",
        "isEmpty",
        "contains",
        "containsAll",
        "containsKey",
        "containsValue",
        "get",
        "put",
        "putAll",
        "add",
        "addAll",
        "remove",
        "removeAll",
        "retainAll",
        "clear",
        "toArray",
        "entrySet",
        "keySet",
        "values",
        "length",
        "charAt",
        "subSequence",
        "close",
        "read",
        "available",
        "skip",
    }
)
"""Methods of types of Java's library that do the same for every type."""


MAX_ARGUMENTS = 256
"""The Java virtual machine allows 255 arguments."""


class Shape(NamedTuple):
    """What a method must have in common with one that it overrides."""

    name: str
    """Name."""
    num_parameters: int
    """Number of parameters."""


def documented_methods(source: bytes) -> Iterator[tuple[str, Shape, str]]:
    """(qualified name of the type, shape, documentation) of the methods of a file that have one."""
    for node in parse_tree(source).root_node.named_children:
        if node.type in TYPES:
            yield from _methods_of(node, source, "")


def _methods_of(node: Node, source: bytes, holder: str) -> Iterator[tuple[str, Shape, str]]:
    qualname = f"{holder}.{name_of(node, source)}" if holder else name_of(node, source)
    for member in members_of(node):
        if member.type in TYPES:
            yield from _methods_of(member, source, qualname)
        elif member.type in FUNCTIONS and (words := documentation(member, source)):
            yield qualname, _shape(member, source), words


def shape_of(symbol: Symbol, source: bytes) -> Shape | None:
    """The shape of a method; ``None`` if it cannot be told, or for a constructor."""
    found = parse_tree(source).root_node.descendant_for_byte_range(symbol.start, symbol.end)
    return _shape(found, source) if found is not None and found.type == "method_declaration" else None


def numbers_of_arguments(symbols: Iterable[Symbol], source: bytes) -> Iterator[tuple[Symbol, range]]:
    """The methods and constructors among the symbols of a file, with the numbers of arguments that each takes."""
    root = parse_tree(source).root_node
    for symbol in symbols:
        found = root.descendant_for_byte_range(symbol.start, symbol.end)
        if found is not None and found.type in FUNCTIONS:
            kinds = [each.type for each in _parameters(found)]
            is_open = "spread_parameter" in kinds
            yield symbol, range(len(kinds) - is_open, MAX_ARGUMENTS if is_open else len(kinds) + 1)


def _shape(method: Node, source: bytes) -> Shape:
    return Shape(name_of(method, source), len(_parameters(method)))


def _parameters(method: Node) -> list[Node]:
    given = method.child_by_field_name("parameters")
    kinds = {"formal_parameter", "spread_parameter"}
    return [each for each in given.named_children if each.type in kinds] if given is not None else []
