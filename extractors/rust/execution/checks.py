"""Checks in tests, and what stands in the place of each in a mirrored test: a note of what it finds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tree_sitter import Node

from excise.extractors.divided_tests import Edit
from excise.extractors.rust.analysis.grammar import text

_CHECKS = {
    "assert": 1, "assert_eq": 2, "assert_ne": 2, "debug_assert": 1, "debug_assert_eq": 2, "debug_assert_ne": 2,
}  # fmt: skip
"""Macros that check, to the number of arguments that are values."""
_LITERAL = re.compile(r"""b?r(#*)"[\s\S]*?"\1|b?"(?:\\[\s\S]|[^"\\])*"|b?'(?:\\.[^']*|[^'\\])'""")
"""A text or a character."""


class Check(NamedTuple):
    """A call of a checking macro."""

    start: int
    end: int
    name: str
    values: tuple[str, ...]
    wrong: tuple[str, ...]
    """The same values with another literal in one of them; empty if there is none."""


def notes_module(modules: Sequence[str], name: str) -> str:
    """The path of the module with the notes, ``name``, seen from within these modules of the file."""
    return "".join(["self::", *["super::"] * len(modules), name])


def checked_values(macro: str, tree: Node, source: bytes) -> tuple[str, ...]:
    """The values that a call of a macro checks; none if it checks nothing, or if one of them may end the function."""
    count = _CHECKS.get(macro, 0)
    values = tuple(_arguments(tree, source))[:count] if count else ()
    return values if len(values) == count and not any("?" in _LITERAL.sub("", value) for value in values) else ()


def noted(check: Check, module: str, *, by_literals: bool) -> Edit:
    """What stands in the place of a check; ``module`` is the path of the module with the notes, seen from there.

    A note has the message of a check that fails, for the end of the test. Names are like that of the module, which is
    another one in each file.
    """
    name = module.rpartition("::")[2]
    if len(check.values) == 1:
        value = check.values[0]
        said = quoted(f"assertion failed: {' '.join(value.split())}")
        note = f"{module}::holds(!!({value}), || {module}::Message::Plain({said}))"
    else:
        left, right = check.wrong or check.values
        one, other = f"{name}_left", f"{name}_right"
        compared = f"*{one} == *{other}"
        is_unequal = check.name.endswith("_ne")
        said = f"{module}::differing({'true' if is_unequal else 'false'}, {one}, {other})"
        if by_literals and check.wrong:
            result = f"{module}::differs(!({compared}), || {said})"
        else:
            holds = f"!({compared})" if is_unequal else f"({compared})"
            result = f"{module}::holds({holds} && {module}::are_alike({one}, {other}), || {said})"
            left, right = check.values
        note = f"match (&({left}), &({right})) {{ ({one}, {other}) => {{ {result} }} }}"
    return Edit(check.start, check.end, note.encode())


def quoted(words: str) -> str:
    """A text as a literal."""
    escaped = words.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _arguments(tree: Node, source: bytes) -> Iterator[str]:
    """Source texts of the arguments of a macro."""
    for start, end in argument_places(tree, source):
        yield source[start:end].decode("utf-8", "replace")


def argument_places(tree: Node, source: bytes) -> Iterator[tuple[int, int]]:
    """(start, end) of the arguments of a macro, without blanks: what commas at its top level divide."""
    start = tree.start_byte + 1
    depth = 0
    for child in tree.children[1:-1]:
        word = text(child, source)
        depth += (word in {"<"}) - (word in {">"}) if _is_generic(child, source) else 0
        if word == "," and depth <= 0:
            yield _without_blanks(start, child.start_byte, source)
            start = child.end_byte
    start, end = _without_blanks(start, tree.end_byte - 1, source)
    if start < end:
        yield start, end


def _without_blanks(start: int, end: int, source: bytes) -> tuple[int, int]:
    whole = source[start:end]
    start += len(whole) - len(whole.lstrip())
    return start, start + len(whole.strip())


def _is_generic(token: Node, source: bytes) -> bool:
    """Whether ``<`` or ``>`` is a bracket of types: it follows ``::``, or closes what does."""
    before = token.prev_sibling
    word = text(token, source)
    if word == "<":
        return before is not None and text(before, source) == "::"
    opened = 0
    while word == ">" and before is not None and text(before, source) != ",":
        opened += _is_generic(before, source) if text(before, source) == "<" else 0
        before = before.prev_sibling
    return opened > 0
