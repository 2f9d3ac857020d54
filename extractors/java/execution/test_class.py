"""A class of tests as it is needed to divide them: its methods, fields, and those of the classes around it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from excise.extractors.java.analysis.grammar import (
    FUNCTIONS,
    TYPES,
    annotations_of,
    descendants,
    has_modifier,
    members_of,
    name_of,
    text,
)
from excise.extractors.java.execution.checks import CheckReader, Imports

_BASES = frozenset({"TestCase", "junit.framework.TestCase"})
_LIFECYCLE = ("Before", "After", "Rule", "ClassRule", "RegisterExtension", "Parameters", "DataPoint")
_TESTS = ("Test", "ParameterizedTest", "RepeatedTest", "TestFactory", "TestTemplate", "Theory")


@dataclass(frozen=True, slots=True)
class TestFile:
    """A file of tests."""

    source: bytes
    root: Node
    depending: frozenset[str]
    """Names of the code under test and of what calls it."""
    mark: str
    """What new names end with."""
    imports: Imports
    foreign: frozenset[str]
    """Names of the types of other test files of the folder."""


class TestClass:
    """A class, with what it takes from those around it."""

    def __init__(self, file: TestFile, node: Node, outer: TestClass | None = None) -> None:
        source = file.source
        self.file, self.node, self.outer = file, node, outer
        self.names: tuple[str, ...] = (*(outer.names if outer is not None else ()), name_of(node, source))
        self.base = _base(node, source)
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
        self.is_junit3 = self.base in _BASES
        self.reader = CheckReader(source, file.imports, self.methods, is_junit3=self.is_junit3)

    def checks_in(self, node: Node) -> bool:
        """Whether anything below a node checks something by itself."""
        calls = (each for each in descendants(node) if each.type == "method_invocation")
        return any(each.type == "assert_statement" for each in descendants(node)) or any(
            self.reader.read(call) is not None for call in calls
        )

    def set_up(self) -> Iterator[Node]:
        """What runs before or after each test: methods, constructors, initialisers and fields."""
        if self.outer is not None:
            yield from self.outer.set_up()
        for member in members_of(self.node):
            is_method = member.type == "method_declaration"
            name = name_of(member, self.file.source)
            if not is_method and member.type not in TYPES:
                yield member
            elif is_method and (is_lifecycle(member, self.file.source) or name in {"setUp", "tearDown"}):
                yield member


def _base(node: Node, source: bytes) -> str:
    above = node.child_by_field_name("superclass")
    return text(above, source).removeprefix("extends").strip() if above is not None else ""


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


def test_classes(file: TestFile, node: Node, outer: TestClass | None = None) -> Iterator[TestClass]:
    """The classes of a file, and those nested in them."""
    children = members_of(node) if outer is not None else iter(node.named_children)
    for child in children:
        if child.type == "class_declaration":
            found = TestClass(file, child, outer)
            yield found
            yield from test_classes(file, child, found)


def declared_types(root: Node, source: bytes) -> Iterator[str]:
    """Names of the types that a file declares."""
    for node in descendants(root):
        if node.type in TYPES:
            yield name_of(node, source)


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


def is_private(member: Node, source: bytes) -> bool:
    """Whether a member is private."""
    return has_modifier(member, "private")


def is_function(member: Node) -> bool:
    """Whether a member has parameters and a body."""
    return member.type in FUNCTIONS


def words_of(names: Collection[str]) -> frozenset[str]:
    """The last parts of qualified names."""
    return frozenset(name.rpartition(".")[2] for name in names)
