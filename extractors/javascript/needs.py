"""The details that hidden tests need besides names and signatures: texts, errors, and properties of objects.

They are read by syntax: what removed code has, and tests have as well.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tree_sitter import Node

from excise.extractors.expected_texts import MAX_CHARS, MIN_CHARS, WrittenText, expected_texts
from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.extractors.javascript.analysis.grammar import string_value, text
from excise.extractors.javascript.analysis.standard_names import STANDARD_NAMES
from excise.extractors.javascript.analysis.test_code import code_of_test, nodes_in
from excise.types import FILLED_IN, Need, NeedKind, Symbol, path_of

_FILLED_IN = re.compile(r"\$\{[^}]*\}|%[sdifjoO]")
"""What templates and ``util.format`` fill in."""
MAX_TERMS = 60
"""Maximum number of terms of a sum that is told."""
_TERM = re.compile(r"[^{}`\n]{1,60}")
"""A term of a sum that stands in a template as it is."""
_STRINGS = frozenset({"string", "template_string"})
_MEMBERS = frozenset({"pair", "method_definition", "field_definition", "public_field_definition"})
_OF_DEFINITIONS = frozenset({"constructor", "exports", "length", "prototype"})
"""Names of the language that definitions assign: others that code assigns are properties of its own."""
_FUNCTIONS = frozenset({"arrow_function", "function_declaration", "function_expression", "method_definition"})
_SAME_VALUE = frozenset({"parenthesized_expression", "ternary_expression", "binary_expression", "as_expression"})
"""Expressions that give the value of a part."""
_ERROR = re.compile(r"(?:Error|Exception)$")
_META = re.compile(r"\\[bBdDsSwW]|\\(.)|[.^$*+?()\[\]{}|]+")
"""What of a regular expression stands for other texts, and escaped characters."""


class Words(NamedTuple):
    """What a piece of code holds that another one may need."""

    texts: frozenset[str]
    """The contents of literals, and the plain parts of regular expressions."""
    read: frozenset[str]
    """Names of properties that are read, taken apart by patterns, or looked up by a literal."""
    made: frozenset[str]
    """Names of properties that are assigned, and keys of object literals."""
    names: frozenset[str]
    """Identifiers, and contents of literals that are names."""


def find_needs(codebase: JavaScriptCodebase, removed: Sequence[str], tests: Sequence[str]) -> tuple[Need, ...]:
    """Details of the symbols ``removed`` that the code of ``tests`` has, with what it uses of the same file."""
    symbols = codebase.symbols()
    owners = [symbols[each] for each in removed if each in symbols]
    nodes = {owner.symbol_id: _own_nodes(codebase, owner, owners) for owner in owners}
    expected = {test: words_of_test(codebase, test) for test in tests}
    written = [each for owner in owners for each in _written(codebase, owner, nodes[owner.symbol_id])]
    found = list(expected_texts(written, {test: words.texts for test, words in expected.items()}, _FILLED_IN))
    common = STANDARD_NAMES.union(symbol.name for symbol in symbols.values())
    for owner in owners:
        source = codebase.modules[owner.path].source
        found += _shared(owner, nodes[owner.symbol_id], source, expected, common)
    return tuple(found)


def _shared(
    owner: Symbol, nodes: Sequence[Node], source: bytes, expected: Mapping[str, Words], common: Collection[str]
) -> Iterator[Need]:
    """Errors that the code of one symbol makes, and properties that it shares with tests, but for ``common`` names."""
    own, errors = words_in(nodes, source), _errors(nodes, source)
    assigned = {text(node, source) for node in nodes if node.type == "property_identifier" and _is_assigned(node)}
    made = own.made.difference(common) | (assigned & STANDARD_NAMES - _OF_DEFINITIONS)
    known = made | own.read.difference(common, _read_of_this(nodes, source))
    wanted: dict[tuple[NeedKind, str], set[str]] = defaultdict(set)
    for test, words in expected.items():
        attributes = made & words.read
        for kind, names in (
            (NeedKind.ATTRIBUTE, attributes),
            (NeedKind.KEY, (known & words.made) - attributes),
            (NeedKind.EXCEPTION, errors.keys() & words.names),
        ):
            for name in names:
                wanted[kind, name].add(test)
    for (kind, word), used in sorted(wanted.items()):
        error = errors[word] if kind is NeedKind.EXCEPTION and errors[word] != word else ""
        yield Need(kind=kind, word=word, owner=owner.symbol_id, tests=tuple(sorted(used)), exception=error)


def _own_nodes(codebase: JavaScriptCodebase, owner: Symbol, owners: Sequence[Symbol]) -> list[Node]:
    """The nodes in the code of a symbol, without those of other removed symbols in it."""
    inner = [
        (each.start, each.end)
        for each in owners
        if each is not owner and each.path == owner.path and owner.start <= each.start and each.end <= owner.end
    ]
    nodes = nodes_in(codebase.modules[owner.path].source, owner.code_start, owner.end)
    return [node for node in nodes if not any(start <= node.start_byte < end for start, end in inner)]


def _written(codebase: JavaScriptCodebase, owner: Symbol, nodes: Sequence[Node]) -> Iterator[WrittenText]:
    """The literals in the code of a symbol."""
    source = codebase.modules[owner.path].source
    body = " ".join(source[owner.code_start : owner.end].decode("utf-8", "replace").split()).rstrip("}; ")
    literals = (node for node in nodes if node.type in _STRINGS)
    told = (node for node in literals if not _is_module(node, source) and not _is_type(node, source))
    for node in dict.fromkeys(_sum_around(each, source) for each in told):
        raw = " ".join(text(node, source).split())
        error = _error_around(node, source)
        kind = NeedKind.MESSAGE if error else NeedKind.TEXT
        is_all = body in (raw, f"return {raw}")
        yield WrittenText(owner.symbol_id, _content(node, source), kind, is_all, error)


def _sum_around(node: Node, source: bytes) -> Node:
    """The sum that a literal is a term of, if it is short and one of its literals is a detail; else the literal."""
    whole = node
    while whole.parent is not None and _is_sum(whole.parent):
        whole = whole.parent
    terms = _terms(whole)
    if len(terms) > MAX_TERMS:
        return node
    is_detail = any(each.type in _STRINGS and len(_content(each, source).strip()) >= MIN_CHARS for each in terms)
    return whole if is_detail and len(_content(whole, source)) <= MAX_CHARS else node


def _is_sum(node: Node) -> bool:
    operator = _field(node, "operator") if node.type == "binary_expression" else None
    return operator is not None and operator.type == "+"


def _terms(node: Node) -> list[Node]:
    """The terms of a sum, in their order; another node alone."""
    found: list[Node] = []
    while _is_sum(node) and (left := _field(node, "left")) and (right := _field(node, "right")):
        found.append(right)
        node = left
    return [node, *reversed(found)]


def _content(node: Node, source: bytes) -> str:
    """The text that a literal or a sum gives, with what is filled in as templates write it."""
    terms = _terms(node)
    first = next((n for n, term in enumerate(terms) if term.type in _STRINGS), 0)
    found = []
    if first > 1:  # what stands before the first literal may be a sum of numbers
        raw = source[terms[0].start_byte : terms[first - 1].end_byte].decode("utf-8", "replace")
        found, terms = [f"${{{raw if _TERM.fullmatch(raw) else FILLED_IN}}}"], terms[first:]
    for term in terms:
        raw, content = text(term, source), string_value(term, source)
        filled = f"${{{raw if _TERM.fullmatch(raw) else FILLED_IN}}}"
        found.append(content if content is not None else raw[1:-1] if term.type in _STRINGS else filled)
    return "".join(found)


def words_of_test(codebase: JavaScriptCodebase, test: str) -> Words:
    """The words of a test, and of what it uses in its file; none if the file is unknown."""
    module = codebase.modules.get(path_of(test))
    if module is None:
        return words_in((), b"")
    spans = code_of_test(module.source, test)
    return words_in([node for span in spans for node in nodes_in(module.source, *span)], module.source)


def words_in(nodes: Iterable[Node], source: bytes) -> Words:
    """The words in some code."""
    texts, read, made, names = set[str](), set[str](), set[str](), set[str]()
    for node in nodes:
        if node.type in _STRINGS:
            content = string_value(node, source)
            texts.add(text(node, source)[1:-1] if content is None else content)
            if content is not None and content.isidentifier():
                names.add(content)
                if _is_looked_up(node):
                    read.add(content)
                elif _is_key(node):
                    made.add(content)
        elif node.type == "regex_pattern":
            texts.update(_plain_parts(text(node, source)))
        elif node.type == "property_identifier":
            name = text(node, source)
            (made if _is_key(node) or _is_assigned(node) else read).add(name)
        elif node.type == "shorthand_property_identifier":
            made.add(text(node, source))
        elif node.type == "shorthand_property_identifier_pattern":
            read.add(text(node, source))
        elif node.type == "identifier":
            names.add(text(node, source))
    return Words(frozenset(texts), frozenset(read), frozenset(made), frozenset(names))


def _is_key(node: Node) -> bool:
    """Whether a node is a key of an object literal, or the name of a member; keys of patterns are read."""
    parent = node.parent
    if parent is None or parent.type not in _MEMBERS:
        return False
    return node in (_field(parent, "key"), _field(parent, "name"), _field(parent, "property"))


def _is_looked_up(node: Node) -> bool:
    """Whether a literal is the index of a property: ``found['name']``."""
    parent = node.parent
    return parent is not None and parent.type == "subscript_expression" and _field(parent, "index") == node


def _is_assigned(node: Node) -> bool:
    """Whether a property is the target of an assignment."""
    member = node.parent
    if member is None or member.type != "member_expression":
        return False
    parent = member.parent
    return parent is not None and parent.type == "assignment_expression" and _field(parent, "left") == member


def _is_module(node: Node, source: bytes) -> bool:
    """Whether a literal names a module."""
    parent = node.parent
    if parent is not None and parent.type in {"import_statement", "export_statement"}:
        return True
    call = parent.parent if parent is not None and parent.type == "arguments" else None
    function = _field(call, "function") if call is not None else None
    return function is not None and text(function, source) in {"require", "import"}


def _is_type(node: Node, source: bytes) -> bool:
    """Whether a literal is what ``typeof`` is compared with: the language's own word."""
    parent = node.parent
    sides = (_field(parent, "left"), _field(parent, "right")) if parent is not None else ()
    return any(side is not None and text(side, source).startswith("typeof ") for side in sides)


def _error_around(node: Node, source: bytes) -> str:
    """Name of the error that is made around a node; empty if there is none. See :func:`_error_as_used`."""
    around = node.parent
    while around is not None and around.type != "statement_block":
        if around.type in {"new_expression", "call_expression"}:
            made = _field(around, "constructor") or _field(around, "function")
            name = text(made, source).rpartition(".")[2] if made is not None else ""
            if _ERROR.search(name):
                return _error_as_used(around, name, source)
        around = around.parent
    return ""


def _error_as_used(error: Node, name: str, source: bytes) -> str:
    """The name of an error that is thrown; for another one it begins with what is done with it: ``emit of Error`` where
    it is given to a function, ``return of Error``, and ``new of Error`` for the rest."""
    node = error
    while node.parent is not None and (node.parent.type in _SAME_VALUE or _taker(node, source) == "assign"):
        node = node.parent if node.parent.type in _SAME_VALUE else node.parent.parent or node.parent
    if taker := _taker(node, source):
        return f"{taker} of {name}"
    around = node.parent
    if around is None or around.type in {"throw_statement", "expression_statement"}:
        return name
    if around.type == "return_statement" or (around.type == "arrow_function" and _field(around, "body") == node):
        return f"return of {name}"
    target = _field(around, "name") or _field(around, "left")
    variable = text(target, source) if target is not None else ""
    used = _uses_of_variable(error, variable, source) if variable.isidentifier() else set()
    return name if "throw" in used else f"return of {name}" if "return" in used else f"new of {name}"


def _uses_of_variable(node: Node, variable: str, source: bytes) -> set[str]:
    """Whether the function around a node throws or returns a variable: ``throw``, ``return``."""
    around = node
    while around.parent is not None and around.type not in _FUNCTIONS:
        around = around.parent
    return set(re.findall(rf"\b(throw|return)\b[\s(]*\b{re.escape(variable)}(?![\w$.(\[])", text(around, source)))


def _taker(error: Node, source: bytes) -> str:
    """Name of the function that an error is given to; empty if there is none."""
    call = error.parent.parent if error.parent is not None and error.parent.type == "arguments" else None
    function = _field(call, "function") if call is not None and call.type == "call_expression" else None
    name = text(function, source).rpartition(".")[2] if function is not None else ""
    return name if name.isidentifier() else ""


def _errors(nodes: Sequence[Node], source: bytes) -> dict[str, str]:
    """Names of the errors that code makes, but for the one that all are, each as :func:`_error_as_used` has it; one
    that is thrown somewhere is thrown."""
    found: dict[str, str] = {}
    for node in nodes:
        made = _field(node, "constructor") if node.type == "new_expression" else None
        name = text(made, source).rpartition(".")[2] if made is not None else ""
        if _ERROR.search(name) and name != "Error" and found.get(name) != name:
            found[name] = _error_as_used(node, name, source)
    return found


def _read_of_this(nodes: Sequence[Node], source: bytes) -> set[str]:
    """Names of the properties that code reads of ``this`` alone."""
    found: dict[bool, set[str]] = {True: set(), False: set()}
    for node in nodes:
        member = node.parent if node.type == "property_identifier" else None
        if member is not None and member.type == "member_expression":
            of_what = _field(member, "object")
            found[of_what is not None and of_what.type == "this"].add(text(node, source))
    return found[True] - found[False]


def _plain_parts(pattern: str) -> Iterator[str]:
    """The texts that a regular expression names as they are."""
    plain = _META.sub(lambda found: found[1] if found[1] and not found[1].isalnum() else "\0", pattern)
    yield from (part for part in plain.split("\0") if len(part.strip()) >= MIN_CHARS)


def _field(node: Node, name: str) -> Node | None:
    return node.child_by_field_name(name)
