"""Helpers that check something, put in place of their calls, so that the tests which call them can be divided."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from excise.extractors.python.analysis.ast_walk import copied, walk
from excise.extractors.python.lifting.expected_values import Function, called, is_literal, parts_of

MAX_INLINED = 40
"""Maximum number of calls in one test that are replaced."""
_OWN = "self"


@dataclass(frozen=True, slots=True)
class Helper:
    """A function of a test file whose body can stand in place of a call."""

    name: str
    """Its name."""
    body: tuple[ast.stmt, ...]
    """Its statements without the docstring; a ``return`` can only be the last one."""
    parameters: tuple[str, ...]
    """Names of its parameters, without ``self``."""
    defaults: Mapping[str, ast.expr]
    """Literal default values."""
    own: frozenset[str]
    """Names that it binds, its parameters included."""
    stored: frozenset[str]
    """Names that it assigns."""
    is_method: bool
    """Whether it is called as a method of ``self``."""

    @classmethod
    def of(cls, function: Function, *, is_method: bool) -> Helper | None:
        """The function as a helper; ``None`` if its body cannot stand in place of a call."""
        arguments = function.args
        positional = [*arguments.posonlyargs, *arguments.args]
        names = [each.arg for each in (*positional, *arguments.kwonlyargs)]
        keywords = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        pairs = [
            *zip(reversed(positional), reversed(arguments.defaults), strict=False),
            *((each, value) for each, value in keywords if value is not None),
        ]
        body = function.body[1:] if ast.get_docstring(function) is not None else function.body
        is_static = [ast.unparse(each) for each in function.decorator_list] == ["staticmethod"]
        if (
            isinstance(function, ast.AsyncFunctionDef)
            or arguments.vararg
            or arguments.kwarg
            or (function.decorator_list and not is_static)
            or (is_method and not is_static and names[:1] != [_OWN])
            or not all(is_literal(value) for _, value in pairs)
            or not _can_stand_in_place(body, function.name)
        ):
            return None
        stored = frozenset(_bound_in(body))
        return cls(
            name=function.name,
            body=tuple(body),
            parameters=tuple(name for name in names if name != _OWN),
            defaults={each.arg: value for each, value in pairs},
            own=(stored | set(names)) - {_OWN},
            stored=stored,
            is_method=is_method,
        )


def _can_stand_in_place(body: Sequence[ast.stmt], name: str) -> bool:
    """Whether the statements of the function ``name`` mean the same outside it: it returns at its end, if at all."""
    elsewhere = (ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal, ast.NamedExpr)
    nested = {id(part) for each in parts_of(body) if isinstance(each, Function | ast.Lambda) for part in walk(each)}
    return not any(
        isinstance(part, elsewhere)
        or (isinstance(part, ast.Return) and part is not body[-1] and id(part) not in nested)
        or (isinstance(part, ast.Call) and called(part) == name)
        for part in parts_of(body)
    )


def _bound_in(body: Collection[ast.stmt]) -> Iterator[str]:
    for part in parts_of(body):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store | ast.Del):
            yield part.id
        elif isinstance(part, ast.arg):
            yield part.arg
        elif isinstance(part, Function | ast.ClassDef | ast.ExceptHandler) and part.name:
            yield part.name
        elif isinstance(part, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in part.names)


def find_helpers(tree: ast.Module, checking: Collection[str]) -> dict[str, Helper]:
    """The helpers among the functions ``checking`` of a test file; of equal names, none."""
    found: dict[str, Helper | None] = {}
    owners: list[ast.Module | ast.ClassDef] = [tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))]
    for owner in owners:
        for function in owner.body:
            if isinstance(function, Function) and function.name in checking:
                is_known = function.name in found
                helper = Helper.of(function, is_method=isinstance(owner, ast.ClassDef))
                found[function.name] = None if is_known else helper
    return {name: helper for name, helper in found.items() if helper is not None}


def inline_helpers(function: Function, helpers: Mapping[str, Helper]) -> None:
    """Put the bodies of helpers in place of the statements of a test that call them."""
    if helpers:
        _Inliner(function, helpers).block(function.body)


class _Inliner:
    """Replaces calls in the blocks of one test."""

    def __init__(self, function: Function, helpers: Mapping[str, Helper]) -> None:
        self.helpers = helpers
        self.taken = {*_bound_in([function])} - {function.name, _OWN}
        self.number = 0

    def block(self, statements: list[ast.stmt]) -> None:
        """Replace the calls among the statements of a block, and in what they are replaced by."""
        done: list[ast.stmt] = []
        left = list(reversed(statements))
        while left:
            statement = left.pop()
            made = self._replaced(statement) if self.number < MAX_INLINED else None
            if made is not None:
                left += reversed(made)
                continue
            for name in ("body", "orelse", "finalbody"):
                if isinstance(getattr(statement, name, None), list):
                    self.block(getattr(statement, name))
            for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
                self.block(part.body)
            done.append(statement)
        statements[:] = done

    def _replaced(self, statement: ast.stmt) -> list[ast.stmt] | None:
        """The statements in place of one that calls a helper; ``None`` for others."""
        call = statement.value if isinstance(statement, ast.Expr | ast.Assign) else None
        helper = self._helper_of(call) if isinstance(call, ast.Call) else None
        if helper is None or not isinstance(call, ast.Call):
            return None
        given = _arguments(helper, call)
        names = {part.id for part in parts_of(helper.body) if isinstance(part, ast.Name)}
        if given is None or (names - helper.own) & self.taken:
            return None
        self.number += 1
        renamed = {name: f"{name}_{helper.name}_{self.number}" for name in helper.own}
        replaced: dict[str, ast.expr] = {}
        made: list[ast.stmt] = []
        for name, value in given.items():
            if isinstance(value, ast.Name | ast.Constant) and name not in helper.stored:
                replaced[name] = value
            else:
                made.append(ast.Assign([ast.Name(renamed[name], ast.Store())], copied(value)))
        renaming = _Renaming(renamed, replaced)
        body = [renaming.visit(copied(each)) for each in helper.body]
        result: ast.expr = ast.Constant(None)
        if body and isinstance(body[-1], ast.Return):
            result = body.pop().value or result
        made += body
        if isinstance(statement, ast.Assign):
            made.append(ast.Assign(statement.targets, result))
        elif not isinstance(result, ast.Constant):
            made.append(ast.Expr(result))
        self.taken |= set(renamed.values())
        for each in parts_of(made):
            if isinstance(each, ast.stmt | ast.expr):
                ast.copy_location(each, statement)
        return made

    def _helper_of(self, call: ast.Call) -> Helper | None:
        function = call.func
        helper = self.helpers.get(called(call))
        if helper is None or helper.name in self.taken:
            return None
        own = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == _OWN
        return helper if (own if helper.is_method else isinstance(function, ast.Name)) else None


def _arguments(helper: Helper, call: ast.Call) -> dict[str, ast.expr] | None:
    """Values of a helper's parameters in a call, in the order of evaluation; ``None`` if the call does not say."""
    if any(isinstance(each, ast.Starred) for each in call.args) or len(call.args) > len(helper.parameters):
        return None
    given = dict(zip(helper.parameters, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg is None or keyword.arg in given or keyword.arg not in helper.parameters:
            return None
        given[keyword.arg] = keyword.value
    given |= {
        name: helper.defaults[name] for name in helper.parameters if name not in given and name in helper.defaults
    }
    return given if given.keys() == set(helper.parameters) else None


class _Renaming(ast.NodeTransformer):
    """Gives a helper's names other ones, and parameters the values that stand for them."""

    def __init__(self, renamed: Mapping[str, str], replaced: Mapping[str, ast.expr]) -> None:
        self.renamed = renamed
        self.replaced = replaced

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A name that is read, or assigned."""
        if node.id in self.replaced:
            return copied(self.replaced[node.id])
        return ast.Name(self.renamed.get(node.id, node.id), node.ctx)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """A node that binds a name in another way."""
        for field in ("arg", "name", "asname"):
            name = getattr(node, field, None)
            if isinstance(name, str) and name in self.renamed and not isinstance(node, ast.keyword | ast.alias):
                setattr(node, field, self.renamed[name])
        if isinstance(node, ast.alias):
            bound = node.asname or node.name.partition(".")[0]
            node.asname = self.renamed.get(bound, bound) if "." not in node.name or node.asname else node.asname
        return super().generic_visit(node)
