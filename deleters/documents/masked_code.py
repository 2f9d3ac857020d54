"""Code in languages with braces, with its strings and comments blanked out: what is left is names and brackets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

MAX_DEPTH = 40
"""Number of brackets inside each other from which on an example is not read."""
_OPENING = re.compile(r"//|/\*|[\"'`]")
_STRINGS = {
    '"': re.compile(r'"(?:[^"\\\n]|\\.)*"'),
    "'": re.compile(r"'(?:[^'\\\n]|\\.)*'"),
    "`": re.compile(r"`(?:[^`\\]|\\.)*`", re.DOTALL),
}
_STRING_OF_RUST = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_IN_RUST = re.compile(
    r"\bfn\s+\w|&'\w|\blet mut\b|\buse \w+::|\b(?:assert(?:_eq|_ne)?|e?print(?:ln)?|format|matches|panic|vec)!\s?[(\[]"
)
"""What only Rust has of the languages whose examples are read."""
_LIFETIME = re.compile(r"'\w+\b(?!')")
_FILLED_IN = re.compile(r"\$\{[^{}\n]{0,200}\}|[^\n]")
_OPEN, _CLOSED = "([{", ")]}"


class MaskedCode(NamedTuple):
    """The lines of an example."""

    lines: Sequence[str]
    """As they are."""
    code: Sequence[str]
    """Of the same lengths, with blanks in the place of comments, and of what is in strings."""
    inside: frozenset[int]
    """Numbers of the lines that begin inside of a string."""
    is_rust: bool
    """Whether it is Rust, whose strings may have several lines."""

    def is_comment(self, number: int) -> bool:
        """Whether a line holds nothing but a comment, or a part of one."""
        return bool(self.lines[number].strip()) and not self.code[number].strip() and number not in self.inside

    def is_code(self, number: int) -> bool:
        """Whether a line holds more than a comment."""
        return bool(self.lines[number].strip()) and not self.is_comment(number)


def masked(lines: Sequence[str], *, is_rust: bool = False) -> MaskedCode | None:
    """The example without strings and comments; ``None`` if one of these, or a bracket, is not closed, or too
    many brackets are inside each other. ``is_rust``: it is a part of one in Rust, whether or not this shows."""
    text = "\n".join(lines)
    is_rust = is_rust or _IN_RUST.search(text) is not None
    pieces: list[str] = []
    inside: set[int] = set()
    end = number = 0
    while (opening := _OPENING.search(text, end)) is not None:
        start, mark = opening.start(), opening[0]
        if mark == "'" and is_rust and (found := _LIFETIME.match(text, start)) is not None:
            pieces.append(text[end : found.end()])
            end = found.end()
            continue
        stop = _end_of(text, start, mark, is_rust=is_rust)
        if stop < 0:
            return None
        own = text[start:stop]
        number += text.count("\n", end, start)
        if mark in {"`", '"'}:
            inside.update(range(number + 1, number + own.count("\n") + 1))
        number += own.count("\n")
        pieces += [text[end:start], _blanked(own, mark)]
        end = stop
    plain = "".join([*pieces, text[end:]])
    return MaskedCode(lines, plain.split("\n"), frozenset(inside), is_rust) if _is_balanced(plain) else None


def _blanked(text: str, mark: str) -> str:
    """A string or a comment with blanks in the place of what is in it, but for code that a template fills in."""
    if mark != "`":
        blank = re.sub(r"[^\n]", " ", text)
        return f'"{blank[1:-1]}"' if mark in _STRINGS else blank
    inner = _FILLED_IN.sub(lambda each: each[0] if each[0].startswith("${") else " ", text[1:-1])
    return f'"{inner}"'


def _end_of(text: str, start: int, mark: str, *, is_rust: bool) -> int:
    """Where a string or a comment ends; -1 if it does not."""
    if mark == "//":
        stop = text.find("\n", start)
        return stop if stop >= 0 else len(text)
    if mark == "/*":
        stop = text.find("*/", start + 2)
        return stop + 2 if stop >= 0 else -1
    string = _STRING_OF_RUST if is_rust and mark == '"' else _STRINGS[mark]
    found = string.match(text, start)
    return found.end() if found is not None else -1


def depth_of(code: str) -> int:
    """How many more brackets code opens than it closes."""
    return sum(map(code.count, _OPEN)) - sum(map(code.count, _CLOSED))


def _is_balanced(code: str) -> bool:
    depth = 0
    for bracket in re.findall(r"[()\[\]{}]", code):
        depth += 1 if bracket in _OPEN else -1
        if not 0 <= depth <= MAX_DEPTH:
            return False
    return depth == 0
