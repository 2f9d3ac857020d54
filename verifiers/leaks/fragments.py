"""The results of decoding a file (texts, strings of binaries, code objects), and the limits of decoding."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

MAX_PART = 64 << 20
"""Maximum number of bytes read of a file or of one archive member."""
MAX_TOTAL = 256 << 20
"""Maximum number of bytes decoded from one file, all parts together."""
MAX_PARTS = 50_000
"""Maximum number of parts (archive members, streams, strings) decoded from one file."""
COMPILED = "compiled code"
"""The word of every code object of a compiled function that is known by its name; see ``Target.compiled``."""
MAX_DEPTH = 6
"""Maximum number of nested decoders: a base64 string in a JSON file in a zip in a tar.gz takes five."""


class FragmentKind(StrEnum):
    """The kind of a fragment: it decides which matches count."""

    TEXT = "text"
    """Text."""
    STRINGS = "strings"
    """Printable strings of a binary file."""
    CODE = "code"
    """Names and constants of one compiled function, class or module."""


@dataclass(frozen=True, slots=True)
class CodeShape:
    """One code object: byte code that was read, never run."""

    name: str
    """Name of the function, class or module."""
    parameters: tuple[str, ...]
    """Names of the function's parameters."""
    words: frozenset[str]
    """Names of variables, attributes and globals, and string constants that look like names; nested code included."""
    enclosing: str = ""
    """Name of the enclosing code object, ``<module>`` if that is a module; empty if unknown."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """One text, set of strings or code object that a decoder found in a file."""

    kind: FragmentKind
    """What the fragment is."""
    data: bytes = b""
    """UTF-8 text, or strings, one per line; empty for :attr:`FragmentKind.CODE`."""
    code: CodeShape | None = None
    """The code object, only for :attr:`FragmentKind.CODE`."""


@dataclass(slots=True)
class DecodingLimits:
    """The remaining budget for decoding the current file, and what was found and left out."""

    bytes_left: int = MAX_TOTAL
    """Bytes that may still be decoded."""
    parts_left: int = MAX_PARTS
    """Parts that may still be decoded."""
    only_python: bool = False
    """Whether to skip texts and programs without any of the words that Python code nearly always has."""
    partial: bool = False
    """Whether a part of the file was not decoded: too large, too deep or damaged."""
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
