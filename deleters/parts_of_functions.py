"""The parts of functions that the deleters ``line`` and ``expression`` take, in languages with braces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from tree_sitter import Node, Tree

from excise.deleters.edits.byte_edits import Edit
from excise.deleters.edits.removed_parts import EXPRESSION_SUFFIX
from excise.errors import DeletionRefused
from excise.protocols import Codebase
from excise.types import Symbol


class ReturnGrammar(NamedTuple):
    """How a language writes the results of functions, as types of nodes."""

    parse_tree: Callable[[bytes], Tree]
    """The syntax tree of a file."""
    definitions: frozenset[str]
    """Functions and types, also those without a name."""
    returns: frozenset[str]
    """What ends a function with a result."""
    trivial: frozenset[str]
    """Results that are too simple for a task."""
    single: frozenset[str]
    """Statements that may be all of a function that is taken as one line."""
    placeholder: bytes
    """What stands in the place of a ``returns`` node: it raises, since some tests would pass with any true value."""
    has_tail: bool = False
    """Whether the last expression of a function is its result."""
    closed: frozenset[str] = frozenset()
    """Statements in which nothing is taken: a compiler asks for what is in them."""
    uses: Callable[[list[Node], Node, bytes], list[str]] = lambda _body, _node, _source: []
    """Statements that have to stand before the placeholder, where a compiler asks for a use of each variable."""


class Returned(NamedTuple):
    """The longest expression that a function returns."""

    edit: Edit
    """What takes it out."""
    text: str
    """Its source text."""


def require_one_statement(source: bytes, function: Symbol, grammar: ReturnGrammar) -> None:
    """Raise :class:`DeletionRefused` unless a function consists of one statement that holds no others."""
    body = _statements(source, function, grammar)
    if len(body) != 1 or body[0].type not in grammar.single or _is_control(body[0]):
        raise DeletionRefused(f"{function.symbol_id}: not one statement", reason="not_one_statement")


def returned(source: bytes, function: Symbol, grammar: ReturnGrammar) -> Returned:
    """The longest expression that a function returns, of equal ones the last.

    Raises :class:`DeletionRefused` if all are trivial, or the function does nothing else.
    """
    body = _statements(source, function, grammar)
    found: list[tuple[Node, Node]] = []
    for node in _below(body, grammar):
        values = [child for child in node.named_children if "comment" not in child.type]
        value = values[0] if node.type in grammar.returns and values else None
        if value is not None and not _is_trivial(value, grammar):
            found.append((node, value))
    last = body[-1] if body else None
    if grammar.has_tail and last is not None and _is_tail(last, grammar):
        found.append((last, last))
    if not found:
        raise DeletionRefused(f"{function.symbol_id}: returns no expression", reason="no_expression")
    node, value = max(reversed(found), key=lambda pair: pair[1].end_byte - pair[1].start_byte)
    if body[0].start_byte == node.start_byte:
        raise DeletionRefused(f"{function.symbol_id}: returns, and does no more", reason="one_statement")
    end = b";" if source[: node.end_byte].endswith(b";") and not grammar.placeholder.endswith(b";") else b""
    line = source[source.rfind(b"\n", 0, node.start_byte) + 1 : node.start_byte]
    break_ = b"\n" + line[: len(line) - len(line.lstrip())]
    before = b"".join(statement.encode() + break_ for statement in grammar.uses(body, node, source))
    edit = Edit(node.start_byte, node.end_byte, before + grammar.placeholder + end)
    return Returned(edit, source[value.start_byte : value.end_byte].decode("utf-8", "replace"))


def returned_texts(codebase: Codebase, functions: Iterable[Symbol], grammar: ReturnGrammar) -> list[tuple[str, str]]:
    """(id, text) of what the deleter ``expression`` takes of each function."""
    found = ((each, returned(codebase.modules[each.path].source, each, grammar).text) for each in functions)
    return [(f"{each.symbol_id}{EXPRESSION_SUFFIX}", text) for each, text in found]


def _is_control(node: Node) -> bool:
    """Whether a statement is a choice, a loop or a block that stands where an expression may stand."""
    inner = node.named_children[0].type if node.type == "expression_statement" and node.named_children else ""
    return inner in {"if_expression", "match_expression", "for_expression", "while_expression", "loop_expression"}


def _is_trivial(value: Node, grammar: ReturnGrammar) -> bool:
    inner = value.named_children if value.type == "expression_list" else [value]
    return all(each.type in grammar.trivial for each in inner)


def _is_tail(node: Node, grammar: ReturnGrammar) -> bool:
    """Whether the last statement is an expression without a semicolon that is no choice or loop."""
    return node.type in grammar.single and node.type not in {"expression_statement", *grammar.trivial}


def _statements(source: bytes, function: Symbol, grammar: ReturnGrammar) -> list[Node]:
    """The statements of a function, without comments; none if it has no block."""
    root = grammar.parse_tree(source).root_node
    pending, block = [root], None
    while pending and block is None:
        node = pending.pop()
        if node.end_byte <= function.start or node.start_byte >= function.end:
            continue
        inside = function.start <= node.start_byte and node.end_byte <= function.end
        if inside and node.type in grammar.definitions and (body := node.child_by_field_name("body")) is not None:
            block = body
        pending += reversed(node.named_children)
    if block is None or block.type not in {"block", "statement_block", "constructor_body"}:
        return []
    found = [child for child in block.named_children if "comment" not in child.type]
    if len(found) == 1 and found[0].type == "statement_list":
        found = [child for child in found[0].named_children if "comment" not in child.type]
    return found


def _below(nodes: list[Node], grammar: ReturnGrammar) -> Iterator[Node]:
    """Nodes in the order of the source, without those of functions and types inside."""
    pending = list(reversed(nodes))
    while pending:
        node = pending.pop()
        if node.type not in grammar.definitions | grammar.closed:
            yield node
            pending += reversed(node.named_children)
