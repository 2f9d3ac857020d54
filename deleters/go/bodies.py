"""Bodies of functions that do nothing: the stub that a task has, and the stand-ins that gates try."""

from __future__ import annotations

from collections.abc import Iterable

from tree_sitter import Node

from excise.deleters.deletion_record import Changed
from excise.deleters.edits.byte_edits import Edit, apply_edits
from excise.deleters.go.imports import without_unused_imports
from excise.errors import DeletionRefused
from excise.extractors.go.analysis.codebase import GoCodebase
from excise.extractors.go.analysis.grammar import parse_tree, text
from excise.extractors.go.analysis.parsed_file import parse_file
from excise.types import Symbol, SymbolKind

PLACEHOLDER = 'panic("not implemented")'
"""The statement in the place of deleted code; it needs no import and fits every result."""
_ERROR = "struct{ error }{}"
"""An error that is not nil."""


def functions_of(codebase: GoCodebase, symbol_ids: Iterable[str]) -> list[Symbol]:
    """The functions and methods among the symbols, in modules among them, and the methods of types among them."""
    symbols, found = codebase.symbols(), dict[str, Symbol]()
    for symbol_id in symbol_ids:
        symbol = symbols[symbol_id]
        for other in codebase.modules[symbol.path].symbols:
            inside = symbol.start <= other.start and other.end <= symbol.end
            of_type = symbol.kind is SymbolKind.CLASS and other.holder_id == symbol.symbol_id
            if other.is_callable and (inside or of_type):
                found[other.symbol_id] = other
    return sorted(found.values(), key=lambda s: (s.path, s.start))


def with_bodies(codebase: GoCodebase, functions: Iterable[Symbol], kind: str) -> Changed:
    """Path to (content before, content after) of files whose ``functions`` get bodies of a kind.

    Kinds: ``raise`` panics, ``none`` returns zero values, ``any`` returns zero values and errors that are not nil.
    Imports that are no longer used go. Raises :class:`DeletionRefused` if a file no longer parses.
    """
    by_path: dict[str, list[Symbol]] = {}
    for function in functions:
        by_path.setdefault(function.path, []).append(function)
    changed: dict[str, tuple[bytes, bytes | None]] = {}
    for path, chosen in by_path.items():
        module = codebase.modules[path]
        root = parse_tree(module.source).root_node
        edits = [_edit(root, module.source, symbol, kind) for symbol in chosen]
        after = without_unused_imports(module, apply_edits(module.source, edits))
        if parse_file(path, after).has_error:
            raise DeletionRefused(f"{path}: would no longer parse", reason="syntax_error")
        if after != module.source:
            changed[path] = (module.source, after)
    return changed


def _edit(root: Node, source: bytes, symbol: Symbol, kind: str) -> Edit:
    node = root.descendant_for_byte_range(symbol.start, symbol.end - 1)
    while node is not None and (node.start_byte, node.end_byte) != (symbol.start, symbol.end):
        node = node.parent
    body = node.child_by_field_name("body") if node is not None else None
    if node is None or body is None:
        raise DeletionRefused(f"{symbol.symbol_id}: has no body", reason="nothing_to_stub")
    ending = b"\r\n" if b"{\r\n" in source[body.start_byte : body.start_byte + 3] else b"\n"
    lines = _body(node, source, kind)
    inner = b"".join(b"\t" + line.encode() + ending for line in lines)
    return Edit(body.start_byte, body.end_byte, b"{" + ending + inner + b"}" if lines else b"{" + ending + b"}")


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
