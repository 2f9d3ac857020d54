"""What a leak scan and the recovery agent have to know of one language's texts and files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRules:
    """How code of one language looks, and which files of its toolchain hold copies of code."""

    literals: bytes
    """A regular expression for a string or a comment."""
    comments: tuple[bytes, ...]
    """Beginnings of comments."""
    keywords: frozenset[bytes]
    """Words of code that are no names."""
    before_name: str = ""
    """A regular expression for what stands in a signature before the name, and may hold parentheses."""
    parameter: str = r"\s*\*{0,2}([^\W\d]\w*)"
    """A regular expression for a parameter in a signature, whose only group is the name."""
    definitions: tuple[str, ...]
    """Regular expressions for what stands before the name of a definition; each begins with a word."""
    derived: str = ""
    """A regular expression for paths of the system that its toolchain made of other files of the system."""
    copies: str = ""
    """A regular expression for paths of the system where copies of projects are."""
