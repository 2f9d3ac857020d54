"""The one value that a parameter always has in a lesser answer: its default, or what its calls and its type suggest."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

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
    calls, by_place = list(_calls(codebase, symbol)), _by_place(function)
    for place, (name, annotation) in enumerate(required.items()):  # those with defaults come behind them
        given = [_given(call, name, place if name in by_place else len(call.args)) for call in calls]
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


def _calls(codebase: PythonCodebase, symbol: Symbol) -> Iterator[ast.Call]:
    """The calls of functions of this name, or of the class whose constructor it is."""
    *outer, name = symbol.qualname.split(".")
    name = (outer[-1] if name == "__init__" and outer else name).partition("#")[0]
    called = re.compile(rb"(?<!\w)%s\s*\(" % re.escape(name.encode()))
    files = [module.source for _, module in sorted(codebase.modules.items()) if called.search(module.source)]
    for source in files[:MAX_FILES]:
        tree = parsed(source)
        for node in ast.walk(tree) if tree is not None else ():
            match node:
                case ast.Call(func=ast.Name(id=found) | ast.Attribute(attr=found)) if found == name:
                    yield node


def _given(call: ast.Call, name: str, place: int) -> str:
    """The literal that a call gives for a parameter, as an expression; empty if it gives something else."""
    by_place = call.args[place] if place < len(call.args) else None
    if any(isinstance(each, ast.Starred) for each in call.args[: place + 1]):
        return ""
    value = next((each.value for each in call.keywords if each.arg == name), by_place)
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
