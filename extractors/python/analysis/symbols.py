"""Records of symbols (:class:`~excise.types.Symbol`), made from the nodes of their definitions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate

from tree_sitter import Node

from excise.extractors.python.analysis.grammar import (
    clean_docstring,
    docstring_node,
    inner_definition,
    statements,
    text,
)
from excise.types import Symbol, SymbolKind

_BREAK = re.compile(r"\s*[\r\n]\s*")


class CodeLines:
    """Counts the lines of code in any range of a file, in constant time."""

    def __init__(self, source: bytes) -> None:
        stripped = (line.strip() for line in source.split(b"\n"))
        self._sums = [0, *accumulate(int(bool(s) and not s.startswith(b"#")) for s in stripped)]

    def count(self, first: int, last: int) -> int:
        """Number of lines from ``first`` to ``last`` (1-based, inclusive) that are neither blank nor comments."""
        top = len(self._sums) - 1
        return self._sums[min(last, top)] - self._sums[min(max(first - 1, 0), top)]


def last_line(node: Node) -> int:
    """1-based line of the last byte of a node."""
    row, column = node.end_point
    return row if column == 0 and row > node.start_point[0] else row + 1


def signature(definition: Node, source: bytes) -> str:
    """The header of a definition on one line, without comments and the final colon."""
    pieces: list[str] = []
    position = definition.start_byte
    end = _header_end(definition)
    for comment in _header_comments(definition, end):
        pieces.append(source[position : comment.start_byte].decode("utf-8", "replace"))
        position = comment.end_byte
    pieces.append(source[position:end].decode("utf-8", "replace"))
    line = _BREAK.sub(" ", "".join(pieces).replace("\\\n", "\n").replace("\\\r\n", "\n"))
    line = line.replace("( ", "(").replace("[ ", "[").strip()
    return re.sub(r",? ([)\]])", r"\1", line)


def _header_end(definition: Node) -> int:
    for child in definition.children:
        if child.type == ":":
            return child.start_byte
    return definition.end_byte


def _header_comments(definition: Node, end: int) -> list[Node]:
    found: list[Node] = []
    queue = [c for c in definition.children if c.start_byte < end]
    while queue:
        node = queue.pop()
        if node.type == "comment":
            found.append(node)
        elif node.type != "string":
            queue.extend(node.children)
    return sorted(found, key=lambda n: n.start_byte)


def is_public(qualname: str) -> bool:
    """Whether no component of the name starts with an underscore; dunder names count as public."""
    parts = qualname.split(".") if qualname else []
    return not any(p.startswith("_") and not (p.startswith("__") and p.endswith("__")) for p in parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionFacts:
    """Facts about a definition that the walk over the syntax tree collects."""

    path: str
    """File of the definition."""
    qualname: str
    """Qualified name."""
    kind: SymbolKind
    """Function, method or class."""
    decisions: int
    """Branches inside the definition: its cyclomatic complexity minus one."""
    is_generator: bool
    """Whether its body has a ``yield``."""


def definition_symbol(node: Node, source: bytes, lines: CodeLines, facts: DefinitionFacts) -> Symbol:
    """The symbol of a function or class node, which may be decorated."""
    inner = inner_definition(node)
    body = inner.child_by_field_name("body") or inner
    doc = docstring_node(body) if body is not inner else None
    block = statements(body) if body is not inner else []
    code = block[1:] if doc is not None else block
    loc = lines.count(node.start_point[0] + 1, last_line(node))
    if doc is not None:
        loc -= lines.count(doc.start_point[0] + 1, last_line(doc))
    return Symbol(
        path=facts.path,
        qualname=facts.qualname,
        kind=facts.kind,
        start=node.start_byte,
        end=node.end_byte,
        body_start=block[0].start_byte if block else node.end_byte,
        code_start=code[0].start_byte if code else node.end_byte,
        start_line=node.start_point[0] + 1,
        end_line=last_line(node),
        body_line=code[0].start_point[0] + 1 if code else 0,
        signature=signature(inner, source),
        docstring=clean_docstring(doc, source) if doc is not None else "",
        decorators=tuple(
            text(c, source)[1:].strip() for c in node.children if node is not inner and c.type == "decorator"
        ),
        is_public=is_public(facts.qualname.partition("#")[0]),
        is_async=bool(inner.children) and inner.children[0].type == "async",
        is_generator=facts.is_generator,
        loc=max(loc, 1),
        complexity=1 + facts.decisions,
    )


def module_symbol(root: Node, source: bytes, lines: CodeLines, *, path: str, decisions: int) -> Symbol:
    """The symbol of a whole file."""
    block = statements(root)
    doc = docstring_node(root)
    code = block[1:] if doc is not None else block
    num_lines = source.count(b"\n") + (not source.endswith(b"\n") and bool(source))
    loc = lines.count(1, num_lines)
    if doc is not None:
        loc -= lines.count(doc.start_point[0] + 1, last_line(doc))
    return Symbol(
        path=path,
        qualname="",
        kind=SymbolKind.MODULE,
        start=0,
        end=len(source),
        body_start=block[0].start_byte if block else len(source),
        code_start=code[0].start_byte if code else len(source),
        start_line=1,
        end_line=max(num_lines, 1),
        body_line=code[0].start_point[0] + 1 if code else 0,
        docstring=clean_docstring(doc, source) if doc is not None else "",
        loc=max(loc, 0),
        complexity=1 + decisions,
    )
