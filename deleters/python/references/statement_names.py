"""The names that statements bind and read; those of the functions, classes and comprehensions in them are theirs."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import NamedTuple, TypeGuard

from excise.extractors.python.analysis.ast_walk import child_nodes, walk

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
"""Statements that define something."""
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_SCOPES = (*DEFINITIONS, ast.Lambda)
"""What has names of its own, besides comprehensions."""
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Names(NamedTuple):
    """The names that statements bind, and those that they read."""

    bound: frozenset[str]
    read: frozenset[str]


def names_of(statement: ast.stmt, without: Collection[ast.stmt]) -> Names:
    """The names of a statement, without those of the statements in it that are gone."""
    is_simple = not hasattr(statement, "body") and not isinstance(statement, ast.Match) and statement not in without
    return all_names(statement) if not without or is_simple else _names_in(statement, without)


@lru_cache(maxsize=4096)
def all_names(statement: ast.stmt) -> Names:
    """The names of a statement."""
    return _names_in(statement, ())


def _names_in(statement: ast.stmt, without: Collection[ast.stmt]) -> Names:
    bound, read = set[str](), set[str]()
    nodes = list(_nodes(statement, without))
    own = {id(each) for node in nodes if isinstance(node, _COMPREHENSIONS) for each in _own_names(node)}
    own |= {id(each) for node in nodes if isinstance(node, _SCOPES) for each in _in_scope(node)}
    for node in nodes:
        if id(node) in own:
            continue
        match node:
            case ast.Name(id=name, ctx=ast.Load() | ast.Del()) | ast.AugAssign(target=ast.Name(id=name)):
                read.add(name)
            case ast.Nonlocal(names=names) | ast.Global(names=names):
                read.update(names)
            case _:
                bound |= _binding(node)
    return Names(frozenset(bound), frozenset(read))


def _own_names(comprehension: ast.expr) -> Iterator[ast.Name]:
    """The names in a comprehension that it binds itself, where they are bound and where they are read.

    What it iterates over first is outside of it, and so is what ``:=`` binds.
    """
    loops: list[ast.comprehension] = getattr(comprehension, "generators", [])
    outside = {id(each) for each in walk(loops[0].iter)} if loops else set()
    bound = {each.id for loop in loops for each in walk(loop.target) if is_bound(each)}
    named = (each for each in walk(comprehension) if isinstance(each, ast.Name) and id(each) not in outside)
    yield from (each for each in named if each.id in bound)


def _in_scope(scope: Definition | ast.Lambda) -> Iterator[ast.AST]:
    """The nodes in a function or class that bind names of its own, and in a function, those that read them."""
    body: list[ast.AST] = [scope.body] if isinstance(scope, ast.Lambda) else [*scope.body]
    inside = [node for each in body for node in walk(each)]
    outer = {name for node in inside if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
    if isinstance(scope, ast.ClassDef):
        yield from (node for node in inside if not outer.intersection(_binding(node)) and any(_binding(node)))
        return
    own = {node.arg for node in child_nodes(scope.args) if isinstance(node, ast.arg)}
    own = own.union({getattr(scope, "name", "")}, *map(_binding, _in_scope_itself(body))) - outer
    for node in inside:
        reads = {node.id} if isinstance(node, ast.Name) else _binding(node)
        if reads and reads <= own:
            yield node


def _in_scope_itself(body: list[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of a body, without those in the scopes in it; of comprehensions, what ``:=`` binds."""
    stack = [*body]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, _COMPREHENSIONS):
            yield from (each.target for each in walk(node) if isinstance(each, ast.NamedExpr))
        elif not isinstance(node, _SCOPES):
            stack += child_nodes(node)


def _binding(node: ast.AST) -> set[str]:
    """The names that a node itself binds."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.AugAssign(target=ast.Name(id=name)):
            return {name}
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return {each.asname or each.name.partition(".")[0] for each in aliases}
        case ast.MatchMapping(rest=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return {name}
        case ast.ExceptHandler(name=str(name)) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return {name}
        case ast.ClassDef(name=name):
            return {name}
    return set()


def is_bound(node: ast.AST) -> TypeGuard[ast.Name]:
    """Whether a node is a name that gets a value."""
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _nodes(statement: ast.stmt, without: Collection[ast.stmt]) -> Iterator[ast.AST]:
    stack: list[ast.AST] = [statement]
    while stack:
        node = stack.pop()
        if node not in without:
            yield node
            stack += child_nodes(node)
