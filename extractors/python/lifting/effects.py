"""What operands do besides having a value: the judging form needs it where it goes on with what they change.

In ``assert queue.pop() == 1``, followed by ``with suppress(IndexError): queue.pop()``, the judging form has a reported
value in place of the first call, and makes the call, too.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator

from excise.extractors.python.analysis.ast_walk import blocks_of, walk
from excise.extractors.python.lifting.expected_values import (
    Function,
    calls_in,
    loads_in,
    loads_of,
    root_of,
    statements_of,
    targets_of,
)

_READING = frozenset(
    {"len", "str", "repr", "type", "isinstance", "issubclass", "bool", "int", "float", "hash", "id", "callable",
     "getattr", "hasattr", "vars"}
)  # fmt: skip
"""Builtin functions that change no argument."""


def changed_by(node: ast.expr) -> Iterator[str]:
    """Names of the objects that an expression may change: it calls their methods, or gives them to functions."""
    for call in calls_in(node):
        if isinstance(call.func, ast.Attribute) and root_of(call.func):
            yield root_of(call.func)
        if not (isinstance(call.func, ast.Name) and call.func.id in _READING):
            yield from (argument.id for argument in call.args if isinstance(argument, ast.Name))


def drop_effects(judging: Function, effects: Collection[ast.Expr]) -> None:
    """Take those statements out that change no object of the test's own which is used by something else."""
    if not effects:
        return
    places = set(map(id, effects))
    made = {name for part in statements_of(judging) if isinstance(part, ast.Assign) for name in targets_of(part)}
    made |= {argument.arg for argument in walk(judging.args) if isinstance(argument, ast.arg)} - {"self", "cls"}
    elsewhere = Counter(loads_of(judging)) - Counter(loads_in(effects))
    used = made & elsewhere.keys()
    for block in blocks_of(judging):
        block[:] = [each for each in block if id(each) not in places or _changes(each, used)] or [ast.Pass()]


def drop_uses_of_caught(judging: Function, caught: Collection[str]) -> None:
    """Take out assignments that read a caught exception, of which a stand-in is there, to names that nothing reads."""
    if not caught:
        return
    used = set(loads_of(judging))
    for block in blocks_of(judging):
        kept = [each for each in block if not _is_made_of(each, caught, used)]
        block[:] = kept or [ast.Pass()]


def _is_made_of(statement: ast.stmt, names: Collection[str], used: Collection[str]) -> bool:
    """Whether a statement assigns what it makes with some names to one that nothing uses."""
    if not (isinstance(statement, ast.Assign) and all(isinstance(target, ast.Name) for target in statement.targets)):
        return False
    made = {name for target in statement.targets for name in targets_of(target)}
    return made.isdisjoint(used) and not set(loads_of(statement.value)).isdisjoint(names)


def _changes(statement: ast.stmt, names: Collection[str]) -> bool:
    return isinstance(statement, ast.Expr) and not set(changed_by(statement.value)).isdisjoint(names)
