"""Failing copies of tests: a copy does what its test does, and then fails for certain.

A failing assertion stands in a ``finally`` around the test's statements. The copies are in a class of another name; it
has copies only if neither a rule nor an extension nor a superclass could make a failing test pass, and if the class can
be renamed: all types are compiled together, and an error would be one of all tests.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

from tree_sitter import Node

from excise.extractors.java.analysis.grammar import (
    TYPES,
    annotations_of,
    descendants,
    has_modifier,
    members_of,
    modifiers_of,
    name_of,
    parse_tree,
    text,
)

_UNSAFE = re.compile(
    rb"@(?:RunWith|ExtendWith|Extensions|RegisterExtension|Rule|ClassRule|Parameters|Suite\w*)\b"
    rb"|\b(?:runTest|runBare|suite|runTestMethod)\s*\(|\borg\s*[=;,)]|\bnative\b"
)
"""What may change the result of a test, or the meaning of a name that copies use."""
_TEST = re.compile(r"(?:org\.junit\.(?:jupiter\.api\.)?)?Test\b")
_OTHER = re.compile(r"(?:Ignore|Disabled\w*|Timeout|RepeatedTest|ParameterizedTest|TestFactory|TestTemplate)\b")
_EXPECTED = re.compile(rb"\(\s*expected\s*=\s*[\w.]+\.class\s*\)")
_BASES = frozenset({"TestCase", "junit.framework.TestCase"})

_Edit = tuple[int, int, bytes]
"""First byte, one past the last, and what takes their place."""


def failing_copies(
    source: bytes, functions: Sequence[str], name: str, rng: random.Random
) -> tuple[bytes, tuple[str, ...]] | None:
    """The file with its class renamed to ``name`` and with failing copies instead of the tests ``functions``
    (``Class::method``), and the names of the copies; ``None`` if there is none."""
    root = parse_tree(source).root_node
    types = [child for child in root.named_children if child.type in TYPES]
    if root.has_error or len(types) != 1 or types[0].type != "class_declaration" or _UNSAFE.search(source):
        return None
    holder = types[0]
    old = name_of(holder, source)
    base = _base(holder, source)
    if base is None or has_modifier(holder, "abstract") or _is_named_elsewhere(holder, source):
        return None
    library = "jupiter.api.Assertions" if b"org.junit.jupiter" in source else "Assert"
    edits: list[_Edit] = []
    copied: dict[str, str] = {}
    for below, member in _methods(holder, source):
        body = member.child_by_field_name("body")
        if body is None or f"{old}{below}" not in functions or not _is_plain(member, source, is_junit3=bool(base)):
            continue
        number = rng.randrange(1000, 10**6)
        check = f"org.junit.{library}.assertEquals({number}, {number + rng.randrange(1, 900)});"
        edits.append((body.start_byte + 1, body.start_byte + 1, b" try {"))
        edits.append((body.end_byte - 1, body.end_byte - 1, f"\n        }} finally {{ {check} }}\n    ".encode()))
        modifiers = modifiers_of(member)
        if modifiers is not None:
            found = _EXPECTED.search(source, modifiers.start_byte, modifiers.end_byte)
            edits += [(found.start(), found.end(), b"")] if found else []
        copied[f"{old}{below}"] = f"{name}{below}"
    if not copied:
        return None
    for node in descendants(root):
        if node.type in {"identifier", "type_identifier"} and text(node, source) == old:
            edits.append((node.start_byte, node.end_byte, name.encode()))
    result, place = bytearray(), 0
    for start, end, more in sorted(edits, key=lambda edit: edit[:2]):
        result += source[place:start] + more
        place = end
    made = bytes(result + source[place:])
    if parse_tree(made).root_node.has_error:
        return None
    return made, tuple(copied[each] for each in functions if each in copied)


def _is_named_elsewhere(holder: Node, source: bytes) -> bool:
    """Whether other files may name types in a class, or the file another class of its name."""
    inner = (member for member in members_of(holder) if member.type in TYPES and not _is_nested(member, source))
    is_qualified = re.search(rb"\.\s*%s\b" % re.escape(name_of(holder, source).encode()), source) is not None
    return is_qualified or any(not has_modifier(member, "private") for member in inner)


def _methods(holder: Node, source: bytes) -> Iterator[tuple[str, Node]]:
    """(name after that of the class, declaration) of the methods of a class, and of those nested in it for tests."""
    for member in members_of(holder):
        if member.type == "method_declaration":
            yield f"::{name_of(member, source)}", member
        elif _is_nested(member, source):
            inner = name_of(member, source)
            yield from ((f"::{inner}{below}", method) for below, method in _methods(member, source))


def _is_nested(member: Node, source: bytes) -> bool:
    """Whether a member is a class of tests that inherits nothing."""
    if member.type != "class_declaration" or "Nested" not in annotations_of(member, source):
        return False
    return _base(member, source) == "" and not has_modifier(member, "abstract", "static")


def _base(holder: Node, source: bytes) -> str | None:
    """The superclass of a class whose tests may have copies, empty without one; ``None`` if they may not."""
    if holder.child_by_field_name("interfaces") is not None:
        return None
    above = holder.child_by_field_name("superclass")
    if above is None:
        return ""
    found = text(above, source).removeprefix("extends").strip()
    return found if found in _BASES else None


def _is_plain(method: Node, source: bytes, *, is_junit3: bool) -> bool:
    """Whether a method is a test that runs once, without arguments, and passes if it returns."""
    parameters, kind = method.child_by_field_name("parameters"), method.child_by_field_name("type")
    if parameters is None or parameters.named_children or kind is None or text(kind, source) != "void":
        return False
    annotations = annotations_of(method, source)
    if any(_OTHER.match(each) for each in annotations):
        return False
    marked = [each for each in annotations if _TEST.match(each)]
    if is_junit3:
        return not marked and name_of(method, source).startswith("test")
    return len(marked) == 1 and ("expected" not in marked[0] or bool(_EXPECTED.search(marked[0].encode())))
