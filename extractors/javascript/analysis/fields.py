"""Fields of objects in JavaScript and TypeScript, and their uses.

Nothing tells which class an object has, so that a field is known by its name alone.
"""

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
    is_only_statement,
    names_in_text,
    remembered,
    whole_lines,
)
from excise.extractors.javascript.analysis.comments import comments_before
from excise.extractors.javascript.analysis.grammar import FUNCTIONS, descendants, parse_tree, text

OBJECT = "this"
"""Stands for the type of every field."""
_NAMES = frozenset({"property_identifier", "private_property_identifier"})
_OTHER_NAMES = frozenset(
    {"shorthand_property_identifier", "shorthand_property_identifier_pattern", "string_fragment"}
)  # fmt: skip
_BASES = re.compile(rb"\bextends\b|\binherits\s*\(|\bsetPrototypeOf\b|\bObject\.create\s*\(\s*[\w$.]+\.prototype\b")
"""How a file says that its objects have what other classes give them, too: these may read what names say is private."""
_TEXTS = frozenset({"template_string"})
_VARIABLES = frozenset({"identifier", "shorthand_property_identifier", "shorthand_property_identifier_pattern"})
_DEFINITIONS = frozenset({"field_definition", "public_field_definition"})
_CHANGES = frozenset({"assignment_expression", "augmented_assignment_expression"})
_EFFECTS = frozenset(
    {"call_expression", "await_expression", "yield_expression", "assignment_expression", "update_expression", "class",
     "augmented_assignment_expression"}
    | FUNCTIONS
)  # fmt: skip
_COLLECTIONS = frozenset({"Array", "Map", "Object", "Set", "WeakMap", "WeakSet"})
_ZERO = frozenset({"null", "undefined", "false", "0", "''", '""', "[]", "{}", "void 0", "Object.create(null)"})


@remembered
def fields(source: bytes) -> Iterator[Field]:
    """The fields that a file gives to ``this``, each once."""
    root = parse_tree(source).root_node
    has_bases = _BASES.search(source) is not None
    found: dict[str, Field] = {}
    for node in descendants(root):
        if node.type in _DEFINITIONS:
            named = node.child_by_field_name("property") or node.child_by_field_name("name")
            if named is None or named.type not in _NAMES:
                continue
            value = node.child_by_field_name("value")
            modifiers = {child.type for child in node.children}
            is_plain = not modifiers & {"static", "decorator", "readonly", "override_modifier", "declare"}
            is_plain = is_plain and not (has_bases and text(named, source).startswith("_"))
            start, end = whole_lines(node, source)
            comments = comments_before(node, source)
            name = text(named, source)
            found[name] = Field(
                name=name,
                holder=OBJECT,
                start=source.rfind(b"\n", 0, comments[0].start_byte) + 1 if comments else start,
                end=end,
                is_private=_is_private(name, node),
                can_go=is_plain and source[end - 1 : end] == b"\n" and not (value is not None and _has_effects(value)),
                is_set=value is not None and not _is_zero(value, source),
            )
        elif node.type in _NAMES and _is_own(node) and _assigned(node) is not None:
            name = text(node, source)
            can_go = not (has_bases and name.startswith("_"))
            found.setdefault(name, Field(name, OBJECT, 0, 0, _is_private(name), can_go=can_go))
    yield from found.values()


def _is_private(name: str, definition: Node | None = None) -> bool:
    inside = definition.children if definition is not None else ()
    return name.startswith(("_", "#")) or any(
        each.type == "accessibility_modifier" and each.text == b"private" for each in inside
    )


@remembered
def uses(source: bytes) -> Iterator[FieldUse]:
    """The uses of names that may be those of fields: also texts, keys of objects and names of variables."""
    locals_ = LocalNames(FUNCTIONS, lambda leaf: leaf.type in _VARIABLES, partial(text, source=source))
    for node in descendants(parse_tree(source).root_node):
        parent = node.parent
        if node.type in _TEXTS:
            yield from names_in_text(node, source)
        if node.type == "this" and parent is not None and _is_whole(node, parent):
            yield FieldUse("", OBJECT, node.start_byte, UseKind.READ)
        if parent is None or (node.type not in _NAMES and node.type not in _OTHER_NAMES):
            continue
        if parent.type in _DEFINITIONS and parent.child_by_field_name("value") != node:
            continue
        name = text(node, source)
        use = FieldUse(name, "", node.start_byte, UseKind.READ)
        yield (
            _of_member(use, node, source, locals_)
            if parent.type == "member_expression" and node.type in _NAMES
            else use
        )


def _is_own(name: Node) -> bool:
    """Whether a name is that of a member of ``this``."""
    member = name.parent
    owner = member.child_by_field_name("object") if member is not None and member.type == "member_expression" else None
    return owner is not None and owner.type == "this"


def _assigned(name: Node) -> Node | None:
    """The assignment that gives the member of a name its value."""
    member = name.parent
    parent = member.parent if member is not None else None
    is_left = parent is not None and parent.type in _CHANGES and parent.child_by_field_name("left") == member
    return parent if is_left else None


def _of_member(use: FieldUse, name: Node, source: bytes, locals_: LocalNames) -> FieldUse:
    member = name.parent
    assert member is not None
    changed, parent = member, member.parent
    is_filled = (
        parent is not None and parent.type == "subscript_expression" and parent.child_by_field_name("object") == member
    )
    if is_filled and parent is not None:
        changed, parent = parent, parent.parent
    kind: UseKind | None = None
    if parent is not None and parent.type in _CHANGES and parent.child_by_field_name("left") == changed:
        value = parent.child_by_field_name("right")
        is_zero = (
            parent.type == "assignment_expression" and not is_filled and value is not None and _is_zero(value, source)
        )
        kind = UseKind.EMPTY if is_zero else UseKind.SET
    elif parent is not None and parent.type == "update_expression":
        kind = UseKind.SET
    elif parent is not None and parent.type == "member_expression" and parent.child_by_field_name("object") == changed:
        method, call = parent.child_by_field_name("property"), parent.parent
        is_call = call is not None and call.type == "call_expression" and call.child_by_field_name("function") == parent
        kind = FILLING.get(text(method, source)) if is_call and method is not None else None
        changed, parent = parent, call
    statement = parent.parent if parent is not None else None
    if kind is None or parent is None or statement is None or statement.type != "expression_statement":
        return use
    block = statement.parent
    others = [each for each in parent.named_children if each != changed]
    is_alone = (
        block is None or block.type not in {"statement_block", "class_static_block"} or is_only_statement(statement)
    )
    lost = is_alone or not _is_own(name) or any(map(_has_effects, others)) or locals_.are_used_up(statement)
    return use._replace(kind=kind, span=None if lost else whole_lines(statement, source))


def _has_effects(node: Node) -> bool:
    """Whether computing a value may do more than that."""
    return any(
        each.type in _EFFECTS or (each.type == "new_expression" and not _is_new_collection(each))
        for each in descendants(node)
        if each.text != b"Object.create(null)"
    )


def _is_new_collection(node: Node) -> bool:
    made = node.child_by_field_name("constructor")
    return made is not None and (made.text or b"").decode(errors="replace") in _COLLECTIONS


def _is_zero(value: Node, source: bytes) -> bool:
    arguments = value.child_by_field_name("arguments")
    is_empty = value.type == "new_expression" and (arguments is None or not arguments.named_children)
    return text(value, source) in _ZERO or (is_empty and _is_new_collection(value))


def _is_whole(this: Node, parent: Node) -> bool:
    """Whether an object is used with names that are computed, or is copied with all that it has."""
    is_computed = parent.type == "subscript_expression" and parent.child_by_field_name("index") != this
    index = parent.child_by_field_name("index") if is_computed else None
    is_plain = index is not None and index.type in {"string", "number"}
    return (is_computed and not is_plain) or parent.type in {"spread_element", "arguments", "for_in_statement"}
