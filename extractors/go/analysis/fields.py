"""Fields of structs in Go, and their uses."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tree_sitter import Node

from excise.extractors.field_uses import (
    Field,
    FieldUse,
    LocalNames,
    UseKind,
    around,
    is_only_statement,
    names_in_text,
    remembered,
    whole_lines,
)
from excise.extractors.go.analysis.assignments import changes_nothing
from excise.extractors.go.analysis.grammar import descendants, parse_tree, text
from excise.extractors.go.analysis.parsed_file import is_exported, lines_with_comments
from excise.extractors.go.analysis.variable_types import FUNCTION_NODES, VariableTypes, plain_type

_TEXTS = frozenset({"interpreted_string_literal", "raw_string_literal"})
_ZERO = frozenset({"nil", "false", "0", '""', "``", "0.0", "iota"})
_BLOCKS = frozenset({"block", "statement_list"})
_CHANGES = frozenset({"assignment_statement", "inc_statement", "dec_statement"})


@remembered
def fields(source: bytes) -> Iterator[Field]:
    """The fields of the structs that a file declares."""
    for node in descendants(parse_tree(source).root_node) if b"struct" in source else ():
        if node.type != "field_declaration_list":
            continue
        struct = node.parent
        spec = struct.parent if struct is not None else None
        is_named = spec is not None and spec.type == "type_spec"
        name = spec.child_by_field_name("name") if is_named and spec is not None else None
        declared = [each for each in node.named_children if each.type == "field_declaration"]
        for each in declared:
            names = each.children_by_field_name("name")
            names = [one for one in names if one.is_named]
            alone = len(names) == 1 and len(declared) > 1 and each.child_by_field_name("tag") is None
            start, end = lines_with_comments(each, source)
            for one in names:
                yield Field(
                    name=text(one, source),
                    holder=text(name, source) if name is not None else "",
                    start=start,
                    end=end,
                    is_private=not is_exported(text(one, source)),
                    can_go=alone and name is not None,
                )


@remembered
def uses(source: bytes) -> Iterator[FieldUse]:
    """The uses of fields in a file, and of types by values in the order of their fields: uses without a name.

    A type that is the key of a map, or is compared or given away as a whole by reflection, has such a use, too; and so
    has every name that a text has, of any type; words of prose are none, since no private field is looked up by them.
    """
    names = LocalNames(FUNCTION_NODES, _is_variable, partial(text, source=source))
    types = VariableTypes(source)
    for node in descendants(parse_tree(source).root_node):
        if node.type == "field_identifier" and node.parent is not None:
            if node.parent.type == "selector_expression":
                yield _of_selector(node, source, names, types)
            elif node.parent.type != "field_declaration":
                yield FieldUse(text(node, source), "", node.start_byte, UseKind.READ)
        elif node.type == "map_type":
            key = node.child_by_field_name("key")
            if key is not None and key.type == "type_identifier":
                yield FieldUse("", text(key, source), key.start_byte, UseKind.READ)
        elif node.type in _TEXTS:
            yield from names_in_text(node, source, with_prose=False)
        elif node.type == "literal_value":
            holder = _type_of(node, source)
            for child in node.named_children:
                if child.type == "literal_element":
                    yield FieldUse("", holder, child.start_byte, UseKind.READ)
                elif child.type == "keyed_element":
                    yield from _of_element(child, holder, source, names)


def _of_element(element: Node, holder: str, source: bytes, names: LocalNames) -> Iterator[FieldUse]:
    key, value = element.child_by_field_name("key"), element.child_by_field_name("value")
    inner = key.named_children[0] if key is not None and key.named_children else None
    if inner is None or value is None or inner.type != "identifier":
        return
    start, end = whole_lines(element, source)
    comma = source.find(b",", element.end_byte)
    if comma >= 0 and not source[element.end_byte : comma].strip():
        end = source.find(b"\n", comma) + 1
        is_line = not source[source.rfind(b"\n", 0, element.start_byte) + 1 : element.start_byte].strip()
        is_line = is_line and not source[comma + 1 : end].strip()
        start = source.rfind(b"\n", 0, element.start_byte) + 1
    else:
        is_line = False
    is_line = is_line and element.parent is not None and len(element.parent.named_children) > 1
    can_go = is_line and not _is_lost(value, source, names)
    kind = UseKind.EMPTY if _is_zero(value, source) else UseKind.SET
    yield FieldUse(text(inner, source), holder, inner.start_byte, kind, (start, end) if can_go else None)


def _of_selector(name: Node, source: bytes, names: LocalNames, types: VariableTypes) -> FieldUse:
    selector = name.parent
    assert selector is not None
    operand = selector.child_by_field_name("operand")
    use = FieldUse(text(name, source), types.of(operand), name.start_byte, UseKind.READ)
    changed, parent = selector, selector.parent
    is_filled = parent is not None and parent.type == "index_expression"
    if parent is not None and is_filled and parent.child_by_field_name("operand") == selector:
        changed, parent = parent, parent.parent
    if parent is not None and parent.type == "expression_list":
        if len(parent.named_children) != 1:
            return use
        changed, parent = parent, parent.parent
    if parent is None or parent.type not in _CHANGES or parent.parent is None or parent.parent.type not in _BLOCKS:
        own = _appended(selector, source)
        return use._replace(kind=UseKind.EMPTY) if own else use
    if parent.type == "assignment_statement" and parent.child_by_field_name("left") != changed:
        return use
    value = parent.child_by_field_name("right")
    is_empty = not is_filled and value is not None and _is_zero(value, source)
    lost = not use.holder or _is_lost(parent, source, names)
    span = None if lost or is_only_statement(parent) else whole_lines(parent, source)
    return use._replace(kind=UseKind.EMPTY if is_empty else UseKind.SET, span=span)


def _appended(selector: Node, source: bytes) -> bool:
    """Whether a selector is the first argument in ``x.list = append(x.list, …)``."""
    call = around(selector, frozenset({"call_expression"}))
    statement = around(selector, frozenset({"assignment_statement"}))
    if call is None or statement is None:
        return False
    function, left = call.child_by_field_name("function"), statement.child_by_field_name("left")
    is_append = (
        function is not None
        and text(function, source) == "append"
        and call.parent == statement.child_by_field_name("right")
    )
    return is_append and left is not None and text(left, source) == text(selector, source)


def _is_lost(part: Node, source: bytes, names: LocalNames) -> bool:
    """Whether something else would be lost with a part of a function: an effect, or the only use of a variable."""
    is_plain = all(changes_nothing(each, source) and each.type != "func_literal" for each in descendants(part))
    return not is_plain or names.are_used_up(part)


def _is_variable(leaf: Node) -> bool:
    """Whether a leaf names a variable, and no field before a colon."""
    element = leaf.parent
    pair = element.parent if element is not None else None
    is_key = pair is not None and pair.type == "keyed_element" and pair.child_by_field_name("key") == element
    return leaf.type == "identifier" and not is_key


def _is_zero(value: Node, source: bytes) -> bool:
    plain = text(value, source)
    inner = value
    while len(inner.named_children) == 1 and inner.type in {"literal_element", "expression_list", "unary_expression"}:
        inner = inner.named_children[0]
    if inner.type == "composite_literal":
        body = inner.child_by_field_name("body")
        return body is not None and not body.named_children
    return plain in _ZERO or plain.startswith(("make(", "new("))


def _type_of(literal: Node, source: bytes) -> str:
    """The plain name of the type whose values a literal makes; empty where it does not tell."""
    depth, holder = 0, literal.parent
    while holder is not None and holder.type != "composite_literal":
        depth += holder.type == "literal_value"
        holder = holder.parent
    found = holder.child_by_field_name("type") if holder is not None else None
    for _ in range(depth):
        found = (found.child_by_field_name("element") or found.child_by_field_name("value")) if found else None
    return plain_type(found, source)
