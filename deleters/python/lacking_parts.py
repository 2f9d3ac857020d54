"""Parts of removed code, without one of which tests show whether they check it.

A part is a statement, an argument that a call gets by name, or a parameter: it has its default then, whatever is given.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate

from excise.extractors.python.analysis.ast_walk import walk
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.needs.test_uses import Function
from excise.protocols import LackingPart
from excise.types import Symbol

MAX_LINES = 20_000
"""Number of lines of a file from which on none of it is looked at."""
_SILENT = (ast.Pass, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Assert)
"""Statements that tests need not notice."""
_LOG = re.compile(r"(?:\w+\.)*_*(?:log|logger|logging|warnings)(?:\.\w+)*\Z", re.IGNORECASE)
"""What calls are for people who read a log."""


class _Places:
    """Where lines of a file begin: nodes say where they are by line and byte."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self._starts = [0, *accumulate(map(len, source.splitlines(keepends=True)))]

    def start(self, node: ast.stmt | ast.expr) -> int:
        """The first byte of a node."""
        return self._starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.stmt | ast.expr) -> int:
        """The byte behind a node."""
        return self._starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)

    def indent(self, statement: ast.stmt) -> bytes:
        """What stands before a statement in its line."""
        return self.source[self._starts[statement.lineno - 1] : self.start(statement)]


def lacking_parts(codebase: PythonCodebase, removed: Mapping[str, frozenset[int]]) -> list[LackingPart]:
    """The parts of functions that lines were ``removed`` from: path to their numbers."""
    found: list[LackingPart] = []
    for path, lines in sorted(removed.items()):
        module = codebase.modules.get(path)
        if module is None or codebase.is_test(path) or module.has_error or module.source.count(b"\n") > MAX_LINES:
            continue
        try:
            tree = ast.parse(module.source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        places = _Places(module.source)
        for function in _functions(tree.body):
            parts = list(_parts_of(function, places, lines))
            owner = next((s for s in module.symbols if _is_definition(s, function)), None) if parts else None
            if owner is not None:
                found += (LackingPart(owner.symbol_id, path, *each) for each in parts)
    return found


def _functions(body: Iterable[ast.stmt]) -> Iterator[Function]:
    """The functions and methods of a file, but for those inside others."""
    for statement in body:
        if isinstance(statement, Function):
            yield statement
        elif isinstance(statement, ast.ClassDef | ast.If | ast.Try | ast.With):
            yield from _functions(_inside(statement))


def _is_definition(symbol: Symbol, function: Function) -> bool:
    is_there = symbol.is_callable and symbol.start_line <= function.lineno <= symbol.body_line
    return is_there and symbol.name.partition("#")[0] == function.name


def _inside(statement: ast.stmt) -> Iterator[ast.stmt]:
    """The statements directly inside another one."""
    for name in ("body", "handlers", "cases", "orelse", "finalbody"):
        for inner in getattr(statement, name, []):
            yield from inner.body if isinstance(inner, ast.ExceptHandler | ast.match_case) else [inner]


def _parts_of(function: Function, places: _Places, removed: frozenset[int]) -> Iterator[tuple[str, int, int, bytes]]:
    """(what, start, end, text in its place) of each part of a function of which all lines are removed."""
    statements = [each for each in _statements(function.body) if removed.issuperset(_lines_of(each))]
    for each in statements:
        if not isinstance(each, _SILENT) and not getattr(each, "decorator_list", []) and not _is_said(each):
            yield f"line {each.lineno}", places.start(each), places.end(each), b"pass"
    for call in (call for each in statements for call in _calls(each)):
        for number, keyword in enumerate(call.keywords):
            if keyword.arg is not None:
                shorter = copy.copy(call)
                shorter.keywords = [*call.keywords[:number], *call.keywords[number + 1 :]]
                what = f"line {keyword.value.lineno}: {keyword.arg}"
                yield what, places.start(call), places.end(call), ast.unparse(shorter).encode()
    first = statements[0] if statements else None
    if first is not None and first in function.body and first.lineno > function.lineno:
        names = {node.id for each in statements for node in walk(each) if isinstance(node, ast.Name)}
        for name, default in _defaults(function.args):
            if name in names and isinstance(default, ast.Constant) and not getattr(first, "decorator_list", []):
                line = f"{name} = {ast.unparse(default)}\n".encode() + places.indent(first)
                yield name, places.start(first), places.start(first), line


def _defaults(parameters: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    """Names and defaults of the parameters that have one."""
    given = [*parameters.posonlyargs, *parameters.args]
    by_place = zip(given[len(given) - len(parameters.defaults) :], parameters.defaults, strict=True)
    by_name = zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)
    yield from ((each.arg, default) for each, default in (*by_place, *by_name) if default is not None)


def _lines_of(statement: ast.stmt) -> range:
    """The lines of a statement; of one with others in it, those before these."""
    body: list[ast.stmt] = getattr(statement, "body", [])
    end = body[0].lineno - 1 if body and body[0].lineno > statement.lineno else statement.end_lineno or statement.lineno
    return range(statement.lineno, end + 1)


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements in a function but for docstrings and what is in ``while``, which might not end without one."""
    for statement in body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue
        yield statement
        if not isinstance(statement, ast.While | ast.ClassDef):
            yield from _statements(_inside(statement))


def _is_said(statement: ast.stmt) -> bool:
    """Whether a statement only writes into a log, or warns: ``log.debug(x)``, ``debug and log.debug(x)``."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    while isinstance(value, ast.BoolOp):
        value = value.values[-1]
    return isinstance(value, ast.Call) and _LOG.match(ast.unparse(value.func)) is not None


def _calls(statement: ast.stmt) -> Iterator[ast.Call]:
    """The calls in a statement, but for those in statements inside it, in texts, and in other calls."""
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Call):
            if not _LOG.match(ast.unparse(node.func)):
                yield node
            continue
        if not isinstance(node, ast.JoinedStr):
            pending += [
                each for each in ast.iter_child_nodes(node) if not isinstance(each, ast.stmt | ast.excepthandler)
            ]
