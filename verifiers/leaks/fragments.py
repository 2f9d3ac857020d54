"""What decoding a file yields (texts, strings of binaries, code objects), and the limits of decoding."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

MAX_PART = 64 << 20
"""Bytes of a file, or of one member of an archive, that are read."""
MAX_TOTAL = 256 << 20
"""Bytes that everything decoded from one file may have together."""
MAX_PARTS = 50_000
"""Members, streams and strings that one file may have."""
MAX_DEPTH = 6
"""Decoders inside each other: a base64 string in a JSON file in a zip in a tar.gz takes five."""


class FragmentKind(StrEnum):
    """What a fragment is: it decides which matches count."""

    TEXT = "text"
    """Text as people or tools wrote it."""
    STRINGS = "strings"
    """What is printable in a binary."""
    CODE = "code"
    """Names and constants of one compiled function, class or module."""


@dataclass(frozen=True, slots=True)
class CodeShape:
    """One code object: byte code that was read, never run."""

    name: str
    """Its name."""
    parameters: tuple[str, ...]
    """Names of its parameters."""
    words: frozenset[str]
    """Names of variables, attributes and globals, and string constants that look like names; nested code included."""
    holder: str = ""
    """Name of the enclosing code object, ``<module>`` for a module; empty where it is not known."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """One text, set of strings or code object that a decoder found in a file."""

    kind: FragmentKind
    """What it is."""
    data: bytes = b""
    """UTF-8 text, or strings one to a line."""
    code: CodeShape | None = None
    """For :attr:`FragmentKind.CODE`."""


@dataclass(slots=True)
class DecodingLimits:
    """What may still be decoded of the current file, and whether something was left out."""

    bytes_left: int = MAX_TOTAL
    """Decoded bytes."""
    parts_left: int = MAX_PARTS
    """Parts."""
    only_python: bool = False
    """Skip texts and programs without any of the words that Python code nearly always has."""
    partial: bool = False
    """Something was too large, too deep or damaged: not all of the file was decoded."""
    used: set[str] = field(default_factory=set)
    """Names of the decoders that found something to decode."""

    def take(self, size: int) -> bool:
        """Count a part of ``size`` bytes. False, and :attr:`partial` is set, if the limits leave no room for it."""
        if self.parts_left <= 0 or size > self.bytes_left:
            self.partial = True
            return False
        self.parts_left -= 1
        self.bytes_left -= size
        return True
