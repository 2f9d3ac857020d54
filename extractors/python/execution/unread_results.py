"""Functions whose results nobody reads: each of their calls is a statement of its own."""

from __future__ import annotations

import ast
import re

from excise.extractors.python.needs.test_uses import parsed
from excise.protocols import Codebase
from excise.types import Symbol

_OF_OTHERS = re.compile(rb"\s*(?:async\s+)?def\s+|\s*(?:from|import)\s.*")
"""What stands before a name in definitions and imports."""
_TOLD = re.compile(r"(?i)\b(?:returns?|returned|yields?|gives?)\b")
"""Words of docstrings that tell of a result."""


def is_unread(codebase: Codebase, symbol: Symbol) -> bool:
    """Whether a function is called, no call of it uses what it returns, and its head and docstring say nothing of that.

    All modules are searched for its name; a mention that is no call counts as a use.
    """
    is_told = _TOLD.search(symbol.docstring) or (" -> " in symbol.signature and " -> None" not in symbol.signature)
    if not symbol.is_callable or symbol.name.startswith("__") or is_told:
        return False
    name = symbol.name.partition("#")[0].encode()
    pattern = re.compile(rb"\b" + re.escape(name) + rb"\b")
    calls = 0
    for module in codebase.modules.values():
        source = module.source
        lines = source.splitlines() if name in source else []
        found = [(line, match) for line in lines for match in pattern.finditer(line)]
        named = sum(not _OF_OTHERS.fullmatch(line[: match.start()]) for line, match in found)
        if named and named != _statements(source, name.decode()):
            return False
        calls += named
    return bool(calls)


def _statements(source: bytes, name: str) -> int:
    """The number of statements of a module that are nothing but a call of the name."""
    tree = parsed(source)
    nodes = ast.walk(tree) if tree is not None else ()
    return sum(isinstance(node, ast.Expr) and _called(node.value) == name for node in nodes)


def _called(value: ast.expr) -> str:
    """The name by which an expression calls a function, whether or not it awaits it; empty for other expressions."""
    value = value.value if isinstance(value, ast.Await) else value
    function = value.func if isinstance(value, ast.Call) else None
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
