"""Mirrored tests: tests with wrong expectations, which correct code fails. A solution that passes them cheats.

In ``assert … == expected`` the expected side is replaced by a wrong value: a literal is changed in place, also in
``parametrize``; any other expression is wrapped in a helper. A block that must raise is emptied. A test with neither
gets a failing statement at its end. Names, number and parameters of the tests stay, so that a process cannot tell the
two files apart by a list of tests, but only by the text of the file in memory.
"""

from __future__ import annotations

import ast
import secrets
from collections.abc import Iterator, Sequence
from typing import TypeGuard

from excise.extractors.python.analysis.ast_walk import child_nodes, is_literal, walk

_HELPER_NAME = "_excise_stands_for_a_name_"
"""Placeholder for the name of the helper, which is random in every file; no other code contains it."""
_HELPER = f"""
def {_HELPER_NAME}(value):
    kind = type(value)
    if kind is bool or value is None:
        return "no" if value else "yes"
    if kind in (int, float, complex):
        return value + 1 if value + 1 != value else 0
    if kind in (str, bytes):
        return value + ("~" if kind is str else b"~")
    if kind in (list, tuple):
        return kind(({_HELPER_NAME}(value[0]), *value[1:])) if value else kind((0,))
    if kind is dict:
        first = next(iter(value), "~")
        return {{**value, first: {_HELPER_NAME}(value[first]) if value else 0}}
    if kind in (set, frozenset):
        return value | {{"~"}}

    class Other:
        __hash__ = None

        def __eq__(self, other):
            plain = other is None or type(other).__module__ == "builtins"
            return bool(value == ({_HELPER_NAME}(other) if plain else ("~", other)))

        def __ne__(self, other):
            return not self == other

    return Other()
"""
"""The helper: returns a wrong value in place of ``value``.

Lists and dicts are changed in one item, as only that item may be an object that is equal to everything. For values of
other types (and subclasses of builtin ones) it returns an object that compares ``value`` with a wrong value: an object
that is equal to everything then still passes, on either side of ``==``.
"""
_RAISES = frozenset({"raises", "assertRaises", "assertRaisesRegex", "warns", "assertWarns", "assertWarnsRegex"})
_EQUALS = frozenset({"assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertTupleEqual",
                     "assertSetEqual", "assertSequenceEqual", "assertMultiLineEqual", "assertCountEqual"})  # fmt: skip
_NAMES = ("plain", "prepared", "value", "given", "made", "same", "sorted", "item")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def mirrored(source: bytes, functions: Sequence[str]) -> bytes | None:
    """The file with wrong expectations in ``functions`` (``name`` or ``Class::name``); ``None`` if it has none."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    wanted = set(functions)
    found = [function for name, function in _functions(tree, "") if name in wanted]
    if not found:
        return None
    for function in found:
        _invert(function)
    position = 0
    for position, statement in enumerate(tree.body):  # noqa: B007
        docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not docstring and not (isinstance(statement, ast.ImportFrom) and statement.module == "__future__"):
            break
    tree.body[position:position] = ast.parse(_HELPER).body
    name = f"_{secrets.choice(_NAMES)}_{secrets.token_hex(2)}"
    return ast.unparse(ast.fix_missing_locations(tree)).replace(_HELPER_NAME, name).encode()


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, Function]]:
    for child in child_nodes(node):
        if isinstance(child, Function):
            yield prefix + child.name, child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}::")
        elif isinstance(child, ast.If | ast.Try | ast.With):
            yield from _functions(child, prefix)


def _invert(function: Function) -> None:
    """Invert the expectations of one test."""
    columns = _parameters(function)
    inverted = False
    for node in walk(function):
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq):
            if _in_assert(function, node):
                if _is_expected(node.left, node.comparators[0]):
                    node.left = _wrong(node.left, columns)
                else:
                    node.comparators[0] = _wrong(node.comparators[0], columns)
                inverted = True
        elif isinstance(node, ast.Call) and _is_equality(node):
            side = 0 if _is_expected(node.args[0], node.args[1]) else 1
            node.args[side] = _wrong(node.args[side], columns)
            inverted = True
    blocks = [] if inverted else [node for node in walk(function) if _expects_exception(node)]
    for block in blocks:
        block.body = [ast.Pass()]
    if not inverted and not blocks:
        function.body.append(ast.parse("assert not 'reached'").body[0])


def _expects_exception(node: ast.AST) -> TypeGuard[ast.With]:
    """Whether a node is a ``with`` block that must raise."""
    calls = [item.context_expr for item in node.items] if isinstance(node, ast.With) else []
    functions = [call.func for call in calls if isinstance(call, ast.Call)]
    names = {f.attr for f in functions if isinstance(f, ast.Attribute)}
    names |= {f.id for f in functions if isinstance(f, ast.Name)}
    return bool(names & _RAISES)


def _is_expected(first: ast.expr, second: ast.expr) -> bool:
    """Whether the first of two sides is the expected one: the only literal, or the only one without a call."""
    if is_literal(first) or is_literal(second):
        return is_literal(first) and not is_literal(second)
    return not _calls(first) and _calls(second)


def _calls(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Call | ast.Await) for part in walk(node))


def _is_equality(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in _EQUALS and len(call.args) >= 2


def _in_assert(function: Function, compare: ast.Compare) -> bool:
    return any(isinstance(node, ast.Assert) and node.test is compare for node in walk(function))


def _wrong(node: ast.expr, columns: dict[str, list[tuple[list[ast.expr], int]]]) -> ast.expr:
    if is_literal(node):
        return _other_literal(node)
    if isinstance(node, ast.Name) and columns.get(node.id):
        for row, index in columns.pop(node.id):
            row[index] = _other_literal(row[index]) if is_literal(row[index]) else _wrapped(row[index])
        return node
    if isinstance(node, ast.Name) and node.id in columns:
        return node
    return _wrapped(node)


def _other_literal(node: ast.expr) -> ast.expr:
    value = ast.literal_eval(node)
    if isinstance(value, bool) or value is None:
        return ast.Constant("no" if value else "yes")
    if isinstance(value, int | float | complex):
        return ast.parse(repr(value + 1 if value + 1 != value else 0), mode="eval").body
    if isinstance(value, str | bytes):
        return ast.Constant(f"{value}~" if isinstance(value, str) else b"%b~" % value)
    if isinstance(node, ast.List | ast.Tuple) and node.elts:
        node.elts[0] = _other_literal(node.elts[0])
        return node
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        node.elts.append(ast.Constant("~"))
        return node
    return _wrapped(node)


def _wrapped(node: ast.expr) -> ast.expr:
    return ast.Call(func=ast.Name(_HELPER_NAME, ast.Load()), args=[node], keywords=[])


def _parameters(function: Function) -> dict[str, list[tuple[list[ast.expr], int]]]:
    """Parameter to the positions (list and index) of its values in ``parametrize``."""
    columns: dict[str, list[tuple[list[ast.expr], int]]] = {}
    for call in function.decorator_list:
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
            continue
        has_ids = any(keyword.arg == "ids" for keyword in call.keywords)
        if call.func.attr != "parametrize" or len(call.args) < 2 or not has_ids:
            continue  # the ids of the tests would change with the values
        try:
            names_value = ast.literal_eval(call.args[0])
        except ValueError:
            continue
        names = [name.strip() for name in names_value.split(",")] if isinstance(names_value, str) else list(names_value)
        rows = call.args[1]
        if not isinstance(rows, ast.List | ast.Tuple):
            continue
        for index, name in enumerate(names):
            places: list[tuple[list[ast.expr], int]] = []
            for number, row in enumerate(rows.elts):
                if len(names) == 1:
                    places.append((rows.elts, number))
                elif isinstance(row, ast.List | ast.Tuple) and index < len(row.elts):
                    places.append((row.elts, index))
            columns[name] = places
    return columns
