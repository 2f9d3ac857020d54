"""Messages of exceptions that a problem statement quotes, which an exception of a solution must have a part of."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

MIN_PART = 4
"""Minimum number of characters of a text between placeholders that tells messages apart."""
_LINE = re.compile(
    r"(?m)^\s*- (?:Raises `(?P<name>[^`\n]+)`(?: for `[^`\n]+`)?; )?"
    r"(?:[Tt]he message contains|[Mm]essages contain) (?P<quoted>.+)\.$"
)
"""A line about the messages of an exception; without one, about those of any."""
_CODE = re.compile(r"(?<!`)(`{1,2})(?!`)(.+?)(?<!`)\1(?!`)")
_CHOICE = re.compile(r"(['\"][^\n]*['\"]) if \w+ else (['\"][^\n]*['\"])")
"""One of two literals."""
_PLACEHOLDER = re.compile(r"\{[^{}]*\}|[{}]|%(?:\(\w+\))?[-#0 +]*\d*(?:\.\d+)?[a-zA-Z%]")
"""What is filled in, and single braces, which may be doubled or stand around others."""
_MARGIN = " .,:;!?'\"`()[]"
"""Characters around a text that tell nothing."""


def lacks_quoted_message(expected: Mapping[str, Any], found: Mapping[str, Any], statement: str) -> bool:
    """Whether an encoded outcome raises an exception with none of the texts that the statement quotes for it.

    That is said only where the expected exception has all texts of one message in order. Every text of any message
    that is quoted for the class will do. Nothing is said of a class that the statement asks for, which may make its
    message from its attributes; nor of arguments that are not known.
    """
    name = str((expected.get("raised") or [""])[0]).partition(":")[2].rpartition(".")[2]
    messages = _quoted_messages(statement)
    own, said = messages.get(name, ()), found.get("said")
    if not own or not all(own) or not isinstance(said, list) or re.search(rf"\bclass {re.escape(name)}\b", statement):
        return False
    if name == "SystemExit" or _has_objects(said):
        return False
    wanted = _plain(" ".join(_texts(expected.get("said"))))
    if not any(re.search(".*".join(map(re.escape, parts)), wanted) for parts in own):
        return False
    text = _plain(" ".join(_texts(said)))
    return not any(part in text for parts in (*own, *messages.get("", ())) for part in parts)


@lru_cache(maxsize=64)
def _quoted_messages(statement: str) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Names of exceptions to the fixed texts of each message that a statement quotes; an empty name stands for any."""
    found: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for line in _LINE.finditer(statement):
        name = (line["name"] or "").rpartition(".")[2]
        found[name] += [_fixed(text) for code in _CODE.finditer(line["quoted"]) for text in _literals(code[2].strip())]
    return {name: tuple(messages) for name, messages in found.items()}


def _literals(code: str) -> Iterator[str]:
    """The texts whose Python literals a piece of code is; nothing for other code."""
    choice = _CHOICE.fullmatch(code)
    for literal in choice.groups() if choice else (code,):
        try:
            text = ast.literal_eval(literal)
        except (ValueError, SyntaxError):
            continue
        if isinstance(text, str):
            yield text


def _fixed(message: str) -> tuple[str, ...]:
    """The texts between placeholders, as far as they tell messages apart."""
    parts = (_plain(part).strip(_MARGIN) for part in _PLACEHOLDER.split(message))
    return tuple(part for part in parts if len(part) >= MIN_PART)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _texts(node: Any) -> Iterator[str]:
    """The texts in an encoded value."""
    if isinstance(node, list):
        if len(node) == 2 and node[0] == "s" and isinstance(node[1], str):
            yield node[1]
        else:
            for each in node:
                yield from _texts(each)


def _has_objects(node: Any) -> bool:
    """Whether an encoded value holds an object of which no text is known."""
    return isinstance(node, list) and (node[:1] in (["o"], ["fn"], ["seen"]) or any(map(_has_objects, node)))
