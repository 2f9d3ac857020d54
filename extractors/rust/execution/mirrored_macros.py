"""Mirrored tests that calls of a macro define: the macro of the file is changed, and with it all tests it makes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from tree_sitter import Node

from excise.extractors.divided_tests import Edit
from excise.extractors.rust.analysis.grammar import descendants, field_text, text
from excise.extractors.rust.execution.checks import Check, checked_values, noted, notes_module


class _Macro(NamedTuple):
    """A definition of a macro, or a call of one, between the functions of a file."""

    node: Node
    name: str
    modules: tuple[str, ...]
    """Names of the modules within the file around it."""


def mirrored_macros(root: Node, source: bytes, wanted: Collection[str], notes: str) -> list[Edit]:
    """The edits of the macros whose calls define the ``wanted`` tests, if all calls are in the module of the macro.

    ``notes``: the name of the module with the notes.
    """
    macros = list(_macros(root, source, ()))
    definitions = {(each.name, each.modules): each for each in macros if each.node.type == "macro_definition"}
    calls = [each for each in macros if each.node.type == "macro_invocation"]
    chosen = {(call.name, call.modules) for call in calls if _defines(call, source, wanted)}
    elsewhere = {call.name for call in calls if (call.name, call.modules) not in definitions}
    keys = sorted(key for key in chosen & definitions.keys() if key[0] not in elsewhere)
    return [edit for key in keys for edit in _edits(definitions[key], source, notes)]


def _macros(parent: Node, source: bytes, modules: tuple[str, ...]) -> Iterator[_Macro]:
    for node in parent.named_children:
        inner = node.named_children[0] if node.type == "expression_statement" and node.named_children else node
        if inner.type == "macro_definition":
            yield _Macro(inner, field_text(inner, "name", source), modules)
        elif inner.type == "macro_invocation":
            yield _Macro(inner, field_text(inner, "macro", source), modules)
        elif node.type == "mod_item" and (body := node.child_by_field_name("body")) is not None:
            yield from _macros(body, source, (*modules, field_text(node, "name", source)))


def _defines(call: _Macro, source: bytes, wanted: Collection[str]) -> bool:
    """Whether a call names one of the tests of its module."""
    words = {text(node, source) for node in descendants(call.node) if node.type == "identifier"}
    return any("::".join((*call.modules, word)) in wanted for word in words)


def _edits(macro: _Macro, source: bytes, notes: str) -> Iterator[Edit]:
    """The edits of the tests that a macro makes; none if some must panic, or are in modules that it makes, too."""
    module = notes_module(macro.modules, notes)
    tokens = (node for node in descendants(macro.node) if not node.children)
    if any(text(token, source) in {"should_panic", "mod"} for token in tokens):
        return
    for body in _test_bodies(macro.node, source):
        checks = list(_checks(body, source))
        if checks:
            head = f"{{ {module}::begin(false); fn {notes}_run() {{"
            end = f"}} {notes}_run(); {module}::end(); }}"
            yield Edit(body.start_byte, body.start_byte + 1, head.encode())
            yield Edit(body.end_byte - 1, body.end_byte, end.encode())
            yield from (noted(check, module, by_literals=False) for check in checks)


def _test_bodies(macro: Node, source: bytes) -> Iterator[Node]:
    """The bodies of the functions without arguments and results to which a macro gives the attribute of a test."""
    for tree in descendants(macro):
        tokens = [*tree.children] if tree.type in {"token_tree", "token_repetition"} else []
        for place, token in enumerate(tokens[:-3]):
            _, arguments_of, body = tokens[place + 1 : place + 4]
            is_function = text(token, source) == "fn" and text(arguments_of, source) == "()"
            if is_function and body.type == "token_tree" and _is_test(tokens[:place], source):
                yield body


def _is_test(before: list[Node], source: bytes) -> bool:
    """Whether the attributes at the end of some tokens have that of a test."""
    place = len(before)
    while place >= 2 and text(before[place - 2], source) == "#" and before[place - 1].type == "token_tree":
        if "".join(text(before[place - 1], source).split()) == "[test]":
            return True
        place -= 2
    return False


def _checks(body: Node, source: bytes) -> Iterator[Check]:
    """The checks in the tokens of a function's body."""
    for tree in descendants(body):
        tokens = [*tree.children] if tree.type == "token_tree" else []
        for before, name, mark, values in zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False):
            is_call = text(mark, source) == "!" and values.type == "token_tree" and text(before, source) != "::"
            is_plain = not any(child.type == "token_repetition" for child in values.children)
            found = checked_values(text(name, source), values, source) if is_call and is_plain else ()
            if found:
                yield Check(name.start_byte, values.end_byte, text(name, source), found, ())
