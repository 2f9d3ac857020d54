"""Tables of ``parametrize``: their rows by column, and without the columns that only expectations use."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from excise.extractors.python.analysis.ast_walk import copied, walk
from excise.extractors.python.lifting.expected_values import Function, NotLifted, called, loads_in, targets_of

_NOT_WRITTEN = "table whose rows are not written out"


@dataclass(frozen=True, slots=True)
class Row:
    """One row, or all rows that a comprehension makes."""

    owner: list[ast.expr] | ast.ListComp | ast.GeneratorExp
    """The list that has the row, or the comprehension."""
    index: int = 0
    """Place in the list."""

    def get(self) -> ast.expr:
        """The row."""
        return self.owner[self.index] if isinstance(self.owner, list) else self.owner.elt

    def set(self, row: ast.expr) -> None:
        """Replace the row."""
        if isinstance(self.owner, list):
            self.owner[self.index] = row
        else:
            self.owner.elt = row

    def made_by(self) -> list[ast.comprehension]:
        """The loops of the comprehension; none for a single row."""
        return [] if isinstance(self.owner, list) else self.owner.generators


@dataclass(frozen=True, slots=True)
class Table:
    """One ``parametrize`` whose rows are written out, one by one or in comprehensions."""

    call: ast.Call
    names: Sequence[str]
    rows: list[Row]

    def cells(self, row: Row) -> list[ast.expr] | None:
        """The values of a row, one for each name; ``None`` if it does not show them."""
        node = row.get()
        inner = node.args if isinstance(node, ast.Call) and called(node) == "param" else None
        if inner is not None:
            return inner if len(inner) == len(self.names) else None
        if len(self.names) == 1:
            return [node]
        return node.elts if isinstance(node, ast.List | ast.Tuple) and len(node.elts) == len(self.names) else None

    def column(self, name: str) -> list[ast.expr]:
        """The values of one name; those that a comprehension makes are a list of them."""
        found: list[ast.expr] = []
        for row in self.rows:
            cells = self.cells(row)
            assert cells is not None
            cell, loops = cells[self.names.index(name)], row.made_by()
            found.append(ast.ListComp(cell, loops) if loops else cell)
        return found

    def forget(self, unused: Collection[str]) -> None:
        """Take the values of some names out, and the ids of all rows, which may tell them.

        Raises :class:`NotLifted` for a value that is still there then: what a comprehension goes through has it.
        """
        for row in self.rows:
            cells = self.cells(row)
            assert cells is not None
            given = set(loads_in(cell for cell, name in zip(cells, self.names, strict=True) if name not in unused))
            for index, name in enumerate(self.names):
                if name in unused:
                    made = {each for loop in row.made_by() for each in targets_of(loop.target)}
                    if not (made & set(loads_in([cells[index]]))) <= given:
                        raise NotLifted(_NOT_WRITTEN)
                    if len(self.names) == 1 and not isinstance(row.get(), ast.Call):
                        row.set(ast.Constant(None))
                    else:
                        cells[index] = ast.Constant(None)
        self._forget_ids()

    def _forget_ids(self) -> None:
        """Number the rows that are written one by one; of others pytest makes ids of the values that are left."""
        self.call.keywords = [keyword for keyword in self.call.keywords if keyword.arg != "ids"]
        if not any(row.made_by() for row in self.rows):
            numbers = ast.List([ast.Constant(str(n)) for n in range(len(self.rows))], ast.Load())
            self.call.keywords.append(ast.keyword("ids", numbers))
        for part in walk(self.call.args[1]):
            if isinstance(part, ast.Call) and called(part) == "param":
                part.keywords = [keyword for keyword in part.keywords if keyword.arg != "id"]


def tables_of(function: Function, constants: Mapping[str, ast.expr]) -> list[Table]:
    """The tables of a test; ``constants`` are the values of names of its module."""
    calls = (call for call in function.decorator_list if isinstance(call, ast.Call) and called(call) == "parametrize")
    return [table for call in calls if (table := table_of(call, constants)) is not None]


def table_of(call: ast.Call, constants: Mapping[str, ast.expr]) -> Table | None:
    """The table of one ``parametrize``; ``None`` if it does not show its rows."""
    names = parameter_names(call)
    if not names or len(call.args) < 2:
        return None
    if isinstance(call.args[1], ast.Name) and call.args[1].id in constants:
        call.args[1] = copied(constants[call.args[1].id])
    rows = _rows(call.args[1])
    table = Table(call, names, rows or [])
    return None if rows is None or any(table.cells(row) is None for row in rows) else table


def _rows(node: ast.expr) -> list[Row] | None:
    """The rows of a list, a comprehension or a sum of them; ``None`` for anything else."""
    if isinstance(node, ast.List | ast.Tuple):
        whole = not any(isinstance(row, ast.Starred) for row in node.elts)
        return [Row(node.elts, index) for index in range(len(node.elts))] if whole else None
    if isinstance(node, ast.ListComp | ast.GeneratorExp):
        return [Row(node)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [_rows(part) for part in (node.left, node.right)]
        return None if None in parts else [row for part in parts for row in part or ()]
    return None


def parameter_names(call: ast.Call) -> Sequence[str]:
    """The names of the columns of a ``parametrize``; empty if they are not written out."""
    try:
        listed = ast.literal_eval(call.args[0])
    except (ValueError, IndexError):
        return []
    return [name.strip() for name in listed.split(",") if name.strip()] if isinstance(listed, str) else list(listed)
