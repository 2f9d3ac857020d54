"""Operands of assertions, and the builtins that stand for them in the two forms of a test."""

from __future__ import annotations

import ast
from dataclasses import dataclass

SEE, SEEN, RAISING, RAISE = "__excise_see__", "__excise_seen__", "__excise_raising__", "__excise_raise__"
"""Names of the builtins that observing and judging files call (``inside/excise_lifted.py``)."""
ALL_SEEN = "__excise_all_seen__"
"""Name of the builtin that refuses reports of functions within a test that nothing asked for."""


@dataclass(frozen=True, slots=True)
class Operand:
    """An expression by its place in a node or list, so that it can be replaced."""

    owner: ast.AST | list[ast.expr]
    """What holds the expression."""
    at: str | int
    """Name of a field of the node, number of an argument of a call, or index in the list."""

    def get(self) -> ast.expr:
        """The expression."""
        if isinstance(self.at, str):
            found: ast.expr = getattr(self.owner, self.at)
            return found
        return self._listed()[self.at]

    def set(self, value: ast.expr) -> None:
        """Replace the expression."""
        if isinstance(self.at, str):
            setattr(self.owner, self.at, value)
        else:
            self._listed()[self.at] = value

    def _listed(self) -> list[ast.expr]:
        if isinstance(self.owner, list):
            return self.owner
        assert isinstance(self.owner, ast.Call)
        return self.owner.args


def call_of(name: str, *args: ast.expr) -> ast.Call:
    """A call of a name."""
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])
