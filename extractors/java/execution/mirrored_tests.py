"""Mirrored tests: tests whose passing checks fail them, so that no right solution passes them.

A mirrored test runs as far as the test does, and calls what that calls, so that a solution which forges results when it
is called forges here, too: each ``assertEquals(3, f());`` fails if it passes, and passes if it fails; where an error is
expected, it is no longer accepted.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterator, Sequence

from tree_sitter import Node

from excise.extractors.java.analysis.grammar import (
    FUNCTIONS,
    TYPES,
    annotations_of,
    descendants,
    members_of,
    modifiers_of,
    name_of,
    parse_tree,
    text,
)

_CHECK = re.compile(r"(?:assert\w*|verify\w*|check\w*|expect\w*|fail\w*)")
"""Names of methods that check something."""
_EXPECTED = re.compile(rb"\bexpected\s*=\s*[\w.]+\.class\s*")
_LETTERS = ("done", "held", "ran", "good", "same", "met")

_Edit = tuple[int, int, bytes]
"""First byte, one past the last, and what takes their place."""


def mirrored(source: bytes, functions: Sequence[str], seed: str = "") -> bytes | None:
    """The test file with the test ``functions`` (``Class::method``) mirrored; ``None`` if no check of them can be.

    ``seed``: of the names of variables.
    """
    rng = random.Random(f"{seed} {hashlib.sha256(source).hexdigest()}")
    root = parse_tree(source).root_node
    wanted = {tuple(name.split("::")) for name in functions}
    found: list[_Edit] = []
    for names, holder, method in _methods(root, source, ()):
        if names in wanted:
            found += _edits(method, source, _helpers(holder, source), rng)
    if root.has_error or not found:
        return None
    result, place = bytearray(), 0
    for start, end, more in sorted(found):
        if start < place:
            continue
        result += source[place:start] + more
        place = end
    return bytes(result + source[place:])


def _methods(node: Node, source: bytes, names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Node, Node]]:
    """(names, type around it, declaration) of all methods of a file."""
    children = members_of(node) if node.type in TYPES else iter(node.named_children)
    for child in children:
        if child.type in TYPES:
            yield from _methods(child, source, (*names, name_of(child, source)))
        elif child.type == "method_declaration":
            yield (*names, name_of(child, source)), node, child


def _helpers(holder: Node, source: bytes) -> frozenset[str]:
    """Names of the methods of a type that make checks for its tests."""
    return frozenset(
        name_of(member, source)
        for member in members_of(holder)
        if member.type in FUNCTIONS
        and not any(each.startswith(("Test", "ParameterizedTest")) for each in annotations_of(member, source))
        and any(_is_check(node, source, frozenset()) for node in descendants(member))
    )


def _edits(method: Node, source: bytes, helpers: frozenset[str], rng: random.Random) -> Iterator[_Edit]:
    modifiers = modifiers_of(method)
    if modifiers is not None and (found := _EXPECTED.search(source, modifiers.start_byte, modifiers.end_byte)):
        end = found.end() + 1 if source[found.end() : found.end() + 1] == b"," else found.end()
        start = found.start()
        before = source[:start].rstrip()
        if end == found.end() and before.endswith(b","):
            start = len(before) - 1
        yield start, end, b""
    body = method.child_by_field_name("body")
    for node in descendants(body) if body is not None else ():
        if node.type == "expression_statement" and _is_statement_check(node, source, helpers):
            yield node.start_byte, node.end_byte, _turned(source[node.start_byte : node.end_byte], rng)
        elif node.type == "try_statement" and _expects_error(node, source):
            for clause in (child for child in node.named_children if child.type == "catch_clause"):
                block = clause.child_by_field_name("body")
                if block is not None:
                    yield block.start_byte + 1, block.start_byte + 1, b" if (true) throw new AssertionError();"


def _is_statement_check(statement: Node, source: bytes, helpers: frozenset[str]) -> bool:
    """Whether a statement is a check that can fail: ``fail()`` itself cannot pass."""
    first = statement.named_children[0] if statement.named_children else None
    if first is None or first.type != "method_invocation" or name_of(first, source).startswith("fail"):
        return False
    if _is_check(first, source, helpers):
        return True
    # assertThat(x).isEqualTo(y): the check begins the chain
    inner: Node | None = first
    while inner is not None and inner.type == "method_invocation":
        if name_of(inner, source) == "assertThat":
            return True
        inner = inner.child_by_field_name("object")
    return False


def _is_check(node: Node, source: bytes, helpers: frozenset[str]) -> bool:
    if node.type != "method_invocation":
        return False
    name, holder = name_of(node, source), node.child_by_field_name("object")
    if holder is None or holder.type == "this":
        return name in helpers or (name.startswith(("assert", "fail")) and bool(_CHECK.fullmatch(name)))
    return name.startswith(("assert", "fail")) and text(holder, source).rpartition(".")[2][:1].isupper()


def _expects_error(statement: Node, source: bytes) -> bool:
    """Whether a ``try`` fails the test unless its body throws."""
    block = statement.child_by_field_name("body")
    return block is not None and any(
        node.type == "method_invocation" and name_of(node, source) == "fail" for node in descendants(block)
    )


def _turned(statement: bytes, rng: random.Random) -> bytes:
    """A statement that fails if the check passes, and passes if it fails, on the same lines."""
    name = f"{rng.choice(_LETTERS)}{rng.randrange(16**6):06x}".encode()
    return (
        b"{ boolean %s = false; try { %s %s = true; } catch (AssertionError %sError) { } "
        b"if (%s) throw new AssertionError(); }" % (name, statement, name, name, name)
    )
