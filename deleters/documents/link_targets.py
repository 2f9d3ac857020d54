"""Addresses of links that stand apart from the text: those go to which nothing refers any more."""

from __future__ import annotations

import re
from collections.abc import Iterator

_RESTRUCTURED = re.compile(r"[ \t]*\.\. _(?:`(?P<quoted>[^`\n]+)`|(?P<plain>[^:`\n]+)):[ \t]+\S")
"""``.. _name: address``."""
_MARKDOWN = re.compile(r" {0,3}\[(?P<name>[^\[\]\n^][^\[\]\n]*)\]:[ \t]+\S")
"""``[name]: address``."""


def without_unused_targets(before: str, after: str) -> str:
    """A document without the addresses to which only text referred that is gone."""
    lines = after.split("\n")
    targets = {number: pattern for number, line in enumerate(lines) if (pattern := _references(line))}
    rest = "\n".join(line for number, line in enumerate(lines) if number not in targets)
    known = "\n".join(line for line in before.split("\n") if _references(line) is None)
    unused = {n for n, pattern in targets.items() if pattern.search(known) and not pattern.search(rest)}
    return "\n".join(_without(lines, unused)) if unused else after


def _references(line: str) -> re.Pattern[str] | None:
    """What refers to the address that a line gives; ``None`` for other lines."""
    if found := _RESTRUCTURED.match(line):
        name = r"\s+".join(map(re.escape, (found["quoted"] or found["plain"]).split()))
        return re.compile(rf"(?i)(?:`{name}`|<{name}|(?<!\w){name})_(?!\w)")
    if found := _MARKDOWN.match(line):
        return re.compile(rf"(?i)\[{re.escape(found['name'])}\](?!:[ \t])")
    return None


def _without(lines: list[str], gone: set[int]) -> Iterator[str]:
    """The lines without some, and without the second of two blank lines around these."""
    above = ""
    is_after_gone = False
    for number, line in enumerate(lines):
        if number in gone:
            is_after_gone = True
        elif not (is_after_gone and not line.strip() and not above.strip()):
            yield line
            above, is_after_gone = line, False
