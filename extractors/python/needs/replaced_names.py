"""What tests put in the place of names of the code, as their own code says: ``monkeypatch.setattr``, ``patch``."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from excise.extractors.python.analysis.ast_walk import last_name, texts_of

_REPLACING = frozenset({"setattr", "delattr", "object", "patch"})
"""Functions that replace a name for the duration of a test: of ``monkeypatch``, ``mock.patch`` and ``mocker``."""
Pair = tuple[str, str]
"""A dotted name as it is written, and the same with the module for which an alias stands."""


def replaced_names(
    parts: Sequence[ast.AST], own: set[str], aliases: Mapping[str, str], nodes: Mapping[str, ast.AST]
) -> Iterator[Pair]:
    """What a definition with these ``parts`` replaces, and the members of a class of the tests that takes its place.

    ``own`` are its variables and parameters, ``nodes`` the definitions of its file by their dotted names.
    """
    classes = {name: node for name, node in nodes.items() if isinstance(node, ast.ClassDef)}
    classes |= {part.name: part for part in parts if isinstance(part, ast.ClassDef)}
    for part in parts:
        if isinstance(part, ast.Call) and part.args and last_name(part.func) in _REPLACING:
            for written, target in _replaced(last_name(part.func), part, aliases):
                yield written, target
                for member in _members(part, classes):
                    yield f"{written}.{member}", f"{target}.{member}"
    yield from _replaced_by_variable(parts)
    yield from _assigned_outside(parts, own, aliases)


def _members(call: ast.Call, classes: Mapping[str, ast.ClassDef]) -> Iterator[str]:
    """What the classes among the arguments of a call define, but for special methods."""
    for given in (*call.args[1:], *(keyword.value for keyword in call.keywords if keyword.arg == "new")):
        made = classes.get(given.id) if isinstance(given, ast.Name) else None
        for part in made.body if made is not None else ():
            names = [part.name] if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) else []
            names += [each.id for each in getattr(part, "targets", ()) if isinstance(each, ast.Name)]
            yield from (name for name in names if not name.startswith("__"))


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


def _assigned_outside(parts: Sequence[ast.AST], own: set[str], aliases: Mapping[str, str]) -> Iterator[Pair]:
    """The attributes that are set on what a definition neither makes nor is given: ``sys.stdout = stream``."""
    for part in parts:
        match part:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=owner), attr=name)]) if owner not in own:
                yield f"{owner}.{name}", f"{aliases.get(owner, owner)}.{name}"


def assigned(parts: Sequence[ast.AST], uses: Sequence[ast.expr]) -> Iterator[ast.expr]:
    """The values that assignments of a definition give the variables among ``uses``."""
    variables = {each.id for each in uses if isinstance(each, ast.Name)}
    for part in parts if variables else ():
        if isinstance(part, ast.Assign) and any(isinstance(t, ast.Name) and t.id in variables for t in part.targets):
            yield part.value
