"""Assertions of tests that call one function on literals, in languages whose syntax trees are tree-sitter's.

An assertion is plain if it says by itself what a call gives: besides literals, it has only names of types, of what the
file imports, of members, and of what asserts.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Set
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

from tree_sitter import Node, Tree

from excise.protocols import Assertion, Codebase
from excise.types import Symbol

MAX_CHARS, MAX_LINES = 240, 6
"""Number of characters and of lines of an assertion that is shown."""
_WORD = r"[A-Za-z_$][\w$]*"
_NAMED = re.compile(rf"({_WORD})(?:::)?(?:<[^()]*>)?\s*$")
"""The name of a function before its arguments."""
_TYPE = re.compile(r"[A-Z]\w*[a-z]\w*|[A-Z]")
"""A name as types have them, and constructors of values: constants in capital letters are not told."""
_TELLS = re.compile(
    r"(?i)(?:true|false|ok|null|nil|undefined|nan|falsy|truthy|empty|throws?|none|err|error|some)\b|assert!"
)
"""What an assertion says without a literal beside the call."""
_SELF = frozenset({"this", "self", "super"})
_CALLS = frozenset({"call_expression", "method_invocation", "object_creation_expression", "new_expression"})
_OF_JAVA = frozenset({"method_invocation", "object_creation_expression"})
"""Calls that may be of a method though nothing stands before its name: it may be imported, or a constructor."""
_NOT_RUN = re.compile(r"(?i)\b(?:skip|todo)\s*:")
"""An option by which a test leaves an assertion out."""
_CODE = frozenset(
    {"closure_expression", "func_literal", "function_expression", "function_declaration", "template_substitution",
     "block", "statement_block", "class_body", "shorthand_property_identifier", "ERROR"}
)  # fmt: skip
"""Nodes in whose place a reader of one statement would have to know more."""


class AssertionGrammar(NamedTuple):
    """How a language writes assertions."""

    parse_tree: Callable[[bytes], Tree]
    """The syntax tree of a file."""
    statements: frozenset[str]
    """Types of nodes that may be assertions."""
    checks: re.Pattern[str]
    """How the source of an assertion begins."""
    literals: frozenset[str]
    """Types of nodes that are literals."""
    known: frozenset[str]
    """Names of values and functions of the language or of libraries for tests that need no explanation."""
    wrapped: Callable[[str], str]
    """A file with an assertion for its source, by which its names are looked up."""
    shown: Callable[[Node, str], str] = lambda _, written: written
    """The part of an assertion (node, source) that is shown; empty if it is none."""


def assertions_in(
    grammar: AssertionGrammar,
    source: bytes,
    place: tuple[str, int, int],
    symbol: Symbol,
    names: Set[str],
    imported: Set[str] = frozenset(),
) -> Iterator[Assertion]:
    """The assertions that name a function from ``place`` (path, first byte, one past the last) of a test file; of a
    method, those that are plain or name its type, since others may have its name.

    ``names`` are those by which the file calls the function ``symbol``; ``imported`` are those that it imports.
    """
    path, start, end = place
    found = _candidates(grammar, source)
    first = bisect_left(found, start, key=lambda each: each.node.start_byte)
    for each in takewhile(lambda each: each.node.start_byte < end, found[first:]):
        if names.isdisjoint(each.words):
            continue
        literals: tuple[str, ...] = ()
        if shown := grammar.shown(each.node, each.text):
            is_short = len(shown) <= MAX_CHARS and shown.count("\n") < MAX_LINES
            is_shown = is_short and "```" not in shown and not _NOT_RUN.search(shown)
            literals = _literals_if_plain(grammar, shown, symbol, names, imported) if is_shown else ()
        if literals or _owner_of(symbol) in {"", *each.words}:
            yield Assertion((path, each.node.start_byte), shown if literals else "", literals)


def assertions_of_function(
    grammar: AssertionGrammar, codebase: Codebase, test: str, symbol: Symbol, imported: Set[str] = frozenset()
) -> tuple[Assertion, ...]:
    """The assertions of a test that is a function, which calls another one by its name."""
    found = codebase.definition_of_test(test)
    if found is None:
        return ()
    place, names = (found.path, found.start, found.end), {symbol.name.partition("#")[0]}
    return tuple(assertions_in(grammar, codebase.modules[found.path].source, place, symbol, names, imported))


class _Candidate(NamedTuple):
    """A statement that asserts something."""

    node: Node
    text: str
    """Its source, further lines of which have lost its own line's indentation."""
    words: frozenset[str]
    """The names and other words in it."""


@lru_cache(maxsize=16)
def _candidates(grammar: AssertionGrammar, source: bytes) -> tuple[_Candidate, ...]:
    """The outermost statements of a file that assert something, without those that hold statements of functions."""
    found, queue = [], [grammar.parse_tree(source).root_node]
    while queue:
        node = queue.pop()
        written = source[node.start_byte : node.start_byte + MAX_CHARS].decode("utf-8", "replace")
        if node.type not in grammar.statements or not grammar.checks.match(written) or _has_functions(node):
            queue += reversed(node.named_children)
            continue
        line = source.rfind(b"\n", 0, node.start_byte) + 1
        own = re.match(rb"[ \t]*", source[line : node.start_byte])
        moved = source[node.start_byte : node.end_byte].replace(b"\n" + (own[0] if own else b""), b"\n")
        text = moved.decode("utf-8", "replace")
        found.append(_Candidate(node, text, frozenset(re.findall(r"[\w$]+", text))))
    return tuple(found)


def _has_functions(node: Node) -> bool:
    """Whether a call is given functions of several statements: it may be a test."""
    return any(each.type == "statement_block" for each in _descendants(node))


def _literals_if_plain(
    grammar: AssertionGrammar, shown: str, symbol: Symbol, names: Set[str], imported: Set[str]
) -> tuple[str, ...]:
    """The literals of an assertion that calls the function on literals and is plain; none of another one."""
    source = grammar.wrapped(shown).encode()
    nodes = list(_descendants(grammar.parse_tree(source).root_node))
    first = next((n for n in nodes if n.type in grammar.statements and grammar.checks.match(_text(n, source))), None)
    if first is None:
        return ()
    inside = [each for each in nodes if first.start_byte <= each.start_byte and each.end_byte <= first.end_byte]
    known = grammar.known | names | imported | _declared(inside, source)
    head = first.child_by_field_name("consequence")
    code = [each for each in inside if each.type in _CODE and each != head]
    if code or not all(_is_known(each, source, known, grammar) for each in inside):
        return ()
    literals = [each for each in inside if each.type in grammar.literals]
    calls = [each for each in inside if _calls(each, source, symbol, names, imported, grammar)]
    if len(calls) != 1:
        return ()
    of_call = [each for each in literals if calls[0].start_byte <= each.start_byte < calls[0].end_byte]
    around = source[first.start_byte : calls[0].start_byte] + b" " + source[calls[0].end_byte : first.end_byte]
    is_told = len(of_call) < len(literals) or _TELLS.search(around.decode("utf-8", "replace"))
    return tuple(_text(each, source) for each in literals) if of_call and is_told else ()


def _declared(nodes: list[Node], source: bytes) -> set[str]:
    """The names that the head of a statement declares: ``if got := f(); got != 1``."""
    lists = [each.child_by_field_name("left") for each in nodes if each.type == "short_var_declaration"]
    return {_text(name, source) for each in lists if each is not None for name in each.named_children}


def _is_known(node: Node, source: bytes, known: Set[str], grammar: AssertionGrammar) -> bool:
    """Whether a node is no name of a value that a reader would have to look up."""
    if node.type in _SELF:
        return False
    if node.type != "identifier":
        return True
    name, before, after = _text(node, source), source[: node.start_byte].rstrip(), source[node.end_byte :].lstrip()
    is_member = before.endswith((b".", b"::")) and not before.endswith(b"..")
    is_part = is_member or after.startswith(b"::")
    return is_part or name in known or bool(_TYPE.fullmatch(name) or grammar.checks.match(f"{name}("))


def _calls(
    node: Node, source: bytes, symbol: Symbol, names: Set[str], imported: Set[str], grammar: AssertionGrammar
) -> bool:
    """Whether a node is a call of the function: what stands before its name does not tell another one."""
    arguments = node.child_by_field_name("arguments") if node.type in _CALLS else None
    if arguments is None:
        return False
    head = source[node.start_byte : arguments.start_byte].decode("utf-8", "replace")
    named = _NAMED.search(head)
    if named is None or named[1] not in names:
        return False
    owner = _owner_of(symbol)
    receiver = re.sub(r"\s*(?:\?\.|\.|::)\s*$", "", head[: named.start()]).strip().removeprefix("new").strip()
    last = re.split(r"\.|::", receiver)[-1]
    if receiver in imported:
        return True
    if not receiver:
        return not owner or node.type in _OF_JAVA
    if re.fullmatch(rf"{_WORD}(?:(?:\.|::){_WORD})*", receiver):
        return last == owner if _TYPE.fullmatch(last) else not owner or "::" not in head
    first = node.named_children[0]
    return bool(owner) and (first.type in grammar.literals or _starts_with(first, grammar) or owner in receiver)


def _owner_of(symbol: Symbol) -> str:
    """The name of the type of a method; empty for a function."""
    return symbol.qualname.rpartition(".")[0].rpartition(".")[2].partition("#")[0]


def _starts_with(node: Node, grammar: AssertionGrammar) -> bool:
    """Whether the object of a member is a literal: ``"a b".split``."""
    inner = node.named_children[0] if node.named_children else node
    return node.type == "field_expression" and inner.type in grammar.literals


def _descendants(node: Node) -> Iterator[Node]:
    stack = [node]
    while stack:
        found = stack.pop()
        yield found
        stack.extend(reversed(found.children))


def _text(node: Node, source: bytes) -> str:
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")
