"""How Go code looks to a leak scan; see :class:`excise.protocols.ScanRules`."""

from __future__ import annotations

from excise.protocols import ScanRules

_KEYWORDS = (
    "break case chan const continue default defer else fallthrough for func go goto if import interface map package "
    "range return select struct switch type var nil true false iota append cap close copy delete len make new panic "
    "print println recover bool byte error float32 float64 int int8 int16 int32 int64 rune string uint uint8 uint16 "
    "uint32 uint64 uintptr any"
)
SCAN_RULES = ScanRules(
    literals=rb"`[^`]*`|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|//[^\n]*|/\*(?s:.*?)\*/",
    comments=(b"//", b"/*"),
    keywords=frozenset(word.encode() for word in _KEYWORDS.split()),
    before_name=r"^func \([^)]*\) ",
    definitions=(r"func(?:[ \t]*\([^)\n]*\))?", "type"),
    derived=r"/usr/lib/go-[\d.]+/(?:pkg|bin)/",
    copies=r"/usr/share/(?:go-[\d.]+/src/vendor|gocode)/",
)
"""The compiled standard library is made of its sources; ``golang.org/x`` packages are copied into these."""
