"""Stand-ins: bodies of functions that do nothing, raise, or return a constant."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tree_sitter import Node

from excise.deleters.deletion_record import patch_of
from excise.deleters.edits.byte_edits import Edit, apply_edits
from excise.errors import DeletionRefused
from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.extractors.javascript.analysis.grammar import TYPED, descendants, parse_tree, text
from excise.extractors.javascript.analysis.parsed_file import FunctionSpan
from excise.protocols import CONSTANTS, EMPTY
from excise.types import Symbol, SymbolKind

BODIES = {
    "none": "return undefined",
    "raise": "throw new Error('not implemented')",
    "any": "throw new TypeError('not implemented')",
    "true": "return true",
    "false": "return false",
    "zero": "return 0",
    "text": "return ''",
    "list": "return []",
    "object": "return {}",
    "argument": "return arguments[0]",
    "length": "return Object(arguments[0]).length",
}
"""Kind of stand-in to its body; ``TypeError`` is what tests of errors expect most often."""


def functions_of(codebase: JavaScriptCodebase, symbols: Iterable[str]) -> list[Symbol]:
    """The functions among the symbols and in them; of functions in others, only the outer ones."""
    found: dict[str, Symbol] = {}
    for symbol_id in symbols:
        for member in codebase.members(symbol_id):
            symbol = codebase.symbols()[member]
            if symbol.qualname in codebase.modules[symbol.path].functions:
                found[member] = symbol
    spans = {s.symbol_id: codebase.modules[s.path].functions[s.qualname] for s in found.values()}
    return [
        symbol
        for symbol in sorted(found.values(), key=lambda s: (s.path, s.start))
        if not any(
            symbol.path == other.path
            and spans[other.symbol_id].start < spans[symbol.symbol_id].start
            and spans[symbol.symbol_id].end <= spans[other.symbol_id].end
            for other in found.values()
        )
    ]


def emptied(
    codebase: JavaScriptCodebase, functions: Iterable[Symbol], kind: str
) -> dict[str, tuple[bytes, bytes | None]]:
    """Path to (content before, content after) with stand-ins of a kind in the place of the functions' bodies.

    Raises :class:`DeletionRefused` if a file could no longer be parsed.
    """
    edits: dict[str, list[Edit]] = {}
    for symbol in functions:
        own = edits.setdefault(symbol.path, [])
        own.append(body_edit(codebase, symbol, kind))
        span = codebase.modules[symbol.path].functions[symbol.qualname]
        if symbol.path.endswith(TYPED) and span.result_at >= 0:  # else the type would be that of a body that throws
            own.append(Edit(span.result_at, span.result_at, f": {span.result}".encode()))
    changed: dict[str, tuple[bytes, bytes | None]] = {}
    for path, own in edits.items():
        source = codebase.modules[path].source
        after = apply_edits(source, own)
        require_parses(path, after)
        changed[path] = (source, after)
    return changed


def require_parses(path: str, after: bytes) -> None:
    """Raise :class:`DeletionRefused` if a file has a syntax error."""
    if parse_tree(after).root_node.has_error:
        raise DeletionRefused(f"{path}: without the code, it cannot be parsed", reason="does_not_parse")


def body_edit(codebase: JavaScriptCodebase, symbol: Symbol, kind: str) -> Edit:
    """The edit that replaces a function's body by a stand-in."""
    module = codebase.modules[symbol.path]
    span, source = module.functions[symbol.qualname], module.source
    semicolon = ";" if source.count(b";\n") * 4 > source.count(b"\n") else ""
    ending = "\r\n" if b"\r\n" in source else "\n"
    outer = _indentation(source, span.start)
    inner = outer + _step(source)
    body_line = BODIES[kind]
    if "arguments" in body_line and (arrow := _arrow_function(source, span)) is not None:  # it has none of its own
        body_line = body_line.replace("arguments[0]", _first_parameter(arrow, source) or "undefined")
    is_plain = kind in CONSTANTS and (span.constructs or _returns_nothing(symbol))
    if body_line.startswith("return") and (is_plain or module.path.endswith(TYPED)):
        body_line = "return" if _returns_nothing(symbol) or is_plain else f"{body_line} as any"
    lines = [f"{inner}{body_line}{semicolon}"]
    if span.constructs:
        lines.insert(0, f"{inner}{_super_call(source, span, module.path)}{semicolon}")
    body = f"{ending}{ending.join(lines)}{ending}{outer}"
    if span.is_expression:
        return Edit(span.body_start, span.body_end, f"{{{body}}}".encode())
    return Edit(span.body_start, span.body_end, body.encode())


def _arrow_function(source: bytes, span: FunctionSpan) -> Node | None:
    """The node of a function, if it is an arrow function."""
    node = parse_tree(source).root_node.descendant_for_byte_range(span.start, span.end - 1)
    while node is not None and (node.start_byte, node.end_byte) != (span.start, span.end):
        node = node.parent
    return node if node is not None and node.type == "arrow_function" else None


def _first_parameter(arrow: Node, source: bytes) -> str:
    """The name of the first parameter of an arrow function; empty if it has none that is a plain name."""
    first = arrow.child_by_field_name("parameter")
    listed = arrow.child_by_field_name("parameters")
    if first is None and listed is not None:
        first = next((child for child in listed.named_children if child.type != "comment"), None)
    while first is not None and first.type != "identifier":
        first = first.child_by_field_name("pattern") or first.child_by_field_name("left")
    return text(first, source) if first is not None else ""


def _returns_nothing(symbol: Symbol) -> bool:
    """Whether TypeScript forbids a function to return a value."""
    return symbol.name == "constructor" or symbol.signature.startswith("set ") or "): asserts " in symbol.signature


def _super_call(source: bytes, span: FunctionSpan, path: str) -> str:
    """The call of the other constructor: in TypeScript the one of the original, since arguments have types."""
    if path.endswith(TYPED):
        for node in descendants(parse_tree(source).root_node):
            if node.type == "call_expression" and span.body_start <= node.start_byte < span.body_end:
                function = node.child_by_field_name("function")
                if function is not None and function.type == "super":
                    return text(node, source)
    return "super(...arguments)"


def _indentation(source: bytes, offset: int) -> str:
    start = source.rfind(b"\n", 0, offset) + 1
    line = source[start:offset]
    return line[: len(line) - len(line.lstrip())].decode()


def _step(source: bytes) -> str:
    """One level of indentation as the file has it."""
    for line in source.split(b"\n"):
        if line.startswith(b"\t"):
            return "\t"
        width = len(line) - len(line.lstrip(b" "))
        if width >= 2 and line.strip() and not line.strip().startswith(b"*"):
            return " " * min(width, 8)
    return "  "


def stand_ins(codebase: JavaScriptCodebase, symbols: Collection[str]) -> tuple[tuple[str, str], ...]:
    """See :meth:`excise.protocols.CodeEditor.stand_ins`: those that do nothing, or return a constant."""
    functions = functions_of(codebase, [s for s in symbols if s in codebase.symbols()])
    if not functions and not any(codebase.symbols()[s].kind is SymbolKind.CLASS for s in symbols):
        return ()
    found = {kind: patch_of(codebase, emptied(codebase, functions, kind)) for kind in EMPTY}
    for kind in CONSTANTS:
        try:
            patch = patch_of(codebase, emptied(codebase, functions, kind))
        except DeletionRefused:
            continue  # one stand-in less
        if patch and patch not in found.values():
            found[kind] = patch
    return tuple(found.items())
