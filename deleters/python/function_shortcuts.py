"""Shorter ways to pass tests than to write one of several Python functions again: each is tried as its body.

One is the body of the function beside it with the same parameters whose name is most alike, others return a constant.
Trivial programs do both for all removed functions at once, which is enough where there is only one.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import NamedTuple

from excise.deleters.function_shortcuts import ALIKE
from excise.deleters.python.lacking_parts import OTHER_CODING, Places, own_statements, returned_values
from excise.deleters.python.log_statements import only_logs
from excise.extractors.python.analysis.ast_walk import first_line, walk
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.needs.test_uses import Function, function_of
from excise.protocols import LackingPart
from excise.types import Symbol, is_inside

MAX_CONSTANTS = 2
"""Maximum number of constants for a function."""
_EMPTY = {"int": "0", "float": "0.0", "str": "''", "bytes": "b''", "bool": "False", "list": "[]", "dict": "{}",
          "tuple": "()", "set": "set()", "List": "[]", "Dict": "{}", "Tuple": "()", "Set": "set()"}  # fmt: skip
"""Types of results to a value of them."""


def function_shortcuts(codebase: PythonCodebase, removed: Mapping[str, frozenset[int]]) -> Iterator[LackingPart]:
    """Those of the functions that were ``removed`` whole (path to their lines), in the order of the source.

    Constants come last: of each function one, then of each another. All are essential for public functions, constants
    if these return something.
    """
    gone: list[_Gone] = []
    for path, lines in sorted(removed.items()):
        module = codebase.modules.get(path)
        if module is None or codebase.is_test(path) or OTHER_CODING.match(module.source):
            continue
        functions = {s: node for s in module.symbols if s.is_callable and (node := function_of(module.source, s))}
        own = [each for each in functions if lines.issuperset(range(each.start_line, each.end_line + 1))]
        outer = [s for s in own if not any(s != o and is_inside(s.symbol_id, o.symbol_id) for o in own)]
        for symbol in (each for each in outer if _body(functions[each])):
            stayed = {s.name: n for s, n in functions.items() if s.holder_id == symbol.holder_id and s not in own}
            gone.append(_Gone(symbol, functions[symbol], module.source, stayed))
    for each in gone:
        if part := _body_beside(each, is_alone=len(gone) == 1):
            yield part
    for rank in range(MAX_CONSTANTS if len(gone) > 1 else 0):
        yield from (_constant(each, values[rank]) for each in gone if rank < len(values := _constants(each)))


class _Gone(NamedTuple):
    """A removed function, which has a body."""

    symbol: Symbol
    node: Function
    source: bytes
    """Of its file."""
    stayed: Mapping[str, Function]
    """The functions beside it that stayed."""

    def without(self, what: str, start: int, end: int, text: bytes, *, is_essential: bool = False) -> LackingPart:
        """The part that goes when a text stands in place of some bytes."""
        symbol = self.symbol
        return LackingPart(symbol.symbol_id, symbol.path, what, start, end, text, is_essential=is_essential)


def _body_beside(gone: _Gone, *, is_alone: bool) -> LackingPart | None:
    """The body of the function with the same parameters whose name is most alike; none of one that does the same, or,
    for a function that ``is_alone``, one that trivial programs call."""
    name, places = gone.node.name, Places(gone.source)
    alike = sorted(other for other, node in gone.stayed.items() if _shape(node) == _shape(gone.node))
    nearest = get_close_matches(name, alike, n=1, cutoff=ALIKE)
    is_called = not gone.node.decorator_list and get_close_matches(name, gone.stayed, n=1, cutoff=ALIKE) == nearest
    if not nearest or (is_alone and is_called):
        return None
    own, other = _body(gone.node), _body(gone.stayed[nearest[0]])
    is_same = list(map(ast.dump, own)) == list(map(ast.dump, other))
    if not other or is_same or nearest[0] in _names(own) or name in _names(other):
        return None
    start, first = _start(places, own[0]), _start(places, other[0])
    if any(_indent(gone.source, each).strip() for each in (start, first)):
        return None  # a body stands on the line of the head
    text = gone.source[first : places.end(other[-1])]
    is_essential = gone.symbol.is_public and not name.startswith("__")
    what = f"all that `{nearest[0]}` does not do"
    return gone.without(what, start, places.end(own[-1]), text, is_essential=is_essential)


def _constant(gone: _Gone, value: str) -> LackingPart:
    """The function returns a constant before all else."""
    start = _start(Places(gone.source), _body(gone.node)[0])
    indent = _indent(gone.source, start)
    text = "return" if gone.symbol.is_generator else f"return {value}"
    end = b"; " if indent.strip() else b"\n" + indent
    is_told = gone.symbol.is_generator or any(not _is_none(each) for each in returned_values(gone.node))
    is_essential = gone.symbol.is_public and is_told
    return gone.without(f"all but `{text}`", start, start, text.encode() + end, is_essential=is_essential)


def _constants(gone: _Gone) -> list[str]:
    """The constants that a lesser function may return: those that it returns sometimes, or one of its type."""
    body, marks = _body(gone.node), " ".join(gone.symbol.decorators)
    values = returned_values(gone.node)
    is_idle = all(isinstance(each, ast.Pass | ast.Raise) or only_logs(each) for each in body)
    is_constant = len(body) == 1 and bool(values) and isinstance(values[0], ast.Constant)
    is_special = gone.node.name.startswith("__") or "abstract" in marks or "overload" in marks or "setter" in marks
    if is_idle or is_constant or is_special:
        return []
    counts = Counter(ast.unparse(each) for each in values if _is_constant(each))
    if any(isinstance(each, ast.Return) and each.value is None for each in own_statements(body)):
        counts.update(["None"])
    told = ast.unparse(gone.node.returns).strip("'\"") if gone.node.returns is not None else ""
    kind = told.partition("[")[0].rpartition(".")[2]
    found = [value for value, _ in counts.most_common(MAX_CONSTANTS)]
    return found or [_EMPTY.get(kind, "None")]


def _start(places: Places, statement: ast.stmt) -> int:
    """The first byte of a statement, decorators included."""
    return places.line(first_line(statement)) + statement.col_offset


def _indent(source: bytes, start: int) -> bytes:
    """What stands before a byte on its line."""
    return source[source.rfind(b"\n", 0, start) + 1 : start]


def _is_constant(value: ast.expr) -> bool:
    """Whether an expression is a literal, or an empty display."""
    match value:
        case ast.Constant() | ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[]):
            return True
    return False


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _body(function: Function) -> list[ast.stmt]:
    """The statements behind the docstring."""
    return function.body[bool(ast.get_docstring(function, clean=False)) :]


def _names(body: list[ast.stmt]) -> set[str]:
    """The names and attributes that statements mention."""
    nodes = [node for each in body for node in walk(each)]
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def _shape(function: Function) -> list[str]:
    """The kind of a function, its decorators, parameters and result."""
    returns = ast.unparse(function.returns) if function.returns is not None else ""
    decorators = map(ast.unparse, function.decorator_list)
    return [type(function).__name__, *decorators, ast.unparse(function.args), returns]
