"""Takes out of a file of tests what nothing of it uses any more: it may say what other tests expect."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from tree_sitter import Node

from excise.extractors.java.analysis.grammar import TYPES, annotations_of, has_modifier, members_of, name_of, parse_tree
from excise.extractors.java.execution.expected_values import Edit, edited, is_written_out
from excise.extractors.java.execution.test_class import is_lifecycle

_WORD = re.compile(rb"[A-Za-z_$][\w$]*")
ROUNDS = 8
_OF_OBJECTS = frozenset({"toString", "equals", "hashCode", "clone", "finalize"})


def without_unused_members(source: bytes, others: Iterable[bytes]) -> bytes:
    """The file without methods, and fields of written values, that neither it nor the files ``others`` name."""
    outside = {word for other in others for word in _WORD.findall(other)}
    for _ in range(ROUNDS):
        counted = Counter(_WORD.findall(source))
        edits = [
            Edit(member.start_byte, member.end_byte, b"")
            for member in _members(parse_tree(source).root_node)
            if _is_unused(member, source, counted, outside)
        ]
        if not edits:
            break
        source = edited(source, edits)
    return source


def _members(node: Node) -> Iterator[Node]:
    children = members_of(node) if node.type in TYPES else iter(node.named_children)
    for child in children:
        if child.type == "class_declaration":
            yield from _members(child)
        elif child.type in {"method_declaration", "field_declaration"} and node.type == "class_declaration":
            yield child


def _is_unused(member: Node, source: bytes, counted: Counter[bytes], outside: set[bytes]) -> bool:
    if annotations_of(member, source) and (member.type == "field_declaration" or not _is_plain(member, source)):
        return False
    if member.type == "method_declaration" and _may_override(member, source):
        return False
    if member.type == "field_declaration":
        declarators = member.children_by_field_name("declarator")
        values = [each.child_by_field_name("value") for each in declarators]
        if not all(
            value is None or is_written_out(value, source, ()) or value.type == "identifier" for value in values
        ):
            return False
        names = [name_of(each, source).encode() for each in declarators]
    else:
        names = [name_of(member, source).encode()]
    is_own = has_modifier(member, "private")
    return all(counted[name] == 1 and (is_own or name not in outside) for name in names)


def _is_plain(method: Node, source: bytes) -> bool:
    """Whether the annotations of a method mean nothing to JUnit."""
    found = {each.partition("(")[0] for each in annotations_of(method, source)}
    return found <= {"SuppressWarnings", "SafeVarargs", "Deprecated"} and not is_lifecycle(method, source)


def _may_override(method: Node, source: bytes) -> bool:
    """Whether a method may be called by a name that a type above gives it."""
    holder = method.parent.parent if method.parent is not None else None
    if holder is None or has_modifier(method, "private", "static"):
        return False
    has_type_above = any(child.type in {"superclass", "super_interfaces"} for child in holder.named_children)
    return has_type_above or name_of(method, source) in _OF_OBJECTS
