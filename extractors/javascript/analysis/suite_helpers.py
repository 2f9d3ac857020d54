"""Functions of a test file that put what they are given into a block of tests with a title of their own:
``function whenSent (type, run) { describe('when ' + type, function () { run() }) }``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product

from tree_sitter import Node

from excise.extractors.javascript.analysis.grammar import (
    DECLARED,
    FUNCTIONS,
    children,
    descendants,
    string_value,
    text,
    unwrapped,
)

MAX_TITLES = 8
"""Maximum number of titles that one call of such a function may have."""
MAX_DEPTH = 8
"""Maximum number of variables, choices and operators that are followed within one another."""
Parts = tuple[str | None, ...]
"""The texts that a title is joined from; ``None`` for what is not known."""
_ANY: list[Parts] = [(None,)]
_FALSY = frozenset({"undefined", "null", "false", "0", "NaN"})
_NOTHING = frozenset({"undefined", "null"})


@dataclass(frozen=True, slots=True)
class SuiteHelper:
    """A function that puts tests into a block."""

    function: Node
    """The function."""
    title: Node
    """The title of the block."""
    parameters: tuple[str, ...]
    """The names of its parameters, empty for patterns."""
    given: int
    """The number of the parameter with the function that defines the tests."""

    def titles_of(self, arguments: Sequence[Node], source: bytes) -> list[Parts]:
        """The titles that the block may have if the function is called with these arguments."""
        values = {name: value for name, value in zip(self.parameters, arguments, strict=False) if name}
        return _Titles(self, values, source).of(self.title)


def suite_helpers(root: Node, source: bytes, called: frozenset[str]) -> dict[str, SuiteHelper]:
    """Name of each such function that a file declares to what it does; ``called`` are functions that make blocks."""
    found = {}
    for name, function in _functions(root, source):
        helper = _helper(function, source, called)
        if helper is not None:
            found[name] = helper
    return found


def _functions(root: Node, source: bytes) -> Iterator[tuple[str, Node]]:
    for node in descendants(root):
        name = node.child_by_field_name("name")
        if node.type in DECLARED and name is not None:
            yield text(name, source), node
        elif node.type == "variable_declarator" and name is not None and name.type == "identifier":
            value = node.child_by_field_name("value")
            if value is not None and value.type in FUNCTIONS:
                yield text(name, source), value


def _helper(function: Node, source: bytes, called: frozenset[str]) -> SuiteHelper | None:
    body, listed = function.child_by_field_name("body"), function.child_by_field_name("parameters")
    if body is None or listed is None:
        return None
    names = tuple(text(each, source) if each.type == "identifier" else "" for each in children(listed))
    made = [each for each in descendants(body) if _last_name(each, source) in called]
    arguments = made[0].child_by_field_name("arguments") if len(made) == 1 else None
    given = children(arguments) if arguments is not None else []
    if len(given) < 2:
        return None
    inner = list(descendants(given[-1]))
    for number, name in enumerate(names):
        if name and (text(given[-1], source) == name or any(_calls(each, name, source) for each in inner)):
            return SuiteHelper(function, given[0], names, number)
    return None


def _last_name(node: Node, source: bytes) -> str:
    """The last name of the function that a node calls; empty for other nodes."""
    function = node.child_by_field_name("function") if node.type == "call_expression" else None
    return re.findall(r"[\w$]*", text(function, source))[-2] if function is not None else ""


def _calls(node: Node, name: str, source: bytes) -> bool:
    function = node.child_by_field_name("function") if node.type == "call_expression" else None
    called = text(function, source) if function is not None else ""
    return called in {name, f"{name}.call", f"{name}.apply"}


class _Titles:
    """The titles of one call."""

    def __init__(self, helper: SuiteHelper, values: Mapping[str, Node], source: bytes) -> None:
        self.helper, self.values, self.source = helper, values, source

    def of(self, node: Node, depth: int = 0) -> list[Parts]:
        """What an expression may give."""
        literal, node = string_value(node, self.source), unwrapped(node)
        if literal is not None:
            return [(literal,)]
        kinds = {
            "identifier": self._of_name,
            "binary_expression": self._of_sum,
            "ternary_expression": self._of_choice,
            "template_string": self._of_template,
        }
        return kinds[node.type](node, depth + 1) if node.type in kinds and depth < MAX_DEPTH else _ANY

    def _of_name(self, used: Node, depth: int) -> list[Parts]:
        name = text(used, self.source)
        if name in self.helper.parameters:
            plain = self._given(name)
            return [(plain,)] if plain is not None else _ANY
        for node in descendants(self.helper.function):
            declared = node.child_by_field_name("name") if node.type == "variable_declarator" else None
            value = node.child_by_field_name("value") if declared is not None else None
            if declared is not None and value is not None and text(declared, self.source) == name:
                return self.of(value, depth)
        return _ANY

    def _given(self, name: str) -> str | None:
        """What a parameter is given, as it is joined to a text; ``None`` if that is not known."""
        value = self.values.get(name)
        return "undefined" if value is None else _plain(value, self.source)

    def _of_sum(self, node: Node, depth: int) -> list[Parts]:
        if text(_operator(node), self.source) != "+":
            return _ANY
        sides = (node.child_by_field_name(name) for name in ("left", "right"))
        return _products([self.of(side, depth) for side in sides if side is not None])

    def _of_choice(self, node: Node, depth: int) -> list[Parts]:
        condition, *sides = (node.child_by_field_name(name) for name in ("condition", "consequence", "alternative"))
        is_true = self._truth(condition) if condition is not None else None
        chosen = sides if is_true is None else sides[:1] if is_true else sides[1:]
        return [title for side in chosen if side is not None for title in self.of(side, depth)][:MAX_TITLES]

    def _truth(self, condition: Node) -> bool | None:
        """Whether a condition holds; ``None`` if that is not known."""
        condition = unwrapped(condition)
        inner = condition.child_by_field_name("argument") if condition.type == "unary_expression" else None
        if inner is not None:
            found = self._truth(inner) if text(condition, self.source).startswith("!") else None
            return None if found is None else not found
        written = re.sub(r"[!=]==?", "=", text(condition, self.source), count=1)
        name, _, other = (part.strip() for part in written.partition("="))
        plain, value = self._given(name), self.values.get(name)
        if name not in self.helper.parameters or plain is None:
            return None
        is_text = value is not None and string_value(value, self.source) is not None
        if condition.type == "identifier":
            return bool(plain) if is_text else plain not in _FALSY
        is_nothing = not is_text and plain in _NOTHING
        is_asked = condition.type == "binary_expression" and other in _NOTHING
        return is_nothing == text(_operator(condition), self.source).startswith("=") if is_asked else None

    def _of_template(self, node: Node, depth: int) -> list[Parts]:
        alternatives: list[list[Parts]] = []
        position = node.start_byte + 1
        for inner in (each for each in node.named_children if each.type == "template_substitution"):
            alternatives.append([(self.source[position : inner.start_byte].decode("utf-8", "replace"),)])
            alternatives.append(self.of(children(inner)[0], depth) if children(inner) else _ANY)
            position = inner.end_byte
        alternatives.append([(self.source[position : node.end_byte - 1].decode("utf-8", "replace"),)])
        return _products(alternatives)


def _products(alternatives: Sequence[Sequence[Parts]]) -> list[Parts]:
    """The titles that are joined of one of each alternatives."""
    chosen = islice(product(*alternatives), MAX_TITLES)
    return [tuple(part for parts in each for part in parts) for each in chosen]


def _operator(node: Node) -> Node:
    found = node.child_by_field_name("operator")
    return found if found is not None else node


def _plain(node: Node, source: bytes) -> str | None:
    """A literal as it is joined to a text; ``None`` for other expressions."""
    literal = string_value(node, source)
    if literal is not None:
        return literal
    written = text(node, source)
    return written if node.type in {"number", "true", "false", "null", "undefined"} or written == "undefined" else None
