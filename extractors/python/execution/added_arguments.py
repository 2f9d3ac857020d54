"""New calls with an argument that no test gives: they tell a solution that ignores a parameter; and without one that
all tests give.

The former is a recorded call with one argument more. Its key ``added`` names the parameter, so that its outcome can be
compared with that of the recorded one.
"""

from __future__ import annotations

import ast
import json
import random
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from excise.extractors.python.execution.float_bits import bits_of, float_of
from excise.protocols import Codebase
from excise.types import content_id, holders_of, name_in_file

NUMBER = re.compile(r"#\d+")
"""What tells definitions of one name apart."""
_KEEPING = frozenset({"abstractmethod", "abc.abstractmethod", "classmethod", "override", "staticmethod"})
"""Decorators that leave the parameters of a function as they are."""
Node = list[Any]
Call = dict[str, Any]
WITHOUT_RECEIVER = frozenset({"class", "classmethod"})
"""Kinds of calls whose arguments lack the first parameter."""
MAX_PARAMETERS = 6
"""Maximum number of parameters of one function that get arguments."""
VALUES = 3
"""Number of new calls for each of them."""
FAR = 100
"""What the last of these adds to an integer: code that counts the items of something has as many seldom."""
MAX_CHANGES = 10
"""How often another value than the default is asked for."""


class Parameter(NamedTuple):
    """A parameter with a default."""

    name: str
    """Its name."""
    place: float
    """Its number among those that may be given by position; infinite if it is none of them."""
    default: Node
    """The encoded default, if it is a number, a text, a truth value or ``None``; else empty."""
    model: Node
    """An encoded value of its type: the default, unless that is ``None``; empty if none is known."""


def parameters_of(codebase: Codebase, removed: Sequence[str]) -> dict[str, list[Parameter]]:
    """Qualified name of each function among the symbols ``removed``, and in them, to its parameters with defaults.

    Left out are functions of which there are several by this name, besides overloads, and those whose decorators may
    change the parameters.
    """
    gone, found = set(removed), dict[str, list[Parameter]]()
    counts = Counter[str]()
    for symbol in codebase.symbols().values():
        is_gone = not gone.isdisjoint((*holders_of(symbol.symbol_id), symbol.symbol_id))
        if is_gone and symbol.is_callable and not symbol.is_overload:
            name = NUMBER.sub("", name_in_file(symbol.symbol_id))
            counts[name] += 1
            if _KEEPING.issuperset(symbol.decorators):
                source = codebase.modules[symbol.path].source[symbol.body_start : symbol.end]
                own = _parameters(symbol.signature)
                found[name] = [_with_model(each, symbol.docstring, source.decode("utf-8", "replace")) for each in own]
    return {name: own for name, own in found.items() if counts[name] == 1}


def _parameters(signature: str) -> Iterator[Parameter]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd escapes in defaults
            (function,) = ast.parse(f"{signature}: ...").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    given = function.args
    first = len(given.posonlyargs)
    optional = len(given.args) - len(given.defaults)
    pairs = [
        (argument, float(first + number), given.defaults[number - optional])
        for number, argument in enumerate(given.args)
        if number >= max(0, optional)
    ]
    named = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    pairs += [(argument, float("inf"), default) for argument, default in named if default is not None]
    for argument, place, default in pairs:
        node = _encoded(default)
        model = _model(argument.annotation) if node == _NONE else node
        yield Parameter(argument.arg, place, node or [], model or [])


_NONE: Node = ["c", None]
_MODELS: Mapping[str, Node] = {"str": ["s", "a"], "int": ["i", "2"], "float": ["f", bits_of(1.5)], "bool": ["c", True]}
"""Names of types to encoded values of them."""


def _model(annotation: ast.expr | None) -> Node | None:
    """A value of the type that may also be ``None``: of ``int | None`` and ``Optional[int]``, in a text or not."""
    text = ast.unparse(annotation).strip("'\"") if annotation is not None else ""
    found = re.fullmatch(r"(\w+) \| None|None \| (\w+)|(?:\w+\.)?Optional\[(\w+)\]", text)
    return _MODELS.get(found[found.lastindex or 0]) if found else None


def _with_model(parameter: Parameter, docstring: str, body: str) -> Parameter:
    """A parameter that may be ``None``, with a value of the type that its documentation has for it, or of the kind that
    the body takes in place of ``None``."""
    if parameter.default != _NONE or parameter.model:
        return parameter
    name = re.escape(parameter.name)
    told = re.search(
        rf"(?m):param +(\w+) +{name}:|:type +{name}: *(\w+)|^ *\**`*{name}`*\** *(?:\(|: ?)(\w+)\b(?:,|\)|$| or )",
        docstring,
    )
    model = _MODELS.get(next(filter(None, told.groups()), "")) if told else None
    if model is None:
        taken = re.search(
            rf"\bif {name} is None:\s+{name} = (.+)|\b{name} = {name} or (.+)|\b{name} = (.+) if {name} is None else",
            body,
        )
        text = next(filter(None, taken.groups()), "").strip() if taken else ""
        model = ["i", "2"] if re.fullmatch(r"len\(.*\)", text) else _literal(text)
    return parameter._replace(model=_MODELS["str"] if model == ["s", ""] else model or [])


def _literal(text: str) -> Node | None:
    """The encoded value of a constant; ``None`` for anything else, and for ``None``."""
    try:
        found = _encoded(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return found if found != _NONE else None


def _encoded(default: ast.expr) -> Node | None:
    try:
        value = ast.literal_eval(default)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    if value is None or isinstance(value, bool):
        return ["c", value]
    if isinstance(value, int) and abs(value) < 1 << 63:
        return ["i", str(value)]
    if isinstance(value, float):
        return ["f", bits_of(value)]
    return ["s", value] if isinstance(value, str) else None


def with_added_arguments(
    by_name: Mapping[str, Sequence[Call]],
    given: Mapping[str, Sequence[Call]],
    parameters: Mapping[str, Sequence[Parameter]],
    change: Callable[[Node, random.Random], Node],
) -> list[Call]:
    """New calls, one for each parameter of each function before a second one for any; those without an argument too.

    ``by_name``: name of a function, with its module, to the recorded calls that new ones are made from; ``given`` has
    all calls. ``change`` makes another value of the same type. Where none is known, the arguments are those that
    calls of other functions give a parameter of the name.
    """
    passed: dict[str, dict[str, Node]] = defaultdict(dict)
    for key, value in (pair for calls in given.values() for call in calls for pair in call["kwargs"]):
        passed[key].setdefault(json.dumps(value), value)
    turns: dict[int, list[Call]] = {turn: [] for turn in range(VALUES)}
    for name, recorded in by_name.items():
        qualname = name.partition(":")[2]
        is_class = recorded[0]["kind"] == "class"
        known = parameters.get(f"{qualname}.__init__" if is_class else qualname, ())
        unused = [
            each
            for each in known
            if (each.model or each.name in passed) and not any(_gives_other(call, each) for call in given[name])
        ]
        turns[0] += without_arguments(recorded, known)
        for parameter in unused[:MAX_PARAMETERS]:
            rng = random.Random(content_id("added", name, parameter.name))
            free = sorted((call for call in recorded if not _gives(call, parameter)), key=lambda c: len(json.dumps(c)))
            bases = rng.sample(free[: 2 * VALUES], min(VALUES, len(free)))  # long ones cannot be shown
            others = [value for _, value in sorted(passed[parameter.name].items())] if not parameter.model else []
            for turn, base in enumerate(bases):
                made: Iterator[Node] = (change(parameter.model, rng) for _ in range(MAX_CHANGES))
                if turn == VALUES - 1 and parameter.model[:1] == ["i"]:
                    made = iter([["i", str(int(parameter.model[1], 0) + FAR)]])
                values = [*others[turn:], *others[:turn]] or made
                value = next((each for each in values if _is_usual(each, parameter)), None)
                if value is not None:
                    more = [*base["kwargs"], [parameter.name, value]]
                    turns[turn].append({**base, "kwargs": more, "added": parameter.name})
    return [call for turn in turns.values() for call in turn]


def without_arguments(recorded: Sequence[Call], parameters: Sequence[Parameter]) -> Iterator[Call]:
    """A call of one function without its last argument, if all recorded calls give it and it has a default."""
    left_out = recorded[0]["kind"] in WITHOUT_RECEIVER
    for parameter in parameters:
        if all(_gives(call, parameter) for call in recorded):
            shortest = min(recorded, key=lambda call: len(json.dumps(call)))
            number = len(shortest["args"]) + left_out
            if any(key == parameter.name for key, _ in shortest["kwargs"]):
                yield {**shortest, "kwargs": [pair for pair in shortest["kwargs"] if pair[0] != parameter.name]}
            elif number == parameter.place + 1:
                yield {**shortest, "args": shortest["args"][:-1]}


def _is_usual(value: Node, parameter: Parameter) -> bool:
    """Whether a value is another one than the default, and no number below zero where that is none."""
    return value != parameter.default and (_is_negative(parameter.model) or not _is_negative(value))


def _is_negative(node: Node) -> bool:
    if node[:1] == ["f"]:
        return node[1] != "nan" and float_of(node[1]) < 0
    return node[:1] == ["i"] and int(node[1], 0) < 0


def _gives(call: Call, parameter: Parameter) -> bool:
    """Whether a call gives a parameter an argument."""
    left_out = call["kind"] in WITHOUT_RECEIVER
    return len(call["args"]) + left_out > parameter.place or any(key == parameter.name for key, _ in call["kwargs"])


def _gives_other(call: Call, parameter: Parameter) -> bool:
    """Whether a call gives a parameter an argument that is not its default."""
    if not _gives(call, parameter):
        return False
    left_out = call["kind"] in WITHOUT_RECEIVER
    named = [value for key, value in call["kwargs"] if key == parameter.name]
    return bool((named or [call["args"][int(parameter.place) - left_out]])[0] != parameter.default)


def without_added(call: Call) -> Call:
    """The recorded call that a new one was made from; the call itself if no argument was added."""
    base = {key: value for key, value in call.items() if key != "added"}
    return {**base, "kwargs": [pair for pair in call["kwargs"] if pair[0] != call.get("added")]}


def canonical(call: Call) -> str:
    """A text that is the same for equal calls."""
    return json.dumps(call, sort_keys=True)
