"""The forms in which tests say that code must raise something."""

from __future__ import annotations

import ast
from typing import TypeGuard

from excise.extractors.python.analysis.ast_walk import walk
from excise.extractors.python.lifting.expected_values import NotLifted, called

_METHODS = frozenset({"assertRaises", "assertRaisesRegex"})
_RAISES = _METHODS | {"raises"}
_ANY_ERROR = frozenset({"AssertionError", "Exception", "BaseException"})
"""Names of the classes that an assertion's own error is an instance of."""


def must_raise(block: ast.With) -> bool:
    """Whether the block must raise something."""
    return any(_is_raises(item.context_expr) for item in block.items)


def _is_raises(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and called(node) in _RAISES


def is_raising_call(node: ast.AST | None) -> TypeGuard[ast.Call]:
    """Whether an expression is ``pytest.raises(error, function, …)``."""
    return isinstance(node, ast.Call) and _ends_with_function(node) and ast.unparse(node.func) == "pytest.raises"


def is_call_of_raises(node: ast.Call) -> bool:
    """Whether a call is of a function ``raises(error, function)`` that returns whether the function raised it."""
    return isinstance(node.func, ast.Name) and node.func.id == "raises" and _ends_with_function(node)


def _ends_with_function(call: ast.Call) -> bool:
    return len(call.args) > 1


def is_raising_method(call: ast.Call) -> bool:
    """Whether a call is of ``assertRaises`` or ``assertRaisesRegex``."""
    return called(call) in _METHODS


def nested_blocks(block: ast.With) -> ast.With:
    """The block with one context manager: the others are those of a block within it. Raises :class:`NotLifted`."""
    first, *others = block.items
    if not _is_raises(first.context_expr):
        raise NotLifted("block that must raise within another one")
    if others:
        block.items[1:] = []
        block.body = [ast.With(others, block.body)]
    return block


def accepts_failed_assertions(block: ast.With) -> bool:
    """Whether an assertion's own error is among what the block must raise."""
    return any(isinstance(part, ast.Name) and part.id in _ANY_ERROR for part in walk(block.items[0].context_expr))


def without_assertions(block: ast.With) -> None:
    """Make an assertion that is all of a block that must raise an expression, as what it compares is not reached."""
    owner = block
    while len(owner.body) == 1 and isinstance(owner.body[0], ast.With):
        owner = owner.body[0]
    inner = owner.body[0]
    if isinstance(inner, ast.Assert) and len(owner.body) == 1 and not accepts_failed_assertions(block):
        owner.body[0] = ast.Expr(inner.test)
