"""How much of the deleted code an attempt recovered, measured by content.

Lines count when they are telling: longer than a word or two, and nowhere in the tree that the agent is given anyway.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

from excise.deleters.part_deleters import PART
from excise.verifiers.recovery.inside.bytecode import functions, shape
from excise.verifiers.recovery.recovery_attempt import Piece

MIN_CHARS = 10
"""Shorter lines are idioms: ``else:``, ``return x``."""
MIN_LINES = 3
"""So many lines must be recovered before their share means anything."""
LEAKING_SHARE = 0.5
LIKE_SHAPE = 0.7
"""Code objects of one function, compiled by different interpreters, share this much of names and constants."""
MIN_TOKENS = 5
_EDGES = " \t>|+#"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """What there was to recover."""

    lines: frozenset[str]
    """Telling lines, normalised; docstrings and comments apart."""
    shapes: Mapping[str, frozenset[str]]
    """Qualified name to the names, arguments and constants of its code object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """What one strategy got, or all of them together."""

    share: float = 0.0
    """Share of the telling lines."""
    num_lines: int = 0
    """Their number."""
    shapes: tuple[str, ...] = ()
    """Functions whose code objects were recovered."""
    where: tuple[str, ...] = ()
    """Where it lay, the best places first; at most five."""

    @property
    def level(self) -> str:
        """``L4`` source text, ``L3`` byte code, ``L1`` scattered lines, or nothing."""
        if self.share >= LEAKING_SHARE and self.num_lines >= MIN_LINES:
            return "L4"
        if self.shapes:
            return "L3"
        return "L1" if self.num_lines else ""

    @property
    def leaks(self) -> bool:
        """L3 or worse."""
        return self.level in {"L3", "L4"}


def normal(line: str) -> str:
    """A line as it is compared: white space folded, marks of diffs and comments at its beginning dropped."""
    return " ".join(line.lstrip(_EDGES).split())


def lines_of(text: str) -> set[str]:
    """Normalised lines of a text that are long enough to mean something."""
    return {line for raw in text.splitlines() if len(line := normal(raw)) >= MIN_CHARS}


def deleted_of(text: Iterable[tuple[str, str]], modules: Mapping[str, str]) -> Deleted:
    """What was deleted: ``text`` by symbol id, and the untouched source of each module it was in."""
    found: set[str] = set()
    shapes: dict[str, frozenset[str]] = {}
    for symbol, source in text:
        found |= lines_of(_without_docstrings(source))
        path, _, qualname = symbol.removesuffix(PART).partition("::")
        for name, tokens in _shapes(modules.get(path, "")).items():
            if (not qualname or name == qualname or name.startswith(f"{qualname}.")) and len(tokens) >= MIN_TOKENS:
                shapes[f"{path}::{name}"] = tokens
    return Deleted(lines=frozenset(found), shapes=shapes)


def judge(deleted: Deleted, pieces: Iterable[Piece], given: Callable[[], set[str]]) -> Recovered:
    """What the pieces hold of the deleted code; ``given`` are the lines of the tree as shipped, asked for if needed."""
    pieces = list(pieces)
    held = [(piece, deleted.lines & lines_of(piece.text)) for piece in pieces if piece.kind == "text"]
    if any(lines for _, lines in held):
        free = given()
        held = [(piece, lines - free) for piece, lines in held]
        telling = deleted.lines - free
    else:
        telling = deleted.lines
    lines = frozenset().union(*(lines for _, lines in held))
    codes = [(piece, name) for piece in pieces if piece.kind == "code" if (name := _like(piece, deleted.shapes))]
    best = sorted((item for item in held if item[1]), key=lambda item: -len(item[1]))
    places = [piece.where for piece, _ in codes] + [piece.where for piece, _ in best]
    return Recovered(
        share=round(len(lines) / len(telling), 3) if telling else 0.0,
        num_lines=len(lines),
        shapes=tuple(sorted({name for _, name in codes})),
        where=tuple(dict.fromkeys(places))[:5],
    )


def _like(piece: Piece, shapes: Mapping[str, frozenset[str]]) -> str:
    """The deleted function that a recovered code object is; empty if none."""
    tokens = _tokens(piece.shape)
    for symbol, wanted in shapes.items():
        name = symbol.partition("::")[2]
        same = name == piece.text or name.rpartition(".")[2] == piece.text
        if same and tokens and len(tokens & wanted) / len(tokens | wanted) >= LIKE_SHAPE:
            return symbol
    return ""


def _tokens(values: Mapping[str, Any]) -> frozenset[str]:
    found = []
    for kind in ("varnames", "names", "consts"):
        part = values.get(kind, [])
        found += [f"{kind[0]} {item}" for item in part if isinstance(item, str)] if isinstance(part, list) else []
    return frozenset(found)


def _shapes(source: str) -> dict[str, frozenset[str]]:
    try:
        code = compile(source, "module", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # written for another interpreter
        return {}
    assert isinstance(code, CodeType)
    return {name: _tokens(shape(inner)) for name, inner in functions(code)}


def _without_docstrings(source: str) -> str:
    """The text without comments' lines and docstrings, as far as it can be parsed."""
    lines = textwrap.dedent(source).splitlines()
    gone = {number for number, line in enumerate(lines) if line.lstrip().startswith("#")}
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and first.end_lineno:
                gone |= set(range(first.lineno - 1, first.end_lineno))
    return "\n".join(line for number, line in enumerate(lines) if number not in gone)
