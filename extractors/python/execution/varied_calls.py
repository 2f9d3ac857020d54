"""New calls made from recorded ones: arguments exchanged between calls, and values varied within their types.

Values are nested lists that begin with a tag (``excise_values.py``). Only plain data is varied: numbers, texts, and the
items of containers. The choice depends on nothing but the recorded calls.
"""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any

from excise.extractors.python.execution.added_arguments import Parameter, canonical, with_added_arguments
from excise.extractors.python.execution.float_bits import bits_of, float_of
from excise.extractors.python.execution.values_of_code import CodeValues, with_values_of_code
from excise.types import content_id

MAX_VARIED = 30
"""Maximum number of new calls of one recording."""
MAX_ADDED = 12
"""Maximum number of further ones that have an argument more than a recorded call."""
MAX_OF_CODE = 20
"""Maximum number of further ones with values of the removed code."""
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
MAX_CALL_CHARS = 4000
"""Length of a call's text above which it is not varied."""
Node = list[Any]
_CONTAINERS = frozenset({"l", "t", "S", "F", "q", "it"})


def varied(
    calls: Sequence[str],
    parameters: Mapping[str, Sequence[Parameter]] = MappingProxyType({}),
    values: Mapping[str, CodeValues] = MappingProxyType({}),
) -> list[str]:
    """At most :data:`MAX_VARIED` calls that are not among ``calls``, spread over the functions that these call.

    At most :data:`MAX_OF_CODE` more have ``values`` of the removed code, and :data:`MAX_ADDED` give ``parameters``
    arguments. They come last: one may do what no test does, such as to delete files, and calls whose outcomes differ
    behind it are not used.
    """
    rng = random.Random(content_id("varied", *calls))
    by_name: dict[str, list[dict[str, Any]]] = defaultdict(list)
    every: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for text in calls:
        call = json.loads(text)
        every[call["name"]].append(call)
        if len(text) <= MAX_CALL_CHARS:
            by_name[call["name"]].append(call)
    known = {canonical(json.loads(text)) for text in calls}
    makers = [_variations(recorded, rng) for recorded in by_name.values()]
    found: list[str] = []
    for _ in range(MAX_TRIES):
        for maker in list(makers):
            call = next(maker, None)
            text = canonical(call) if call is not None else ""
            if call is not None and text not in known and len(found) < MAX_VARIED:
                known.add(text)
                found.append(json.dumps(call))
        if len(found) >= MAX_VARIED:
            break
    added = with_added_arguments(by_name, every, parameters, lambda node, rng: _changed(node, (), rng))
    new = {canonical(call): call for call in islice(with_values_of_code(by_name, values), MAX_TRIES)}
    others = [call for text, call in new.items() if text not in known]
    return [*found, *(json.dumps(call) for call in (*others[:MAX_OF_CODE], *added[:MAX_ADDED]))]


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
    if tag in {"c", "i", "f"}:
        return [tag, _changed_number(tag, value, rng)]
    if tag == "s":
        return [tag, _changed_text(value, words, rng)]
    if tag in _CONTAINERS:
        return [tag, _changed_items(value, words, rng), *node[2:]]
    if tag == "d" and value:
        key, inner = rng.choice(value)
        rest = [pair for pair in value if pair[0] != key]
        return [tag, rng.choice([rest, [*rest, [key, _changed(inner, words, rng)]]])]
    return node


def _changed_number(tag: str, value: Any, rng: random.Random) -> Any:
    """Another truth value, integer or float; ``None`` and what is no number stay."""
    if tag == "c" or value == "nan":
        return value if value in {None, "nan"} else not value
    if tag == "i":
        number = int(value, 0)
        return str(rng.choice([number + 1, number - 1, number * 2, -number, 0, number + 10]))
    fraction = float_of(value)
    return bits_of(rng.choice([fraction + 1, fraction * 2, -fraction, fraction / 2]))


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
