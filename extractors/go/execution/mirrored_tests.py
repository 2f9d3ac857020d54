"""Mirrored tests: tests whose passing checks fail them, so that no right solution passes them.

A mirrored test runs as far as the test does, and calls what that calls, so that a solution which forges results when it
is called forges here, too: ``if got != want { t.Fatal(…) }`` becomes ``if … { … } else { t.Fail() }``. A check of a
library (testify, quicktest, is, gomega) or a helper that is named like one is followed by ``t.Fail()``.
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
_CHECKING = re.compile(
    r"(?i)(?:^|_|[a-z](?=[A-Z]))(?:assert|check|compar|contain|diff|equal|error|expect|false|match|must|nil|panic"
    r"|requir|same|should|true|valid|verif|want)|^(?:is|to|no|not|len|ok)(?:[A-Z]|$)|^(?:run|do|exec)\w{0,40}(?:test|case)|^test\w"
)
"""Names of functions that check something."""

Insertion = tuple[int, bytes]
"""A place in a file, and the text to put there."""


def mirrored(source: bytes, functions: Sequence[str]) -> bytes | None:
    """The test file with the test ``functions`` mirrored; ``None`` if no check of them can be.

    Examples get other outputs.
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
    """A failure in the other branch of each ``if`` whose own block fails the test, and below each call that checks."""
    made: dict[str, set[str]] = {}
    for node in descendants(function):
        if node.type == "expression_statement" and (test := _test_around(node, source)):
            if test not in made:
                made[test] = _made_of(test, function, source)
            if _is_check(node.named_children[0], test, made[test], source):
                yield node.end_byte, f"; {test}.Fail()".encode()
            continue
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


def _is_check(call: Node, test: str, made: set[str], source: bytes) -> bool:
    """Whether a call checks something: it has a name like that, and gets the test, or belongs to what is ``made`` of
    it."""
    if call.type != "call_expression":
        return False
    function, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
    assert function is not None
    assert arguments is not None
    field = function.child_by_field_name("field")
    name = text(function if field is None else field, source)
    if not _CHECKING.search(name):
        return False
    gets_test = any(text(each, source) == test for each in arguments.named_children)
    return gets_test or _root(function, source) in made


def _root(function: Node, source: bytes) -> str:
    """The name with which a chain of calls begins: ``g`` of ``g.Expect(x).To``."""
    while function.type in {"selector_expression", "call_expression"}:
        inner = function.child_by_field_name("operand") or function.child_by_field_name("function")
        if inner is None:
            break
        function = inner
    return text(function, source)


def _made_of(test: str, function: Node, source: bytes) -> set[str]:
    """Names that a function gives to values made of a test (``c := qt.New(t)``), or has as parameters of such types."""
    code = source[function.start_byte : function.end_byte]
    given = rb"\b(\w+)\s*:?=\s*(?:\w+\.)?(?:New\w*|\w*G)\(\s*%s\s*\)" % re.escape(test.encode())
    found = (*re.findall(given, code), *re.findall(rb"\b(\w+)\s+\*\w+\.(?:C|I|Assertions)\b", code))
    return {name.decode() for name in found} - {test}


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
