"""Takes out of a file of tests what nothing of it uses any more: it may say what other tests expect."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from tree_sitter import Node

from excise.extractors.divided_tests import Edit, edited
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
from excise.extractors.java.execution.expected_values import is_written_out
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
        root = parse_tree(source).root_node
        counted = Counter(_WORD.findall(source))
        filled = _fillings(root, source)
        edits = []
        for name, lines in filled.items():
            if counted[name] == len(lines) + 1 and name not in outside:
                edits += [Edit(each.start_byte, each.end_byte, b"") for each in lines]
        groups = dict[bytes, list[Node]]()
        for member in _members(root):
            for name in _names(member, source):
                groups.setdefault(name, []).append(member)
        for name, members in groups.items():
            for member in members:
                counted[name] -= _WORD.findall(source[member.start_byte : member.end_byte]).count(name)
        unused = {name for name in groups if not counted[name]}
        edits += [
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


def _fillings(root: Node, source: bytes) -> dict[bytes, list[Node]]:
    """Statements of set-ups and initialisers that only give written values to a field, by its name."""
    found = dict[bytes, list[Node]]()
    for node in descendants(root):
        body = node.child_by_field_name("body") if node.type == "method_declaration" else None
        is_set_up = body is not None and (is_lifecycle(node, source) or name_of(node, source) == "setUp")
        is_initial = node.type == "static_initializer" or (node.type == "block" and node.parent in _bodies(node))
        block = body if is_set_up else node.named_children[-1] if node.type == "static_initializer" else node
        if block is None or not (is_set_up or is_initial):
            continue
        for line in block.named_children:
            name = _filled(line.named_children[0], source) if line.type == "expression_statement" else b""
            if name:
                found.setdefault(name, []).append(line)
    fields = {
        name for member in _members(root) if member.type == "field_declaration" for name in _names(member, source)
    }
    return {name: lines for name, lines in found.items() if name in fields}


def _bodies(node: Node) -> list[Node]:
    return [node.parent] if node.parent is not None and node.parent.type == "class_body" else []


def _filled(made: Node, source: bytes) -> bytes:
    """The name of the variable or field that an expression gives written values to; empty if it does something else."""
    if made.type == "method_invocation" and name_of(made, source) in {"add", "put", "append"}:
        target, values = made.child_by_field_name("object"), arguments(made)
    elif made.type == "assignment_expression":
        target, values = made.named_children[0], made.named_children[1:]
        if not all(is_written_out(value, source, ()) for value in values):
            return b""
    else:
        return b""
    while target is not None and target.type == "array_access":
        values.append(target.named_children[-1])
        target = target.named_children[0]
    if target is not None and target.type == "field_access" and target.named_children[0].type == "this":
        target = target.named_children[-1]
    if target is None or target.type != "identifier" or not all(_is_made(value, source) for value in values):
        return b""
    return source[target.start_byte : target.end_byte]


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
