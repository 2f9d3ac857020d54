"""The one value that a parameter always has in a lesser answer: its default, or what its calls and its type suggest."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import takewhile
from types import MappingProxyType
from typing import NamedTuple

from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.needs.test_uses import Function, parsed
from excise.types import Symbol

RECEIVERS = frozenset({"self", "cls"})
"""Names of the object that a method is called on."""
MAX_FILES = 40
"""Number of files that call a function which are looked at."""
_PLAIN: Mapping[str, tuple[str, str]] = MappingProxyType(
    {"int": ("0", "1"), "float": ("0.0", "1.0"), "str": ("''", "'a'"), "bytes": ("b''", "b'a'"),
     "bool": ("False", "True")}
)  # fmt: skip
"""Types to two of their values."""


def parameter_values(codebase: PythonCodebase, function: Function, symbol: Symbol) -> dict[str, str]:
    """Parameters of a function to the expression of a constant: the default, if it is one.

    Parameters that calls have to give have one in public functions: the literal that all of several calls give, or
    else a value of their type that the only call does not give.
    """
    defaults, required = _defaults(function.args), required_parameters(function)
    values = {name: ast.unparse(value) for name, value in defaults if isinstance(value, ast.Constant)}
    if not required or not symbol.is_public:
        return values
    calls, by_place = _calls(codebase, symbol), _by_place(function)
    for place, (name, annotation) in enumerate(required.items()):  # those with defaults come behind them
        given = [call.given(name, place if name in by_place else len(call.by_place)) for call in calls]
        if value := _constant(annotation, given):
            values[name] = value
    return values


def required_parameters(function: Function) -> dict[str, ast.expr | None]:
    """The names of the parameters that calls have to give, in their order, to the annotations."""
    listed, optional = function.args, {name for name, _ in _defaults(function.args)}
    every = {each.arg: each.annotation for each in (*listed.posonlyargs, *listed.args, *listed.kwonlyargs)}
    receiver = next(iter(every), "") if RECEIVERS.intersection([*every][:1]) else ""
    return {name: annotation for name, annotation in every.items() if name not in optional and name != receiver}


def _by_place(function: Function) -> set[str]:
    return {each.arg for each in (*function.args.posonlyargs, *function.args.args)}


def _defaults(parameters: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    """Names and defaults of the parameters that have one."""
    given = [*parameters.posonlyargs, *parameters.args]
    by_place = zip(given[len(given) - len(parameters.defaults) :], parameters.defaults, strict=True)
    by_name = zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)
    yield from ((each.arg, default) for each, default in (*by_place, *by_name) if default is not None)


class _Call(NamedTuple):
    """The literals that a call gives, as expressions; empty ones for other values."""

    by_place: tuple[str, ...]
    by_name: dict[str, str]

    def given(self, name: str, place: int) -> str:
        """The literal for a parameter; empty if there is none, or it is given something else."""
        return self.by_name.get(name) or (self.by_place[place] if place < len(self.by_place) else "")


def _calls(codebase: PythonCodebase, symbol: Symbol) -> list[_Call]:
    """The calls of functions of this name, or of the class whose constructor it is."""
    *outer, name = symbol.qualname.split(".")
    name = (outer[-1] if name == "__init__" and outer else name).partition("#")[0]
    called = re.compile(rb"(?<!\w)%s\s*\(" % re.escape(name.encode()))
    files = [module.source for _, module in sorted(codebase.modules.items()) if called.search(module.source)]
    return [call for source in files[:MAX_FILES] for call in _calls_by_name(source).get(name, ())]


@lru_cache(maxsize=256)
def _calls_by_name(source: bytes) -> dict[str, list[_Call]]:
    """Last name of each function that a file calls to its calls; empty if it cannot be parsed."""
    found: dict[str, list[_Call]] = defaultdict(list)
    tree = parsed(source)
    for node in ast.walk(tree) if tree is not None else ():
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                before = takewhile(lambda each: not isinstance(each, ast.Starred), node.args)
                named = {each.arg: _literal(each.value) for each in node.keywords if each.arg is not None}
                found[name].append(_Call(tuple(map(_literal, before)), named))
    return dict(found)


def _literal(value: ast.expr) -> str:
    match value:
        case ast.Constant() | ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
            return ast.unparse(value)
    return ""


def _constant(annotation: ast.expr | None, given: list[str]) -> str:
    """The constant for a parameter of which calls give these literals; empty if its type is not known."""
    literals = {*given}
    if len(given) > 1 and len(literals) == 1 and given[0]:
        return given[0]
    kinds = {type(ast.literal_eval(each)).__name__ for each in literals if each}
    told = ast.unparse(annotation).strip("'\"") if annotation is not None else ""
    kind = told or (next(iter(kinds)) if len(kinds) == 1 else "")
    values = _PLAIN.get(kind, ("", ""))
    return values[1] if literals == {values[0]} else values[0]
