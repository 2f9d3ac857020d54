"""Statements that do no more than write into a log."""

from __future__ import annotations

import ast

from excise.extractors.python.analysis.ast_walk import walk

_LOGS = frozenset({"log", "logger", "logging", "warnings", "warn"})
"""Names of what people read who read a log."""


def only_logs(statement: ast.stmt) -> bool:
    """Whether a statement only writes into a log, or warns: ``log.debug(x)``, ``debug and log.debug(x)``, ``if`` with
    nothing else in it, ``for`` over what is there already."""
    if isinstance(statement, ast.For):
        is_silent = not any(isinstance(node, ast.Call | ast.NamedExpr) for node in walk(statement.iter))
        return is_silent and not statement.orelse and all(map(only_logs, statement.body))
    if isinstance(statement, ast.If):
        is_silent = not any(isinstance(node, ast.Call | ast.NamedExpr) for node in walk(statement.test))
        return is_silent and not statement.orelse and all(map(only_logs, statement.body))
    value = statement.value if isinstance(statement, ast.Expr) else None
    while isinstance(value, ast.BoolOp):
        value = value.values[-1]
    return isinstance(value, ast.Call) and is_log(value.func)


def is_log(function: ast.expr) -> bool:
    """Whether a function is one of a log."""
    while isinstance(function, ast.Attribute):
        if function.attr.strip("_").lower() in _LOGS:
            return True
        function = function.value
    return isinstance(function, ast.Name) and function.id.strip("_").lower() in _LOGS
