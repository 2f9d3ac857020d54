"""What stays in the form of a file of tests beside the tests: members that compare would say what is expected.

Set-ups, classes that stand in for others, and helpers that are not divided are in the form as they are in the file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from tree_sitter import Node

from excise.extractors.java.analysis.grammar import TYPES, descendants, members_of, name_of, text
from excise.extractors.java.execution.certain_tests import is_comparison, is_of_loop, may_compare
from excise.extractors.java.execution.checks import CheckReader, Kind, arguments
from excise.extractors.java.execution.expected_values import LITERALS
from excise.extractors.java.execution.test_class import TestFile, is_lifecycle

_PLAIN = frozenset({"null", "true", "false", "0", "1", "2", "-1", "0L", "1L", "0.0", '""'})
"""Literals that tell nothing where something is compared with them."""
_SETTING = frozenset({"setUp", "tearDown"})
_COMPARED = frozenset({Kind.EQUAL, Kind.ITEMS, Kind.SAME, Kind.OTHER})
_WORD = re.compile(r"[A-Za-z_$][\w$]*")


class _Member(NamedTuple):
    """A member of a class of tests, or another type of the file."""

    name: str
    """Its name; empty for what runs with every test."""
    node: Node


def tests_beside_comparisons(file: TestFile, functions: Collection[str], mark: str) -> frozenset[str]:
    """Those of the divided tests ``functions`` that use a member which compares something with a written value; all of
    them if it is not known which ones use it. ``mark``: what the names of divided helpers hold.
    """
    members, tests = list[_Member](), dict[str, Node]()
    for node in file.root.named_children:
        if node.type in TYPES:
            for name, member in _members(node, (name_of(node, file.source),), file, functions):
                if name in functions:
                    tests[name] = member
                elif mark not in name:
                    members.append(_Member(name, member))
    reader = CheckReader(file.source, file.imports, (), is_junit3=b"TestCase" in file.source)
    wrong = {
        each.name
        for each in members
        for node in descendants(each.node)
        if _compares(node, file, reader) and not (each.node.type in TYPES and _is_for_code(node, reader))
    }
    if not wrong:
        return frozenset()
    words = dict[str, set[str]]()
    for each in members:
        words.setdefault(each.name, set()).update(_WORD.findall(text(each.node, file.source)))
    found = {name for name, node in tests.items() if wrong.intersection(_used(text(node, file.source), words))}
    return frozenset(functions if "" in wrong or not found else found)


def _members(
    holder: Node, names: tuple[str, ...], file: TestFile, functions: Collection[str]
) -> Iterator[tuple[str, Node]]:
    """(name, node) of the members of classes with tests, and of other types; the names of tests are whole."""
    path = "::".join(names)
    if not any(name.startswith(f"{path}::") for name in functions):
        yield names[-1], holder
        return
    for member in members_of(holder):
        name = name_of(member, file.source)
        if member.type in TYPES:
            yield from _members(member, (*names, name), file, functions)
        elif f"{path}::{name}" in functions:
            yield f"{path}::{name}", member
        else:
            is_called = member.type == "method_declaration" and name not in _SETTING
            yield name if is_called and not is_lifecycle(member, file.source) else "", member


def _used(code: str, words: Mapping[str, set[str]]) -> set[str]:
    """The names of members that code names, or what it names."""
    found, left = set[str](), set(_WORD.findall(code))
    while left:
        new = left.intersection(words) - found
        found |= new
        left = set().union(*(words[name] for name in new))
    return found


def _compares(node: Node, file: TestFile, reader: CheckReader) -> bool:
    """Whether a node compares something with a value that is written out and tells something."""
    if node.type == "switch_label":
        return _tells(node.named_children, file.source)
    if is_comparison(node):
        return not is_of_loop(node, file.source, file.depending) and _tells(node.named_children, file.source)
    if node.type != "method_invocation":
        return False
    if may_compare(name_of(node, file.source), file.depending):
        target = node.child_by_field_name("object")
        return _tells([*arguments(node), *([target] if target is not None else [])], file.source)
    check = reader.read(node)
    if check is None or check.kind not in _COMPARED:
        return False
    sides = [check.expected, check.actual] if check.kind is not Kind.OTHER else arguments(node)
    return _tells([side for side in sides if side is not None], file.source)


def _is_for_code(node: Node, reader: CheckReader) -> bool:
    """Whether a node is in a method of a class with a type above, which the code may call, and nothing there fails."""
    around, method = node.parent, node
    while around is not None and around.type not in TYPES:
        method = around if around.type == "method_declaration" else method
        around = around.parent
    above = {child.type for child in around.named_children} if around is not None else set()
    fails = any(
        each.type in {"throw_statement", "assert_statement"}
        or (each.type == "method_invocation" and reader.read(each) is not None)
        for each in descendants(method)
    )
    return bool(above & {"superclass", "super_interfaces"}) and method != node and not fails


def _tells(nodes: Collection[Node], source: bytes) -> bool:
    """Whether a literal stands below one of the nodes that is none of the usual ones."""
    leaves = (each for node in nodes for each in descendants(node) if each.type in LITERALS)
    return any(text(each, source) not in _PLAIN and each.type != "class_literal" for each in leaves)
