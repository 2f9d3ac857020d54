"""Fields of structs in Rust, and their uses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from tree_sitter import Node

from excise.extractors.field_uses import (
    FILLING,
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
from excise.extractors.rust.analysis.grammar import attributes_of, descendants, field_text, parse_tree, text
from excise.extractors.rust.analysis.parsed_file import type_name
from excise.extractors.rust.analysis.parsed_file import whole_lines as item_lines

_HARMLESS = re.compile(r"derive\((?:\s*(?:Clone|Copy|Debug|Default)\s*,?)*\)|allow\(.*\)")
"""Attributes of a struct that need no field of a name."""
_EFFECTS = frozenset(
    {"macro_invocation", "closure_expression", "try_expression", "await_expression", "assignment_expression",
     "compound_assignment_expr"}
)  # fmt: skip
_STANDARD = r"(?:BTreeMap|BTreeSet|BinaryHeap|HashMap|HashSet|String|Vec|VecDeque)"
_MAKES = re.compile(rf"(?:[\w:]+::)?{_STANDARD}(?:::<[^()]*>)?::(?:new|default|with_capacity)")
"""Functions that only make a value."""
_ZERO = re.compile(rf"None|0|false|\"\"|vec!\[\]|(?:[\w:]+::)?{_STANDARD}(?:::<[^()]*>)?::(?:new|default)\(\)")
_FUNCTIONS = frozenset({"function_item", "closure_expression"})


@remembered
def fields(source: bytes) -> Iterator[Field]:
    """The fields with names of the structs that a file declares."""
    for node in descendants(parse_tree(source).root_node) if b"struct" in source else ():
        struct = node.parent.parent if node.type == "field_declaration" and node.parent is not None else None
        if struct is None or struct.type != "struct_item":
            continue
        is_plain = all(map(_HARMLESS.fullmatch, attributes_of(struct, source))) and not attributes_of(node, source)
        is_plain &= "PhantomData" not in field_text(node, "type", source)  # it says what the compiler reads
        start, end = item_lines(node, source)
        comma = source.find(b",", node.end_byte)
        has_comma = comma >= 0 and not source[node.end_byte : comma].strip()
        yield Field(
            name=field_text(node, "name", source),
            holder=field_text(struct, "name", source),
            start=start,
            end=max(end, _line_end(comma, source)) if has_comma else end,
            is_private=not any(
                child.type == "visibility_modifier" and text(child, source) == "pub" for child in node.children
            ),
            can_go=is_plain and has_comma and source[start : node.start_byte].endswith((b" ", b"\t", b"\n")),
        )


def _line_end(comma: int, source: bytes) -> int:
    """The end of the line behind a comma, as far as nothing else stands on it but a comment."""
    end = source.find(b"\n", comma) + 1 or len(source)
    rest = source[comma + 1 : end].strip()
    return end if not rest or rest.startswith(b"//") else comma + 1


@remembered
def uses(source: bytes) -> Iterator[FieldUse]:
    """The uses of fields in a file, and all names in macros and texts."""
    locals_ = LocalNames(_FUNCTIONS, _is_variable, partial(text, source=source))
    for node in descendants(parse_tree(source).root_node):
        parent = node.parent
        if node.type in {"string_literal", "raw_string_literal"}:
            yield from names_in_text(node, source)
        if parent is None or node.type not in {"field_identifier", "identifier", "shorthand_field_identifier"}:
            continue
        name = text(node, source)
        if parent.type == "field_expression" and parent.child_by_field_name("field") == node:
            if not _is_called(parent):
                yield _of_expression(FieldUse(name, "", node.start_byte, UseKind.READ), parent, source, locals_)
        elif parent.type in {"field_initializer", "shorthand_field_initializer"}:
            if parent.type == "shorthand_field_initializer" or parent.child_by_field_name("field") == node:
                yield _of_initializer(FieldUse(name, "", node.start_byte, UseKind.READ), parent, source, locals_)
        elif parent.type == "token_tree" or node.type == "shorthand_field_identifier" or parent.type == "field_pattern":
            yield FieldUse(name, "", node.start_byte, UseKind.READ)


def _is_called(expression: Node) -> bool:
    """Whether an expression names a method: what is called is no field."""
    call = expression.parent
    return call is not None and call.type == "call_expression" and call.child_by_field_name("function") == expression


def _own_type(node: Node, source: bytes) -> str:
    block = around(node, frozenset({"impl_item"}))
    return type_name(block.child_by_field_name("type"), source) if block is not None else ""


def _of_initializer(use: FieldUse, initializer: Node, source: bytes, locals_: LocalNames) -> FieldUse:
    literal = around(initializer, frozenset({"struct_expression"}))
    made = type_name(literal.child_by_field_name("name"), source) if literal is not None else ""
    holder = _own_type(initializer, source) if made == "Self" else made
    value = initializer.child_by_field_name("value")
    plain = text(value, source) if value is not None else use.name
    start, end = whole_lines(initializer, source)
    comma = source.find(b",", initializer.end_byte)
    is_line = comma >= 0 and not source[initializer.end_byte : comma].strip()
    start = source.rfind(b"\n", 0, initializer.start_byte) + 1
    end = _line_end(comma, source) if is_line else end
    is_line = is_line and not source[start : initializer.start_byte].strip() and source[end - 1 : end] == b"\n"
    lost = not is_line or (value is not None and _has_effects(value, source)) or locals_.are_used_up(initializer)
    kind = UseKind.EMPTY if _ZERO.fullmatch(plain) else UseKind.SET
    return use._replace(holder=holder, kind=kind, span=None if lost else (start, end))


def _of_expression(use: FieldUse, expression: Node, source: bytes, locals_: LocalNames) -> FieldUse:
    owner = expression.child_by_field_name("value")
    is_own = owner is not None and owner.type == "self"
    use = use._replace(holder=_own_type(expression, source) if is_own else "")
    changed, parent = expression, expression.parent
    is_filled = parent is not None and parent.type == "index_expression" and parent.named_children[0] == expression
    if is_filled and parent is not None:
        changed, parent = parent, parent.parent
    if parent is not None and parent.type == "field_expression" and _is_called(parent):
        name_node = parent.child_by_field_name("field")
        kind = FILLING.get(text(name_node, source)) if name_node is not None else None
        parent = parent.parent
    else:
        kind = _assigned(parent, changed, source, is_filled=is_filled)
    statement = parent.parent if parent is not None else None
    if kind is None or statement is None or statement.type != "expression_statement":
        return use
    others = [each for each in descendants(statement) if each.type in _EFFECTS and each != parent]
    calls = [each for each in descendants(statement) if each.type == "call_expression" and each != parent]
    lost = not is_own or others or any(not _makes(each, source) for each in calls)
    lost = lost or is_only_statement(statement) or locals_.are_used_up(statement)
    return use._replace(kind=kind, span=None if lost else whole_lines(statement, source))


def _assigned(parent: Node | None, changed: Node, source: bytes, *, is_filled: bool) -> UseKind | None:
    """What an assignment does with a field that it changes; ``None`` for other expressions."""
    kinds = {"assignment_expression", "compound_assignment_expr"}
    if parent is None or parent.type not in kinds or parent.child_by_field_name("left") != changed:
        return None
    value = field_text(parent, "right", source)
    is_zero = parent.type == "assignment_expression" and not is_filled and _ZERO.fullmatch(value)
    return UseKind.EMPTY if is_zero else UseKind.SET


def _has_effects(node: Node, source: bytes) -> bool:
    """Whether computing a value may do more than that."""
    return any(
        (each.type in _EFFECTS and text(each, source) != "vec![]")
        or (each.type == "call_expression" and not _makes(each, source))
        for each in descendants(node)
    )


def _makes(call: Node, source: bytes) -> bool:
    return _MAKES.fullmatch(field_text(call, "function", source)) is not None


def _is_variable(leaf: Node) -> bool:
    parent = leaf.parent
    return leaf.type == "identifier" and parent is not None and parent.type != "scoped_identifier"
