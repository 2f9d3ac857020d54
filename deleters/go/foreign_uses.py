"""Calls of Go code that may be of any type, and have the name of a removed method."""

from __future__ import annotations

import re

from excise.protocols import Codebase
from excise.types import Symbol, SymbolKind


def is_foreign_use(codebase: Codebase, symbol: Symbol, caller: str, line: str) -> bool:
    """Whether the method that a line calls may be one of any type: of an ``error``, or of a variable of a type
    that is not the project's, or of one that a type switch found to be none of the method's."""
    if symbol.kind is not SymbolKind.METHOD:
        return False
    name = symbol.name.partition("#")[0]
    owner = symbol.qualname.rpartition(".")[0].rpartition(".")[2]
    receivers = set(re.findall(rf"(?<![\w.])(\w+)\.{re.escape(name)}\b", line))
    if not receivers:
        return False
    where = codebase.symbols()[caller]
    text = codebase.modules[where.path].source[where.start : where.end].decode(errors="replace")
    types = {each.name for each in codebase.symbols().values() if each.kind is SymbolKind.CLASS}
    known = [_types_of(receiver, text, line) for receiver in receivers]
    is_named = re.search(rf"(?:(?<![.\w])|[*&]\w+\.){re.escape(owner)}\b", text) is not None
    if name == "Error" and not is_named:
        known = [found or ["error"] for found in known]
    return all(found and owner not in found and types.isdisjoint(found) for found in known)


def _types_of(variable: str, code: str, line: str) -> list[str]:
    """The last names of the types that a function of Go declares a variable to have, or those of the ``case`` of a type
    switch that a line of it is in, with an empty one for ``default``; none if neither is known."""
    switches = list(re.finditer(rf"\bswitch\s+{variable}\s*:=[^\n{{]*\.\(type\)\s*\{{", code))
    place = code.find(line, switches[0].end()) if switches else -1
    if place >= 0:
        cases = re.findall(r"(?m)^[ \t]*(?:case\s+([^\n:]+)|default)\s*:", code[switches[0].end() : place])
        return [each.strip().rpartition(".")[2].lstrip("*") for each in cases[-1].split(",")] if cases else []
    names = rf"(?:\w+\s*,\s*)*{variable}(?:\s*,\s*\w+)*"
    declared = re.findall(rf"(?:[(,]|\bvar\b)[ \t]*{names}[ \t]+([*\[\]\w.]+)", code)
    return [each.rpartition(".")[2].lstrip("*") for each in declared]
