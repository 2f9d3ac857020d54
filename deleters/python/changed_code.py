"""The code that an imported task lacks: what the solved sources have and the agent's tree has not.

An imported task was made by nobody's deleter. Its gold patch may add definitions, and change lines of others. Lines
that the agent's file has, too, perhaps indented otherwise, are not missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.analysis.parsed_file import PythonModule
from excise.extractors.python.analysis.parser import parse_module
from excise.types import Symbol, SymbolKind


@dataclass(slots=True)
class ChangedCode:
    """What the gold patch of an imported task adds or changes."""

    removed: dict[str, None] = field(default_factory=dict)
    """Ids of the definitions that it adds, and of the functions that it changes; where there are none, of the classes
    and modules that it changes. An ordered set."""
    texts: list[tuple[str, str]] = field(default_factory=list)
    """(id, text) of what is missing: a whole definition, or ``ID#part1`` and so on for lines of one."""


def changed_code(
    codebase: PythonCodebase, solved: Mapping[str, bytes], shipped: Mapping[str, bytes | None]
) -> ChangedCode:
    """Compare files of the solved sources with those of the agent's tree, both by path (``None``: no such file)."""
    found = ChangedCode()
    others: dict[str, None] = {}
    for path in sorted(shipped):
        if path in codebase.modules:
            _compare_module(codebase, path, shipped[path], found, others)
        elif path in solved:
            lines = _missing_lines(solved[path], shipped[path] or b"")[0]
            _add_parts(found, path, [text for _, text in lines])
    if not found.removed:
        found.removed.update(others)
    return found


def _compare_module(
    codebase: PythonCodebase, path: str, shipped: bytes | None, found: ChangedCode, others: dict[str, None]
) -> None:
    module = codebase.modules[path]
    if shipped is None:
        found.removed[path] = None
        found.texts.append((path, module.source.decode("utf-8", "replace")))
        return
    whole = gone_definitions(module, shipped)
    for symbol in whole:
        found.removed[symbol.symbol_id] = None
        found.texts.append((symbol.symbol_id, module.source[symbol.start : symbol.end].decode("utf-8", "replace")))
    missing, touched = _missing_lines(module.source, shipped)
    parts: dict[str, list[str]] = {}
    for number in touched:
        symbol = _innermost(module.symbols, number)
        if not any(_holds(outer, symbol) for outer in whole):
            (found.removed if symbol.is_callable else others)[symbol.symbol_id] = None
    for number, text in missing:
        symbol = _innermost(module.symbols, number)
        if not any(_holds(outer, symbol) for outer in whole):
            parts.setdefault(symbol.symbol_id, []).append(text)
    for symbol_id, lines in parts.items():
        _add_parts(found, symbol_id, lines)


def gone_definitions(module: PythonModule, shipped: bytes | None) -> list[Symbol]:
    """The outermost definitions of a file that its shipped content (``None``: no such file) does not have."""
    left = parse_module(module.path, shipped).symbols if shipped is not None else []
    kept = {symbol.qualname for symbol in left}
    whole: list[Symbol] = []
    for symbol in module.symbols:  # sorted: outer ones first
        if symbol.qualname and symbol.qualname not in kept and not any(_holds(outer, symbol) for outer in whole):
            whole.append(symbol)
    return whole


def _holds(outer: Symbol, inner: Symbol) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def _innermost(symbols: Sequence[Symbol], line: int) -> Symbol:
    """The smallest symbol with the line; the module holds every line."""
    holding = [s for s in symbols if s.kind is SymbolKind.MODULE or s.start_line <= line <= s.end_line]
    return min(holding, key=lambda s: (s.kind is SymbolKind.MODULE, s.end - s.start))


def _add_parts(found: ChangedCode, owner: str, lines: list[str]) -> None:
    if text := "".join(lines):
        found.texts.append((f"{owner}#part1", text))


def _missing_lines(solved: bytes, shipped: bytes) -> tuple[list[tuple[int, str]], list[int]]:
    """(number, text) of lines of ``solved`` that ``shipped`` has nowhere, and numbers of all lines that differ.

    Numbers are 1-based and those of ``solved``; where ``shipped`` only has more lines, the next line counts as one that
    differs.
    """
    ours = solved.decode("utf-8", "replace").splitlines(keepends=True)
    theirs = shipped.decode("utf-8", "replace").splitlines(keepends=True)
    known = {" ".join(line.split()) for line in theirs}
    missing: list[tuple[int, str]] = []
    touched: list[int] = []
    for tag, start, end, _, _ in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if tag == "insert":
            touched.append(min(start + 1, max(1, len(ours))))
        elif tag != "equal":
            touched += range(start + 1, end + 1)
            lines = ((number + 1, ours[number]) for number in range(start, end))
            missing += [(number, text) for number, text in lines if " ".join(text.split()) not in known]
    return missing, touched
