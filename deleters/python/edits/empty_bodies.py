"""Edits that replace the bodies of functions by empty ones."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

from excise.deleters.edits.byte_edits import Edit
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.analysis.parsed_file import PythonModule
from excise.protocols import TRIVIAL
from excise.types import Symbol, SymbolKind

_FOR_LINTERS = re.compile(
    rb"#\s*(?:(?:pylint|flake8|ruff|mypy|pyright|type|pragma|pytype|fmt|isort): ?[\w\[(]|noqa(?:$|:)|nosec(?:$|\s))"
)
"""A comment that is no prose."""
_OF_SIGNATURE = re.compile(
    rb"argument|positional|signature|redefined|-name|docstring|self|method|overrid|vararg|default|missing|return"
    rb"|\b(?:all|[A-Z]\d+)\b"
)
"""What the messages of pylint have in their names that it may give for a signature, whatever the body is."""


def functions_of(codebase: PythonCodebase, symbol_ids: Iterable[str]) -> list[Symbol]:
    """The functions and methods among the symbols, and those inside classes and modules among them."""
    found: dict[str, Symbol] = {}
    for symbol_id in symbol_ids:
        for group_id in codebase.group(symbol_id):
            symbol = codebase.symbols()[group_id]
            found.update({s.symbol_id: s for s in _inside(codebase, symbol) if s.is_callable})
    return sorted(found.values(), key=lambda s: (s.path, s.start))


def _inside(codebase: PythonCodebase, symbol: Symbol) -> Iterator[Symbol]:
    for other in codebase.modules[symbol.path].symbols:
        if other.start >= symbol.start and other.end <= symbol.end:
            yield other


def stub_edit(module: PythonModule, symbol: Symbol, body: tuple[str, ...], *, keep_docstring: bool) -> Edit:
    """The edit that replaces a function's body and the comments in it by the statements ``body``."""
    source = module.source
    ending = _newline(source)
    if keep_docstring and symbol.code_start == symbol.end:
        indent = _indent_at(source, symbol.body_start)
        text = f"; {'; '.join(body)}" if indent is None else "".join(f"{ending}{indent}{line}" for line in body)
        return Edit(symbol.end, symbol.end, text.encode())
    start = symbol.code_start if keep_docstring else symbol.body_start
    indent = _indent_at(source, start)
    if indent is None:
        return Edit(start, symbol.end, "; ".join(body).encode())
    lines = f"{indent}{f'{ending}{indent}'.join(body)}"
    return Edit(_with_comments(source, start, symbol.start), symbol.end, lines.encode())


def _with_comments(source: bytes, start: int, floor: int) -> int:
    """Start of the line of ``start``, or of the first comment line directly above it; if the first of these is for a
    linter, it stays, as it may be about the signature, unless all that it has are pylint's messages on the body."""
    line_start = first = source.rfind(b"\n", 0, start) + 1
    comments: list[tuple[int, int]] = []
    while line_start > floor:
        line_start = source.rfind(b"\n", 0, line_start - 1) + 1
        end = source.find(b"\n", line_start)
        line = source[line_start:end].strip()
        if line.startswith(b"#") and not line.endswith((b'"""', b"'''")):
            first = line_start
            comments.append((line_start, end + 1))
        elif line:
            break
    lines = ((end, source[begin:end].strip()) for begin, end in reversed(comments))
    leading = list(itertools.takewhile(lambda each: _FOR_LINTERS.match(each[1]), lines))
    return first if all(_is_of_body(line) for _, line in leading) else leading[-1][0]


def _is_of_body(comment: bytes) -> bool:
    """Whether a comment switches off messages of pylint that only a body can cause."""
    _, found, messages = comment.partition(b"pylint: disable=")
    return bool(found) and _OF_SIGNATURE.search(messages) is None


def _indent_at(source: bytes, start: int) -> str | None:
    """White space before a statement; ``None`` if its line begins with something else."""
    line_start = source.rfind(b"\n", 0, start) + 1
    before = source[line_start:start]
    return before.decode() if not before.strip() else None


def _newline(source: bytes) -> str:
    first = source.find(b"\n")
    return "\r\n" if first > 0 and source[first - 1 : first] == b"\r" else "\n"


def is_abstract(symbol: Symbol) -> bool:
    """Whether a method is abstract."""
    return any("abstract" in d.rpartition(".")[2] for d in symbol.decorators)


_PROGRAM = "__excise_trivial_program__"
"""Name of the function that such a body calls (``excise_trivial.py``)."""
_ANY = "NotImplementedError, AttributeError, IndexError, KeyError, TypeError, ValueError"


def empty_body(symbol: Symbol, kind: str) -> tuple[str, ...]:
    """Statements of an empty body.

    ``none`` returns ``None``, or yields nothing in a generator; ``raise`` raises ``NotImplementedError``; ``any``
    raises an exception that is an instance of many common ones; ``trivial`` returns or yields what a program does.
    """
    if symbol.kind is SymbolKind.CLASS:
        return ("pass",)
    if kind == TRIVIAL:
        is_bound = symbol.kind is SymbolKind.METHOD and "staticmethod" not in symbol.decorators
        call = f"{_PROGRAM}(locals(), globals(), {symbol.name.partition('#')[0]!r}, {is_bound})"
        if symbol.is_generator:
            return (f"for each in {call}: yield each",) if symbol.is_async else (f"yield from {call}",)
        return (f"return {call}",)
    if kind == "raise":
        return ("raise NotImplementedError",)
    if kind == "any":
        return (f"raise type('Missing', ({_ANY}), {{}})",)
    return ("return", "yield") if symbol.is_generator else ("return None",)


def bare_classes(codebase: PythonCodebase, symbol_ids: Iterable[str]) -> list[Symbol]:
    """The classes without functions that are among the symbols or inside modules among them."""
    found: dict[str, Symbol] = {}
    for symbol_id in symbol_ids:
        for other in _inside(codebase, codebase.symbols()[symbol_id]):
            inner = [s for s in _inside(codebase, other) if s.symbol_id != other.symbol_id]
            if other.kind is SymbolKind.CLASS and not inner:
                found[other.symbol_id] = other
    return list(found.values())
