"""Statements of Python examples lose the elements of lists, sets and dictionaries that use what is gone."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence

IsLost = Callable[[ast.AST], bool]
"""Whether a node, its children aside, uses what is gone."""
Span = tuple[int, int]
_COUNTS = (ast.Assert, ast.Compare, ast.Subscript, ast.BinOp, ast.Return, ast.For, ast.comprehension)
"""Nodes for which the number of elements may matter."""
_END_OF_LINE = re.compile(rb"[ \t]*,?[ \t]*(?:#[^\n]*)?(?:\n|\Z)")
_GOES_ON = re.compile(rb"[ \t]*[^\s#\])}]")
"""A line with another element, which the comment above may head, too."""
_COMMENTS_ABOVE = re.compile(rb"(?:^[ \t]*#[^\n]*\n)+\Z", re.MULTILINE)


def without_elements(lines: Sequence[str], is_lost: IsLost) -> list[str] | None:
    """The lines of a statement without the elements that use what is gone.

    ``None`` if something else in it does, if a list would be left empty, or if the number of elements may matter.
    """
    source = left = textwrap.dedent("\n".join(lines)).encode()
    nodes = _nodes(source)
    if any(isinstance(node, _COUNTS) for node in nodes):
        return None
    while any(map(is_lost, nodes)):
        spans = next(filter(None, (list(_lost_elements(left, node, is_lost)) for node in reversed(nodes))), [])
        for start, end in reversed(spans):
            left = left[:start] + left[end:]
        nodes = _nodes(left) if spans else []
        if not nodes:
            return None
    margin = lines[-1][: len(lines[-1]) - len(source.decode().rpartition("\n")[2])]
    return [f"{margin}{line}" if line else line for line in left.decode().split("\n")] if left != source else None


def _nodes(source: bytes) -> list[ast.AST]:
    try:
        return list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return []


def _lost_elements(source: bytes, container: ast.AST, is_lost: IsLost) -> Iterator[Span]:
    """What goes of a container, with commas and comments above, in order; nothing if all or none of it is lost."""
    pairs: list[tuple[ast.expr, ast.expr]] = []
    if isinstance(container, ast.List | ast.Set):
        pairs = [(each, each) for each in container.elts]
    elif isinstance(container, ast.Dict) and None not in container.keys:
        pairs = [(key, value) for key, value in zip(container.keys, container.values, strict=True) if key is not None]
    gone = [any(is_lost(node) for part in pair for node in ast.walk(part)) for pair in pairs]
    if not any(gone) or all(gone):
        return
    starts = [0, *(match.end() for match in re.finditer(rb"\n", source))]
    spans = [
        (starts[key.lineno - 1] + key.col_offset, starts[(value.end_lineno or 1) - 1] + (value.end_col_offset or 0))
        for key, value in pairs
    ]
    last_kept = max(at for at, is_gone in enumerate(gone) if not is_gone)
    for at, (start, end) in enumerate(spans):
        line = source.rfind(b"\n", 0, start) + 1
        after = _END_OF_LINE.match(source, end)
        if not gone[at]:
            continue
        if not source[line:start].strip() and after is not None:
            above = None if _GOES_ON.match(source, after.end()) else _COMMENTS_ABOVE.search(source[:line])
            yield (above.start() if above is not None else line), after.end()
        elif at < last_kept:
            yield start, spans[at + 1][0]
        else:
            yield spans[at - 1][1], end
