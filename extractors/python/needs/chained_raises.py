"""How removed code chains the exceptions that it raises while it handles others: ``raise BoxError(…) from None``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from excise.extractors.python.analysis.ast_walk import last_name
from excise.extractors.python.needs.supplied_words import Words
from excise.extractors.python.needs.test_uses import Uses
from excise.types import FILLED_IN

MAX_CHAINED = 4
"""Number of such exceptions of a function that are told."""
MAX_LINE = 120
"""Number of characters of one that is told."""
_CHAIN = frozenset({"__cause__", "__context__", "__suppress_context__"})
"""Attributes of an exception that say how it is chained."""


def chained_raises(words: Words, used: Uses, raised: Iterable[str]) -> list[str]:
    """How the exceptions ``raised`` are chained (all of the code, if these are none) where a test reads that."""
    if _CHAIN.isdisjoint(used.attributes | used.texts):
        return []
    wanted = set(raised) or set(words.chained.values())
    found = sorted(line for line, name in words.chained.items() if name in wanted and len(line) <= MAX_LINE)
    return found[:MAX_CHAINED]


def note_chained(node: ast.AST, words: Words) -> None:
    """Note the exceptions that a handler raises anew."""
    if not isinstance(node, ast.ExceptHandler):
        return
    caught = f"except {ast.unparse(node.type)}" if node.type is not None else "except"
    for part in _raises_in(node.body):
        called = isinstance(part.exc, ast.Call)
        name = last_name(part.exc.func if isinstance(part.exc, ast.Call) else part.exc) if part.exc is not None else ""
        if name[:1].isupper():
            cause = f" from {ast.unparse(part.cause)}" if part.cause is not None else ""
            bound = f" as {node.name}" if node.name and isinstance(part.cause, ast.Name) else ""
            line = f"{caught}{bound}: raise {name}{f'({FILLED_IN})' if called else ''}{cause}"
            words.chained[line] = name


def _raises_in(body: Iterable[ast.AST]) -> Iterator[ast.Raise]:
    """The statements of a handler that raise, without those of inner handlers, functions and classes."""
    for part in body:
        if isinstance(part, ast.Raise):
            yield part
        elif isinstance(part, ast.stmt) and not isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _raises_in(ast.iter_child_nodes(part))
