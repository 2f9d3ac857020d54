"""Bodies of functions that do nothing: the stub that a task has, and the stand-ins that gates try."""

from __future__ import annotations

from tree_sitter import Node

from excise.deleters.edits.byte_edits import Edit
from excise.errors import DeletionRefused
from excise.extractors.go.analysis.codebase import GoCodebase
from excise.extractors.go.analysis.grammar import text
from excise.types import Symbol

PLACEHOLDER = 'panic("not implemented")'
"""The statement in the place of deleted code; it needs no import and fits every result."""
_ERROR = "struct{ error }{}"
"""An error that is not nil."""


def body(codebase: GoCodebase, root: Node, symbol: Symbol, kind: str) -> Edit:
    """The edit that gives a function a body of a kind.

    Kinds: ``raise`` panics, ``none`` returns zero values, ``any`` returns zero values and errors that are not nil.
    Raises :class:`DeletionRefused` if it has none.
    """
    source = codebase.modules[symbol.path].source
    node = root.descendant_for_byte_range(symbol.start, symbol.end - 1)
    while node is not None and (node.start_byte, node.end_byte) != (symbol.start, symbol.end):
        node = node.parent
    block = node.child_by_field_name("body") if node is not None else None
    if node is None or block is None:
        raise DeletionRefused(f"{symbol.symbol_id}: has no body", reason="nothing_to_stub")
    ending = b"\r\n" if b"{\r\n" in source[block.start_byte : block.start_byte + 3] else b"\n"
    lines = _body(node, source, kind)
    inner = b"".join(b"\t" + line.encode() + ending for line in lines)
    return Edit(block.start_byte, block.end_byte, b"{" + ending + inner + b"}" if lines else b"{" + ending + b"}")


def _body(function: Node, source: bytes, kind: str) -> list[str]:
    if kind == "raise":
        return [PLACEHOLDER]
    types = _result_types(function, source)
    if not types:
        return []
    names = [f"result{number}" for number in range(len(types))]
    declared = [f"var {name} {each}" for name, each in zip(names, types, strict=True)]
    if kind == "any":
        errors = [f"{n} = {_ERROR}" for n, each in zip(names, types, strict=True) if each == "error"]
        declared += errors
    return [*declared, f"return {', '.join(names)}"]


def _result_types(function: Node, source: bytes) -> list[str]:
    """Source text of the type of each result."""
    result = function.child_by_field_name("result")
    if result is None:
        return []
    if result.type != "parameter_list":
        return [text(result, source)]
    types: list[str] = []
    for declaration in result.named_children:
        kind = declaration.child_by_field_name("type")
        if kind is not None:
            count = max(1, len(declaration.children_by_field_name("name")))
            types += [text(kind, source)] * count
    return types
