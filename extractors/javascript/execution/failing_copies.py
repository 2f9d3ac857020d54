"""Failing copies of tests: a copy does what its test does, and then fails for certain.

A failing assertion stands in a ``finally`` around the test's statements, so that neither an error nor a ``return``
leaves it out. In tape and tap, whose tests may have ended by then, it stands before them. Tests that end by calling a
function that they are given have no copy: they may have passed before the assertion.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterator, Sequence

from tree_sitter import Node

from excise.extractors.javascript.analysis.grammar import children, parse_tree, text
from excise.extractors.javascript.analysis.test_blocks import TestBlock, blocks_of
from excise.types import TestId, joined

_CALLED = re.compile(r"it|test|specify|tape|\w+\.test")
"""Functions that define a test. With another word after them (``it.fails``) a test may have to fail."""
_AROUND = frozenset({"expression_statement", "await_expression"})
_BODIES = frozenset({"arrow_function", "function_expression"})
_ASSERT = re.compile(
    r"""(?:(?:const|let|var)\s+(\w+)\s*=\s*require\(\s*|import\s+(?:\*\s*as\s+)?(\w+)\s+from\s*)"""
    r"""['"](?:node:)?assert(?:/strict)?['"]"""
)
"""How a file names node's module of assertions."""
_CHAI = re.compile(r"\bexpect\([^;\n]*\)\.to\.")
_EXPECT = re.compile(r"\bexpect\([^;\n]*\)\.(?:\w+\.)?to[A-Z]\w+\(")
_PARAMETERS = {"tape": (1,), "tap": (1,), "node": (0, 1), "other": (0,)}
"""How a file is run, to how many parameters the functions of its tests may have."""

_Edit = tuple[int, int, str]
"""First byte, one past the last, and what takes their place."""


def failing_copies(
    source: bytes, functions: Sequence[str], kind: str, rng: random.Random
) -> tuple[bytes, tuple[str, ...]] | None:
    """The file with failing copies instead of the tests ``functions`` (titles as in ids), and those that have one.

    ``kind``: ``tape``, ``tap``, ``node`` or ``other``. ``None`` if there is no copy.
    """
    root = parse_tree(source).root_node
    if root.has_error:
        return None
    file = blocks_of(source, [joined("file", name) for name in functions])
    number = rng.randrange(3, 900)
    other = number + rng.randrange(1, 90)
    failure = _failure(source.decode("utf-8", "replace"), number, other)
    edits: list[_Edit] = []
    copied = []
    for block in _single(file.blocks):
        found = _body(root, source, block, kind)
        if found is None:
            continue
        body, parameter = found
        if parameter and body.type == "statement_block":
            edits.append((body.start_byte + 1, body.start_byte + 1, f" {parameter}.equal({number}, {other});"))
        elif kind in {"tape", "tap"}:
            continue
        elif body.type == "statement_block":
            edits.append((body.start_byte + 1, body.start_byte + 1, " try {"))
            edits.append((body.end_byte - 1, body.end_byte - 1, f"\n}} finally {{ {failure} }} "))
        else:
            edits.append((body.start_byte, body.start_byte, "{ try { return ("))
            edits.append((body.end_byte, body.end_byte, f") }} finally {{ {failure} }} }}"))
        copied += ["::".join(TestId.parse(test).names) for test in block.tests]
    if not copied:
        return None
    start = next(child.start_byte for child in root.children if child.type not in {"comment", "hash_bang_line"})
    edits.append((start, start, "// @ts-nocheck\n"))
    made = _edited(source, edits)
    return None if parse_tree(made).root_node.has_error else (made, tuple(name for name in functions if name in copied))


def _edited(source: bytes, edits: Sequence[_Edit]) -> bytes:
    pieces, place = [], 0
    for start, end, more in sorted(edits, key=lambda edit: edit[:2]):
        pieces += [source[place:start], more.encode()]
        place = end
    return b"".join([*pieces, source[place:]])


def _single(blocks: Collection[TestBlock]) -> Iterator[TestBlock]:
    """The blocks that define one of the tests, and none inside it."""
    for block in blocks:
        if len(block.tests) == 1 and block.is_fixed and not block.blocks and "[" not in next(iter(block.tests)):
            yield block
        elif not block.tests:
            yield from _single(block.blocks)


def _body(root: Node, source: bytes, block: TestBlock, kind: str) -> tuple[Node, str] | None:
    """The body of a test's function, and, in tape and tap, the name of its parameter."""
    call = root.descendant_for_byte_range(block.start, block.end)
    while call is not None and call.type != "call_expression":
        call = next(iter(children(call)), None) if call.type in _AROUND else None
    function = call.child_by_field_name("function") if call is not None else None
    arguments = call.child_by_field_name("arguments") if call is not None else None
    if function is None or arguments is None or not _CALLED.fullmatch(text(function, source)):
        return None
    made = [each for each in children(arguments) if each.type in _BODIES]
    parameters = _parameters(made[0]) if len(made) == 1 else None
    body = made[0].child_by_field_name("body") if made else None
    if parameters is None or body is None or len(parameters) not in _PARAMETERS[kind]:
        return None
    if kind not in {"tape", "tap"}:
        return body, ""
    name = parameters[0].child_by_field_name("pattern") or parameters[0]
    return (body, text(name, source)) if name.type == "identifier" else None


def _parameters(function: Node) -> list[Node]:
    single, several = function.child_by_field_name("parameter"), function.child_by_field_name("parameters")
    if single is not None:
        return [single]
    return children(several) if several is not None else []


def _failure(source: str, number: int, other: int) -> str:
    """A statement that fails, with the assertions that the file uses."""
    if _CHAI.search(source):
        return f"expect({number}).to.equal({other})"
    if _EXPECT.search(source):
        return f"expect({number}).toBe({other})"
    if found := _ASSERT.search(source):
        return f"{found[1] or found[2]}.strictEqual({number}, {other})"
    return f"throw new Error('{number} != {other}')"
