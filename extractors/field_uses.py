"""Fields of types, and what code does with them, in a form that languages share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache, wraps
from typing import NamedTuple, TypeVar

from tree_sitter import Node

T = TypeVar("T")
_WORD = re.compile(r"[^\W\d]\w*")
_NAME = re.compile(r"(?<=\.)[^\W\d]\w*|(?<![\w\s])[^\W\d]\w*(?![\w\s])")
"""A word behind a dot, or between two characters that are no blanks."""
NodeText = Callable[[Node], str]
"""The source text of a node."""


class UseKind(StrEnum):
    """What a use does with a field."""

    READ = "read"
    """It may take the value; also all that syntax does not tell."""
    EMPTY = "empty"
    """It gives the field a value without content: nothing, zero, an empty list or table."""
    SET = "set"
    """It gives the field another value, or adds to the value."""


FILLING: Mapping[str, UseKind] = {
    **dict.fromkeys(
        ("add", "addAll", "addFirst", "addLast", "append", "entry", "extend", "insert", "offer", "push", "push_back",
         "push_front", "push_str", "put", "putAll", "putIfAbsent", "set", "unshift"),
        UseKind.SET,
    ),
    **dict.fromkeys(("clear", "truncate"), UseKind.EMPTY),
}  # fmt: skip
"""Methods that add to a container or empty it, to what they do, where their result is not used."""


class Field(NamedTuple):
    """A declared field."""

    name: str
    """Its name."""
    holder: str
    """Plain name of its type."""
    start: int
    """First byte of its lines, with the comments above it."""
    end: int
    """One past the last byte of them."""
    is_private: bool
    """Whether no code outside the project can name it."""
    can_go: bool
    """Whether the type may lose it: nothing but its name refers to it, and it is not the only one."""
    is_set: bool = False
    """Whether its declaration gives it a value with content."""


class FieldUse(NamedTuple):
    """A use of a name that may be that of a field."""

    name: str
    """The name."""
    holder: str
    """Plain name of the type whose field it is; empty where syntax does not tell."""
    start: int
    """First byte of the name."""
    kind: UseKind
    """What it does."""
    span: tuple[int, int] | None = None
    """The bytes of the statement or element that mean nothing without the field; ``None`` if something would be lost
    with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldGrammar:
    """How a language writes fields and their uses."""

    fields: Callable[[bytes], Iterable[Field]]
    """The fields that a file declares."""
    uses: Callable[[bytes], Iterable[FieldUse]]
    """The uses in a file of names that may be those of fields."""
    is_private_to_file: bool = False
    """Whether no other file can name a private field."""
    keeps_one: bool = True
    """Whether a type without fields would look odd, so that it does not lose its last one."""
    evened: Callable[[bytes, bytes], bytes] = lambda _before, after: after
    """A file after fields are gone, laid out as the language's formatter does; given the file before as well."""


def remembered(find: Callable[[bytes], Iterable[T]]) -> Callable[[bytes], tuple[T, ...]]:
    """A function of files that remembers what it found in the last ones: candidates have most of them in common."""
    return lru_cache(maxsize=8192)(wraps(find)(lambda source: tuple(find(source))))


class LocalNames:
    """The names of variables in the functions of a file, each of which is read once."""

    def __init__(self, functions: frozenset[str], is_variable: Callable[[Node], bool], text: NodeText) -> None:
        """``functions`` are the kinds of nodes that have variables; ``is_variable`` tells of a leaf whether it is the
        name of one."""
        self._functions, self._is_variable, self._text = functions, is_variable, text
        self._known: dict[tuple[int, int], tuple[Counter[str], set[str]]] = {}

    def are_used_up(self, part: Node) -> bool:
        """Whether a part of a function holds the only uses of a parameter or variable of the function."""
        function = around(part, self._functions)
        if function is None:
            return False
        key = function.start_byte, function.end_byte
        if key not in self._known:
            bound = {self._text(each) for node in _bindings(function) for each in self._names(node)}
            self._known[key] = Counter(map(self._text, self._names(function))), bound
        every, bound = self._known[key]
        inside = Counter(map(self._text, self._names(part)))
        return any(name in bound and every[name] - count < 2 for name, count in inside.items())

    def _names(self, node: Node) -> Iterator[Node]:
        return filter(self._is_variable, _leaves(node))


def _bindings(function: Node) -> Iterator[Node]:
    """The nodes in a function that name parameters and variables, by what its grammar calls them."""
    for node in _nodes(function):
        is_parameter = "parameter" in node.type or node.type == "lambda_expression"
        if is_parameter or node.type in _BINDING:
            named = [each for field in _NAME_FIELDS for each in node.children_by_field_name(field)]
            yield from named
            if is_parameter and not named:
                yield from (each for each in node.named_children if not each.named_children or "pattern" in each.type)


_NAME_FIELDS = ("name", "left", "pattern", "parameter", "parameters")
_BINDING = frozenset(
    {
        "short_var_declaration", "range_clause", "var_spec", "const_spec", "variable_declarator", "let_declaration",
        "for_expression", "enhanced_for_statement", "for_in_statement", "catch_clause", "resource",
    }
)  # fmt: skip
"""Nodes that bind variables."""


def _nodes(node: Node) -> Iterator[Node]:
    stack = [node]
    while stack:
        found = stack.pop()
        yield found
        stack.extend(reversed(found.named_children))


def _leaves(node: Node) -> Iterator[Node]:
    return (each for each in _nodes(node) if not each.named_children)


def names_in_text(node: Node, source: bytes, *, with_prose: bool = True) -> Iterator[FieldUse]:
    """The words of a text, each of which may be the name of a field that something looks up; ``with_prose``, those
    beside blanks as well."""
    content = source[node.start_byte : node.end_byte].decode("utf-8", "replace")
    words = (_WORD if with_prose else _NAME).finditer(content)
    return (FieldUse(word[0], "", node.start_byte, UseKind.READ) for word in words)


def whole_lines(node: Node, source: bytes) -> tuple[int, int]:
    """The bytes of a node with the rest of its lines if nothing else but a comment stands on them."""
    start, end = source.rfind(b"\n", 0, node.start_byte) + 1, source.find(b"\n", node.end_byte) + 1 or len(source)
    rest = source[node.end_byte : end].strip()
    rest = rest.removeprefix(b";").lstrip()
    is_alone = not source[start : node.start_byte].strip() and (not rest or rest.startswith(b"//"))
    return (start, end) if is_alone else (node.start_byte, node.end_byte)


def is_only_statement(statement: Node) -> bool:
    """Whether a block holds no other statement, so that it would be left empty."""
    block = statement.parent
    others = block.named_children if block is not None else []
    return not any(each != statement and "comment" not in each.type for each in others)


def around(node: Node, kinds: frozenset[str]) -> Node | None:
    """The innermost node around this one that is of one of the kinds."""
    found = node.parent
    while found is not None and found.type not in kinds:
        found = found.parent
    return found
