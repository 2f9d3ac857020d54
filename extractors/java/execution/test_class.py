"""A class of tests as it is needed to divide them: its methods, fields, and those of the classes around it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tree_sitter import Node

from excise.extractors.java.analysis.grammar import (
    TYPES,
    annotations_of,
    descendants,
    members_of,
    name_of,
    parse_tree,
    text,
)
from excise.extractors.java.execution.certain_tests import LOOPS, is_comparison, may_compare
from excise.extractors.java.execution.checks import CheckReader, Imports, imports_of

_TYPE = re.compile(rb"\b(?:class|interface|enum|record)\s+(\w+)")
_BASES = frozenset({"TestCase", "junit.framework.TestCase"})
_LIFECYCLE = ("Before", "After", "Rule", "ClassRule", "RegisterExtension", "Parameters", "DataPoint")
_OF_JAVA = frozenset({
    "Throwable", "Exception", "Error", "RuntimeException", "IllegalArgumentException", "IllegalStateException",
    "NullPointerException", "IndexOutOfBoundsException", "ArrayIndexOutOfBoundsException", "ClassCastException",
    "StringIndexOutOfBoundsException", "UnsupportedOperationException", "ArithmeticException", "NumberFormatException",
    "CloneNotSupportedException", "NegativeArraySizeException", "ArrayStoreException", "InterruptedException",
    "ClassNotFoundException", "SecurityException", "StackOverflowError", "OutOfMemoryError", "AssertionError",
})  # fmt: skip
"""Errors of the package ``java.lang``."""
_TESTS = ("Test", "ParameterizedTest", "RepeatedTest", "TestFactory", "TestTemplate", "Theory")


@dataclass(frozen=True)
class TestFile:
    """A file of tests."""

    source: bytes
    depending: frozenset[str]
    """Names of the code under test and of what calls it."""
    beside: tuple[TestFile, ...] = ()
    """The other test files of the folder."""

    @cached_property
    def root(self) -> Node:
        """The root of the syntax tree."""
        return parse_tree(self.source).root_node

    @cached_property
    def imports(self) -> Imports:
        """What the file imports."""
        return imports_of(self.source)

    @cached_property
    def assigned(self) -> Mapping[str, list[Node]]:
        """Where names get other values, by name."""
        return assigned_names(self.root, self.source)

    @cached_property
    def mark(self) -> str:
        """What new names end with."""
        return f"_{hashlib.sha256(self.source).hexdigest()[:10]}"

    def full_name(self, name: str) -> str:
        """The full name of a class as far as imports tell it, else the last part."""
        first, _, rest = name.partition(".")
        if first[:1].islower():
            return name
        known = self.imports.classes.get(first, "")
        if not known and first in _OF_JAVA and first not in self.types | self.foreign_types:
            known = f"java.lang.{first}"
        return ".".join(part for part in (known, rest) if part) if known else name.rpartition(".")[2]

    @cached_property
    def foreign_types(self) -> frozenset[str]:
        """Names of the types of other test files of the folder."""
        return frozenset(name for other in self.beside for name in other.types)

    @cached_property
    def types(self) -> frozenset[str]:
        """Names that the file gives to types, and words behind ``class`` in its texts."""
        return frozenset(name.decode() for name in _TYPE.findall(self.source))


class TestClass:
    """A class, with what it takes from those around it."""

    def __init__(self, file: TestFile, node: Node, outer: TestClass | None = None) -> None:
        source = file.source
        self.file, self.node, self.outer = file, node, outer
        self.names: tuple[str, ...] = (*(outer.names if outer is not None else ()), name_of(node, source))
        base = _base(node, source)
        others = (other for other in file.beside if base in other.types)
        found = (each for other in others for each in classes_of(other) if each.names[-1] == base)
        self.base: TestClass | None = next(found, None)
        """The class above, if it is in another test file of the folder."""
        self.is_junit3: bool = base in _BASES or (self.base is not None and self.base.is_junit3)
        self.is_whole: bool = not base or base in _BASES or (self.base is not None and self.base.is_whole)
        """Whether the classes above are known."""
        self.methods: dict[str, list[Node]] = dict(outer.methods) if outer is not None else {}
        own: dict[str, list[Node]] = {}
        self.fields: dict[str, Node] = dict(outer.fields) if outer is not None else {}
        for member in members_of(node):
            if member.type == "method_declaration":
                own.setdefault(name_of(member, source), []).append(member)
            elif member.type == "field_declaration":
                for each in member.children_by_field_name("declarator"):
                    self.fields[name_of(each, source)] = each
        self.methods |= own
        self.own_methods = own
        self._checking: dict[int, bool] = {}
        self.divided_helpers: dict[tuple[int, int], Any] = {}
        """Helpers by what names them, once divided, or why they are not."""
        self.reader = CheckReader(source, file.imports, self.methods, is_junit3=self.is_junit3)

    def checks_in(self, node: Node) -> bool:
        """Whether anything below a node, or a method of the class that it calls, checks something."""
        if node.id not in self._checking:
            self._checking[node.id] = self._checks_in(node)
        return self._checking[node.id]

    def _checks_in(self, node: Node) -> bool:
        seen: set[str] = set()
        left = [node]
        while left:
            for each in descendants(left.pop()):
                if each.type == "assert_statement":
                    return True
                if each.type != "method_invocation":
                    continue
                if self.reader.read(each) is not None:
                    return True
                name, target = name_of(each, self.file.source), each.child_by_field_name("object")
                if name not in seen and (target is None or target.type == "this"):
                    seen.add(name)
                    left += self.methods.get(name, [])
        return False

    def compares(self, helper: Node) -> bool:
        """Whether a helper of the class, which checks nothing, compares something, but to end a loop."""
        for node in descendants(helper):
            is_call = node.type == "method_invocation"
            if is_call and may_compare(name_of(node, self.file.source), self.file.depending):
                return True
            if is_comparison(node) and (node.parent is None or node.parent.type not in LOOPS):
                return True
        return False

    def inherited(self, name: str) -> Iterator[tuple[TestClass, Node]]:
        """The methods with a name of classes above."""
        above = self.base
        while above is not None:
            yield from ((above, method) for method in above.own_methods.get(name, ()))
            above = above.base

    @cached_property
    def set_up_checks(self) -> bool:
        """Whether something is checked before or after each test: in methods, constructors, initialisers or fields."""
        above = (each for each in (self.outer, self.base) if each is not None)
        return any(map(self.checks_in, self._set_up())) or any(each.set_up_checks for each in above)

    def _set_up(self) -> Iterator[Node]:
        for member in members_of(self.node):
            is_method = member.type == "method_declaration"
            name = name_of(member, self.file.source)
            is_called = is_lifecycle(member, self.file.source) or name in {"setUp", "tearDown"}
            if is_called if is_method else member.type not in TYPES:
                yield member


def _base(node: Node, source: bytes) -> str:
    above = node.child_by_field_name("superclass")
    return text(above, source).removeprefix("extends").partition("<")[0].strip() if above is not None else ""


def simple_annotations(member: Node, source: bytes) -> tuple[str, ...]:
    """Simple names of the annotations of a member."""
    heads = (each.partition("(")[0].strip() for each in annotations_of(member, source))
    return tuple(head.rpartition(".")[2] for head in heads)


def is_lifecycle(member: Node, source: bytes) -> bool:
    """Whether JUnit uses a member without a test's asking for it."""
    return any(each.startswith(_LIFECYCLE) for each in simple_annotations(member, source))


def is_test(member: Node, source: bytes, *, is_junit3: bool) -> bool:
    """Whether JUnit runs a method as a test."""
    if member.type != "method_declaration":
        return False
    if set(_TESTS).intersection(simple_annotations(member, source)):
        return True
    return is_junit3 and name_of(member, source).startswith("test")


def classes_of(file: TestFile) -> Iterator[TestClass]:
    """The classes of a file, and those nested in them."""
    for node in file.root.named_children:
        if node.type == "class_declaration":
            found = TestClass(file, node)
            yield found
            yield from _nested(found)


def _nested(outer: TestClass) -> Iterator[TestClass]:
    for member in members_of(outer.node):
        if member.type == "class_declaration":
            found = TestClass(outer.file, member, outer)
            yield found
            yield from _nested(found)


def assigned_names(node: Node, source: bytes) -> dict[str, list[Node]]:
    """Where names get another value, or an item of it, by name."""
    found = dict[str, list[Node]]()
    for each in descendants(node):
        target = each.child_by_field_name("left") if each.type == "assignment_expression" else None
        if each.type == "update_expression":
            target = each.named_children[0]
        while target is not None and target.type in {"array_access", "field_access"}:
            target = target.named_children[-1 if target.type == "field_access" else 0]
        if target is not None:
            found.setdefault(text(target, source), []).append(each)
    return found


def parameters_of(method: Node, source: bytes) -> list[tuple[str, Node]] | None:
    """(name, node) of a method's parameters; ``None`` if it takes any number."""
    found = []
    parameters = method.child_by_field_name("parameters")
    for child in parameters.named_children if parameters is not None else ():
        if child.type == "spread_parameter":
            return None
        if child.type == "formal_parameter":
            found.append((name_of(child, source), child))
    return found
