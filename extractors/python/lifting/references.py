"""References: operands that only the judging form computes, with the original code.

What such an operand is made of may be in the observing form for one purpose only: to be given to the code under test.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from excise.extractors.python.analysis.ast_walk import child_nodes, walk
from excise.extractors.python.lifting.expected_values import (
    ExpectedNames,
    Function,
    NotLifted,
    loads_of,
    parts_of,
    statements_of,
    targets_of,
)
from excise.extractors.python.lifting.written_loops import columns_of


def refuse_visible_references(observing: Function, dropped: Sequence[ast.expr], names: ExpectedNames) -> None:
    """Raise :class:`NotLifted` if the observing form has what a reference is made of, and does not just pass it on."""
    if not dropped:
        return
    computed = computed_names(observing, names)
    inputs, others = _uses(observing)
    nested = {name for node in _nested_functions(observing) for name in _arguments(node)}
    arguments = set(_arguments(observing))
    columns = {name for call in observing.decorator_list for name in _words(call)}
    for name in sorted({name for node in dropped for name in names.unknown_in(node)}):
        if name in names.project or name in computed:
            continue
        if name in nested - set(inputs):
            raise NotLifted("expected value that is given to a function of the test")
        if name in others:
            raise NotLifted("expected value that is used elsewhere")
        if name in arguments - columns and name not in inputs:
            raise NotLifted("expected value of a fixture")


def _arguments(function: Function | ast.Lambda) -> Iterator[str]:
    return (part.arg for part in walk(function.args) if isinstance(part, ast.arg))


def _nested_functions(function: Function) -> Iterator[Function | ast.Lambda]:
    return (part for part in parts_of(function.body) if isinstance(part, Function | ast.Lambda))


def _words(decorator: ast.expr) -> Iterator[str]:
    """Names among the strings of a decorator, such as those of the columns of a table."""
    for part in walk(decorator):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield from (word.strip() for word in part.value.split(","))


def computed_names(function: Function, names: ExpectedNames) -> set[str]:
    """Names of a test whose values come from imported code that is not the standard library's, or from such names."""
    bound = list(bindings_of(function))
    found: set[str] = set()
    while True:
        known = names.project | found
        more = {name for targets, value in bound for name in targets if not known.isdisjoint(loads_of(value))} - found
        if not more:
            return found
        found |= more


def bindings_of(function: Function) -> Iterator[tuple[list[str], ast.AST]]:
    """Names that statements of a test bind, with the expression or definition whose value they get."""
    for part in statements_of(function):
        if isinstance(part, ast.Assign):
            yield [name for target in part.targets for name in targets_of(target)], part.value
        elif isinstance(part, ast.AugAssign):
            yield list(targets_of(part.target)), part.value
        elif isinstance(part, ast.For):
            columns = columns_of(part)
            yield from (([name], ast.Tuple(cells, ast.Load())) for name, cells in columns.items())
            yield [name for name in targets_of(part.target) if name not in columns], part.iter
        elif isinstance(part, ast.With):
            for item in part.items:
                yield list(targets_of(item.optional_vars or ast.Pass())), item.context_expr
        elif isinstance(part, Function | ast.ClassDef):
            yield [part.name], part


def _uses(function: Function) -> tuple[Collection[str], Collection[str]]:
    """Names that a test calls, passes as a whole, or calls methods of, and names that it uses for anything else."""
    inputs: set[str] = set()
    passed: set[int] = set()
    for part in parts_of(function.body):
        if isinstance(part, ast.Call):
            given = [*part.args, *(keyword.value for keyword in part.keywords)]
            given.append(part.func.value if isinstance(part.func, ast.Attribute) else part.func)
            names = [name for each in given for name in _whole(each)]
            inputs.update(name.id for name in names)
            passed.update(map(id, names))
    others = {
        part.id
        for part in parts_of(function.body)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and id(part) not in passed
    }
    return inputs, others


def _whole(node: ast.expr) -> Iterator[ast.Name]:
    """Names whose whole values are parts of a value."""
    if isinstance(node, ast.Name):
        yield node
    elif isinstance(node, ast.Starred | ast.BinOp | ast.List | ast.Tuple | ast.Set):
        for child in child_nodes(node):
            if isinstance(child, ast.expr):
                yield from _whole(child)
