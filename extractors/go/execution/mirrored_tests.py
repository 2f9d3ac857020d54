"""Mirrored tests: tests whose passing checks fail them, so that no right solution passes them.

A mirrored test runs as far as the test does, and calls what that calls, so that a solution which forges results when it
is called forges here, too: ``if got != want { t.Fatal(…) }`` becomes ``if … { … } else { t.Fail() }``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tree_sitter import Node

from excise.extractors.go.analysis.grammar import FUNCTIONS, descendants, parse_tree, text
from excise.extractors.go.analysis.parsed_file import name_of

_FAILING = frozenset({"Error", "Errorf", "Fatal", "Fatalf", "Fail", "FailNow"})
_OUTPUT = re.compile(rb"(?i)//[ \t]*(?:unordered )?output:")
_TESTING = re.compile(r"\*\s*\w+\.T$")

Insertion = tuple[int, bytes]
"""A place in a file, and the text to put there."""


def mirrored(source: bytes, functions: Sequence[str]) -> bytes | None:
    """The test file with the test ``functions`` mirrored; ``None`` if no check of them can be.

    Checks that helpers make stay as they are; examples get other outputs.
    """
    wanted, found = set(functions), list[Insertion]()
    for node in parse_tree(source).root_node.named_children:
        if node.type in FUNCTIONS and (name := name_of(node, source)) in wanted:
            found += _outputs(node, source) if name.startswith("Example") else _checks(node, source)
    if not found:
        return None
    result, place = bytearray(), 0
    for at, more in sorted(found):
        result += source[place:at] + more
        place = at
    return bytes(result + source[place:])


def _outputs(function: Node, source: bytes) -> Iterator[Insertion]:
    """Another first line of the expected output of an example."""
    for match in _OUTPUT.finditer(source, function.start_byte, function.end_byte):
        yield match.end(), b" other"


def _checks(function: Node, source: bytes) -> Iterator[Insertion]:
    """A failure in the other branch of each ``if`` whose own block fails the test."""
    for node in descendants(function):
        block = node.child_by_field_name("consequence") if node.type == "if_statement" else None
        if block is None or not any(_fails(child, source) for child in descendants(block)):
            continue
        test = _test_around(node, source)
        other = node.child_by_field_name("alternative")
        if not test:
            continue
        if other is None:
            yield block.end_byte, f" else {{ {test}.Fail() }}".encode()
        elif other.type == "block":
            yield other.start_byte + 1, f" {test}.Fail(); ".encode()
        elif other.child_by_field_name("initializer") is None:
            condition = other.child_by_field_name("condition")
            if condition is not None:
                yield condition.start_byte, f"{test}.Fail(); ".encode()


def _fails(node: Node, source: bytes) -> bool:
    if node.type != "call_expression":
        return False
    function = node.child_by_field_name("function")
    if function is None or function.type != "selector_expression":
        return False
    field = function.child_by_field_name("field")
    return field is not None and text(field, source) in _FAILING


def _test_around(node: Node, source: bytes) -> str:
    """Name of the innermost ``*testing.T`` that a statement can see as a parameter; empty if there is none."""
    around = node.parent
    while around is not None:
        if around.type in {*FUNCTIONS, "func_literal"}:
            parameters = around.child_by_field_name("parameters")
            for each in parameters.named_children if parameters is not None else ():
                kind, name = each.child_by_field_name("type"), each.child_by_field_name("name")
                if kind is not None and name is not None and _TESTING.search(text(kind, source)):
                    return text(name, source)
        around = around.parent
    return ""
