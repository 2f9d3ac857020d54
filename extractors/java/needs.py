"""The details that hidden tests need besides names and signatures: texts and exceptions that tests expect."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from tree_sitter import Node

from excise.extractors.expected_texts import WrittenText, expected_texts
from excise.extractors.java.analysis.codebase import JavaCodebase
from excise.extractors.java.analysis.grammar import descendants, parse_tree, text
from excise.types import Need, NeedKind, Symbol, TestId, joined

_FORMAT = re.compile(r"%(?:\d+\$)?[-#+ 0,(]*\d*(?:\.\d+)?[a-zA-Z]|\{\d*\}")
"""What ``String.format`` and ``MessageFormat`` fill in."""
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "s": " "}
_LITERALS = frozenset({"string_literal", "character_literal"})
_KINDS = _LITERALS | {"type_identifier", "object_creation_expression"}
_ERRORS = re.compile(r"(?:Exception|Error)$")

_CHECKS = {
    **dict.fromkeys(("assertTrue", "assertFalse", "assertNull", "assertNotNull"), 1),
    **dict.fromkeys(("assertEquals", "assertNotEquals", "assertSame", "assertNotSame", "assertArrayEquals"), 2),
    **dict.fromkeys(("assertIterableEquals", "assertLinesMatch", "assertThrows", "assertInstanceOf"), 2),
    "fail": 0,
}
"""The checks of libraries, and how many values they take, at least, beside a message."""
_MESSAGE_LAST = re.compile(rb"\bimport\s+(?:static\s+)?org\.(?:junit\.jupiter|testng)\b")
_MESSAGE_FIRST = re.compile(rb"\bimport\s+(?:static\s+)?(?:org\.junit\.(?:Assert|\*)|junit\.framework)\b")


def find_needs(codebase: JavaCodebase, removed: Sequence[str], tests: Sequence[str]) -> tuple[Need, ...]:
    """Texts and exceptions of the symbols ``removed`` that the code of ``tests``, or a member that it uses, expects."""
    code = {test: _code_of_test(codebase, test) for test in tests}
    expected = {test: tuple(_content(each.text) for each in parts if each.is_literal) for test, parts in code.items()}
    symbols = codebase.symbols()
    functions = [symbols[s] for s in removed if s in symbols and symbols[s].is_callable]
    written = [each for function in functions for each in _texts_of(codebase, function)]
    named = {test: {each.text for each in parts if not each.is_literal} for test, parts in code.items()}
    thrown = [each for function in functions for each in _thrown(codebase, function, named)]
    return (*expected_texts(written, expected, _FORMAT), *thrown)


def _thrown(codebase: JavaCodebase, symbol: Symbol, named: Mapping[str, Collection[str]]) -> Iterator[Need]:
    """The exceptions that a function makes, and tests name."""
    source = codebase.modules[symbol.path].source
    made = {
        text(kind, source).rpartition(".")[2]
        for node in _nodes(source)
        if node.type == "object_creation_expression" and symbol.code_start <= node.start_byte < symbol.end
        if (kind := node.child_by_field_name("type")) is not None
    }
    for name in sorted(each for each in made if _ERRORS.search(each)):
        if tests := sorted(test for test, names in named.items() if name in names):
            yield Need(kind=NeedKind.EXCEPTION, word=name, owner=symbol.symbol_id, tests=tuple(tests))


def _texts_of(codebase: JavaCodebase, symbol: Symbol) -> Iterator[WrittenText]:
    source = codebase.modules[symbol.path].source
    body = " ".join(source[symbol.code_start : symbol.end].decode("utf-8", "replace").split())
    for node in _nodes(source):
        if node.type in _LITERALS and symbol.code_start <= node.start_byte < symbol.end:
            written = text(node, source)
            is_all = body.removesuffix("}").strip() == f"return {written};"
            exception = _exception_around(node, source)
            kind = NeedKind.MESSAGE if exception else NeedKind.TEXT
            is_character = node.type == "character_literal"
            yield WrittenText(symbol.symbol_id, _content(written), kind, is_all, exception, is_character)


def _exception_around(node: Node, source: bytes) -> str:
    """Name of the exception in whose arguments a literal is; empty if there is none."""
    around: Node | None = node
    while around is not None and around.type != "block":
        kind = around.child_by_field_name("type") if around.type == "object_creation_expression" else None
        if kind is not None and _ERRORS.search(text(kind, source)):
            return text(kind, source).rpartition(".")[2]
        around = around.parent
    return ""


class _Part(NamedTuple):
    """A piece of the code of a test."""

    text: str
    """The source text."""
    is_literal: bool
    """Whether it is the literal of a string or character, else it is the name of a type."""


def _code_of_test(codebase: JavaCodebase, test: str) -> tuple[_Part, ...]:
    """Literals and types in a test method, and in the members of its file that it names."""
    parts = TestId.parse(test)
    module = codebase.modules.get(parts.path)
    own = codebase.symbols().get(joined(parts.path, parts.qualname))
    if module is None or own is None:
        return ()
    around = (each for each in reversed(module.definitions) if each.start <= own.start and own.end <= each.end)
    uses = next((each.uses for each in around), frozenset[str]())
    spans = [(own.start, own.end)]
    spans += [(each.start, each.end) for each in module.definitions if each.holder and uses.intersection(each.names)]
    return tuple(
        _Part(text(node, module.source), node.type in _LITERALS)
        for node in _nodes(module.source)
        if node.type in {*_LITERALS, "type_identifier"} and any(s <= node.start_byte < e for s, e in spans)
        if not _is_message_of_check(node, module.source)
    )


def _is_message_of_check(node: Node, source: bytes) -> bool:
    """Whether a literal in a test is the message of a check: the first argument in JUnit 4, the last one in JUnit 5."""
    while node.parent is not None and node.parent.type in {"binary_expression", "parenthesized_expression"}:
        node = node.parent
    listed = node.parent if node.parent is not None and node.parent.type == "argument_list" else None
    call = listed.parent if listed is not None else None
    name = call.child_by_field_name("name") if call is not None and call.type == "method_invocation" else None
    if listed is None or name is None:
        return False
    given = [each for each in listed.named_children if not each.type.endswith("comment")]
    values = _CHECKS.get(text(name, source), len(given))
    is_last = _MESSAGE_LAST.search(source) is not None
    has_place = not values or is_last or _MESSAGE_FIRST.search(source) is not None
    return has_place and len(given) > values and node == given[-1 if is_last and values else 0]


@lru_cache(maxsize=64)
def _nodes(source: bytes) -> tuple[Node, ...]:
    """The nodes of a file that are looked at, in order."""
    return tuple(node for node in descendants(parse_tree(source).root_node) if node.type in _KINDS)


def _content(written: str) -> str:
    """The content of the literal of a string or character."""
    plain = written[1:-1] if written.startswith("'") else written.strip('"')
    return re.sub(r"\\([a-z\"'\\])", lambda found: _ESCAPES.get(found[1], found[1]), plain)
