"""Whether the variables of a function that loses a part keep their sense: they are read, and have several values."""

from __future__ import annotations

import ast
import textwrap
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from excise.deleters.python.references.unfilled_containers import FILLING

_EMPTY = frozenset({"()", "[]", "{}", "OrderedDict()", "deque()", "dict()", "list()", "set()"})
_READERS = frozenset({"all", "any", "bool", "enumerate", "iter", "len", "list", "max", "min", "sorted", "sum", "tuple"})
_RECEIVERS = frozenset({"self", "cls"})


@dataclass
class _Names:
    """What a function does with its names."""

    parameters: set[str] = field(default_factory=set)
    values: dict[str, list[str]] = field(default_factory=dict)
    """Name to the values that it is given, as code, and the steps by which it is counted; empty for others."""
    asked: set[str] = field(default_factory=set)
    """Names on which conditions depend, or which they compare."""
    loads: Counter[str] = field(default_factory=Counter)
    """Number of reads, without those that only fill a container."""
    fills: Counter[str] = field(default_factory=Counter)
    """Number of statements that may add to what a name stands for: also calls that are given it."""
    outer: set[str] = field(default_factory=set)
    """Names of other scopes."""


def has_lost_sense(before: str, after: str, options: Collection[str] = ()) -> bool:
    """Whether a function has parameters or variables that only what is gone read, gave another value, or filled.

    ``options`` are parameters that need not be read: what they ask for is gone. False for text that cannot be parsed.
    """
    both = _names_of_both(before, after)
    if both is None:
        return False
    was, now = both
    bound = (now.parameters | now.values.keys()) - now.outer - _RECEIVERS - (now.parameters & set(options))
    return any(_is_senseless(name, was, now) for name in bound if not name.startswith("_"))


def constant_variables(before: str, after: str) -> list[str]:
    """The variables of a function that have one value, stay empty, or are only counted up, or down, since only what is
    gone did more with them."""
    both = _names_of_both(before, after)
    if both is None:
        return []
    was, now = both
    return sorted(name for name in now.values.keys() - now.outer if _is_constant_now(name, was, now))


def _names_of_both(before: str, after: str) -> tuple[_Names, _Names] | None:
    try:
        was, now = (_names_of(ast.parse(textwrap.dedent(text))) for text in (before, after))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return was, now


def _is_senseless(name: str, was: _Names, now: _Names) -> bool:
    if now.loads[name] <= 0:
        return was.loads[name] > 0
    return _is_constant_now(name, was, now)


def _is_constant_now(name: str, was: _Names, now: _Names) -> bool:
    values = now.values.get(name, [])
    if name in now.parameters or not values or not now.loads[name]:
        return False
    is_constant = len(set(values)) == 1 and _is_constant(values[0])
    has_lost_value = not set(was.values.get(name, [])) <= set(values)
    has_lost_content = was.fills[name] > 0 and not now.fills[name] and _EMPTY.issuperset(values)
    return (is_constant and has_lost_value) or has_lost_content or _is_counted_one_way(name, was, now)


def _is_counted_one_way(name: str, was: _Names, now: _Names) -> bool:
    """Whether a number that was counted up and down by the same steps, and asked for, is counted one way alone."""
    before, after = (Counter(each.values.get(name, [])) for each in (was, now))
    steps = [(up, up.replace("+", "-")) for up in before if up.startswith("+=")]
    is_lost = any(before[down] and bool(after[up]) != bool(after[down]) for up, down in steps)
    return is_lost and name in was.asked and name in now.asked


def _step(node: ast.AugAssign) -> str:
    """What stands among the values of a name that is counted up or down by a number; empty for other statements."""
    sign = {ast.Add: "+=", ast.Sub: "-="}.get(type(node.op))
    is_number = isinstance(node.value, ast.Constant) and isinstance(node.value.value, int)
    return f"{sign}{ast.unparse(node.value)}" if sign and is_number else ""


def _is_constant(value: str) -> bool:
    try:
        ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _names_of(tree: ast.Module) -> _Names:
    found = _Names()
    for node in ast.walk(tree):
        if isinstance(node, ast.arguments):
            every = (*node.posonlyargs, *node.args, *node.kwonlyargs, node.vararg, node.kwarg)
            found.parameters.update(each.arg for each in every if each is not None)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            found.outer.update(node.names)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found.fills[node.target.id] += 1
            found.values.setdefault(node.target.id, []).append(_step(node))
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr):
            _note_values(node, found)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.loads[node.id] += 1
        elif isinstance(node, ast.Name):
            found.values.setdefault(node.id, [])
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            found.asked.update(_asked(node.test))
    for name in _filled(tree):
        found.fills[name] += 1
    for name in _only_filled(tree):
        found.loads[name] -= 1
    return found


def _asked(test: ast.expr) -> Iterator[str]:
    """The names that a condition is about: ``x``, ``not x``, ``x > 1 and y``."""
    match test:
        case ast.Name(id=name):
            yield name
        case ast.UnaryOp(operand=operand):
            yield from _asked(operand)
        case ast.BoolOp(values=values):
            yield from (name for value in values for name in _asked(value))
        case ast.Compare(left=left, comparators=others):
            yield from (each.id for each in (left, *others) if isinstance(each, ast.Name))


def _note_values(node: ast.Assign | ast.AnnAssign | ast.NamedExpr, found: _Names) -> None:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    for target in targets:
        is_plain = isinstance(target, ast.Name) and node.value is not None
        names = [each.id for each in ast.walk(target) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
        for name in names:
            value = ast.unparse(node.value) if is_plain and node.value is not None else ""
            found.values.setdefault(name, []).append(value)


def _filled(tree: ast.Module) -> Iterator[str]:
    """The names of what statements may fill: ``x.append(y)``, ``x[y] = z``, ``f(x)``, ``y = x``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
                yield from [node.func.value.id] if node.func.attr in FILLING else []
            if not (isinstance(node.func, ast.Name) and node.func.id in _READERS):
                given = (*node.args, *(keyword.value for keyword in node.keywords))
                yield from (each.id for each in given if isinstance(each, ast.Name))
        elif isinstance(node, ast.Subscript | ast.Assign) and isinstance(node.value, ast.Name):
            is_read = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)
            yield from [] if is_read else [node.value.id]


def _only_filled(tree: ast.Module) -> Iterator[str]:
    """The names in statements that do no more than to fill what they stand for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            function = node.value.func
            if (
                isinstance(function, ast.Attribute)
                and isinstance(function.value, ast.Name)
                and function.attr in FILLING
            ):
                yield function.value.id
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                    yield target.value.id
