"""Details that hidden tests need besides names and signatures: texts and errors of removed code that tests expect."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from tree_sitter import Node

from excise.extractors.expected_texts import WrittenText, expected_texts, shown_placeholder
from excise.extractors.go.analysis.codebase import GoCodebase
from excise.extractors.go.analysis.grammar import descendants, parse_tree, text
from excise.types import Need, NeedKind, Symbol, TestId, path_of

_VERB = re.compile(r"%[-+# 0]*(?:\d+|\*)?(?:\.\d+)?[a-zA-Z]")
_SENTINEL = re.compile(r"(?<![\w.])(?:[a-z]\w*\.)?(?:Err[A-Z]\w*|EOF)\b")
_ERRORS = frozenset({"New", "Errorf", "Error", "Wrap", "Wrapf"})
_EXPECTED_PANIC = re.compile(r"(?<![\w.])recover\(\)|\.Panics\w*\(|\bPanic(?:With)?\(")
"""What a test does that tells a panic."""
_SORTS = re.compile(r"(?<![\w.])(?:sort\.(?:Strings|Ints|Float64s|Sort|Stable|Slice\w*)|slices\.Sort\w*)(?=\()")
MAX_PANIC = 160
"""Number of characters of the text of a panic that is told."""
_COMPARES = re.compile(r"\b(?:DeepEqual|Equal|EqualValues|Exactly|Diff)f?\(")
"""What a test does to which ``nil`` is not equal to something empty."""
_QUALIFIER = re.compile(r"\b[a-z]\w*\.(?=[A-Z])")
"""The package before a type's name."""
_LITERALS = frozenset({"interpreted_string_literal", "raw_string_literal", "rune_literal"})
_OUTPUT = re.compile(r"(?im)^[ \t]*//[ \t]*(?:unordered[ \t]+)?output:(?P<rest>(?:.*\n[ \t]*//)*.*)\s*\}?\s*\Z")
"""The comment at the end of an example that says what it prints."""

_TESTING = re.compile(rb"(\w+)\s+\*?testing\.(?:TB?|B|F)\b")
"""A parameter by which a test reports."""
_REPORTS = re.compile(r"(?:Fatal|Error|Log|Skip)f?")
_CHECKS_OF_ONE = re.compile(r"(?:True|False|(?:Not)?(?:Nil|Empty|Zero|Panics)|(?:No)?Error)f?")
_CHECKS_OF_TWO = re.compile(
    r"(?:(?:Not)?(?:Equal|EqualValues|Same|Contains|Subset|Regexp|ErrorIs)|Exactly|EqualError|ErrorContains|ErrorAs"
    r"|Len|IsType|JSONEq|YAMLEq|ElementsMatch|PanicsWith(?:Value|Error)|(?:Greater|Less)(?:OrEqual)?)f?"
)
"""Functions of testify that compare two values; what follows these is a message."""


def find_needs(codebase: GoCodebase, removed: Sequence[str], tests: Sequence[str]) -> tuple[Need, ...]:
    """Texts of the symbols ``removed`` that the code of ``tests``, or a table that it uses, expects."""
    symbols = codebase.symbols()
    functions = [symbols[s] for s in removed if s in symbols and symbols[s].is_callable]
    written = [text for function in functions for text in _texts_of(codebase, function)]
    texts = expected_texts(written, {test: tuple(_literals_of_test(codebase, test)) for test in tests}, _VERB)
    panics = _panics(codebase, functions, tests, {(need.owner, need.template or need.word) for need in texts})
    return (
        *texts,
        *_errors(codebase, functions, tests),
        *panics,
        *_orders(codebase, functions, tests),
        *_empty_values(codebase, functions, tests),
    )


def _orders(codebase: GoCodebase, functions: Sequence[Symbol], tests: Sequence[str]) -> Iterator[Need]:
    """By what removed functions sort."""
    for function in functions if tests else ():
        code = codebase.modules[function.path].source[function.code_start : function.end].decode("utf-8", "replace")
        for name in sorted(set(_SORTS.findall(code))):
            yield Need(kind=NeedKind.ORDER, word=name, owner=function.symbol_id, tests=tuple(sorted(tests)))


def _empty_values(codebase: GoCodebase, functions: Sequence[Symbol], tests: Sequence[str]) -> Iterator[Need]:
    """Slices and maps that both removed functions and tests that compare them make empty, and not ``nil``."""
    comparing = [test for test in tests if _COMPARES.search(_code_of_test(codebase, test))]
    wanted: dict[str, set[str]] = defaultdict(set)
    for test in comparing:
        own, module = codebase.definition_of_test(test), codebase.modules.get(path_of(test))
        if own is not None and module is not None:
            for found in _empty_literals(module.source, own.start, own.end):
                wanted[_QUALIFIER.sub("", found)].add(test)
    for function in functions if wanted else ():
        source = codebase.modules[function.path].source
        for found in dict.fromkeys(_empty_literals(source, function.code_start, function.end)):
            if using := wanted.get(_QUALIFIER.sub("", found)):
                name = function.name.partition("#")[0]
                word = f"{name} {found}"
                yield Need(kind=NeedKind.RESULT, word=word, owner=function.symbol_id, tests=tuple(sorted(using)))


def _empty_literals(source: bytes, start: int, end: int) -> Iterator[str]:
    """The empty slices and maps that code makes, as literals: ``[]T{}`` also for ``make([]T, 0)``."""
    for node in descendants(parse_tree(source).root_node):
        if not start <= node.start_byte < end or node.type not in {"composite_literal", "call_expression"}:
            continue
        kind, size = node.child_by_field_name("type"), node.child_by_field_name("body")
        is_empty = size is not None and not size.named_children
        if node.type == "call_expression":
            function, given = node.child_by_field_name("function"), node.child_by_field_name("arguments")
            values = given.named_children if given is not None else []
            kind = values[0] if values and function is not None and text(function, source) == "make" else None
            sizes = [text(each, source) for each in values[1:2]]
            is_empty = sizes == ["0"] or (kind is not None and kind.type == "map_type")
        if is_empty and kind is not None and kind.type in {"slice_type", "map_type"}:
            written = text(kind, source)
            if not re.search(r"\s", written):
                yield f"{written}{{}}"


def _errors(codebase: GoCodebase, functions: Sequence[Symbol], tests: Sequence[str]) -> Iterator[Need]:
    """Errors that are values, ``io.EOF`` or ``ErrClosed``, which both removed functions and tests name."""
    named = {test: set(_SENTINEL.findall(_code_of_test(codebase, test))) for test in tests}
    for function in functions:
        code = codebase.modules[function.path].source[function.code_start : function.end].decode("utf-8", "replace")
        for name in sorted(set(_SENTINEL.findall(code))):
            if using := sorted(test for test, names in named.items() if name in names):
                yield Need(kind=NeedKind.EXCEPTION, word=name, owner=function.symbol_id, tests=tuple(using))


def _panics(
    codebase: GoCodebase, functions: Sequence[Symbol], tests: Sequence[str], known: Collection[tuple[str, str]]
) -> Iterator[Need]:
    """Panics of removed functions where tests tell panics, and their texts but those ``known`` by owner."""
    telling = tuple(sorted(test for test in tests if _EXPECTED_PANIC.search(_code_of_test(codebase, test))))
    for function in functions if telling else ():
        panics = _panic_calls(codebase.modules[function.path].source)
        if any(function.code_start <= start < function.end for start in panics):
            need = Need(kind=NeedKind.EXCEPTION, word="panic", owner=function.symbol_id, tests=telling)
            yield need
            written = (each for each in _texts_of(codebase, function) if each.exception)
            for text_shown in dict.fromkeys(_VERB.sub(shown_placeholder, each.text) for each in written):
                if (
                    text_shown.strip()
                    and len(text_shown) <= MAX_PANIC
                    and (function.symbol_id, text_shown) not in known
                ):
                    yield replace(need, kind=NeedKind.MESSAGE, word=text_shown, exception="panic")


def _code_of_test(codebase: GoCodebase, test: str) -> str:
    """The source of a test function; empty if there is none."""
    parts = TestId.parse(test)
    module = codebase.modules.get(parts.path)
    own = next((d for d in module.definitions if d.qualname == parts.names[0]), None) if module is not None else None
    found = module.source[own.start : own.end] if module is not None and own is not None else b""
    return found.decode("utf-8", "replace")


def _texts_of(codebase: GoCodebase, symbol: Symbol) -> Iterator[WrittenText]:
    """The literals in a function."""
    source = codebase.modules[symbol.path].source
    body = " ".join(source[symbol.code_start : symbol.end].decode("utf-8", "replace").split())
    for node in _literal_nodes(source):
        if symbol.code_start <= node.start_byte < symbol.end:
            written = text(node, source)
            is_all = body.removesuffix("}").strip() == f"return {written}"
            calls = _calls_around(node, source)
            kind = NeedKind.MESSAGE if calls[:1] == ["panic"] or _ERRORS.intersection(calls[:1]) else NeedKind.TEXT
            exception, is_rune = "panic" if "panic" in calls else "", node.type == "rune_literal"
            yield WrittenText(symbol.symbol_id, _content(written), kind, is_all, exception, is_rune)


def _calls_around(node: Node, source: bytes) -> list[str]:
    """The last names of the functions of which a literal is an argument, or an argument of an argument."""
    found: list[str] = []
    while node.parent is not None and node.parent.type == "argument_list" and node.parent.parent is not None:
        node = node.parent.parent
        function = node.child_by_field_name("function")
        name = text(function, source) if function is not None else ""
        found.append(name.rpartition(".")[2] if not name.endswith(".panic") else name)  # a method may have the name
    return found


@lru_cache(maxsize=64)
def _panic_calls(source: bytes) -> tuple[int, ...]:
    """Where a file calls ``panic``."""
    calls = (node for node in descendants(parse_tree(source).root_node) if node.type == "call_expression")
    functions = (node.child_by_field_name("function") for node in calls)
    return tuple(each.start_byte for each in functions if each is not None and text(each, source) == "panic")


def _literals_of_test(codebase: GoCodebase, test: str) -> Iterator[str]:
    """The literals in a test function, and in the variables and helpers of test files that it names."""
    parts = TestId.parse(test)
    module = codebase.modules.get(parts.path)
    own = next((d for d in module.definitions if d.qualname == parts.names[0]), None) if module is not None else None
    if own is None:
        return
    if parts.names[0].startswith("Example"):
        yield from _expected_output(_code_of_test(codebase, test))
    for path in codebase.package_files(parts.path):
        if codebase.is_test(path):
            there = codebase.modules[path]
            ranges = [(d.start, d.end) for d in there.definitions if d is own or (own.uses & d.names and not d.about)]
            for node in _literal_nodes(there.source):
                inside = any(start <= node.start_byte < end for start, end in ranges)
                if inside and not _is_report(node, there.source):
                    yield _content(text(node, there.source))


def _is_report(node: Node, source: bytes) -> bool:
    """Whether a literal in a test is what the test reports: an argument of ``t.Fatalf``, or the message of a check."""
    while node.parent is not None and node.parent.type in {"binary_expression", "parenthesized_expression"}:
        node = node.parent
    call = node.parent.parent if node.parent is not None and node.parent.type == "argument_list" else None
    function = call.child_by_field_name("function") if call is not None else None
    if node.parent is None or function is None or function.type != "selector_expression":
        return False
    receiver, _, name = text(function, source).rpartition(".")
    if receiver in {"assert", "require"}:
        first = 2 if _CHECKS_OF_ONE.fullmatch(name) else 3 if _CHECKS_OF_TWO.fullmatch(name) else 99
        return node in [each for each in node.parent.named_children if each.type != "comment"][first:]
    return _REPORTS.fullmatch(name) is not None and receiver.encode() in _TESTING.findall(source)


def _expected_output(code: str) -> tuple[str, ...]:
    """What an example prints as its last comment says, as a whole and by lines; nothing if there is no such comment."""
    found = _OUTPUT.search(code)
    lines = [re.sub(r"^[ \t]*//[ ]?", "", line).rstrip() for line in found["rest"].splitlines()] if found else []
    whole = "\n".join(lines).strip()
    return tuple(dict.fromkeys(each for each in (whole, *lines) if each))


@lru_cache(maxsize=64)
def _literal_nodes(source: bytes) -> tuple[Node, ...]:
    return tuple(node for node in descendants(parse_tree(source).root_node) if node.type in _LITERALS)


def _content(written: str) -> str:
    """The content of the literal of a string or rune."""
    if written.startswith("`"):
        return written.strip("`")
    try:
        return str(ast.literal_eval(written))
    except (ValueError, SyntaxError):
        return written[1:-1]
