"""Compiled Rust: test binaries, programs, libraries, objects. Their machine code is found by names of functions.

Symbols hold the path of a function, from its crate to its name, in one of two manglings: ``_ZN`` with a hash at the
end, or ``_R``. A function is known by its crate and its name, and by its crate, the type or module before the name, and
the name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from excise.verifiers.leaks.fragments import COMPILED, CodeShape, DecodingLimits

_LEGACY = re.compile(rb"_ZN(\d[\w$.]{2,2000})")
_V0 = re.compile(rb"_R[A-Za-z]{1,60}?C(?:s[0-9A-Za-z]{0,20}_)?(\d\w{1,2000})")
_LENGTH = re.compile(rb"(\d{1,4})")
_HASH = re.compile(r"h[0-9a-f]{16}")
_ESCAPED = {
    "$LT$": "<",
    "$GT$": ">",
    "$RF$": "&",
    "$BP$": "*",
    "$C$": ",",
    "$u20$": " ",
    "$u7b$": "{",
    "$u7d$": "}",
    "$u27$": "'",
    "..": "::",
}


class RustObjects:
    """Reads the names of functions in programs, libraries and objects."""

    name = "rust"
    whole = False

    def fits(self, data: bytes) -> bool:
        """Recognise what linkers read and write, with a symbol of Rust."""
        return data.startswith((b"\x7fELF", b"!<arch>\n")) and (b"17h" in data or b"_RN" in data)

    def parts(self, data: bytes, _limits: DecodingLimits, /) -> Iterator[CodeShape]:
        """Yield one code object for each function that the data names."""
        seen: set[str] = set()
        for mangled in set(_LEGACY.findall(data)):
            *path, last = _identifiers(mangled) or [""]
            if _HASH.fullmatch(last):
                seen.update(keys_of(_plain(path)))
        for mangled in set(_V0.findall(data)):
            seen.update(keys_of(_identifiers(mangled, skips=True)))
        for name in sorted(seen):
            yield CodeShape(name, (), frozenset({COMPILED}))


def keys_of(path: list[str]) -> Iterator[str]:
    """What a function is known by, from its path."""
    if len(path) > 1:
        yield "::".join((path[0], path[-1]))
    if len(path) > 2:
        yield "::".join((path[0], *path[-2:]))


def _identifiers(mangled: bytes, *, skips: bool = False) -> list[str]:
    """The identifiers of a path, each of which has its length before it; ``skips`` what stands between them."""
    place, found = 0, []
    while match := (_LENGTH.search if skips else _LENGTH.match)(mangled, place):
        end = match.end() + int(match[1])
        found.append(mangled[match.end() : end].decode("utf-8", "replace"))
        place = max(end, match.end())
    return found


def _plain(path: list[str]) -> list[str]:
    """A path without parameters of types; ``<a::S<T> as Trait>`` and ``<impl a::S>`` become ``a::S``."""
    text = "::".join(path)
    for escape, plain in _ESCAPED.items():
        text = text.replace(escape, plain)
    found: list[str] = []
    for part in _split(text.lstrip("_") if text.startswith("_<") else text):
        if part.startswith("<"):
            inner = part[1:-1].removeprefix("impl ")
            of_type = inner.partition(" as ")[0].rpartition(" for ")[2].lstrip("&* ")
            found = [each for each in _split(of_type) if not each.startswith("<")] or found
        elif not part.lstrip("_").startswith("{"):
            found.append(part.partition("<")[0])
    return [part for part in found if part]


def _split(path: str) -> list[str]:
    """The parts of a path: what ``::`` divides outside of brackets."""
    parts, depth, place = [""], 0, 0
    while place < len(path):
        letter = path[place]
        if depth == 0 and path.startswith("::", place):
            parts.append("")
            place += 2
            continue
        depth += (letter == "<") - (letter == ">")
        parts[-1] += letter
        place += 1
    return parts
