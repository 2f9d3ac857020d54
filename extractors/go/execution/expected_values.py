"""Where the expected values of a Go test are: written into its checks, in variables, tables and helpers' arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tree_sitter import Node

from excise.extractors.divided_tests import Edit
from excise.extractors.go.analysis.grammar import NAMES, descendants, text

_PLAIN = frozenset({
    "interpreted_string_literal", "interpreted_string_literal_content", "raw_string_literal", "escape_sequence",
    "raw_string_literal_content", "int_literal", "float_literal", "imaginary_literal", "rune_literal", "true", "false",
    "nil", "unary_expression", "binary_expression", "parenthesized_expression", "composite_literal", "literal_value",
    "literal_element", "keyed_element", "slice_type", "array_type", "map_type", "pointer_type", "type_identifier",
    "qualified_type", "package_identifier", "type_conversion_expression", "interface_type",
    "implicit_length_array_type", "argument_list", "comment",
})  # fmt: skip
"""Kinds of nodes of a value that is written out."""
_BASIC = frozenset({
    "string", "byte", "rune", "int", "int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64",
    "uintptr", "float32", "float64",
})  # fmt: skip
_CONSTANTS = frozenset({"math", "time", "utf8", "unicode"})
"""Packages of which values may be named."""


class Table(NamedTuple):
    """What a loop ranges over: a composite literal, or a parameter that gets one."""

    kind: Node | None
    """Its type."""
    rows: Node | None
    """Its ``literal_value``; ``None`` for a parameter."""
    name: str = ""
    """Name of the variable or parameter that holds it; empty for one that is written into the loop."""


def is_plain(node: Node, source: bytes) -> bool:
    """Whether a value is written out, and calls and names nothing."""
    for each in descendants(node):
        parent = each.parent
        if not each.is_named or each.type in _PLAIN:
            continue
        if each.type == "call_expression" and text(each.named_children[0], source) in _BASIC:
            continue
        if each.type == "selector_expression" and text(each.named_children[0], source) in _CONSTANTS:
            continue
        if parent is not None and parent.type == "selector_expression" and is_plain_selector(parent, source):
            continue
        if each.type == "identifier" and parent is not None:
            around = parent.parent
            is_key = parent.type == "literal_element" and around is not None and around.type == "keyed_element"
            is_conversion = parent.type == "call_expression" and text(each, source) in _BASIC
            if is_conversion or (is_key and around is not None and around.named_children[0] == parent):
                continue
        return False
    return True


def is_plain_selector(node: Node, source: bytes) -> bool:
    """Whether a selector names a constant of the standard library."""
    return text(node.named_children[0], source) in _CONSTANTS


def cells(table: Table, field: str, root: Node, source: bytes) -> list[Edit] | None:
    """The edits that put zero values into a field of a table's rows, or into its items where ``field`` is empty.

    ``None`` if the values are not written out, or their type is not known.
    """
    kind = element_type(table.kind, root, source)
    if table.rows is None or kind is None:
        return None
    fields = list(fields_of(kind, root, source)) if field else []
    kinds = dict(fields)
    if field and field not in kinds:
        return None
    zero = f"*new({kinds[field] if field else text(kind, source)})".encode()
    edits = []
    for row in table.rows.named_children:
        if row.type == "comment":
            continue
        value = row.named_children[-1] if row.type == "keyed_element" else row
        if field:
            values = _row_values(value)
            if values is None:
                return None
            keyed = [each for each in values if each.type == "keyed_element"]
            named = [each for each in keyed if text(each.named_children[0], source) == field]
            place = [name for name, _ in fields].index(field)
            if not keyed and len(values) == len(fields):
                value = values[place]
            elif named:
                value = named[0].named_children[-1]
            elif keyed or not values:
                continue
            else:
                return None
        if not is_plain(value, source):
            return None
        edits.append(Edit(value.start_byte, value.end_byte, zero))
    return edits


def _row_values(element: Node) -> list[Node] | None:
    """The elements of a row that is a struct."""
    inner = element
    while inner.type in {"literal_element", "unary_expression", "composite_literal"}:
        inner = inner.named_children[-1]
    return [each for each in inner.named_children if each.type != "comment"] if inner.type == "literal_value" else None


def element_type(kind: Node | None, root: Node, source: bytes) -> Node | None:
    """The type of the items of a slice, an array or a map."""
    found = resolved(kind, root, source)
    if found is None or found.type not in {"slice_type", "array_type", "map_type", "implicit_length_array_type"}:
        return None
    return found.child_by_field_name("value") or found.child_by_field_name("element")


def resolved(kind: Node | None, root: Node, source: bytes) -> Node | None:
    """The type that a name stands for, if the file declares it; else the type itself."""
    while kind is not None and kind.type == "pointer_type":
        kind = kind.named_children[0]
    if kind is None or kind.type != "type_identifier":
        return kind
    for node in descendants(root):
        if node.type == "type_spec" and text(node.named_children[0], source) == text(kind, source):
            return node.child_by_field_name("type")
    return None


def fields_of(kind: Node, root: Node, source: bytes) -> Iterator[tuple[str, str]]:
    """(name, type) of the fields of a struct."""
    struct = resolved(kind, root, source)
    for node in descendants(struct) if struct is not None and struct.type == "struct_type" else ():
        if node.type == "field_declaration" and (of := node.child_by_field_name("type")) is not None:
            for each in node.children_by_field_name("name"):
                yield text(each, source), text(of, source)


def occurrences(name: str, within: Node, source: bytes) -> list[Node]:
    """The leaves with a name."""
    return [leaf for leaf in descendants(within) if leaf.type in NAMES and text(leaf, source) == name]
