"""Line differences by patience diff, which is fast and readable on large files, too."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

_SMALL = 250_000
"""Largest product of the two lengths for which the exact, quadratic matcher is used."""


class Change(NamedTuple):
    """Lines ``a1:a2`` of the old text become lines ``b1:b2`` of the new one."""

    a1: int
    a2: int
    b1: int
    b2: int


def changes(a: Sequence[bytes], b: Sequence[bytes]) -> list[Change]:
    """Ordered, disjoint changes that turn ``a`` into ``b``."""
    found: list[Change] = []
    stack = [Change(0, len(a), 0, len(b))]
    while stack:
        part = _trim(a, b, stack.pop())
        if part.a1 == part.a2 and part.b1 == part.b2:
            continue
        anchors = _anchors(a, b, part) if part.a1 < part.a2 and part.b1 < part.b2 else []
        if anchors:
            stack.extend(_between(part, anchors))
        else:
            found.extend(_leaf(a, b, part))
    return _merged(sorted(found))


def _trim(a: Sequence[bytes], b: Sequence[bytes], part: Change) -> Change:
    a1, a2, b1, b2 = part
    while a1 < a2 and b1 < b2 and a[a1] == b[b1]:
        a1, b1 = a1 + 1, b1 + 1
    while a1 < a2 and b1 < b2 and a[a2 - 1] == b[b2 - 1]:
        a2, b2 = a2 - 1, b2 - 1
    return Change(a1, a2, b1, b2)


def _anchors(a: Sequence[bytes], b: Sequence[bytes], part: Change) -> list[tuple[int, int]]:
    """Pairs of equal lines that are unique on both sides: the longest sequence that increases on both sides."""
    in_a = Counter(a[part.a1 : part.a2])
    in_b = Counter(b[part.b1 : part.b2])
    where = {b[j]: j for j in range(part.b1, part.b2) if in_b[b[j]] == 1}
    pairs = [(i, where[a[i]]) for i in range(part.a1, part.a2) if in_a[a[i]] == 1 and a[i] in where]
    return _longest_increasing(pairs)


def _longest_increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    tops: list[int] = []
    at: list[int] = []
    previous: list[int] = []
    for k, (_, j) in enumerate(pairs):
        index = bisect_left(tops, j)
        previous.append(at[index - 1] if index else -1)
        if index == len(tops):
            tops.append(j)
            at.append(k)
        else:
            tops[index], at[index] = j, k
    sequence: list[tuple[int, int]] = []
    k = at[-1] if at else -1
    while k >= 0:
        sequence.append(pairs[k])
        k = previous[k]
    return sequence[::-1]


def _between(part: Change, anchors: list[tuple[int, int]]) -> list[Change]:
    parts: list[Change] = []
    a1, b1 = part.a1, part.b1
    for i, j in [*anchors, (part.a2, part.b2)]:
        parts.append(Change(a1, i, b1, j))
        a1, b1 = i + 1, j + 1
    return parts


def _leaf(a: Sequence[bytes], b: Sequence[bytes], part: Change) -> list[Change]:
    a1, a2, b1, b2 = part
    if (a2 - a1) * (b2 - b1) > _SMALL or a1 == a2 or b1 == b2:
        return [part]
    matcher = SequenceMatcher(None, a[a1:a2], b[b1:b2], autojunk=False)
    blocks = matcher.get_opcodes()
    return [Change(a1 + i1, a1 + i2, b1 + j1, b1 + j2) for tag, i1, i2, j1, j2 in blocks if tag != "equal"]


def _merged(parts: list[Change]) -> list[Change]:
    result: list[Change] = []
    for part in parts:
        if result and result[-1].a2 == part.a1 and result[-1].b2 == part.b1:
            result[-1] = Change(result[-1].a1, part.a2, result[-1].b1, part.b2)
        else:
            result.append(part)
    return result
