"""What tests put in the place of names of the code, as their own code says: ``monkeypatch.setattr``, ``patch``."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from excise.extractors.python.analysis.ast_walk import last_name, texts_of

_REPLACING = frozenset({"setattr", "delattr", "object", "patch"})
"""Functions that replace a name for the duration of a test: of ``monkeypatch``, ``mock.patch`` and ``mocker``."""
NAMESPACES = frozenset({"Namespace", "SimpleNamespace"})
"""Classes of objects that have what they are given by keyword as attributes."""
Pair = tuple[str, str]
"""A dotted name as it is written, and the same with the module for which an alias stands."""


def replaced_names(
    parts: Sequence[ast.AST], own: set[str], aliases: Mapping[str, str], nodes: Mapping[str, ast.AST]
) -> Iterator[Pair]:
    """What a definition with these ``parts`` replaces, and the members of what takes its place.

    ``own`` are its variables and parameters, ``nodes`` the definitions of its file by their dotted names.
    """
    classes = {name: node for name, node in nodes.items() if isinstance(node, ast.ClassDef)}
    classes |= {part.name: part for part in parts if isinstance(part, ast.ClassDef)}
    for part in parts:
        if isinstance(part, ast.Call) and part.args and last_name(part.func) in _REPLACING:
            for written, target in _replaced(last_name(part.func), part, aliases):
                yield written, target
                for member in _members(_replacements(part, parts), parts, classes):
                    yield f"{written}.{member}", f"{target}.{member}"
    yield from _replaced_by_variable(parts)
    for written, target, value in _assigned_outside(parts, own, aliases):
        yield written, target
        yield from ((f"{written}.{member}", f"{target}.{member}") for member in _members([value], parts, classes))


def _replacements(call: ast.Call, parts: Sequence[ast.AST]) -> list[ast.expr]:
    """What a call may put in the place of a name: its arguments, and the variable of its ``with`` statement."""
    made = [each.optional_vars for each in parts if isinstance(each, ast.withitem) and each.context_expr is call]
    given = (*call.args[1:], *(keyword.value for keyword in call.keywords if keyword.arg == "new"), *made)
    return [each for each in given if each is not None]


def _members(
    values: Sequence[ast.expr], parts: Sequence[ast.AST], classes: Mapping[str, ast.ClassDef]
) -> Iterator[str]:
    """What the classes and namespaces among values define, but for special methods, and the attributes of values that a
    definition names."""
    variables = {each.id for each in values if isinstance(each, ast.Name)}
    for name in sorted(variables & classes.keys()):
        yield from (member for part in classes[name].body for member in _bound_by(part))
    for value in (*values, *assigned(parts, values)):
        if isinstance(value, ast.Call) and last_name(value.func) in NAMESPACES:
            yield from (keyword.arg for keyword in value.keywords if keyword.arg)
    for part in parts:
        match part:
            case ast.Attribute(value=ast.Name(id=name), attr=member) if name in variables and name not in classes:
                yield member


def _bound_by(part: ast.stmt) -> list[str]:
    """The names that a statement of a class binds, without special ones."""
    names = [part.name] if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) else []
    names += [each.id for each in getattr(part, "targets", ()) if isinstance(each, ast.Name)]
    return [name for name in names if not name.startswith("__")]


def _replaced(function: str, node: ast.Call, aliases: Mapping[str, str]) -> Iterator[Pair]:
    """The dotted name that a call replaces, as it is written and with the module for which an alias stands."""
    target = node.args[0]
    if isinstance(target, ast.Name | ast.Attribute) and function != "patch":
        first, dot, rest = ast.unparse(target).partition(".")
        owners = [f"{name}{dot}{rest}" for name in (first, aliases.get(first, first))]
        yield from ((f"{owners[0]}.{text}", f"{owners[1]}.{text}") for arg in node.args[1:2] for text in texts_of(arg))
    else:
        yield from ((text, text) for text in texts_of(target) if "." in text)


def _replaced_by_variable(parts: Sequence[ast.AST]) -> Iterator[Pair]:
    """The dotted names that calls of ``patch`` replace, where a variable of the definition has the name."""
    called = [part for part in parts if isinstance(part, ast.Call) and last_name(part.func) == "patch"]
    targets = [call.args[0] for call in called if call.args]
    yield from ((text, text) for value in assigned(parts, targets) for text in texts_of(value) if "." in text)


def _assigned_outside(
    parts: Sequence[ast.AST], own: set[str], aliases: Mapping[str, str]
) -> Iterator[tuple[str, str, ast.expr]]:
    """The attributes that are set on what a definition neither makes nor is given, with values: ``sys.stdout = x``."""
    for part in parts:
        match part:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=owner), attr=name)], value=value):
                if owner not in own:
                    yield f"{owner}.{name}", f"{aliases.get(owner, owner)}.{name}", value


def assigned(parts: Sequence[ast.AST], uses: Sequence[ast.expr]) -> Iterator[ast.expr]:
    """The values that assignments of a definition give the variables among ``uses``."""
    variables = {each.id for each in uses if isinstance(each, ast.Name)}
    for part in parts if variables else ():
        if isinstance(part, ast.Assign) and any(isinstance(t, ast.Name) and t.id in variables for t in part.targets):
            yield part.value
