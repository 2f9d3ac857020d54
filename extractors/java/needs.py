"""The details that hidden tests need besides names and signatures: texts that removed code writes, and tests expect."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from tree_sitter import Node

from excise.extractors.expected_texts import WrittenText, expected_texts
from excise.extractors.java.analysis.codebase import JavaCodebase
from excise.extractors.java.analysis.grammar import descendants, parse_tree, text
from excise.types import Need, NeedKind, Symbol, TestId, joined

_FORMAT = re.compile(r"%(?:\d+\$)?[-#+ 0,(]*\d*(?:\.\d+)?[a-zA-Z]|\{\d*\}")
"""What ``String.format`` and ``MessageFormat`` fill in."""
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "s": " "}
_ERRORS = re.compile(r"(?:Exception|Error)$")


def find_needs(codebase: JavaCodebase, removed: Sequence[str], tests: Sequence[str]) -> tuple[Need, ...]:
    """Texts of the symbols ``removed`` that the code of ``tests``, or a member that it uses, expects."""
    expected = {test: tuple(_literals_of_test(codebase, test)) for test in tests}
    symbols = codebase.symbols()
    functions = [symbols[s] for s in removed if s in symbols and symbols[s].is_callable]
    written = [each for function in functions for each in _texts_of(codebase, function)]
    return expected_texts(written, expected, _FORMAT)


def _texts_of(codebase: JavaCodebase, symbol: Symbol) -> Iterator[WrittenText]:
    source = codebase.modules[symbol.path].source
    body = " ".join(source[symbol.code_start : symbol.end].decode("utf-8", "replace").split())
    for node in _string_nodes(source):
        if symbol.code_start <= node.start_byte < symbol.end:
            written = text(node, source)
            is_all = body.removesuffix("}").strip() == f"return {written};"
            kind = NeedKind.MESSAGE if _is_message(node, source) else NeedKind.TEXT
            yield WrittenText(symbol.symbol_id, _content(written), kind, is_all)


def _is_message(node: Node, source: bytes) -> bool:
    """Whether a literal is in an argument of what makes an exception."""
    around: Node | None = node
    while around is not None and around.type != "block":
        kind = around.child_by_field_name("type") if around.type == "object_creation_expression" else None
        if kind is not None and _ERRORS.search(text(kind, source)):
            return True
        around = around.parent
    return False


def _literals_of_test(codebase: JavaCodebase, test: str) -> Iterator[str]:
    """The literals in a test method, and in the members of its file that it names."""
    parts = TestId.parse(test)
    module = codebase.modules.get(parts.path)
    own = codebase.symbols().get(joined(parts.path, parts.qualname))
    if module is None or own is None:
        return
    around = (each for each in reversed(module.definitions) if each.start <= own.start and own.end <= each.end)
    uses = next((each.uses for each in around), frozenset[str]())
    spans = [(own.start, own.end)]
    spans += [(each.start, each.end) for each in module.definitions if each.holder and uses.intersection(each.names)]
    for node in _string_nodes(module.source):
        if any(start <= node.start_byte < end for start, end in spans):
            yield _content(text(node, module.source))


@lru_cache(maxsize=64)
def _string_nodes(source: bytes) -> tuple[Node, ...]:
    return tuple(node for node in descendants(parse_tree(source).root_node) if node.type == "string_literal")


def _content(written: str) -> str:
    """The content of a string literal."""
    plain = written.strip('"')
    return re.sub(r"\\([a-z\"'\\])", lambda found: _ESCAPES.get(found[1], found[1]), plain)
