"""New calls made from recorded ones: arguments exchanged between calls, and values varied within their types.

Values are nested lists that begin with a tag (``excise_values.py``). Only plain data is varied: numbers, texts, and the
items of containers. The choice depends on nothing but the recorded calls.
"""

from __future__ import annotations

import ast
import base64
import datetime
import json
import random
import re
import struct
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from excise.protocols import MAX_EXAMPLE_CHARS
from excise.types import content_id

MAX_VARIED = 30
"""Maximum number of new calls of one recording."""
MAX_TRIES = 300
"""Maximum number of variations that are looked at."""
EXCHANGED = 0.5
"""Share of the new calls that get an argument of another recorded call, where there is one; others get a new value."""
OTHER_DIGIT = 0.7
"""Share of the new texts with digits that get another digit."""
OTHER_WORD = 0.5
"""Share of the new texts with words that get a word of another recorded call: most formats stay valid, and the text
makes sense to readers."""
_WORD = re.compile(r"[^\W\d_]+")
MIN_ITEMS = 2
"""Number of items of a result from which on a part of them may be shown."""
MAX_CALL_CHARS = 4000
"""Length of a call's text above which it is not varied."""
Node = list[Any]
_CONTAINERS = frozenset({"l", "t", "S", "F", "q", "it"})


def varied(calls: Sequence[str]) -> list[str]:
    """At most :data:`MAX_VARIED` calls that are not among ``calls``, spread over the functions that these call."""
    rng = random.Random(content_id("varied", *calls))
    by_name: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for text in calls:
        call = json.loads(text)
        if len(text) <= MAX_CALL_CHARS:
            by_name[call["name"]].append(call)
    known = {_canonical(json.loads(text)) for text in calls}
    makers = [_variations(recorded, rng) for recorded in by_name.values()]
    found: list[str] = []
    for _ in range(MAX_TRIES):
        for maker in list(makers):
            call = next(maker, None)
            text = _canonical(call) if call is not None else ""
            if call is not None and text not in known and len(found) < MAX_VARIED:
                known.add(text)
                found.append(json.dumps(call))
        if len(found) >= MAX_VARIED:
            break
    return found


def _canonical(call: dict[str, Any]) -> str:
    return json.dumps(call, sort_keys=True)


def _variations(recorded: Sequence[dict[str, Any]], rng: random.Random) -> Iterator[dict[str, Any]]:
    """Endless variations of the calls of one function; none if they have no plain argument."""
    if not any(_places(call) for call in recorded):
        return
    words = sorted({word for call in recorded for text in _texts(call["args"]) for word in _WORD.findall(text)})
    while True:
        call = json.loads(json.dumps(rng.choice(recorded)))
        places = _places(call)
        if not places:
            continue
        owner, place, role = rng.choice(places)
        mine = owner[place]
        others = [other[n] for each in recorded for other, n, key in _places(each) if key == role]
        same = [node for node in others if node[0] == mine[0] and node != mine]
        if same and rng.random() < EXCHANGED:
            owner[place] = json.loads(json.dumps(rng.choice(same)))
        else:
            owner[place] = _changed(mine, words, rng)
        yield call


def _places(call: dict[str, Any]) -> list[tuple[list[Any], int, str]]:
    """(list, index, name) of each argument with plain data; of a method without one, of what its object is made by."""
    first = 1 if call["kind"] in {"method", "property"} else 0
    found = list(_plain_arguments(call["args"], call["kwargs"], first=first))
    made = call["args"][0] if first and call["args"] else []
    if not found and made[:1] == ["made"]:
        found += _plain_arguments(made[2], made[3], role="made ")
        for method, args, kwargs in made[4]:
            found += _plain_arguments(args, kwargs, role=f"{method} ")
    return found


def _plain_arguments(
    args: list[Any], kwargs: list[Any], *, first: int = 0, role: str = ""
) -> Iterator[tuple[list[Any], int, str]]:
    yield from ((args, n, f"{role}{n}") for n in range(first, len(args)) if _is_plain(args[n]))
    yield from ((pair, 1, f"{role}{pair[0]}") for pair in kwargs if _is_plain(pair[1]))


def _is_plain(node: Node) -> bool:
    if node[0] in _CONTAINERS:
        return all(_is_plain(item) for item in node[1])
    if node[0] == "d":
        return all(_is_plain(key) and _is_plain(value) for key, value in node[1])
    return node[0] in {"c", "i", "f", "s", "b"}


def _texts(node: Any) -> Iterator[str]:
    """All texts in a value, or in a list of values; an attribute named ``s`` stands before its value, too."""
    if isinstance(node, list) and node[:1] == ["s"] and isinstance(node[1], str):
        yield node[1]
    elif isinstance(node, list):
        for inner in node:
            yield from _texts(inner)


def _changed(node: Node, words: Sequence[str], rng: random.Random) -> Node:
    """Another value of the same type, as near as possible; ``words`` are those of the recorded calls."""
    tag, value = node[0], node[1]
    if tag == "c":
        return [tag, None if value is None else not value]
    if tag == "i":
        number = int(value, 0)
        return [tag, str(rng.choice([number + 1, number - 1, number * 2, -number, 0, number + 10]))]
    if tag == "s":
        return [tag, _changed_text(value, words, rng)]
    if tag in _CONTAINERS:
        return [tag, _changed_items(value, words, rng), *node[2:]]
    if tag == "d" and value:
        key, inner = rng.choice(value)
        rest = [pair for pair in value if pair[0] != key]
        return [tag, rng.choice([rest, [*rest, [key, _changed(inner, words, rng)]]])]
    return node


def _changed_items(items: list[Node], words: Sequence[str], rng: random.Random) -> list[Node]:
    if not items:
        return items
    place = rng.randrange(len(items))
    without = [*items[:place], *items[place + 1 :]]
    changed = [*items[:place], _changed(items[place], words, rng), *items[place + 1 :]]
    return rng.choice([without, changed, changed, items[::-1], [*items, items[place]]])


def _changed_text(text: str, words: Sequence[str], rng: random.Random) -> str:
    """Another text: other digits, or words, characters or case changed, which keeps most formats valid."""
    if re.search(r"\d", text) and "xn--" not in text and rng.random() < OTHER_DIGIT:
        place = rng.choice([match.start() for match in re.finditer(r"\d", text)])
        return text[:place] + str((int(text[place]) + rng.randrange(1, 9)) % 10) + text[place + 1 :]
    found = list(_WORD.finditer(text))
    others = [word for word in words if word not in {each.group() for each in found}]
    if found and others and rng.random() < OTHER_WORD:
        old = rng.choice(found)
        return text[: old.start()] + rng.choice(others) + text[old.end() :]
    parts = text.split(" ")
    options = [text.swapcase(), text + text[-1:], text[:-1], text[1:], text.title()]
    if len(parts) > 1:
        place = rng.randrange(len(parts))
        options += [" ".join(parts[::-1]), " ".join([*parts[:place], *parts[place + 1 :]])]
    return rng.choice(options)


# ------------------------------------------------------------------------------------------ examples
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


def example(call: str, outcome: str) -> str:
    """One line of Python with a call and, as a comment, its result or exception; empty without plain data.

    Of a long list, only its length and the first and last items are shown, or the first ones.
    """
    made, found = json.loads(call), json.loads(outcome)
    if found.get("uneven"):
        return ""  # what made the object raised exceptions, which a line of code does not show
    try:
        return _example(*_steps(made), made, found)
    except ValueError:
        return ""


_CUT = re.compile(r"\[:\d\]  # |; len\(y\), y\[")
"""What the line of a long list has."""


def is_told_whole(call: str, outcome: str) -> bool:
    """Whether :func:`example` says all that is compared: the call prints nothing and changes none of its arguments, and
    no item is left out."""
    line, made, found = example(call, outcome), json.loads(call), json.loads(outcome)
    is_unchanged = found.get("after", made["args"]) == made["args"]
    return bool(line) and is_unchanged and not found.get("printed") and _CUT.search(line) is None


def _example(steps: list[str], asked: dict[str, Any], made: dict[str, Any], found: dict[str, Any]) -> str:
    """See :func:`example`; ``asked`` is the call ``made`` after the ``steps`` that make its object."""
    if "result" not in found:
        return f"{'; '.join([*steps, _call_text(asked)])}  # raises {_raised(found)}"
    kind, *content = found["result"]
    if kind == "it":
        items = f"list({_call_text(asked)})".replace("list(iter(x))", "list(x)")
        whole = _items_of_call("; ".join([*steps, items]), *content)
        return _shortened(whole, steps, items, content[0]) if content[1] == "end" else whole
    if found["result"] == ["c", None] and asked["kind"] not in {"class", "property"} and asked["args"]:
        after = found.get("after") or []
        return _changed_object(made, asked, steps, after) or ("" if steps else _change_text(asked, after))
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
    made = call["args"][0] if call["kind"] in {"method", "property"} and call["args"] else []
    if made[:1] != ["made"] or not made[4]:
        return [], call
    calls = [f"{name}({', '.join([*map(literal, args), *_keywords(named)])})" for name, args, named in made[4]]
    steps = [f"x = {_called(*made[1:4])}", *(f"x.{each}" for each in calls)]
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
    holder = {"d": "dict(x)", "l": "list(x)"}.get(kind, "")
    if not holder or not nodes:
        return ""
    first = list(steps) or [f"x = {literal(receiver)}"]
    call = _call_text({**asked, "args": [["name", "x"], *asked["args"][1:]]})
    return f"{'; '.join([*first, call])}  # {holder} == {literal([kind, *nodes])}"


def _call_text(call: dict[str, Any]) -> str:
    name = call["name"].partition(":")[2]
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
        name, args = f"{args[0]}.{method}", args[1:]
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


def _qualname(name: str) -> str:
    """The name of a class or function in its module. Raises :class:`ValueError` for those of tests, which no reader
    has."""
    module, _, qualname = name.partition(":")
    if _OF_TESTS.search(module):
        raise ValueError(name)
    return qualname


def _items_text(tag: str, items: list[str]) -> str:
    inside = ", ".join(items)
    if tag == "t":
        return f"({inside},)" if len(items) == 1 else f"({inside})"
    if tag in {"S", "F"}:
        plain = f"{{{inside}}}" if items else "set()"
        return plain if tag == "S" else f"frozenset({plain if items else ''})"
    return f"iter([{inside}])" if tag == "it" else f"[{inside}]"


def _float(bits: str) -> float:

    value: float = struct.unpack(">d", bytes.fromhex(bits))[0]
    return value


_LITERALS: dict[str, Callable[..., str]] = {
    "c": repr,
    "i": lambda text: str(int(text, 0)),
    "f": lambda bits: repr(float("nan") if bits == "nan" else _float(bits)),
    "s": repr,
    "b": lambda text: repr(base64.b64decode(text)),
    **{tag: lambda nodes, *_, tag=tag: _items_text(tag, [literal(node) for node in nodes]) for tag in "ltSF"},
    "it": lambda nodes, *_: _items_text("it", [literal(node) for node in nodes]),
    "d": lambda pairs: "{" + ", ".join(f"{literal(key)}: {literal(value)}" for key, value in pairs) + "}",
    "e": lambda name, member: f"{_qualname(name)}.{member}",
    "ref": _qualname,
    "nt": _called,
    "new": lambda name, nodes: repr(_time(name, nodes)),
    "n": lambda name, text: f"{_qualname(name)}({text!r})",
    "made": _made,
    "name": str,
}
"""Tag of a value to the function that gives its code from the rest of the node."""
