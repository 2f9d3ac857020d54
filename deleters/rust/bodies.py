"""Bodies of functions that do nothing: the stub that a task has, and the stand-ins that gates try."""

from __future__ import annotations

import re

from tree_sitter import Node

from excise.deleters.edits.byte_edits import Edit
from excise.errors import DeletionRefused
from excise.extractors.rust.analysis.codebase import RustCodebase
from excise.extractors.rust.analysis.grammar import text
from excise.types import Symbol

PLACEHOLDER = "unimplemented!()"
"""The expression in the place of deleted code; its type fits every result but ``impl Trait``."""
_DENIES_UNUSED = re.compile(
    rb"(?m)^[ \t]{0,80}#!\[(?:deny|forbid)\([^)]{0,400}\b(?:warnings|unused|unused_variables)\b"
)
"""What makes unused variables errors in a crate."""
_NUMBER = re.compile(r"[iu](?:8|16|32|64|128|size)|f(?:32|64)")
_WITH_DEFAULT = re.compile(
    r"(?:[\w:]*::)?(?:String|(?:Vec|HashMap|BTreeMap|HashSet|BTreeSet|VecDeque|Option)<.*>)|&(?:'\w+ )?str"
)


def body(codebase: RustCodebase, root: Node, symbol: Symbol, kind: str) -> Edit:
    """The edit that gives a function a body of a kind.

    Kinds: ``raise`` panics, ``none`` returns the default of the result's type, ``any`` another value of it; where a
    type is not known, these panic, too. Raises :class:`DeletionRefused` if it has none.
    """
    source = codebase.modules[symbol.path].source
    node = root.descendant_for_byte_range(symbol.start, symbol.end - 1)
    while node is not None and (node.start_byte, node.end_byte) != (symbol.start, symbol.end):
        node = node.parent
    block = node.child_by_field_name("body") if node is not None else None
    if node is None or block is None:
        raise DeletionRefused(f"{symbol.symbol_id}: has no body", reason="nothing_to_stub")
    ending = b"\r\n" if b"{\r\n" in source[block.start_byte : block.start_byte + 3] else b"\n"
    line = source.rfind(b"\n", 0, node.start_byte) + 1
    indentation = source[line : node.start_byte]
    indentation = indentation[: len(indentation) - len(indentation.lstrip())]
    before = _discarded(codebase, node, source) if kind == "raise" else []
    inner = filter(None, [*before, _body(node, source, kind)])
    lines = b"".join(indentation + b"    " + line.encode() + ending for line in inner)
    return Edit(block.start_byte, block.end_byte, b"{" + ending + lines + indentation + b"}")


def _discarded(codebase: RustCodebase, function: Node, source: bytes) -> list[str]:
    """The statement that uses the parameters of a function, if unused ones are errors in its crate."""
    if not any(_DENIES_UNUSED.search(module.source) for module in codebase.modules.values()):
        return []
    parameters = function.child_by_field_name("parameters")
    listed = parameters.named_children if parameters is not None else []
    if any(each.type == "attribute_item" for each in listed):  # some may not be there
        return []
    names = []
    for parameter in listed:
        pattern = parameter.child_by_field_name("pattern") if parameter.type == "parameter" else None
        is_mutable = any(each.type == "mutable_specifier" for each in parameter.named_children)
        if pattern is not None and pattern.type == "identifier" and not text(pattern, source).startswith("_"):
            names.append(f"&{'mut ' if is_mutable else ''}{text(pattern, source)}")
    return [f"let _ = {names[0] if len(names) == 1 else '(' + ', '.join(names) + ')'};"] if names else []


def _body(function: Node, source: bytes, kind: str) -> str:
    result = function.child_by_field_name("return_type")
    if kind == "raise":
        return PLACEHOLDER
    if result is None:
        return ""
    found = _value(" ".join(text(result, source).split()), kind)
    return found or PLACEHOLDER


def _value(result: str, kind: str) -> str:
    """A value of a type; empty if none is known."""
    other = kind == "any"
    if result in {"()", "bool"}:
        return result if result == "()" else str(other).lower()
    if _NUMBER.fullmatch(result):
        return f"{int(other)} as {result}"
    if other and (inner := re.fullmatch(r"Option<(.+)>", result)):
        value = _value(inner[1], "none")
        return f"Some({value})" if value else "None"
    if inner := re.fullmatch(r"(?:[\w:]*::)?Result<(.+)>", result):
        return _outcome(_split(inner[1]), other)
    is_tuple = result.startswith("(") and result.endswith(")")
    return _tuple(result[1:-1], kind) if is_tuple else "Default::default()" if _WITH_DEFAULT.fullmatch(result) else ""


def _tuple(types: str, kind: str) -> str:
    """A value of a tuple's type, or of a type in parentheses."""
    values = [_value(part, kind) for part in _split(types)]
    if len(values) == 1 and not types.rstrip().endswith(","):
        return values[0]
    return f"({', '.join(values)}{',' if len(values) == 1 else ''})" if all(values) else ""


def _outcome(types: list[str], other: bool) -> str:
    """A value of a result's type: an error if ``other``, where one is known."""
    value = _value(types[1], "none") if other and len(types) == 2 else ""
    if value:
        return f"Err({value})"
    value = _value(types[0], "none")
    return f"Ok({value})" if value else ""


def _split(parameters: str) -> list[str]:
    """The types that commas at the top level divide."""
    parts, depth = [""], 0
    for letter in parameters:
        depth += (letter in "<([") - (letter in ">)]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]
