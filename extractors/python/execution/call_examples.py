"""Recorded calls and their outcomes as lines of Python, for statements.

Values are nested lists that begin with a tag (``excise_values.py``).
"""

from __future__ import annotations

import ast
import base64
import datetime
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from excise.extractors.python.execution.compared_outcomes import CONTAINERS
from excise.extractors.python.execution.float_bits import float_of
from excise.protocols import MAX_EXAMPLE_CHARS

Node = list[Any]
MIN_ITEMS = 2
"""Number of items of a result from which on a part of them may be shown."""
_OPERATORS = {
    "__eq__": "==", "__ne__": "!=", "__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">=", "__add__": "+",
    "__sub__": "-", "__mul__": "*", "__truediv__": "/", "__floordiv__": "//", "__mod__": "%", "__and__": "&",
    "__or__": "|", "__xor__": "^", "__matmul__": "@",
}  # fmt: skip


_OF_TESTS = re.compile(r"(?:^|\.)(?:tests?|test_\w+|\w+_tests?|conftest)(?:\.|$)")
"""Names of modules with tests."""
_FORMS = {
    "__getitem__": "{}[{}]", "__setitem__": "{}[{}] = {}", "__delitem__": "del {}[{}]", "__contains__": "{1} in {0}",
    "__len__": "len({})", "__iter__": "iter({})", "__bool__": "bool({})", "__str__": "str({})", "__int__": "int({})",
    "__float__": "float({})", "__reversed__": "reversed({})", "__abs__": "abs({})", "__neg__": "-{}",
}  # fmt: skip
"""Special methods to how they are called."""


_TEXTS = frozenset({"__str__", "__repr__", "__format__"})
"""Special methods that give the text of an object, and leave it as it is."""


def example(call: str, outcome: str) -> str:
    """One line of Python with a call and, as a comment, its result or exception, and what it prints; empty if there is
    more than plain data.

    Of a long list, only its length and the first and last items are shown, or the first ones. Methods that give
    an object's text are not called before another one of them.
    """
    made, found = _without_reads(json.loads(call)), json.loads(outcome)
    if found.get("uneven"):
        return ""  # what made the object raised exceptions, which a line of code does not show
    try:
        line = _example(*_steps(made), made, found)
    except ValueError:
        return ""
    return f"{line}, and prints {found['printed']!r}" if line and found.get("printed") else line


def _without_reads(call: dict[str, Any]) -> dict[str, Any]:
    """A call of a special method that gives a text, without calls of such methods just before it."""
    receiver = call["args"][0] if call["kind"] == "method" and call["args"] else []
    if receiver[:1] != ["made"] or call["name"].rpartition(".")[2] not in _TEXTS:
        return call
    history = list(receiver[4])
    while history and history[-1][0] in _TEXTS:
        history.pop()
    return {**call, "args": [[*receiver[:4], history], *call["args"][1:]]}


_CUT = re.compile(r"\[:\d\]  # |; len\(y\), y\[")
"""What the line of a long list has."""
_OF_OBJECT = re.compile(r"  # (?:list|dict|set)\(x\) == ")
"""What the line of a call has that changes its object."""


def told_outcome(call: str, outcome: str) -> str:
    """What :func:`example` says of an outcome: all of it, or its result alone if the call may change its arguments.

    Empty if an item is left out, and if changes are all that there is to say.
    """
    line, made, found = example(call, outcome), json.loads(call), json.loads(outcome)
    if not line or _CUT.search(line):
        return ""
    if _leaves_arguments(made, found) or (_OF_OBJECT.search(line) and found["after"][1:] == made["args"][1:]):
        return outcome
    told = {key: found[key] for key in ("result", "printed") if key in found}
    return json.dumps(told) if found.get("result", ["c", None]) != ["c", None] else ""


def _leaves_arguments(made: dict[str, Any], found: dict[str, Any]) -> bool:
    """Whether a call is known to change none of its arguments."""
    return bool(found.get("kept")) or found.get("after", made["args"]) == made["args"]


_TELL_NOTHING = frozenset(
    {"SystemExit", "SystemExit(0)", "SystemExit(None)", "FileNotFoundError", "IsADirectoryError", "NotADirectoryError"}
)
"""How a program ends that has said elsewhere what it has to say, and what depends on the files where it runs."""


def _example(steps: list[str], asked: dict[str, Any], made: dict[str, Any], found: dict[str, Any]) -> str:
    """See :func:`example`; ``asked`` is the call ``made`` after the ``steps`` that make its object."""
    if "result" not in found:
        raised = _raised(found)
        return "" if raised in _TELL_NOTHING else f"{'; '.join([*steps, _call_text(asked)])}  # raises {raised}"
    kind, *content = found["result"]
    if kind == "it":
        items = f"list({_call_text(asked)})".replace("list(iter(x))", "list(x)")
        whole = _items_of_call("; ".join([*steps, items]), *content)
        return _shortened(whole, steps, items, content[0]) if content[1] == "end" else whole
    if found["result"] == ["c", None] and asked["kind"] not in {"class", "property"} and asked["args"]:
        after = found.get("after") or []
        if shown := _changed_object(made, asked, steps, after):
            return shown
        if found.get("kept"):
            is_statement = asked["name"].rpartition(".")[2] in {"__setitem__", "__delitem__"}
            return "" if is_statement else f"{'; '.join([*steps, _call_text(asked)])}  # None"
        return "" if steps else _change_text(asked, after)
    text = _call_text(asked)
    whole = f"{'; '.join([*steps, text])}  # {literal(found['result'])}"
    is_operator = asked["name"].rpartition(".")[2].startswith("__")  # a slice would be that of its last operand
    return _shortened(whole, steps, text, content[0]) if kind == "l" and not is_operator else whole


def _raised(outcome: dict[str, Any]) -> str:
    """The exception of an outcome; with a status that ends the process."""
    name = _qualname(outcome["raised"][0])
    said = outcome.get("said") or []
    return f"{name}({literal(said[0])})" if name == "SystemExit" and len(said) == 1 and said[0][0] in "ci" else name


def _items_of_call(call: str, nodes: Sequence[Node], end: str) -> str:
    """A call that returns an iterator: its items, and the exception that ends it; empty if they do not end."""
    if end == "more":
        return ""
    if end == "end":
        return f"{call}  # [{', '.join(map(literal, nodes))}]"
    return f"{call}  # raises {_qualname(end)}" + (f" after {len(nodes)} items" if nodes else "")


def _shortened(whole: str, steps: Sequence[str], call: str, nodes: Sequence[Node]) -> str:
    """An example of a call that returns several items; of a long list the first and the last ones, or the first."""
    if len(whole) <= MAX_EXAMPLE_CHARS or len(nodes) < MIN_ITEMS:
        return whole
    lines: list[str] = []
    for number in (n for n in (3, 2, 1) if 2 * n < len(nodes)):
        first, last = (f"[{', '.join(map(literal, part))}]" for part in (nodes[:number], nodes[-number:]))
        lines += [f"y = {call}; len(y), y[:{number}], y[-{number}:]  # ({len(nodes)}, {first}, {last})"]
    lines += [f"{call}[:{number}]  # [{', '.join(map(literal, nodes[:number]))}]" for number in (3, 2, 1)]
    made = ("; ".join([*steps, line]) for line in lines)
    return next((line for line in made if len(line) <= MAX_EXAMPLE_CHARS), whole)


def _steps(call: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """The statements that make the object of a method with a history, and the call with a name in its place."""
    if call["kind"] == "result" and call["before"]:
        calls = [f"x({', '.join([*map(literal, args), *_keywords(named)])})" for args, named in call["before"]]
        return [f"x = {_call_text(call['made'])}", *calls], {**call, "kind": "function", "name": ":x", "before": []}
    made = call["args"][0] if call["kind"] in {"method", "property"} and call["args"] else []
    if made[:1] != ["made"] or not made[4]:
        return [], call
    calls = [f"{name}({', '.join([*map(literal, args), *_keywords(named)])})" for name, args, named in made[4]]
    steps = [f"x = {_called(*made[1:4])}", *(f"x.{each}".replace("x.__call__(", "x(", 1) for each in calls)]
    return steps, {**call, "args": [["name", "x"], *call["args"][1:]]}


def _change_text(call: dict[str, Any], after: Sequence[Node]) -> str:
    """A call without a result: what it makes of the object or of the argument that it changes.

    Raises :class:`ValueError` if it changes, or may have changed, several.
    """
    pairs = list(enumerate(zip(call["args"], after, strict=False)))
    if call["kind"] == "method" and after and after[0][:1] == ["seen"] and not any(after[0][2:]):
        pairs = pairs[1:]  # the object has nothing that others see
    texts = ((place, literal(before), literal(now)) for place, (before, now) in pairs)
    changed = [(place, before, now) for place, before, now in texts if before != now]
    if not changed:
        return f"{_call_text(call)}  # None"
    if len(changed) > 1:
        raise ValueError("several")
    place, before, now = changed[0]
    named = {**call, "args": [*call["args"][:place], ["name", "x"], *call["args"][place + 1 :]]}
    return f"x = {before}; {_call_text(named)}  # x == {now}"


def _changed_object(made: dict[str, Any], asked: dict[str, Any], steps: Sequence[str], after: Sequence[Node]) -> str:
    """A call of a method without a result: what its object holds afterwards; empty if it has no items.

    ``asked`` is the call with a name for an object with a history, whose ``steps`` these are.
    """
    receiver, now = made["args"][0], after[0] if after else []
    if asked["kind"] != "method" or receiver[:1] != ["made"] or now[:1] != ["seen"] or not now[2:]:
        return ""
    kind, nodes = (now[2][0], now[2][1:2]) if isinstance(now[2], list) and now[2] else ("", [])
    holder = {"d": "dict(x)", "l": "list(x)", "S": "set(x)"}.get(kind, "")
    is_hashable = kind != "S" or not any(node[0] in CONTAINERS for listed in nodes for node in listed)
    if not holder or not nodes or not is_hashable:
        return ""
    first = list(steps) or [f"x = {literal(receiver)}"]
    call = _call_text({**asked, "args": [["name", "x"], *asked["args"][1:]]})
    return f"{'; '.join([*first, call])}  # {holder} == {literal([kind, *nodes])}"


def _made_text(call: dict[str, Any]) -> str:
    """A call whose result is called."""
    text = _call_text(call)
    return f"({text})" if call["name"].rpartition(".")[2].startswith("__") else text


def _call_text(call: dict[str, Any]) -> str:
    if call.get("before"):
        raise ValueError("before")
    name = _made_text(call["made"]) if call["kind"] == "result" else call["name"].partition(":")[2]
    args = [literal(node) for node in call["args"]]
    if call["kind"] == "property":
        return f"{args[0]}.{name.rpartition('.')[2]}"
    if call["kind"] == "method":
        method = name.rpartition(".")[2]
        if method in _OPERATORS and len(args) == 2 and not call["kwargs"]:
            return f"{args[0]} {_OPERATORS[method]} {args[1]}"
        form = _FORMS.get(method, "")
        if form and not call["kwargs"] and len(args) == form.count("{"):
            return form.format(*args)
        name, args = args[0] if method == "__call__" else f"{args[0]}.{method}", args[1:]
    return f"{name}({', '.join([*args, *_keywords(call['kwargs'])])})"


def _keywords(pairs: Sequence[Any]) -> list[str]:
    return [f"{key}={literal(node)}" for key, node in pairs]


def literal(node: Node) -> str:
    """A value as Python code. Raises :class:`ValueError` for values that no short literal or name stands for."""
    if node[0] not in _LITERALS:
        raise ValueError(node[0])
    return _LITERALS[node[0]](*node[1:])


def _called(name: str, nodes: Sequence[Node], keywords: Sequence[Any] = ()) -> str:
    return f"{_qualname(name)}({', '.join([*map(literal, nodes), *_keywords(keywords)])})"


def _made(name: str, nodes: Sequence[Node], keywords: Sequence[Any], history: Sequence[Any]) -> str:
    if history:
        raise ValueError("made")
    return _called(name, nodes, keywords)


def _time(name: str, nodes: Sequence[Node]) -> object:
    """A value of :mod:`datetime`, from the arguments by which it is pickled."""
    values = [_time(*node[1:]) if node[0] == "new" else ast.literal_eval(literal(node)) for node in nodes]
    try:
        return getattr(datetime, _qualname(name))(*values)
    except (AttributeError, TypeError, OverflowError) as error:
        raise ValueError(name) from error


def _stream(kind: str, node: Node, place: int, attributes: Sequence[Any] = ()) -> str:
    """A stream in memory that is read from its beginning."""
    if place or attributes:
        raise ValueError("io")
    return f"{kind}({literal(node)})"


def _pattern(pattern: Node, flags: int) -> str:
    """A compiled pattern without flags."""
    if flags != (int(re.UNICODE) if pattern[0] == "s" else 0):
        raise ValueError("re")
    return f"re.compile({literal(pattern)})"


def _match(pattern: Node, how: str | int, text: Node, first: Node, last: Node) -> str:
    """A match that a search of a whole text finds."""
    whole = [["i", "0"], ["i", str(len(text[1]))]]
    if not isinstance(how, str) or text[0] != "s" or [first, last] != whole:
        raise ValueError("ma")
    return f"{literal(pattern)}.{how}({literal(text)})"


def _qualname(name: str) -> str:
    """The name of a class or function in its module. Raises :class:`ValueError` for those of tests, which no reader
    has."""
    module, _, qualname = name.partition(":")
    if _OF_TESTS.search(module):
        raise ValueError(name)
    return qualname


def _items_text(tag: str, items: list[str]) -> str:
    inside = ", ".join(dict.fromkeys(items) if tag in {"S", "F"} else items)
    if tag == "t":
        return f"({inside},)" if len(items) == 1 else f"({inside})"
    if tag in {"S", "F"}:
        plain = f"{{{inside}}}" if items else "set()"
        return plain if tag == "S" else f"frozenset({plain if items else ''})"
    return f"iter([{inside}])" if tag == "it" else f"[{inside}]"


_LITERALS: dict[str, Callable[..., str]] = {
    "c": repr,
    "i": lambda text: str(int(text, 0)),
    "f": lambda bits: repr(float("nan") if bits == "nan" else float_of(bits)),
    "s": repr,
    "b": lambda text: repr(base64.b64decode(text)),
    **{tag: lambda nodes, *_, tag=tag: _items_text(tag, [literal(node) for node in nodes]) for tag in "ltSF"},
    "it": lambda nodes, *_: _items_text("it", [literal(node) for node in nodes]),
    "io": _stream,
    "d": lambda pairs: "{" + ", ".join(f"{literal(key)}: {literal(value)}" for key, value in pairs) + "}",
    "re": _pattern,
    "ma": _match,
    "e": lambda name, member: f"{_qualname(name)}.{member}",
    "ref": _qualname,
    "nt": _called,
    "new": lambda name, nodes: repr(_time(name, nodes)),
    "n": lambda name, text: f"{_qualname(name)}({text!r})",
    "made": _made,
    "name": str,
}
"""Tag of a value to the function that gives its code from the rest of the node."""
