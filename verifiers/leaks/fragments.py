"""What reading a file yields: texts, strings of binaries and code objects; and how much of a file is read at all."""

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
"""Decoders in each other: a base64 string in a JSON file in a zip in a tar.gz has five."""


class Kind(StrEnum):
    """What a piece is; it decides which matches mean anything."""

    TEXT = "text"
    """Text as people or tools wrote it."""
    STRINGS = "strings"
    """What is printable in a binary."""
    CODE = "code"
    """Names and constants of one compiled function, class or module."""


@dataclass(frozen=True, slots=True)
class Code:
    """One code object: byte code that was read, never run."""

    name: str
    """Its name."""
    parameters: tuple[str, ...]
    """Names of its parameters."""
    words: frozenset[str]
    """Names of variables, attributes and globals, and string constants that look like names, of what is inside too."""
    holder: str = ""
    """Name of the code object that it is in, ``<module>`` for a module's; empty where that is not known."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Something that a reader found in a file."""

    kind: Kind
    """What it is."""
    data: bytes = b""
    """UTF-8 text, or strings one to a line."""
    code: Code | None = None
    """For :attr:`Kind.CODE`."""


@dataclass(slots=True)
class Limits:
    """How much may still be decoded of the present file, and what was left unread."""

    bytes_left: int = MAX_TOTAL
    """Decoded bytes."""
    parts_left: int = MAX_PARTS
    """Parts."""
    only_python: bool = False
    """Texts without the words that Python code hardly does without are passed over, as are programs without them."""
    partial: bool = False
    """Something was too large, too deep or damaged, so that not all of it was read."""
    used: set[str] = field(default_factory=set)
    """Names of the decoders that found something to decode."""

    def take(self, size: int) -> bool:
        """Account for a part of ``size`` bytes; false, and noted, if there is no room for it."""
        if self.parts_left <= 0 or size > self.bytes_left:
            self.partial = True
            return False
        self.parts_left -= 1
        self.bytes_left -= size
        return True
