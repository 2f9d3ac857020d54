"""What a linter says about a file after a deletion, and did not say before: names that nothing binds or uses.

The kinds are those of ``ruff check --select F``: an import that nothing uses (F401), a name that nothing binds (F821),
a local variable that nothing uses (F841). Scopes are those of :mod:`symtable`, so only files that this interpreter
compiles are looked at.
"""

from __future__ import annotations

import ast
import builtins
import symtable
import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from excise.deleters.python.references.symbol_tables import global_names, symbol_table, tables_below
from excise.extractors.python.analysis.ast_walk import statements_below, walk
from excise.extractors.python.analysis.parser import parse_text

_MODULE_NAMES = frozenset(
    {*dir(builtins), "__file__", "__path__", "__module__", "__qualname__", "__annotations__", "WindowsError"}
)
"""Names that every module has."""


UNUSED_IMPORT = "unused import"
UNUSED_VARIABLE = "unused variable"
UNDEFINED_NAME = "undefined name"


class Finding(NamedTuple):
    """A name that something is wrong with."""

    kind: str
    """One of the three above."""
    scope: str
    """Dotted name of the function; empty for the module."""
    name: str
    """The name."""


def new_findings(before: bytes, after: bytes) -> list[Finding]:
    """What is wrong with names of a file ``after`` a deletion, and was not ``before``; sorted."""
    return sorted(_findings(after) - _findings(before))


@lru_cache(maxsize=256)
def _findings(source: bytes) -> frozenset[Finding]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
        table = symbol_table(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    return frozenset([*_of_module(table, tree, source), *_of_functions(table, tree)])


# ------------------------------------------------------------------------------------------- module
def _of_module(top: symtable.SymbolTable, tree: ast.Module, source: bytes) -> Iterator[Finding]:
    bound, used = global_names(top)
    exported = {entry.name for entry in parse_text(source).exports} if b"__all__" in source else set()
    quoted = _quoted_names(tree)
    stars = any(isinstance(n, ast.ImportFrom) and n.names[0].name == "*" for n in statements_below(tree))
    for name in sorted((used | quoted) - bound - _MODULE_NAMES) if not stars else ():
        yield Finding(UNDEFINED_NAME, "", name)
    for symbol in top.get_symbols():
        name = symbol.get_name()
        if symbol.is_imported() and name not in used | exported | quoted:
            yield Finding(UNUSED_IMPORT, "", name)


def _quoted_names(tree: ast.Module) -> set[str]:
    """Names in annotations that are written as strings."""
    found: set[str] = set()
    for annotation in _annotations(tree):
        for each in walk(annotation):
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                found |= _names_in(each.value)
    return found


def _annotations(tree: ast.Module) -> Iterator[ast.expr]:
    for node in statements_below(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            own = node.args
            parameters = (*own.posonlyargs, *own.args, own.vararg, *own.kwonlyargs, own.kwarg)
            annotations = (node.returns, *(each.annotation for each in parameters if each is not None))
            yield from (each for each in annotations if each is not None)
        elif isinstance(node, ast.AnnAssign):
            yield node.annotation


@lru_cache(maxsize=4096)
def _names_in(expression: str) -> frozenset[str]:
    try:
        parsed = ast.parse(expression, mode="eval")
    except (SyntaxError, ValueError):
        return frozenset()
    return frozenset(node.id for node in walk(parsed) if isinstance(node, ast.Name))


# ---------------------------------------------------------------------------------------- functions
def _of_functions(top: symtable.SymbolTable, tree: ast.Module) -> Iterator[Finding]:
    nodes = {
        (node.name, node.lineno): node
        for node in statements_below(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    for scope, table in _functions(top, ""):
        unused = {s.get_name() for s in table.get_symbols() if _is_unused(s, table)}
        node = nodes.get((table.get_name(), _line(table, nodes)))
        if not unused or node is None or _is_used(table, "locals"):
            continue
        plain = set(_plainly_bound(node)) - {
            n.target.id for n in walk(node) if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)
        }
        for name in sorted(unused):
            if table.lookup(name).is_imported():
                yield Finding(UNUSED_IMPORT, scope, name)
            elif name in plain and not name.startswith("_"):
                yield Finding(UNUSED_VARIABLE, scope, name)


def _functions(table: symtable.SymbolTable, prefix: str) -> Iterator[tuple[str, symtable.SymbolTable]]:
    for child in table.get_children():
        name = f"{prefix}{child.get_name()}"
        if child.get_type() == "function":
            yield name, child
        yield from _functions(child, f"{name}.")


def _line(table: symtable.SymbolTable, nodes: dict[tuple[str, int], ast.FunctionDef | ast.AsyncFunctionDef]) -> int:
    """The line of ``def``: tables of decorated functions begin with the first decorator."""
    start = table.get_lineno()
    lines = (line for name, line in nodes if name == table.get_name() and line >= start)
    return min(lines, default=start)


def _is_used(table: symtable.SymbolTable, name: str) -> bool:
    return any(s.get_name() == name and s.is_referenced() for s in table.get_symbols())


def _is_unused(symbol: symtable.Symbol, table: symtable.SymbolTable) -> bool:
    if not symbol.is_local() or symbol.is_referenced() or symbol.is_parameter() or symbol.is_namespace():
        return False
    name = symbol.get_name()
    return not any(s.get_name() == name and s.is_free() for child in tables_below(table) for s in child.get_symbols())


def _plainly_bound(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """Names that a function binds one at a time; those of loops and of unpacked tuples may be unused."""
    for node in walk(function):
        if isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.withitem) and isinstance(node.optional_vars, ast.Name):
            yield node.optional_vars.id
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name
