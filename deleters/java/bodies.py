"""Bodies of methods that do nothing: the stub that a task has, and the stand-ins that gates try."""

from __future__ import annotations

import re

from tree_sitter import Node

from excise.deleters.edits.byte_edits import Edit
from excise.errors import DeletionRefused
from excise.extractors.java.analysis.codebase import JavaCodebase
from excise.extractors.java.analysis.grammar import (
    CONSTRUCTORS,
    descendants,
    has_modifier,
    members_of,
    name_of,
    statements,
    text,
)
from excise.types import Symbol, SymbolKind

PLACEHOLDER = 'throw new UnsupportedOperationException("not implemented");'
"""The statement in the place of deleted code; it needs no import and fits every result."""
_ZEROS = {"boolean": "false", **dict.fromkeys(("byte", "short", "char", "int", "long", "float", "double"), "0")}
"""Zero values of the types that are no references."""
_UNCHECKED = (
    "NumberFormatException", "IllegalArgumentException", "StringIndexOutOfBoundsException",
    "ArrayIndexOutOfBoundsException", "IndexOutOfBoundsException", "NullPointerException", "IllegalStateException",
    "ArithmeticException", "ClassCastException", "NegativeArraySizeException",
)  # fmt: skip
"""Exceptions of ``java.lang`` that methods throw on purpose."""
_UTIL = ("NoSuchElementException", "ConcurrentModificationException", "EmptyStackException", "MissingResourceException")
"""The same in ``java.util``; only those with a constructor without arguments are thrown."""
_DEFAULT = "throw new NumberFormatException();"
"""What passes for most errors: it is an ``IllegalArgumentException``, too."""


def body(codebase: JavaCodebase, root: Node, symbol: Symbol, kind: str) -> Edit:
    """The edit that gives a method a body of a kind.

    Kinds: ``raise`` throws what no test expects, ``none`` returns zero values, ``any`` throws what the original code or
    its signature names. Calls of other constructors stay, since the language needs them. Raises
    :class:`DeletionRefused` if it has none.
    """
    source = codebase.modules[symbol.path].source
    node = root.descendant_for_byte_range(symbol.start, symbol.end - 1)
    while node is not None and (node.start_byte, node.end_byte) != (symbol.start, symbol.end):
        node = node.parent
    block = node.child_by_field_name("body") if node is not None else None
    if node is None or block is None:
        raise DeletionRefused(f"{symbol.symbol_id}: has no body", reason="nothing_to_stub")
    ending = b"\r\n" if b"\r\n" in source[block.start_byte : block.end_byte] else b"\n"
    line = source[source.rfind(b"\n", 0, symbol.start) + 1 : symbol.start]
    margin = line if not line.strip() else line[: len(line) - len(line.lstrip())]
    step = _step(source, block, margin)
    lines = _body(codebase, node, source, symbol, kind)
    inner = b"".join(margin + step + line.encode() + ending for line in lines)
    return Edit(block.start_byte, block.end_byte, b"{" + ending + inner + margin + b"}")


def _step(source: bytes, block: Node, margin: bytes) -> bytes:
    """The blanks by which the body of a method is further in than its head: as it is, or as usual."""
    first = next(iter(statements(block)), None)
    own = source[source.rfind(b"\n", 0, first.start_byte) + 1 : first.start_byte] if first is not None else b""
    if own.startswith(margin) and len(own) > len(margin) and not own.strip():
        return own[len(margin) :]
    return b"\t" if margin.startswith(b"\t") else b"    "


def _body(codebase: JavaCodebase, function: Node, source: bytes, symbol: Symbol, kind: str) -> list[str]:
    kept = _explicit_call(function, source)
    if kind == "raise":
        return [*kept, PLACEHOLDER]
    if kind == "any":
        return [*kept, _likely_error(codebase, function, source, symbol)]
    if function.type in CONSTRUCTORS:
        return [*kept, *([] if kept and kept[0].startswith("this") else _assignments(function, source))]
    result = function.child_by_field_name("type")
    if result is None or result.type == "void_type":
        return []
    return [f"return {_zero(result, function, source)};"]


def _zero(kind: Node, declaration: Node, source: bytes) -> str:
    is_array = any(child.type == "dimensions" for child in declaration.children)
    return "null" if is_array else _ZEROS.get(text(kind, source), "null")


def _explicit_call(function: Node, source: bytes) -> list[str]:
    """The call of another constructor at the beginning of one, on one line."""
    body = function.child_by_field_name("body")
    first = next(iter(statements(body)), None) if body is not None else None
    if first is None or first.type != "explicit_constructor_invocation":
        return []
    return [" ".join(text(first, source).split())]


def _assignments(constructor: Node, source: bytes) -> list[str]:
    """Zero values for the final fields that constructors must assign."""
    if constructor.type == "compact_constructor_declaration":
        return []
    holder = constructor.parent
    while holder is not None and holder.child_by_field_name("body") is None:
        holder = holder.parent
    if holder is None:
        return []
    members = list(members_of(holder))
    assigned = {
        text(leaf, source)
        for member in members
        if member.type == "block"
        for each in descendants(member)
        if each.type == "assignment_expression"
        for leaf in [each.child_by_field_name("left")]
        if leaf is not None
    }
    found = []
    for member in members:
        if member.type != "field_declaration" or not has_modifier(member, "final") or has_modifier(member, "static"):
            continue
        kind = member.child_by_field_name("type")
        for each in member.named_children:
            name = name_of(each, source) if each.type == "variable_declarator" else ""
            blank = bool(name) and each.child_by_field_name("value") is None
            if blank and kind is not None and not {name, f"this.{name}"} & assigned:
                found.append(f"this.{name} = {_zero(kind, each, source)};")
    return found


def _likely_error(codebase: JavaCodebase, function: Node, source: bytes, symbol: Symbol) -> str:
    """A statement that throws what the original code throws, or says that it does."""
    told = text(function, source) + symbol.docstring
    declared = next((text(child, source) for child in function.children if child.type == "throws"), "")
    for name in re.findall(r"\w+", declared.partition("throws")[2]):
        if name == "IOException":
            return "throw new java.io.IOException();"
        if arguments := _constructor_of(codebase, symbol.path, name):
            return f"throw new {name}{arguments};"
    for name in _UNCHECKED:
        if re.search(rf"\b{name}\b", told):
            return f"throw new {name}();"
    for name in _UTIL[:3]:
        if re.search(rf"\b{name}\b", told):
            return f"throw new java.util.{name}();"
    return _DEFAULT


def _constructor_of(codebase: JavaCodebase, path: str, name: str) -> str:
    """Arguments for a constructor of an exception of the project in the package of a file; empty if none is known."""
    for module in codebase.modules.values():
        if codebase.is_test(module.path):
            continue
        visible = module.package == codebase.modules[path].package or any(
            each.name == name for each in codebase.modules[path].imports
        )
        if not visible or not any(s.kind is SymbolKind.CLASS and s.qualname == name for s in module.symbols):
            continue
        heads = [s.signature for s in module.symbols if s.is_callable and s.name.partition("#")[0] == name]
        for pattern, arguments in ((r"\(\s*\)", "()"), (r"\(\s*(?:final )?String \w+\s*\)", '("")')):
            if any(re.search(pattern, head) for head in heads):
                return arguments
    return ""
