"""How Java code looks to a leak scan; see :class:`excise.protocols.ScanRules`."""

from __future__ import annotations

from excise.protocols import ScanRules

_KEYWORDS = (
    "abstract assert boolean break byte case catch char class const continue default do double else enum extends final "
    "finally float for goto if implements import instanceof int interface long native new package private protected "
    "public return short static strictfp super switch synchronized this throw throws transient try void volatile while "
    "true false null var record sealed permits yield String Object Integer Override"
)
SCAN_RULES = ScanRules(
    literals=rb"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|//[^\n]*|/\*(?s:.*?)\*/",
    comments=(b"//", b"/*"),
    keywords=frozenset(word.encode() for word in _KEYWORDS.split()),
    parameter=r"(?s:.*?)([^\W\d]\w*)\s*$",
    definitions=(
        "class",
        "interface",
        "enum",
        "record",
        *(word + r"(?:[ \t]+[\w<>\[\],.?]+)*" for word in ("public", "protected", "private", "static", "final")),
        "void",
        "boolean",
        "int",
        "long",
        "String",
    ),
    derived=r"/usr/lib/jvm/[^/]+/(?:lib/(?:modules|ct\.sym|server/classes[^/]*\.jsa|jrt-fs\.jar)$|jmods/)",
    copies=r"/usr/share/(?:java|maven-repo)/",
)
"""The image of modules holds the compiled library of Java itself, whose packages are no project's."""
