"""Tests that seed random numbers and compare what comes of them with constants.

Code that draws as many numbers in another order is as right as the original, and fails such a test.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.needs.test_uses import function_of
from excise.types import Symbol

_DRAWS = re.compile(
    rb"\brandom\b|\b(?:rand(?:int|range|bits|om_sample)|shuffle|getrandbits|uniform|gauss|normalvariate|expovariate)\("
)
"""What code contains that draws random numbers."""
_SEEDS = re.compile(r"(?:(?:\w+\.)?random\.)?seed")
"""Functions that seed them; the bare name only where a file imports it."""
_IMPORTS_SEED = re.compile(rb"(?m)^[ \t]*from (?:numpy\.)?random import [^#\n]*\bseed\b")
_SUMMARIES = frozenset({"len", "set", "sorted", "type", "isinstance", "Counter", "all", "any", "min", "max"})
"""Functions of drawn values whose results may not depend on the order in which they were drawn."""
_EQUALITIES = frozenset({"assertEqual", "assertEquals", "assertListEqual", "assertTupleEqual", "assertSequenceEqual"})


def draws(codebase: PythonCodebase, symbol: Symbol) -> bool:
    """Whether the code of a symbol draws random numbers."""
    return _DRAWS.search(codebase.modules[symbol.path].source, symbol.code_start, symbol.end) is not None


def compares_drawn(codebase: PythonCodebase, test: str) -> bool:
    """Whether the function of a test seeds random numbers, and compares something with a constant."""
    symbol = codebase.definition_of_test(test)
    source = codebase.modules[symbol.path].source if symbol is not None and symbol.path in codebase.modules else b""
    if symbol is None or b"seed" not in source[symbol.start : symbol.end]:
        return False
    function = function_of(source, symbol)
    if function is None:
        return False
    nodes = list(ast.walk(function))
    called = [ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)]
    is_imported = _IMPORTS_SEED.search(source) is not None
    if not any(_SEEDS.fullmatch(name) and (name != "seed" or is_imported) for name in called):
        return False
    constants = {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign) and _is_constant(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    drawn = _summaries(nodes)
    return any(_is_expected(sides, constants, drawn) for sides in _compared(nodes))


def _compared(nodes: Sequence[ast.AST]) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The two sides of each comparison for equality."""
    for node in nodes:
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq):
            yield node.left, node.comparators[0]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in _EQUALITIES:
            yield from pairwise(node.args[:2])


def _summaries(nodes: Sequence[ast.AST]) -> set[str]:
    """The variables that hold what one of :data:`_SUMMARIES` returned."""
    return {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign) and _is_summary(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _is_summary(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] in _SUMMARIES


def _is_expected(sides: tuple[ast.expr, ast.expr], constants: set[str], summaries: set[str]) -> bool:
    """Whether one side is a constant, and the other one is neither that nor a summary."""

    def is_constant(side: ast.expr) -> bool:
        return _is_constant(side) or (isinstance(side, ast.Name) and side.id in constants)

    others = [side for side in sides if not is_constant(side)]
    return len(others) == 1 and not (
        _is_summary(others[0]) or (isinstance(others[0], ast.Name) and others[0].id in summaries)
    )


def _is_constant(value: ast.expr) -> bool:
    """Whether an expression is a number, a text, or a container of nothing else."""
    try:
        found = ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return False
    return found is not None and not isinstance(found, bool)
