"""How Python code looks to a leak scan; see :class:`excise.protocols.ScanRules`."""

from __future__ import annotations

import keyword

from excise.protocols import ScanRules

_PREFIXES = frozenset(
    first + second for first in (b"", b"r", b"R", b"b", b"B", b"f", b"F") for second in (b"", b"r", b"b", b"f", b"R")
)
SCAN_RULES = ScanRules(
    literals=(rb"(?P<quote>\"\"\"|''')(?s:.*?)(?P=quote)|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|#[^\n]*"),
    comments=(b"#",),
    keywords=frozenset(word.encode() for word in keyword.kwlist) | {b"print"} | _PREFIXES,
    definitions=(r"async[ \t]+def", "def", "class"),
)
