"""The same tests with wrong expectations: honest code fails them, and who passes them is not asked by any assertion.

Of an ``assert … == expected`` the expected side is made wrong: in place where it is written out, where it stands in
``parametrize`` there, else by wrapping it. A block that must raise is emptied, and a test with neither gets a last
statement that fails. The names, the number and the parameters of tests stay, so that no list of tests tells a process
which of the two files it runs; the text of the file, where it is found in memory, does.
"""

from __future__ import annotations

import ast
import secrets
from collections.abc import Iterator, Sequence
from typing import TypeGuard

_OTHER = "_excise_stands_for_a_name_"
"""Replaced, in the finished text, by a name that is made up for every file; nobody's code has it in a name."""
_HELPER = f"""
def {_OTHER}(value):
    kind = type(value)
    if kind is bool or value is None:
        return "no" if value else "yes"
    if kind in (int, float, complex):
        return value + 1 if value + 1 != value else 0
    if kind in (str, bytes):
        return value + ("~" if kind is str else b"~")
    if kind in (list, tuple):
        return kind(({_OTHER}(value[0]), *value[1:])) if value else kind((0,))
    if kind is dict:
        first = next(iter(value), "~")
        return {{**value, first: {_OTHER}(value[first]) if value else 0}}
    if kind in (set, frozenset):
        return value | {{"~"}}

    class Other:
        __hash__ = None

        def __eq__(self, other):
            plain = other is None or type(other).__module__ == "builtins"
            return bool(value == ({_OTHER}(other) if plain else ("~", other)))

        def __ne__(self, other):
            return not self == other

    return Other()
"""
"""Of lists and dicts one part is another, since what is equal to everything may be such a part. Values of other types,
subclasses of the plain ones too, are asked whether they equal what is wrong: what is equal to everything says yes,
whichever side of ``==`` it stands on."""
_RAISES = frozenset({"raises", "assertRaises", "assertRaisesRegex", "warns", "assertWarns", "assertWarnsRegex"})
_EQUALS = frozenset({"assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertTupleEqual",
                     "assertSetEqual", "assertSequenceEqual", "assertMultiLineEqual", "assertCountEqual"})  # fmt: skip
_NAMES = ("plain", "prepared", "value", "given", "made", "same", "sorted", "item")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def mirrored(source: bytes, functions: Sequence[str]) -> bytes | None:
    """The file with wrong expectations in ``functions`` (``name`` or ``Class::name``); ``None`` without any of them."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    wanted = set(functions)
    found = [function for name, function in _functions(tree, "") if name in wanted]
    if not found:
        return None
    for function in found:
        _turn(function)
    place = 0
    for place, statement in enumerate(tree.body):  # noqa: B007
        docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not docstring and not (isinstance(statement, ast.ImportFrom) and statement.module == "__future__"):
            break
    tree.body[place:place] = ast.parse(_HELPER).body
    name = f"_{secrets.choice(_NAMES)}_{secrets.token_hex(2)}"
    return ast.unparse(ast.fix_missing_locations(tree)).replace(_OTHER, name).encode()


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, Function]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            yield prefix + child.name, child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}::")
        elif isinstance(child, ast.If | ast.Try | ast.With):
            yield from _functions(child, prefix)


def _turn(function: Function) -> None:
    """Make one test expect what is wrong."""
    columns = _parameters(function)
    turned = False
    for node in ast.walk(function):
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq):
            if _in_assert(function, node):
                if _is_expected(node.left, node.comparators[0]):
                    node.left = _wrong(node.left, columns)
                else:
                    node.comparators[0] = _wrong(node.comparators[0], columns)
                turned = True
        elif isinstance(node, ast.Call) and _is_equality(node):
            side = 0 if _is_expected(node.args[0], node.args[1]) else 1
            node.args[side] = _wrong(node.args[side], columns)
            turned = True
    blocks = [] if turned else [node for node in ast.walk(function) if _expects_exception(node)]
    for block in blocks:
        block.body = [ast.Pass()]
    if not turned and not blocks:
        function.body.append(ast.parse("assert not 'reached'").body[0])


def _expects_exception(node: ast.AST) -> TypeGuard[ast.With]:
    """A block that must raise: without its body it does not, and what takes that says nothing."""
    calls = [item.context_expr for item in node.items] if isinstance(node, ast.With) else []
    functions = [call.func for call in calls if isinstance(call, ast.Call)]
    names = {f.attr for f in functions if isinstance(f, ast.Attribute)}
    names |= {f.id for f in functions if isinstance(f, ast.Name)}
    return bool(names & _RAISES)


def _is_expected(first: ast.expr, second: ast.expr) -> bool:
    """Of two sides, the first is what is expected: written out, or alone in calling nothing."""
    if _literal(first) or _literal(second):
        return _literal(first) and not _literal(second)
    return not _calls(first) and _calls(second)


def _calls(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Call | ast.Await) for part in ast.walk(node))


def _is_equality(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in _EQUALS and len(call.args) >= 2


def _in_assert(function: Function, compare: ast.Compare) -> bool:
    return any(isinstance(node, ast.Assert) and node.test is compare for node in ast.walk(function))


def _literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _wrong(node: ast.expr, columns: dict[str, list[tuple[list[ast.expr], int]]]) -> ast.expr:
    if _literal(node):
        return _other_literal(node)
    if isinstance(node, ast.Name) and columns.get(node.id):
        for row, index in columns.pop(node.id):
            row[index] = _other_literal(row[index]) if _literal(row[index]) else _wrapped(row[index])
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
    return ast.Call(func=ast.Name(_OTHER, ast.Load()), args=[node], keywords=[])


def _parameters(function: Function) -> dict[str, list[tuple[list[ast.expr], int]]]:
    """Parameter to the places where its values are written in ``parametrize``."""
    columns: dict[str, list[tuple[list[ast.expr], int]]] = {}
    for call in function.decorator_list:
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
            continue
        has_ids = any(keyword.arg == "ids" for keyword in call.keywords)
        if call.func.attr != "parametrize" or len(call.args) < 2 or not has_ids:
            continue  # ids made of the values would change with them
        try:
            said = ast.literal_eval(call.args[0])
        except ValueError:
            continue
        names = [name.strip() for name in said.split(",")] if isinstance(said, str) else list(said)
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
