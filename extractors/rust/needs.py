"""The details that hidden tests need besides names and signatures: texts that removed code writes, and tests expect."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from tree_sitter import Node

from excise.extractors.expected_texts import WrittenText, expected_texts
from excise.extractors.rust.analysis.codebase import RustCodebase
from excise.extractors.rust.analysis.grammar import descendants, parse_tree, text
from excise.extractors.rust.analysis.parsed_file import Item
from excise.types import Need, NeedKind, Symbol, TestId

_FILLED_IN = re.compile(r"\{[\w.:$<>^+#?*!-]*\}")
_MESSAGES = frozenset({"panic", "assert", "assert_eq", "assert_ne", "bail", "anyhow", "ensure", "expect", "Err"})
"""Macros and functions whose texts are messages of errors."""
_EXPECTED_PANIC = re.compile(r"""should_panic\s*(?:\(\s*expected\s*)?=\s*("(?:\\.|[^"\\])*"|r"[^"]*"|r#"[\s\S]*?"#)""")
_LITERALS = frozenset({"string_literal", "raw_string_literal", "char_literal"})


def find_needs(codebase: RustCodebase, removed: Sequence[str], tests: Sequence[str]) -> tuple[Need, ...]:
    """Texts of the symbols ``removed`` that the code of ``tests``, or a helper or table that it names, expects."""
    symbols = codebase.symbols()
    functions = [symbols[s] for s in removed if s in symbols and symbols[s].is_callable]
    written = [each for function in functions for each in _texts_of(codebase, function)]
    literals = {test: tuple(_literals_of_test(codebase, test)) for test in tests}
    found = expected_texts(written, literals, _FILLED_IN)
    return (*found, *_panics(codebase, functions, tests, {need.word for need in found}))


def _panics(
    codebase: RustCodebase, functions: Sequence[Symbol], tests: Sequence[str], known: set[str]
) -> Iterator[Need]:
    """Texts with which tests want it to panic and that the removed code has from elsewhere."""
    for test in tests if functions else ():
        if (item := _item_of(codebase, test)) is None:
            continue
        source = codebase.modules[TestId.parse(test).path].source
        wanted = _EXPECTED_PANIC.search(source[item.start : item.end].decode("utf-8", "replace"))
        word = _content(wanted[1]) if wanted is not None else ""
        if not word or any(word in each or each in word for each in known):
            continue
        known.add(word)
        named = [each for each in functions if each.name.partition("#")[0] in item.uses]
        owner = (named or list(functions))[0].symbol_id
        yield Need(kind=NeedKind.MESSAGE, word=word, owner=owner, tests=(test,))


def _texts_of(codebase: RustCodebase, symbol: Symbol) -> Iterator[WrittenText]:
    """The literals in a function."""
    source = codebase.modules[symbol.path].source
    body = " ".join(source[symbol.code_start : symbol.end].decode("utf-8", "replace").split())
    for node in _literal_nodes(source):
        if symbol.code_start <= node.start_byte < symbol.end:
            kind = NeedKind.MESSAGE if _is_message(node, source) else NeedKind.TEXT
            is_all = body.removesuffix("}").strip() == text(node, source)
            written, is_character = _content(text(node, source)), node.type == "char_literal"
            yield WrittenText(symbol.symbol_id, written, kind, is_all, is_character=is_character)


def _is_message(node: Node, source: bytes) -> bool:
    """Whether a literal is an argument of what makes an error."""
    around = node.parent.parent if node.parent is not None else None
    called = None
    if around is not None:
        called = around.child_by_field_name("macro") or around.child_by_field_name("function")
    return called is not None and re.split(r"::|\.", text(called, source))[-1] in _MESSAGES


def _literals_of_test(codebase: RustCodebase, test: str) -> Iterator[str]:
    """The literals in a test function and its attributes, and in the items of its file that it names."""
    own = _item_of(codebase, test)
    if own is None:
        return
    module = codebase.modules[TestId.parse(test).path]
    chosen = [item for item in module.items if item is own or (item.name in own.uses and not item.is_test)]
    for node in _literal_nodes(module.source):
        if any(item.start <= node.start_byte < item.end for item in chosen):
            yield _content(text(node, module.source))


def _item_of(codebase: RustCodebase, test: str) -> Item | None:
    """The function of a test."""
    parts = TestId.parse(test)
    module = codebase.modules.get(parts.path)
    items = module.items if module is not None else ()
    return next((item for item in items if item.is_test and (*item.modules, item.name) == parts.names), None)


@lru_cache(maxsize=64)
def _literal_nodes(source: bytes) -> tuple[Node, ...]:
    return tuple(node for node in descendants(parse_tree(source).root_node) if node.type in _LITERALS)


def _content(written: str) -> str:
    """The content of the literal of a string or character."""
    mark = written[-1] if written[-1] == "'" else '"'
    inside = written[written.index(mark) + 1 : written.rindex(mark)]
    if "r" in written[: written.index(mark)]:
        return inside
    inside = re.sub(r"\\\r?\n\s*", "", inside)
    inside = re.sub(r"\\u\{([0-9a-fA-F_]+)\}", lambda m: chr(int(m[1].replace("_", ""), 16)), inside)
    try:
        return str(ast.literal_eval(f'"""{inside}"""')) if not inside.endswith('"') else inside
    except (ValueError, SyntaxError):
        return inside
