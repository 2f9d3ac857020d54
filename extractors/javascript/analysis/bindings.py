"""The variables of a file: where each is bound, what it gets, and where it is used. Scopes are those of blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from tree_sitter import Node

from excise.extractors.javascript.analysis.grammar import (
    CLASSES,
    DECLARED,
    FUNCTIONS,
    children,
    descendants,
    parse_tree,
    required,
    string_value,
    text,
    unwrapped,
)

_SCOPES = FUNCTIONS | {"program", "statement_block", "for_statement", "for_in_statement", "catch_clause", "switch_body"}
_REFERENCES = frozenset({"identifier", "shorthand_property_identifier"})
_INNER = {"required_parameter": "pattern", "optional_parameter": "pattern", "assignment_pattern": "left",
          "object_assignment_pattern": "left", "pair_pattern": "value"}  # fmt: skip
"""Kinds of patterns to the field with the pattern in them."""
_WRITES = {"assignment_expression": "left", "augmented_assignment_expression": "left", "update_expression": "argument"}


class Source(NamedTuple):
    """An expression of which a variable is a part."""

    node: Node
    path: tuple[str | int, ...] = ()
    """Keys and numbers of items that lead to the part."""


@dataclass(eq=False, slots=True)
class Binding:
    """One variable, parameter, function, class or imported name."""

    name: str
    kind: str
    """``variable``, ``parameter``, ``loop``, ``function``, ``class``, ``import`` or ``caught``."""
    node: Node
    """The name where it is bound."""
    owner: Node
    """The declarator, function, loop or import statement that binds it."""
    source: Source | None = None
    """What a variable or a loop gets; of a loop over items, all of these. Of a parameter, the path in its argument."""
    module: str = ""
    """The module that it comes from, if it is imported or required."""
    imported: tuple[str, ...] = ()
    """Its name there; empty for the whole module."""
    number: int = -1
    """Of a parameter, its place."""
    writes: int = 0
    """How often it gets another value."""
    uses: list[Node] = field(default_factory=list)
    """Where it is used, writes included."""


class Bindings:
    """All variables of a file."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.root = parse_tree(source).root_node
        self._scopes: dict[int, dict[str, Binding]] = {}
        self._declaring: set[int] = set()
        self._bound: dict[int, Binding] = {}
        nodes = list(descendants(self.root))
        for node in nodes:
            self._declare(node)
        queue: list[tuple[Node, tuple[dict[str, Binding], ...]]] = [(self.root, ())]
        while queue:  # from the top: to ask a node for its parent takes long in deep trees
            node, scopes = queue.pop()
            scopes = (self._scopes[node.id], *scopes) if node.id in self._scopes else scopes
            if node.type in _REFERENCES and node.id not in self._declaring:
                self._note_use(node, scopes)
            queue += [(child, scopes) for child in reversed(node.named_children)]

    def of(self, node: Node) -> Binding | None:
        """The variable that a name stands for; ``None`` for a global one."""
        return self._bound.get(node.id)

    def every(self) -> Iterator[Binding]:
        """All variables."""
        for scope in self._scopes.values():
            yield from scope.values()

    def uses_in(self, node: Node) -> Iterator[tuple[Node, Binding]]:
        """The uses of variables in a node."""
        for each in descendants(node):
            if each.id in self._bound:
                yield each, self._bound[each.id]

    # ------------------------------------------------------------------------------------------------- bindings
    def _declare(self, node: Node) -> None:
        kind = node.type
        if kind == "variable_declarator":
            self._declare_variable(node)
        elif kind in FUNCTIONS:
            self._declare_function(node)
        elif kind in CLASSES and (name := node.child_by_field_name("name")) is not None:
            self._bind(name, self._scope_of(node), "class", node)
        elif kind == "import_statement":
            self._declare_imports(node)
        elif kind == "for_in_statement" and node.child_by_field_name("kind") is not None:
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            if left is not None and right is not None:
                for name, path in _names(left, self.source):
                    self._bind(name, node, "loop", node, Source(right, path))
        elif kind == "catch_clause" and (caught := node.child_by_field_name("parameter")) is not None:
            for name, _ in _names(caught, self.source):
                self._bind(name, node, "caught", node)

    def _declare_variable(self, node: Node) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        is_var = node.parent is not None and node.parent.type == "variable_declaration"
        if name is None:
            return
        module, more = _required(value, self.source) if value is not None else ("", ())
        for each, path in _names(name, self.source):
            source = Source(value, path) if value is not None else None
            scope = self._function_scope(node) if is_var else self._scope_of(node)
            made = self._bind(each, scope, "variable", node, source)
            if module:
                made.module, made.imported = module, (*more, *map(str, path))

    def _declare_function(self, node: Node) -> None:
        name = node.child_by_field_name("name")
        if node.type in DECLARED and name is not None:
            self._bind(name, self._scope_of(node), "function", node)
        elif node.type != "method_definition" and name is not None:
            self._bind(name, node, "function", node)
        for number, parameter in enumerate(parameters_of(node)):
            for each, path in _names(parameter, self.source):
                made = self._bind(each, node, "parameter", node)
                made.number = number
                made.source = Source(parameter, path)

    def _declare_imports(self, node: Node) -> None:
        module = string_value(node.child_by_field_name("source"), self.source) or ""
        for each in descendants(node):
            if each.type == "import_specifier":
                name = each.child_by_field_name("name")
                alias = each.child_by_field_name("alias") or name
                if name is not None and alias is not None:
                    self._declaring.add(name.id)
                    self._bind_import(alias, node, module, (text(name, self.source),))
            elif each.type == "namespace_import":
                self._bind_import(children(each)[-1], node, module, ())
            elif each.type == "import_clause":
                for name in (child for child in children(each) if child.type == "identifier"):
                    self._bind_import(name, node, module, ("default",))

    def _bind_import(self, name: Node, node: Node, module: str, imported: tuple[str, ...]) -> None:
        made = self._bind(name, self.root, "import", node)
        made.module, made.imported = module, () if imported == ("default",) else imported

    def _bind(self, name: Node, scope: Node, kind: str, owner: Node, source: Source | None = None) -> Binding:
        self._declaring.add(name.id)
        scopes = self._scopes.setdefault(scope.id, {})
        known = scopes.get(text(name, self.source))
        made = Binding(text(name, self.source), kind, name, owner, source)
        if known is not None:
            made = known
            made.writes += 1
        scopes[made.name] = made
        return made

    def _scope_of(self, node: Node) -> Node:
        around = node.parent
        while around is not None and around.type not in _SCOPES:
            around = around.parent
        return around if around is not None else self.root

    def _function_scope(self, node: Node) -> Node:
        around = node.parent
        while around is not None and around.type not in FUNCTIONS:
            around = around.parent
        return around if around is not None else self.root

    # ----------------------------------------------------------------------------------------------------- uses
    def _note_use(self, node: Node, scopes: tuple[dict[str, Binding], ...]) -> None:
        name = text(node, self.source)
        found = next((scope[name] for scope in scopes if name in scope), None)
        if found is not None:
            self._bound[node.id] = found
            found.uses.append(node)
            found.writes += self._is_written(node)

    def _is_written(self, node: Node) -> bool:
        """Whether a name gets another value here."""
        inner, around = node, node.parent
        while around is not None and around.type in {"array_pattern", "object_pattern", "pair_pattern", "rest_pattern"}:
            inner, around = around, around.parent
        if around is None:
            return False
        if around.type == "for_in_statement":
            return around.child_by_field_name("left") == inner
        return around.type in _WRITES and around.child_by_field_name(_WRITES[around.type]) == inner


@lru_cache(maxsize=8)
def bindings_of(source: bytes) -> Bindings:
    """The variables of a file."""
    return Bindings(source)


def parameters_of(function: Node) -> list[Node]:
    """The parameters of a function, as nodes."""
    single, several = function.child_by_field_name("parameter"), function.child_by_field_name("parameters")
    if single is not None:
        return [single]
    return children(several) if several is not None else []


def _names(
    pattern: Node, source: bytes, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[Node, tuple[str | int, ...]]]:
    """The names that a pattern binds, each with the way to its value."""
    kind = pattern.type
    if kind == "identifier":
        yield pattern, path
    elif kind == "shorthand_property_identifier_pattern":
        yield pattern, (*path, text(pattern, source))
    elif kind in _INNER:
        inner = pattern.child_by_field_name(_INNER[kind])
        key = pattern.child_by_field_name("key")
        more = (string_value(key, source) or text(key, source),) if key is not None else ()
        if inner is not None:
            yield from _names(inner, source, (*path, *more))
    elif kind == "array_pattern":
        number = 0
        for child in pattern.children:
            number += child.type == ","
            if child.is_named and child.type != "comment":
                yield from _names(child, source, (*path, number))
    elif kind in {"object_pattern", "rest_pattern"}:
        for child in children(pattern):
            yield from _names(child, source, (*path, "...") if kind == "rest_pattern" else path)


def _required(value: Node, source: bytes) -> tuple[str, tuple[str, ...]]:
    """The module of ``require('module')`` or of members of it (``require('assert').strict``), and the members."""
    node, members = unwrapped(value), list[str]()
    while node.type == "member_expression":
        inner, last = node.child_by_field_name("object"), node.child_by_field_name("property")
        if inner is None or last is None:
            return "", ()
        members.insert(0, text(last, source))
        node = unwrapped(inner)
    if node.type == "await_expression" and children(node):
        node = unwrapped(children(node)[0])
    return required(node, source) or "", tuple(members)
