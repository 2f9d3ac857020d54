"""Loops that would not end, or not leave a state, without a part of them that uses removed code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tree_sitter import Node

from excise.extractors.python.analysis.grammar import DEFINITIONS, descendants, field, text_of

_VARIABLES = frozenset({"identifier", "attribute"})
_PATTERNS = frozenset({"pattern_list", "tuple_pattern", "list_pattern"})
_HOLDERS = frozenset(
    {"dictionary", "expression_list", "keyword_argument", "list", "pair", "parenthesized_expression", "set", "tuple"}
)
"""Nodes that hold a value as it is."""
_BINDING = {
    "assignment": "left", "augmented_assignment": "left", "for_statement": "left", "named_expression": "name",
}  # fmt: skip
"""Type of the nodes that bind a name to the field that has it."""
_READERS = frozenset(
    {
        "abs", "add", "all", "any", "append", "bool", "critical", "debug", "dict", "enumerate", "error", "exception",
        "extend", "float", "format", "frozenset", "hash", "id", "info", "int", "isinstance", "join", "len", "list",
        "log", "max", "min", "print", "range", "repr", "reversed", "round", "set", "sorted", "str", "sum", "tuple",
        "type", "warning", "zip",
    }
)  # fmt: skip
"""Functions and methods that do not change their arguments."""
_READING = frozenset({"copy", "count", "empty", "endswith", "index", "is_set", "items", "keys", "qsize", "startswith",
                      "values"})  # fmt: skip
"""Methods that do not change their objects."""
_RECEIVERS = frozenset({"self", "cls"})
"""Usual names of the first parameter of a method."""
_WAYS_OUT = frozenset({"break_statement", "return_statement", "raise_statement"})


def ends_a_loop(span: tuple[int, int], inside: Node) -> bool:
    """Whether a loop around the removed part would not end, or would not leave a state, without it.

    The part gives a variable a new value that a condition in the loop has, or has the only way out of a ``while``, or
    all uses of what its condition asks for.
    """
    conditions: list[Node] = []
    loop, around = None, inside.parent
    while around is not None and around.type not in DEFINITIONS:
        if around.type in {"for_statement", "while_statement"}:
            loop = loop or around
            if around.type == "while_statement" and (_has_only_way_out(around, span) or _changes_alone(around, span)):
                return True
        condition = around.child_by_field_name("condition")
        if condition is not None and not span[0] <= condition.start_byte < span[1]:
            conditions.append(condition)
        around = around.parent
    if loop is None:
        return False
    assigned = set(_assigned(inside))
    return any(text_of(n) in assigned for each in conditions for n in descendants(each) if n.type in _VARIABLES)


def _has_only_way_out(loop: Node, span: tuple[int, int]) -> bool:
    """Whether the statements in a span leave a loop that always goes on, and no others do."""
    condition = loop.child_by_field_name("condition")
    if condition is None or condition.type not in {"true", "integer"}:
        return False
    ways = [n.start_byte for n in descendants(loop) if n.type in _WAYS_OUT]
    return bool(ways) and all(span[0] <= way < span[1] for way in ways)


def _changes_alone(loop: Node, span: tuple[int, int]) -> bool:
    """Whether what the condition of a loop asks for is changed by statements in a span alone: ``take(queue.pop())``.

    A call of another method of ``self`` may change an attribute, too; it counts where nothing changes that by its name.
    """
    condition, body = loop.child_by_field_name("condition"), loop.child_by_field_name("body")
    if condition is None or body is None:
        return False
    uses = [_use_of(name) for name in variables_in(condition)]
    asked = [use.parts for use in uses if use.parts and not is_bound(use.node)]
    by_name, by_receiver = list[int](), list[int]()
    for name in variables_in(body):
        use = _use_of(name)
        related = [each for each in asked if each[: len(use.parts)] == use.parts[: len(each)]]
        if use.parts and any(_can_change(use, each) for each in related):
            is_receiver = use.parts[0] in _RECEIVERS and len(use.parts) == 1 and use.parts not in related
            (by_receiver if is_receiver else by_name).append(name.start_byte)
    return any(
        bool(places) and all(span[0] <= start < span[1] for start in places)
        for places in (by_name, [*by_name, *by_receiver])
    )


class _Use(NamedTuple):
    """A variable or attribute in an expression."""

    parts: list[str]
    """Its dotted name; without the method that is called, and empty for a function that is called."""
    node: Node
    """The whole expression: with the items that are taken, and with the method that is called."""
    method: str
    """This method; empty without one."""
    is_item: bool
    """Whether the expression takes an item."""


def variables_in(node: Node) -> Iterator[Node]:
    """The names in code that stand for variables: not those of attributes and of keyword arguments."""
    return (each for each in descendants(node) if each.type == "identifier" and not _is_name_of_another(each))


def _is_name_of_another(name: Node) -> bool:
    around = name.parent
    if around is None or around.type not in {"attribute", "keyword_argument"}:
        return False
    return around.child_by_field_name("attribute" if around.type == "attribute" else "name") == name


def _use_of(name: Node) -> _Use:
    """The expression that a variable is the beginning of."""
    parts, node, around, is_item = [text_of(name)], name, name.parent, False
    while around is not None:
        if around.type == "attribute" and not is_item:
            parts.append(text_of(field(around, "attribute")))
        elif around.type == "subscript" and around.child_by_field_name("value") == node:
            is_item = True
        elif around.type != "attribute":
            break
        node, around = around, around.parent
    if around is None or around.type != "call" or around.child_by_field_name("function") != node:
        return _Use(parts, node, "", is_item)
    method = text_of(field(node, "attribute")) if node.type == "attribute" else ""
    return _Use(parts if is_item else parts[:-1], node, method, is_item)


def _can_change(use: _Use, asked: list[str]) -> bool:
    """Whether a use of a variable, or of an attribute of it, can change what a condition asks for."""
    if use.method:
        return use.method not in _READING
    return is_bound(use.node) or (not use.is_item and len(use.parts) <= len(asked) and _is_given_away(use.node))


def is_bound(target: Node) -> bool:
    """Whether a variable, an attribute or an item gets another value there, or is deleted."""
    node = _outermost(target, _PATTERNS | {"expression_list"})
    around = node.parent
    if around is None or around.type in {"delete_statement", "as_pattern_target"}:
        return around is not None
    return around.type in _BINDING and node in around.children_by_field_name(_BINDING[around.type])


def _is_given_away(value: Node) -> bool:
    """Whether a value gets another name, or is given to a function that may change it."""
    node = _outermost(value, _HOLDERS)
    around = node.parent
    if around is None:
        return False
    if around.type == "argument_list" and around.parent is not None:
        return text_of(field(around.parent, "function")).rpartition(".")[2] not in _READERS
    return around.type in {"assignment", "named_expression", "yield"}


def _outermost(node: Node, kinds: frozenset[str]) -> Node:
    """The outermost node of some kinds around a node, with nothing else between; the node itself without one."""
    while node.parent is not None and node.parent.type in kinds:
        node = node.parent
    return node


def _assigned(node: Node) -> Iterator[str]:
    """The variables and attributes that a part of a function gives values to."""
    for each in descendants(node):
        if each.type in {"assignment", "augmented_assignment", "named_expression"}:
            left = each.child_by_field_name("name" if each.type == "named_expression" else "left")
            if left is not None:
                targets = left.named_children if left.type in _PATTERNS else [left]
                yield from (text_of(target) for target in targets if target.type in _VARIABLES)
