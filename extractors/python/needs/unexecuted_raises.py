"""Exceptions that removed code can raise, but raises in no test."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from excise.extractors.python.analysis.ast_walk import last_name
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.needs.supplied_words import Words
from excise.extractors.python.needs.test_uses import function_of
from excise.types import Symbol, Watched

_ITEM_ERRORS = frozenset({"KeyError", "IndexError", "LookupError"})
_PARSERS = frozenset(
    {"complex", "Decimal", "float", "fromhex", "fromisoformat", "index", "int", "ip_address", "ip_network", "loads"}
    | {"remove", "strptime", "UUID", "unpack"}
)
"""Functions of Python that raise ``ValueError`` for what they cannot read or find."""


def unexecuted_raises(
    codebase: PythonCodebase, supplied: Sequence[Words], tests: Sequence[str], watched: Watched | None
) -> frozenset[tuple[str, str]]:
    """The (id, exception) of functions that tests execute, but none of the lines that raise the exception.

    Empty unless each test was seen to execute removed code: another process may do so unseen. Functions whose calls
    graders compare, and exceptions that a docstring names, are left out.
    """
    if watched is None or watched.problem or not all(watched.lines.get(test) for test in tests):
        return frozenset()
    executed = {line for test in tests for line in watched.lines[test]}
    return frozenset(
        (words.symbol.symbol_id, name)
        for words in supplied
        if words.symbol.qualname.partition("#")[0] not in watched.compared
        for name in words.exceptions
        if name not in words.symbol.docstring and _is_unexecuted(codebase, words.symbol, name, executed)
    )


def _is_unexecuted(codebase: PythonCodebase, symbol: Symbol, exception: str, executed: set[tuple[str, int]]) -> bool:
    """Whether lines of a function are executed, but none of those that raise an exception, which it has there alone."""
    function = function_of(codebase.modules[symbol.path].source, symbol)
    own = {line for path, line in executed if path == symbol.path and symbol.start_line <= line <= symbol.end_line}
    if function is None or not own:
        return False
    raises = [node for node in ast.walk(function) if isinstance(node, ast.Raise) and _raised(node) == exception]
    raised = {id(part) for node in raises for part in ast.walk(node)}
    others = (node for node in ast.walk(function) if id(node) not in raised and isinstance(node, ast.expr))
    if not raises or any(last_name(node) == exception or _may_raise(node, exception) for node in others):
        return False
    return own.isdisjoint(line for node in raises for line in range(node.lineno, (node.end_lineno or node.lineno) + 1))


def _may_raise(node: ast.expr, exception: str) -> bool:
    """Whether an expression itself may raise an exception of Python: ``int(x)`` a ``ValueError``."""
    if exception in _ITEM_ERRORS:
        return isinstance(node, ast.Subscript) or (isinstance(node, ast.Call) and last_name(node.func) == "pop")
    return exception == "ValueError" and last_name(node) in _PARSERS


def _raised(node: ast.Raise) -> str:
    """The last name of the exception that a statement raises; empty for one that raises the one at hand again."""
    raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    return last_name(raised) if raised is not None else ""
