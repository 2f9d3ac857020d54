"""Takes out of a file of tests what nothing of it uses any more: it may say what other tests expect."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from tree_sitter import Node

from excise.extractors.java.analysis.grammar import (
    COMMENTS,
    TYPES,
    annotations_of,
    descendants,
    has_modifier,
    members_of,
    name_of,
    parse_tree,
)
from excise.extractors.java.execution.checks import arguments, is_assertion_name
from excise.extractors.java.execution.expected_values import Edit, edited, is_written_out
from excise.extractors.java.execution.test_class import is_lifecycle, is_test

_WORD = re.compile(rb"[A-Za-z_$][\w$]*")
ROUNDS = 100
_OF_OBJECTS = frozenset({"toString", "equals", "hashCode", "clone", "finalize"})
_OF_TESTS = frozenset({"setUp", "tearDown", "runTest", "runBare", "run", "getName", "countTestCases", "createResult"})
"""What JUnit 3 calls."""
_PLAIN = frozenset({"SuppressWarnings", "SafeVarargs", "Deprecated", "Nested", "DisplayName", "Tag"})
"""Annotations that mean nothing for what has no test."""


def without_unused_members(source: bytes, others: Iterable[bytes]) -> bytes:
    """The file without comments, and without methods, types and fields of written values that neither it nor the files
    ``others`` name."""
    outside = {word for other in others for word in _WORD.findall(other)}
    comments = [each for each in descendants(parse_tree(source).root_node) if each.type in COMMENTS]
    source = edited(source, [Edit(each.start_byte, each.end_byte, b" ") for each in comments])
    for _ in range(ROUNDS):
        counted = Counter(_WORD.findall(source))
        groups = dict[bytes, list[Node]]()
        for member in _members(parse_tree(source).root_node):
            for name in _names(member, source):
                groups.setdefault(name, []).append(member)
        for name, members in groups.items():
            for member in members:
                counted[name] -= _WORD.findall(source[member.start_byte : member.end_byte]).count(name)
        unused = {name for name in groups if not counted[name]}
        edits = [
            Edit(member.start_byte, member.end_byte, b"")
            for members in groups.values()
            for member in members
            if all(
                name in unused and (has_modifier(member, "private") or name not in outside)
                for name in _names(member, source)
            )
            and all(_is_free(each, source) for name in _names(member, source) for each in groups[name])
        ]
        if not edits:
            break
        source = edited(source, edits)
    return source


def _names(member: Node, source: bytes) -> list[bytes]:
    declared = member.children_by_field_name("declarator") if member.type == "field_declaration" else [member]
    return [name_of(each, source).encode() for each in declared]


def _members(node: Node) -> Iterator[Node]:
    children = members_of(node) if node.type in TYPES else iter(node.named_children)
    for child in children:
        if child.type in TYPES:
            yield child
        if child.type == "class_declaration":
            yield from _members(child)
        elif child.type in {"method_declaration", "field_declaration"} and node.type == "class_declaration":
            yield child


def _is_free(member: Node, source: bytes) -> bool:
    """Whether a member has no effect if nothing names it."""
    if member.type in TYPES:
        tests = (each for each in descendants(member) if each.type == "method_declaration")
        has_tests = any(is_test(each, source, is_junit3=True) for each in tests)
        return not has_tests and {each.partition("(")[0] for each in annotations_of(member, source)} <= _PLAIN
    if annotations_of(member, source) and (member.type == "field_declaration" or not _is_plain(member, source)):
        return False
    if member.type == "method_declaration":
        return not _may_override(member, source)
    declared = member.children_by_field_name("declarator")
    values = [value for each in declared if (value := each.child_by_field_name("value")) is not None]
    if all(value.type == "identifier" or is_written_out(value, source, ()) for value in values):
        return True
    is_constant = has_modifier(member, "static") and all(name_of(each, source).isupper() for each in declared)
    return is_constant and all(_is_made(value, source) for value in values)


def _is_made(value: Node, source: bytes) -> bool:
    """Whether a value comes from no call but those that make objects."""
    if value.type == "identifier" or is_written_out(value, source, ()):
        return True
    is_object = value.type == "object_creation_expression" and value.named_children[-1].type != "class_body"
    return is_object and all(_is_made(each, source) for each in arguments(value))


def _is_plain(method: Node, source: bytes) -> bool:
    """Whether the annotations of a method mean nothing to JUnit."""
    found = {each.partition("(")[0] for each in annotations_of(method, source)}
    return found <= _PLAIN and not is_lifecycle(method, source)


def _may_override(method: Node, source: bytes) -> bool:
    """Whether a method may be called by a name that a type above gives it."""
    holder = method.parent.parent if method.parent is not None else None
    if holder is None or has_modifier(method, "private", "static"):
        return False
    above = [child for child in holder.named_children if child.type in {"superclass", "super_interfaces"}]
    name = name_of(method, source)
    if len(above) == 1 and source[above[0].start_byte : above[0].end_byte].endswith(b"TestCase"):
        return name in _OF_OBJECTS or name in _OF_TESTS or name.startswith("test")
    tests = (each for each in members_of(holder) if is_test(each, source, is_junit3=True))
    is_check = next(tests, None) is not None and any(
        each.type == "method_invocation" and is_assertion_name(name_of(each, source)) for each in descendants(method)
    )
    is_override = "Override" in annotations_of(method, source)
    return (bool(above) and (is_override or not is_check)) or name in _OF_OBJECTS
