"""Wrong expectations in chains: ``expect(found).toBe(expected)`` (jest, vitest), ``expect(found).to.equal(expected)``
and ``found.should.equal(expected)`` (chai).

The expected value is replaced by a wrong one; where a matcher has none, what is found is replaced after it was
computed. The matcher and a ``not`` before it stay: whoever makes matchers hold could make them fail with another
``not``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from excise.extractors.javascript.analysis.grammar import children, text
from excise.extractors.javascript.execution.wrong_values import CLASS, NUMBER, PATTERN, WORD, WRONG

Edit = tuple[int, int, bytes]
"""(first byte, one past the last, replacement)."""
_CHAINS = frozenset({"member_expression", "call_expression"})
_ENDS = frozenset({"expression_statement", "await_expression", "return_statement", "arrow_function", "arguments",
                   "yield_expression"})  # fmt: skip
"""Where a whole assertion stands."""
_VALUES = frozenset(
    {"toBe", "toEqual", "toStrictEqual", "toMatchObject", "toContain", "toContainEqual", "toHaveLength", "toBeCloseTo",
     "toHaveBeenCalledTimes", "toHaveReturnedTimes", "toHaveBeenCalledWith", "toHaveBeenLastCalledWith",
     "toHaveReturnedWith", "toHaveLastReturnedWith", "toBeTypeOf", "equal", "equals", "eq", "eql", "eqls", "lengthOf",
     "length", "include", "includes", "contain", "contains", "members", "a", "an", "closeTo", "approximately",
     "toBeCalledWith", "toBeCalledTimes", "keys", "string"}
)  # fmt: skip
"""Matchers whose first argument is what is expected."""
_GREATER = frozenset({"toBeGreaterThan", "toBeGreaterThanOrEqual", "above", "gt", "greaterThan", "least", "gte"})
_LESS = frozenset({"toBeLessThan", "toBeLessThanOrEqual", "below", "lt", "lessThan", "most", "lte"})
_PATTERNS = frozenset({"toMatch", "match", "matches"})
_CLASSES = frozenset({"toBeInstanceOf", "instanceof", "instanceOf"})
_PROPERTIES = frozenset({"toHaveProperty", "property"})
_THROWS = frozenset({"toThrow", "toThrowError", "throw", "throws", "Throw"})
_SOMETHING = b"((%s), '" + WORD.encode() + b"')"
_FOUND = {
    "toBeTruthy": b"!(%s)", "toBeFalsy": b"!(%s)", "ok": b"!(%s)", "toBeDefined": b"((%s), undefined)",
    "toBeUndefined": _SOMETHING, "undefined": _SOMETHING, "toBeNull": _SOMETHING, "null": _SOMETHING,
    "toBeNaN": b"((%s), " + NUMBER.encode() + b")", "NaN": b"((%s), " + NUMBER.encode() + b")",
    "true": b"((%s), false)", "false": b"((%s), true)", "exist": b"((%s), null)", "exists": b"((%s), null)",
    "empty": b"((%s), ['" + WORD.encode() + b"'])",
}  # fmt: skip
"""Matchers without an expected value to what is found instead."""
_NOT_FOUND = {
    "toBeTruthy": b"!(%s)", "toBeFalsy": b"!(%s)", "ok": b"!(%s)", "toBeDefined": b"((%s), 1)",
    "toBeUndefined": b"((%s), undefined)", "undefined": b"((%s), undefined)", "toBeNull": b"((%s), null)",
    "null": b"((%s), null)", "toBeNaN": b"((%s), NaN)", "NaN": b"((%s), NaN)", "true": b"((%s), true)",
    "false": b"((%s), false)", "exist": b"((%s), 1)", "exists": b"((%s), 1)", "empty": b"((%s), [])",
}  # fmt: skip
"""The same after a ``not``."""
_THROWING = b"() => { (%s)(); throw new Error('" + WORD.encode() + b"') }"


def expectation_edits(node: Node, source: bytes) -> Iterator[Edit]:
    """The edits of an assertion, made at its outermost node; none at other nodes, and where no wrong form is known."""
    parent = node.parent
    if node.type not in _CHAINS or parent is None or parent.type not in _ENDS:
        return
    found = subject_of(node, source)
    if found is None:
        return
    chain, subject = found
    words = [_last_word(link, source) for link in _links(node, chain)]
    arguments = _arguments(node) if node.type == "call_expression" else None
    matcher = words[0] if words else ""
    is_negated, is_promised = "not" in words, bool({"resolves", "rejects", "eventually"} & set(words))
    if matcher in _THROWS:
        if is_negated and not is_promised:
            yield _replaced(subject, source, _THROWING)
        elif not is_negated and (not is_promised or "rejects" in words):
            yield from _wrong_error(node, arguments)
    elif arguments:
        yield from _wrong_argument(matcher, arguments, subject, source, is_negated=is_negated, is_promised=is_promised)
    elif matcher in _FOUND and not is_promised and not _is_should(chain, source):
        yield _replaced(subject, source, (_NOT_FOUND if is_negated else _FOUND)[matcher])
    elif matcher in {"true", "false"} and not is_promised:
        yield _replaced(subject, source, b"(%s)" if is_negated else WRONG.encode() + b"(%s)")


def _wrong_error(node: Node, arguments: list[Node] | None) -> Iterator[Edit]:
    """What is thrown is not what is expected."""
    given = node.child_by_field_name("arguments") if arguments is not None else None
    if arguments:
        yield arguments[0].start_byte, arguments[0].end_byte, PATTERN.encode()
    elif given is not None:
        yield given.start_byte + 1, given.start_byte + 1, PATTERN.encode()


def _wrong_argument(
    matcher: str, arguments: list[Node], subject: Node, source: bytes, *, is_negated: bool, is_promised: bool
) -> Iterator[Edit]:
    if any(each.type == "spread_element" for each in arguments):
        return
    first = arguments[0]
    start, end = first.start_byte, first.end_byte
    if is_negated:
        if matcher in {"toBe", "toEqual", "toStrictEqual", "equal", "equals", "eq", "eql", "eqls"} and not is_promised:
            yield start, end, b"(%s)" % source[subject.start_byte : subject.end_byte]
        return
    if matcher in _VALUES:
        yield _replaced(first, source, WRONG.encode() + b"(%s)")
    elif matcher in _GREATER:
        yield _replaced(first, source, b"(%s) + " + NUMBER.encode() + b"000")
    elif matcher in _LESS:
        yield _replaced(first, source, b"(%s) - " + NUMBER.encode() + b"000")
    elif matcher in _PATTERNS:
        yield start, end, PATTERN.encode()
    elif matcher in _CLASSES:
        yield start, end, CLASS.encode()
    elif matcher in _PROPERTIES:
        yield _replaced(arguments[1] if len(arguments) > 1 else first, source, WRONG.encode() + b"(%s)")


def subject_of(node: Node, source: bytes) -> tuple[Node, Node] | None:
    """The node ``expect(found)`` or ``found.should`` that a chain begins with, and the node of what is found."""
    current: Node | None = node
    while current is not None and current.type in _CHAINS:
        if current.type == "call_expression":
            function = current.child_by_field_name("function")
            if function is not None and text(function, source) in {"expect", "expect.soft"}:
                arguments = _arguments(current)
                return (current, arguments[0]) if arguments else None
            current = function
        else:
            found = current.child_by_field_name("object")
            if found is not None and _is_should(current, source):
                return current, found
            current = found
    return None


def _links(node: Node, chain: Node) -> Iterator[Node]:
    """The members of a chain from its end to where it begins."""
    current: Node | None = node
    while current is not None and current.id != chain.id:
        if current.type == "member_expression":
            yield current
        current = current.child_by_field_name("object") or current.child_by_field_name("function")


def _arguments(call: Node) -> list[Node]:
    arguments = call.child_by_field_name("arguments")
    return children(arguments) if arguments is not None and arguments.type == "arguments" else []


def _is_should(node: Node, source: bytes) -> bool:
    return node.type == "member_expression" and _last_word(node, source) == "should"


def _last_word(member: Node, source: bytes) -> str:
    last = member.child_by_field_name("property")
    return re.sub(r"^#", "", text(last, source)) if last is not None else ""


def _replaced(node: Node, source: bytes, pattern: bytes) -> Edit:
    return node.start_byte, node.end_byte, pattern.replace(b"%s", source[node.start_byte : node.end_byte])
