"""New calls with values that the removed code itself names: what it compares an argument with, or looks for in it.

Branches that no test takes are seldom reached by values varied at random: code that asks ``if scheme is None`` or
``line.startswith('#')`` wants just these. Each new call is a recorded one with one argument changed. Values are nested
lists that begin with a tag (``excise_values.py``).
"""

from __future__ import annotations

import ast
import base64
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from excise.extractors.python.analysis.ast_walk import tree_of, walk
from excise.extractors.python.execution.added_arguments import NUMBER, WITHOUT_RECEIVER
from excise.extractors.python.execution.float_bits import bits_of
from excise.protocols import Codebase
from excise.types import Symbol, holders_of, name_in_file

Node = list[Any]
Call = dict[str, Any]
MAX_VALUES = 8
"""Maximum number of texts, and of numbers, of one function."""
MAX_LENGTH = 24
"""Length of a text of the code above which it is not used."""
MAX_OF_FUNCTION = 24
"""Maximum number of new calls of one function."""
_SEARCHES = frozenset(
    ["startswith", "endswith", "find", "rfind", "index", "rindex", "count", "split", "rsplit", "partition",
     "rpartition", "strip", "lstrip", "rstrip", "removeprefix", "removesuffix", "replace", "get", "pop"]
)  # fmt: skip
"""Methods that look for their first argument."""


class CodeValues(NamedTuple):
    """What a function's code compares with, and with which of its parameters."""

    parameters: tuple[str, ...] = ()
    """The names of parameters that may be given by position, in order."""
    texts: tuple[str, ...] = ()
    """Texts that it compares with, or looks for."""
    numbers: tuple[int, ...] = ()
    """Numbers that it compares with."""
    absent: frozenset[str] = frozenset()
    """Parameters that it compares with ``None``."""
    types: Mapping[str, tuple[str, ...]] = {}
    """Parameters to the names of types that it asks ``isinstance`` for."""


def values_of(codebase: Codebase, removed: Sequence[str]) -> dict[str, CodeValues]:
    """Qualified name of each function among the symbols ``removed``, and in them, to the values of its code.

    The texts and numbers of the others follow its own: an argument is passed on to helpers.
    """
    gone, found = set(removed), dict[str, CodeValues]()
    for symbol in codebase.symbols().values():
        is_gone = not gone.isdisjoint((*holders_of(symbol.symbol_id), symbol.symbol_id))
        if is_gone and symbol.is_callable and not symbol.is_overload:
            values = _values(codebase, symbol)
            if values is not None:
                found.setdefault(NUMBER.sub("", name_in_file(symbol.symbol_id)), values)
    texts = [text for values in found.values() for text in values.texts]
    numbers = [number for values in found.values() for number in values.numbers]
    return {
        name: values._replace(
            texts=tuple(dict.fromkeys([*values.texts, *texts]))[:MAX_VALUES],
            numbers=tuple(dict.fromkeys([*values.numbers, *numbers]))[:MAX_VALUES],
        )
        for name, values in found.items()
    }


def _values(codebase: Codebase, symbol: Symbol) -> CodeValues | None:
    """The values of one function's own code; ``None`` if it cannot be parsed."""
    function = tree_of(codebase.modules[symbol.path].source, symbol.start, symbol.end)
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    texts: dict[str, None] = {}
    numbers: dict[int, None] = {}
    absent: set[str] = set()
    types: dict[str, list[str]] = defaultdict(list)
    for node in walk(function):
        for value in _compared(node):
            if isinstance(value, str) and 0 < len(value) <= MAX_LENGTH:
                texts[value] = None
            elif isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 31:
                numbers[value] = None
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name):
            absent |= {
                node.left.id for each in node.comparators if isinstance(each, ast.Constant) and each.value is None
            }
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            for name, kind in _asked(node):
                types[name].append(kind)
    given = function.args
    return CodeValues(
        parameters=tuple(each.arg for each in (*given.posonlyargs, *given.args)),
        texts=tuple(texts),
        numbers=tuple(numbers),
        absent=frozenset(absent),
        types={name: tuple(kinds) for name, kinds in types.items()},
    )


def _compared(node: ast.AST) -> Iterator[object]:
    """The constants that a node compares something with, or looks for in it; and the keys of a table."""
    if isinstance(node, ast.Compare):
        for each in (node.left, *node.comparators):
            yield from _constants(each)
    elif isinstance(node, ast.MatchValue):
        yield from _constants(node.value)
    elif isinstance(node, ast.Dict):
        yield from (key.value for key in node.keys if isinstance(key, ast.Constant))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SEARCHES:
        for each in node.args[:1]:
            yield from _constants(each)


def _constants(node: ast.AST) -> Iterator[object]:
    if isinstance(node, ast.Constant):
        yield node.value
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        yield from (each.value for each in node.elts if isinstance(each, ast.Constant))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        yield -node.operand.value if isinstance(node.operand.value, int) else None


def _asked(call: ast.Call) -> Iterator[tuple[str, str]]:
    """The variable and each built-in type of ``isinstance(variable, types)``."""
    if len(call.args) == 2 and isinstance(call.args[0], ast.Name):
        kinds = call.args[1].elts if isinstance(call.args[1], ast.Tuple) else [call.args[1]]
        yield from ((call.args[0].id, kind.id) for kind in kinds if isinstance(kind, ast.Name))


def with_values_of_code(by_name: Mapping[str, Sequence[Call]], values: Mapping[str, CodeValues]) -> Iterator[Call]:
    """New calls, of all functions in turn; ``by_name``: name of a function, with its module, to recorded calls."""
    makers = []
    for name, recorded in by_name.items():
        qualname = name.partition(":")[2]
        is_class = recorded[0]["kind"] == "class"
        known = values.get(f"{qualname}.__init__" if is_class else qualname)
        if known is not None:
            by_length = sorted(recorded, key=lambda call: len(json.dumps(call)))
            first = len(by_length) // 3  # the shortest ones have empty arguments, the longest cannot be shown
            makers.append(_calls(by_length[first:] + by_length[:first], known))
    for turn in zip_longest(*makers):
        yield from filter(None, turn)


def _calls(recorded: Sequence[Call], values: CodeValues) -> Iterator[Call]:
    """New calls of one function, made from the first recorded ones that do: one of each parameter in turn."""
    makers: dict[str, Iterator[Call]] = {}
    for call in recorded:
        for name, key, number in _arguments(call, values.parameters):
            if name not in makers:
                makers[name] = _changed(call, name, key, number, values)
    found = (call for turn in zip_longest(*makers.values()) for call in turn if call is not None)
    for _, call in zip(range(MAX_OF_FUNCTION), found, strict=False):
        yield call


def _arguments(call: Call, parameters: Sequence[str]) -> Iterator[tuple[str, str, int]]:
    """Each parameter that a call gives an argument: its name, and the key and number of the argument in the call."""
    first = 1 if call["kind"] in {"method", "property"} else 0
    left_out = call["kind"] in WITHOUT_RECEIVER
    for number in range(first, len(call["args"])):
        if number + left_out < len(parameters):
            yield parameters[number + left_out], "args", number
    yield from ((name, "kwargs", number) for number, (name, _) in enumerate(call["kwargs"]))


def _changed(call: Call, name: str, key: str, number: int, values: CodeValues) -> Iterator[Call]:
    """The call with other values of one argument."""
    mine = call["args"][number] if key == "args" else call["kwargs"][number][1]
    for value in _others(mine, name, values):
        if value != mine:
            other = json.loads(json.dumps(call))
            other[key][number] = value if key == "args" else [name, value]
            yield other


def _others(node: Node, name: str, values: CodeValues) -> Iterator[Node]:
    """Values for a parameter in place of ``node``."""
    if name in values.absent:
        yield ["c", None]
    yield from filter(None, (_of_type(node, kind) for kind in values.types.get(name, ())))
    tag, value, *rest = node
    if tag == "i":
        yield from (["i", str(number + more)] for number in values.numbers for more in (0, 1, -1))
    elif tag == "f":
        yield from (["f", bits_of(float(number))] for number in values.numbers)
    elif tag in {"l", "t"} and value and value[0][0] == "i":
        yield from ([tag, [["i", str(number)], *value[1:]], *rest] for number in values.numbers)
    for text in values.texts:
        if tag == "s":
            others = (text, value + text, text + value, _inside(value, text))
            yield from (["s", each] for each in dict.fromkeys(others))
        elif tag in {"l", "t"} and value and value[0][0] == "s":
            yield from ([tag, items, *rest] for items in ([*value, ["s", text]], [["s", text], *value[1:]]))
        elif tag == "d" and value and value[0][0][0] == "s" and all(key != ["s", text] for key, _ in value):
            yield [tag, [*value, [["s", text], value[0][1]]], *rest]


def _inside(text: str, inner: str) -> str:
    """A text with another one in its middle."""
    middle = len(text) // 2
    return text[:middle] + inner + text[middle:]


_NUMBERS: Mapping[str, Node] = {"int": ["i", "2"], "float": ["f", bits_of(1.5)], "bool": ["c", True]}


def _of_type(node: Node, kind: str) -> Node | None:
    """A value of a built-in type, made of another one where that can be; ``None`` if none is known, or it is one."""
    tag = node[0]
    if kind == "bytes" and tag != "b":
        text = node[1] if tag == "s" else "a"
        return ["b", base64.b64encode(text.encode("utf-8", "replace")).decode()]
    if kind == "str" and tag != "s":
        return ["s", base64.b64decode(node[1]).decode("utf-8", "replace") if tag == "b" else "a"]
    if kind in {"list", "tuple"} and tag != kind[0]:
        return [kind[0], node[1] if tag in {"l", "t"} else [node]]
    made = _NUMBERS.get(kind)
    return made if made is not None and made[0] != tag else None
