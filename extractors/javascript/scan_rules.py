"""How JavaScript code looks to a leak scan; see :class:`excise.protocols.ScanRules`."""

from __future__ import annotations

from excise.protocols import ScanRules

_KEYWORDS = (
    "async await break case catch class const continue debugger default delete do else enum export extends false "
    "finally for from function get if import in instanceof let new null of return set static super switch this throw "
    "true try typeof undefined var void while with yield require module exports interface type enum namespace declare "
    "readonly private protected public abstract implements keyof infer satisfies as is asserts unknown never any "
    "string number boolean"
)
SCAN_RULES = ScanRules(
    literals=rb"`(?:\\.|[^`\\])*`|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|//[^\n]*|/\*(?s:.*?)\*/",
    comments=(b"//", b"/*"),
    keywords=frozenset(word.encode() for word in _KEYWORDS.split()),
    definitions=(r"function[ \t]*\*?", "class", "const", "let", "var", "interface", "type", "enum"),
    copies="/usr/share/(?:nodejs|javascript)/|/usr/lib/node_modules/",
)
"""Debian's packages of JavaScript are copies of projects."""
