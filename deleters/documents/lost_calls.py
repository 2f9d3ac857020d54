"""Calls of a function that stays with an argument that only a path took which is gone."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

_CONDITION = re.compile(r"\s*(?:el)?if\s+(.+?):\s*(?:#.*)?$")
"""The condition of a path on its first line."""
_TYPES = frozenset({"bytes", "dict", "float", "int", "list", "set", "str", "tuple"})
"""Types of which code has literals."""
_UNKNOWN = object()


class _Asked(NamedTuple):
    """What a condition asks of a parameter."""

    parameter: str
    types: frozenset[str] = frozenset()
    values: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class LostCall:
    """A call that the function does not answer any more."""

    function: str
    """Name of the function, or of the class that it makes."""
    parameter: str
    """The parameter that gets the argument."""
    place: int | None
    """The number of the argument if it has no name; ``None`` if it must have one: other objects may have the method."""
    types: frozenset[str]
    """Names of the types of arguments that are not taken any more."""
    values: tuple[object, ...]
    """Arguments that are not taken any more."""
    others: tuple[object, ...]
    """Arguments that still are."""

    def is_made_by(self, node: ast.AST) -> bool:
        """Whether a node of an example is such a call."""
        if not isinstance(node, ast.Call):
            return False
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
        if name != self.function:
            return False
        given = [each.value for each in node.keywords if each.arg == self.parameter]
        if not given and self.place is not None and self.place < len(node.args):
            before = node.args[: self.place + 1]
            given = [] if any(isinstance(each, ast.Starred) for each in before) else before[-1:]
        value = _value_of(given[0]) if given else _UNKNOWN
        if value is _UNKNOWN or value in self.others:
            return False
        return type(value).__name__ in self.types or value in self.values


def lost_call(before: str, after: str, gone: str, place: tuple[str, bool]) -> LostCall | None:
    """The calls that a function does not answer after it lost a path; ``None`` if its condition asks something else.

    ``before`` and ``after`` are the function's texts, ``gone`` is that of the path. ``place`` has the name by which it
    is called, and whether it is a method, whose first parameter no call gives.
    """
    lines = [line for line in gone.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    found = _CONDITION.match(lines[0]) if lines else None
    was, now = _function(before), _function(after)
    if found is None or was is None or now is None:
        return None
    try:
        asked = next(_asked(ast.parse(found[1], mode="eval").body), None)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    name, is_method = place
    listed = [each.arg for each in (*was.args.posonlyargs, *was.args.args)]
    known = {*listed, *(each.arg for each in was.args.kwonlyargs)}
    if asked is None or asked.parameter not in known:
        return None
    left = [each for node in ast.walk(now) for each in _asked(node) if each.parameter == asked.parameter]
    if any(each.types & asked.types for each in left):
        return None
    number = listed.index(asked.parameter) if asked.parameter in listed and not is_method else None
    others = tuple(value for each in left for value in each.values)
    return LostCall(name, asked.parameter, number, asked.types, asked.values, others)


def _function(text: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The function that a text is."""
    try:
        body = ast.parse(textwrap.dedent(text)).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    nodes = (node for each in body for node in ast.walk(each))
    return next((node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)), None)


def _asked(condition: ast.AST) -> Iterator[_Asked]:
    """What a condition asks, if that is whether a variable is of a type, or one of some constants."""
    match condition:
        case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=name), asked]):
            types = asked.elts if isinstance(asked, ast.Tuple) else [asked]
            named = {each.id for each in types if isinstance(each, ast.Name)}
            if named & _TYPES:
                yield _Asked(name, frozenset(named & _TYPES))
        case ast.Compare(left=ast.Name(id=name), ops=[ast.Eq()], comparators=[asked]):
            value = _value_of(asked)
            if value is not _UNKNOWN and value is not None:
                yield _Asked(name, values=(value,))
        case ast.Compare(left=ast.Name(id=name), ops=[ast.In()], comparators=[asked]):
            value = _value_of(asked)
            if isinstance(value, tuple | list | set) and value:
                yield _Asked(name, values=tuple(value))


def _value_of(node: ast.expr) -> object:
    """The value of a literal."""
    try:
        value: object = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return _UNKNOWN
    return value
