"""Mirrored tests: tests with wrong expectations, which correct code fails. A solution that passes them cheats.

In ``t.equal(found, expected)`` and ``assert.strictEqual(found, expected)`` the expected value is replaced by a wrong
one (:mod:`wrong_values`), conditions are negated, and what functions throw is not what they must; so are chains
(:mod:`mirrored_expectations`). Titles and number of the tests stay, and they take the same way: only the last statement
with an assertion expects what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from tree_sitter import Node

from excise.extractors.javascript.analysis.grammar import (
    FUNCTIONS,
    children,
    descendants,
    parse_tree,
    text,
)
from excise.extractors.javascript.analysis.test_blocks import TestBlock, blocks_of
from excise.extractors.javascript.execution.mirrored_expectations import Edit, expectation_edits, subject_of
from excise.extractors.javascript.execution.wrong_values import PATTERN, WORD, WRONG, fill
from excise.types import joined

_EQUAL = frozenset(
    {"equal", "equals", "is", "isEqual", "strictEqual", "strictEquals", "deepEqual", "deepEquals", "deepLooseEqual",
     "deepStrictEqual", "isEquivalent", "same", "strictSame", "looseEqual", "isDeeply", "partialDeepStrictEqual",
     "lengthOf", "has", "hasStrict", "sameMembers", "sameDeepMembers", "sameOrderedMembers", "include", "eql"}
)  # fmt: skip
_UNEQUAL = frozenset({"notEqual", "not", "notStrictEqual", "notDeepEqual", "notDeepStrictEqual", "notSame", "isNot"})
_TRUE = frozenset({"ok", "true", "assert", "isTrue", "isOk"})
_FALSE = frozenset({"notOk", "notok", "false", "error", "ifError", "ifErr", "iferror", "isFalse", "isNotOk"})
_THROWS = frozenset({"throws", "throw", "rejects"})
_DOES_NOT_THROW = frozenset({"doesNotThrow", "doesNotReject"})
_MATCHES = frozenset({"match"})
_CALLED_LATER = b"const given = (%s); await (typeof given === 'function' ? given() : given)"
_FAIL = b"; throw new Error('" + WORD.encode() + b"') }"
_STRINGS = frozenset({"string", "template_string"})


def mirrored(source: bytes, functions: Sequence[str], seed: str = "") -> bytes | None:
    """The file with wrong expectations in the tests ``functions`` (titles as in ids); ``None`` if it has none.

    Equal seeds give equal files.
    """
    path = "file"
    file = blocks_of(source, [joined(path, name) for name in functions])
    root = parse_tree(source).root_node
    edits = sorted(
        (edit for block in _with_tests(file.blocks) for edit in _edits_of(block, root, source)),
        key=lambda edit: (edit[0], -edit[1]),
    )
    if root.has_error or not edits:
        return None
    # In TypeScript, wrong values often have wrong types; in JavaScript, this is a comment.
    start = next(child.start_byte for child in root.children if child.type not in {"comment", "hash_bang_line"})
    edits.insert(0, (start, start, b"// @ts-nocheck\n"))
    pieces: list[bytes] = []
    position = 0
    for start, end, replacement in edits:
        if start < position:
            continue
        pieces += [source[position:start], replacement]
        position = end
    pieces.append(source[position:])
    return fill(b"".join(pieces), seed)


def _with_tests(blocks: Collection[TestBlock]) -> Iterator[TestBlock]:
    for block in blocks:
        if block.tests:
            yield block
        else:
            yield from _with_tests(block.blocks)


def _edits_of(block: TestBlock, root: Node, source: bytes) -> list[Edit]:
    """The edits of one test: of the last of its statements that has any, and of the tests in it.

    So it calls all that the test calls before it fails: a forgery may wait for a call of the code under test.
    """
    inner = [(each.start, each.end) for each in block.blocks]
    found = [
        edit
        for edit in _edits(root, source, [(block.start, block.end)])
        if not any(start <= edit[0] and edit[1] <= end for start, end in inner)
    ]
    last = [
        (start, end) for start, end in _statements(root, block) if any(start <= e[0] and e[1] <= end for e in found)
    ]
    if last:
        found = [edit for edit in found if last[-1][0] <= edit[0] and edit[1] <= last[-1][1]]
    return [*found, *(edit for each in block.blocks for edit in _edits_of(each, root, source))]


def _statements(root: Node, block: TestBlock) -> list[tuple[int, int]]:
    """The statements of a test's function, by their bytes."""
    node = root.descendant_for_byte_range(block.start, block.end)
    while node is not None and node.type != "call_expression":
        node = next((each for each in children(node) if each.type in {"call_expression", "await_expression"}), None)
    arguments = node.child_by_field_name("arguments") if node is not None else None
    for each in reversed(children(arguments)) if arguments is not None else ():
        body = each.child_by_field_name("body") if each.type in FUNCTIONS else None
        if body is not None and body.type == "statement_block":
            return [(statement.start_byte, statement.end_byte) for statement in children(body)]
    return []


def _edits(root: Node, source: bytes, spans: Sequence[tuple[int, int]]) -> Iterator[Edit]:
    """(start, end, replacement) of the arguments of assertions within the spans."""
    for node in _within(root, spans):
        yield from expectation_edits(node, source)
        if node.type != "call_expression":
            continue
        function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if function is None or arguments is None:
            continue
        words = re.findall(r"[\w$]+", text(function, source)) if subject_of(function, source) is None else []
        given = children(arguments)
        if words and given and not any(each.type == "spread_element" for each in given):
            yield from _changed(words[-1], given, source)


def _within(root: Node, spans: Sequence[tuple[int, int]]) -> Iterator[Node]:
    """The nodes inside the spans; parts of the tree beside them are not visited."""
    queue = [root]
    while queue:
        node = queue.pop()
        if any(start <= node.start_byte and node.end_byte <= end for start, end in spans):
            yield from descendants(node)
        elif any(start < node.end_byte and node.start_byte < end for start, end in spans):
            queue += node.named_children


def _changed(name: str, given: list[Node], source: bytes) -> Iterator[Edit]:
    first = given[0]
    if name in _EQUAL and len(given) > 1:
        yield _replaced(given[1], source, WRONG.encode() + b"(%s)")
    elif name in _UNEQUAL and len(given) > 1:
        yield given[1].start_byte, given[1].end_byte, text(first, source).encode()
    elif name in _TRUE:
        yield _replaced(first, source, b"!(%s)")
    elif name in _FALSE:
        yield _replaced(first, source, b"!(%s) || new Error('" + WORD.encode() + b"')")
    elif name in _THROWS:  # what is thrown is not what is expected
        if len(given) > 1 and given[1].type not in _STRINGS:
            yield given[1].start_byte, given[1].end_byte, PATTERN.encode()
        else:
            yield first.end_byte, first.end_byte, f", {PATTERN}".encode()
    elif name in _DOES_NOT_THROW:
        pattern = _CALLED_LATER if name == "doesNotReject" else b"(%s)()"
        yield _replaced(first, source, (b"async " if name == "doesNotReject" else b"") + b"() => { " + pattern + _FAIL)
    elif name in _MATCHES and len(given) > 1:
        yield given[1].start_byte, given[1].end_byte, PATTERN.encode()


def _replaced(node: Node, source: bytes, pattern: bytes) -> Edit:
    return node.start_byte, node.end_byte, pattern.replace(b"%s", source[node.start_byte : node.end_byte])
