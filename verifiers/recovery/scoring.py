"""Scores of a recovery attempt: the share of the deleted code that it found.

A line counts if it is distinctive (longer than an idiom) and not in the shipped tree, which the agent has anyway.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

from excise.deleters.edits.removed_parts import EXPRESSION_SUFFIX
from excise.types import joined, name_in_file, path_of
from excise.verifiers.recovery.inside.bytecode import functions, shape
from excise.verifiers.recovery.recovery_attempt import RecoveredItem

MIN_CHARS = 10
"""Minimum characters of a distinctive line; shorter ones are idioms such as ``else:`` or ``return x``."""
MIN_LINES = 3
"""Minimum number of lines found; with fewer, their share is not considered."""
LEAKING_SHARE = 0.5
"""Share of the distinctive lines from which on the source text counts as recovered (level L4)."""
SAME_CODE_SHARE = 0.7
"""Share of names and constants (intersection over union) from which on two code objects count as the same function.
Different Python versions compile one function to code objects that share this much."""
MIN_CODE_NAMES = 5
"""Minimum number of names and constants by which a function can be identified."""
_LINE_MARKS = " \t>|+#"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedCode:
    """The deleted code that a recovery attempt is compared with."""

    lines: frozenset[str]
    """Distinctive lines, normalised, without docstrings and comments."""
    shapes: Mapping[str, frozenset[str]]
    """Symbol id to the names, arguments and constants of its code object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryScore:
    """How much of the deleted code was found, by one strategy or by all together."""

    share: float = 0.0
    """Share of the distinctive lines that were found, 0 to 1."""
    num_lines: int = 0
    """Number of distinctive lines that were found."""
    shapes: tuple[str, ...] = ()
    """Ids of the functions whose code objects were found."""
    where: tuple[str, ...] = ()
    """Places where they were found, at most five, those with most code first."""

    @property
    def level(self) -> str:
        """``L4``: source text; ``L3``: byte code; ``L1``: single lines; empty: nothing."""
        if self.share >= LEAKING_SHARE and self.num_lines >= MIN_LINES:
            return "L4"
        if self.shapes:
            return "L3"
        return "L1" if self.num_lines else ""

    @property
    def leaks(self) -> bool:
        """Whether the level is L3 or L4."""
        return self.level in {"L3", "L4"}


def normalised_line(line: str) -> str:
    """A line as it is compared: leading marks of diffs and comments dropped, runs of white space replaced by a
    space."""
    return " ".join(line.lstrip(_LINE_MARKS).split())


def distinctive_lines(text: str) -> set[str]:
    """Normalised lines of a text with at least :data:`MIN_CHARS` characters."""
    return {line for raw in text.splitlines() if len(line := normalised_line(raw)) >= MIN_CHARS}


def deleted_code(text: Iterable[tuple[str, str]], modules: Mapping[str, str]) -> DeletedCode:
    """The deleted code from ``text``, (symbol id, source) pairs, and the untouched source of each module by path."""
    found: set[str] = set()
    shapes: dict[str, frozenset[str]] = {}
    for symbol, source in text:
        found |= distinctive_lines(_without_docstrings(source))
        whole = symbol.removesuffix(EXPRESSION_SUFFIX)
        path, qualname = path_of(whole), name_in_file(whole)
        for name, tokens in _code_shapes(modules.get(path, "")).items():
            if (not qualname or name == qualname or name.startswith(f"{qualname}.")) and len(tokens) >= MIN_CODE_NAMES:
                shapes[joined(path, name)] = tokens
    return DeletedCode(lines=frozenset(found), shapes=shapes)


def score(code: DeletedCode, items: Iterable[RecoveredItem], remaining: Callable[[], set[str]]) -> RecoveryScore:
    """Score how much of the deleted code the items contain.

    ``remaining`` returns the distinctive lines of the shipped tree, which do not count; it is called only if needed.
    """
    items = list(items)
    by_item = [(item, code.lines & distinctive_lines(item.text)) for item in items if item.kind == "text"]
    counted = code.lines
    if any(lines for _, lines in by_item):
        shipped = remaining()
        by_item = [(item, lines - shipped) for item, lines in by_item]
        counted = code.lines - shipped
    lines = frozenset().union(*(lines for _, lines in by_item))
    codes = [(item, name) for item in items if item.kind == "code" if (name := _same_function(item, code.shapes))]
    best = sorted((pair for pair in by_item if pair[1]), key=lambda pair: -len(pair[1]))
    places = [item.where for item, _ in codes] + [item.where for item, _ in best]
    return RecoveryScore(
        share=round(len(lines) / len(counted), 3) if counted else 0.0,
        num_lines=len(lines),
        shapes=tuple(sorted({name for _, name in codes})),
        where=tuple(dict.fromkeys(places))[:5],
    )


def _same_function(item: RecoveredItem, shapes: Mapping[str, frozenset[str]]) -> str:
    """Id of the deleted function that a recovered code object was compiled from; empty if of none."""
    tokens = _names_and_constants(item.shape)
    for symbol, wanted in shapes.items():
        name = name_in_file(symbol)
        same_name = item.text in {name, name.rpartition(".")[2]}
        if same_name and tokens and len(tokens & wanted) / len(tokens | wanted) >= SAME_CODE_SHARE:
            return symbol
    return ""


def _names_and_constants(values: Mapping[str, Any]) -> frozenset[str]:
    found = []
    for kind in ("varnames", "names", "consts"):
        part = values.get(kind, [])
        found += [f"{kind[0]} {item}" for item in part if isinstance(item, str)] if isinstance(part, list) else []
    return frozenset(found)


def _code_shapes(source: str) -> dict[str, frozenset[str]]:
    """Qualified name to names and constants of every function of a module; empty if this Python cannot compile it."""
    try:
        code = compile(source, "module", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # written for another interpreter
        return {}
    assert isinstance(code, CodeType)
    return {name: _names_and_constants(shape(inner)) for name, inner in functions(code)}


def _without_docstrings(source: str) -> str:
    """The text without comment lines and docstrings; unchanged if it cannot be parsed."""
    lines = textwrap.dedent(source).splitlines()
    dropped = {number for number, line in enumerate(lines) if line.lstrip().startswith("#")}
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and first.end_lineno:
                dropped |= set(range(first.lineno - 1, first.end_lineno))
    return "\n".join(line for number, line in enumerate(lines) if number not in dropped)
