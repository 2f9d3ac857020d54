"""Loops over rows that are written out, in the form that tests are divided in: with a name for each column.

``for row in rows: assert f(row[0]) == row[1]`` becomes ``for row__0, row__1 in [...]: assert f(row__0) == row__1``.
"""

from __future__ import annotations

import ast

from excise.extractors.python.analysis.ast_walk import blocks_of, walk
from excise.extractors.python.lifting.expected_values import Function, loads_in, targets_of


def name_columns(function: Function) -> None:
    """Write the rows of loops into their heads, and name the columns of rows that are only indexed, in place."""
    for block in blocks_of(function, nested=False):
        for loop in [each for each in block if isinstance(each, ast.For)]:
            _write_rows(function, block, loop)
            _name_columns(function, loop)


def columns_of(loop: ast.For) -> dict[str, list[ast.expr]]:
    """The names that a loop over written rows gives to their values, each with these values; empty for other loops."""
    targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else []
    rows = _rows(loop.iter)
    if not targets or not rows or any(len(row.elts) != len(targets) for row in rows):
        return {}
    return {
        target.id: [row.elts[n] for row in rows] for n, target in enumerate(targets) if isinstance(target, ast.Name)
    }


def _rows(node: ast.expr) -> list[ast.List | ast.Tuple]:
    """The rows of a list or tuple that is written out; empty unless each is a list or tuple that is written out."""
    if not isinstance(node, ast.List | ast.Tuple):
        return []
    rows = [row for row in node.elts if isinstance(row, ast.List | ast.Tuple)]
    whole = all(not isinstance(cell, ast.Starred) for row in rows for cell in row.elts)
    return rows if whole and len(rows) == len(node.elts) else []


def _write_rows(function: Function, block: list[ast.stmt], loop: ast.For) -> None:
    """Put rows in place of their name, if the same block assigns them, and nothing else uses the name."""
    if not isinstance(loop.iter, ast.Name):
        return
    name = loop.iter.id
    stored = [part for part in walk(function) if isinstance(part, ast.Name) and part.id == name]
    for statement in block[: block.index(loop)]:
        if not (isinstance(statement, ast.Assign) and len(statement.targets) == 1):
            continue
        target = statement.targets[0]
        if isinstance(target, ast.Name) and target.id == name and len(stored) == 2 and _rows(statement.value):
            loop.iter = statement.value
            block.remove(statement)
            return


def _name_columns(function: Function, loop: ast.For) -> None:
    """Give names to the columns of rows of which the loop only uses single values, by their numbers."""
    rows = _rows(loop.iter)
    widths = {len(row.elts) for row in rows}
    if not isinstance(loop.target, ast.Name) or len(widths) != 1:
        return
    (width,), row = widths, loop.target.id
    taken = [
        part
        for part in walk(loop)
        if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name) and part.value.id == row
    ]
    uses = [part for part in walk(function) if isinstance(part, ast.Name) and part.id == row]
    if len(uses) != len(taken) + 1 or not all(_is_index(part, width) for part in taken):
        return
    names = [f"{row}__{number}" for number in range(width)]
    if set(names) & {*loads_in(function.body), *targets_of(function)}:
        return
    loop.target = ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())
    columns = _Columns(row, names)
    for block in (loop.body, loop.orelse):
        block[:] = [columns.visit(statement) for statement in block]


class _Columns(ast.NodeTransformer):
    """Replaces ``row[0]`` by the name of the column."""

    def __init__(self, row: str, names: list[str]) -> None:
        self.row = row
        self.names = names

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """The name in place of an indexed row."""
        number = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if isinstance(node.value, ast.Name) and node.value.id == self.row and isinstance(number, int):
            return ast.Name(self.names[number], ast.Load())
        self.generic_visit(node)
        return node


def _is_index(part: ast.Subscript, width: int) -> bool:
    """Whether a value of a row is read by its number."""
    number = part.slice.value if isinstance(part.slice, ast.Constant) else None
    return type(number) is int and 0 <= number < width and isinstance(part.ctx, ast.Load)
