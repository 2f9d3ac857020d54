"""Compiled Go: test binaries, programs, packages in build caches. Their machine code is found by names of functions.

Every Go program has a table of all its functions, also without debug information; a compiled package names those that
it defines. A package is known by the last two parts of its import path, or by ``/`` and the last one if there are only
two: in compiled packages, other texts may stand directly before the path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from excise.verifiers.leaks.fragments import COMPILED, CodeShape, DecodingLimits

_PROGRAM, _PACKAGE = b"\xff Go buildinf:", b"go object "
_HEAD = 4096
_FUNCTION = re.compile(rb"((?:[\w~%-][\w.~%-]*/)+)([\w~%-][\w~%-]*)\.((?:\(\*?\w+\)\.)?\w+(?:\.\w+)?)")
_MAX_NAME = 48
"""Length up to which each beginning of a name is a name, where the next text follows without a separator."""


class GoObjects:
    """Reads the names of functions in programs and compiled packages."""

    name = "go"
    whole = False

    def fits(self, data: bytes) -> bool:
        """Recognise a program by its build information, and a package by its first lines."""
        return (data.startswith(b"\x7fELF") and _PROGRAM in data) or (
            data.startswith(b"!<arch>\n") and _PACKAGE in data[:_HEAD]
        )

    def parts(self, data: bytes, _limits: DecodingLimits, /) -> Iterator[CodeShape]:
        """Yield one code object for each function that the data may name."""
        is_program = data.startswith(b"\x7fELF")
        seen: set[str] = set()
        for folders, last, function in _FUNCTION.findall(data):
            package = package_key([*folders.decode("utf-8", "replace").strip("/").split("/"), last.decode()])
            name = function.decode("utf-8", "replace").replace("(*", "").replace("(", "").replace(")", "")
            ends = [len(name)] if is_program else range(1, min(len(name), _MAX_NAME) + 1)
            seen.update(f"{package}.{name[:end]}" for end in ends)
        for name in sorted(seen):
            yield CodeShape(name, (), frozenset({COMPILED}))


def package_key(path: list[str]) -> str:
    """What a package is known by, from the parts of its import path."""
    return "/".join(path[-2:]) if len(path) > 2 else f"/{path[-1]}"
