"""Questions about values of the code under test: the value is observed, since anyone can report the answer."""

from __future__ import annotations

import ast

from excise.extractors.python.lifting.expected_values import ExpectedNames, targets_of
from excise.extractors.python.lifting.places import Operand

_SEARCHES = frozenset({"match", "search", "fullmatch"})
_METHODS = frozenset({"startswith", "endswith"})


def searched_text(node: ast.expr, names: ExpectedNames) -> Operand | None:
    """The text in ``re.match(pattern, text)`` or ``text.startswith(words)`` whose other operands are expected values.

    ``None`` for any other expression.
    """
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    others = [keyword.value for keyword in node.keywords]
    owner, name = node.func.value, node.func.attr
    is_re = isinstance(owner, ast.Name) and owner.id == "re" and "re" in names.pure
    if is_re and name in _SEARCHES and len(node.args) >= 2:
        operand, others = Operand(node, 1), [*others, node.args[0], *node.args[2:]]
    elif name in _METHODS and node.args:
        operand, others = Operand(node.func, "value"), [*others, *node.args]
    else:
        return None
    return operand if all(map(names.is_expected, others)) else None


def quantified_loop(node: ast.expr, names: ExpectedNames) -> ast.comprehension | None:
    """The loop of ``all(x > 3 for x in values)``, if what is asked of each item needs nothing but expected values.

    ``None`` for any other expression.
    """
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"all", "any"}):
        return None
    asked = node.args[0] if len(node.args) == 1 else None
    if not isinstance(asked, ast.GeneratorExp | ast.ListComp) or len(asked.generators) != 1:
        return None
    (loop,) = asked.generators
    inner = names.copy()
    inner.values |= set(targets_of(loop.target))
    inner.depending -= inner.values
    is_known = all(map(inner.is_expected, (asked.elt, *loop.ifs)))
    return loop if is_known and not loop.is_async else None
