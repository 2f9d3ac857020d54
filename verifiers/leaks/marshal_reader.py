"""A reader of the ``marshal`` format: code objects of CPython 3.8 to 3.14 as plain values.

``marshal.loads`` builds objects and may crash on untrusted data; this reads the format as data. The layout of code
objects changed in 3.8 (positional-only parameters) and 3.11 (one table of local names). It is recognised from the
data itself, so that damaged or missing version numbers do not matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MAX_ITEMS = 2_000_000
MAX_NESTING = 200
_REF = 0x80
_INTS_38 = 6
_INTS_311 = 5


class Unreadable(ValueError):
    """Raised when data is not a marshalled object, or a damaged one."""


@dataclass(slots=True)
class CodeObject:
    """Those fields of a code object that come from its source."""

    name: str = ""
    """Name of the function, class or module."""
    parameters: tuple[str, ...] = ()
    """Parameters, positional ones first."""
    names: list[str] = field(default_factory=list)
    """Local, free and cell variables, globals and attributes."""
    consts: list[Any] = field(default_factory=list)
    """Constants: strings, bytes, tuples of these, and nested :class:`CodeObject` records; no numbers."""
    code: bytes = b""
    """The instructions."""


class MarshalReader:
    """Reads objects in sequence from ``data``, beginning at ``place``."""

    def __init__(self, data: bytes, place: int = 0) -> None:
        self.data, self.place = data, place
        self._refs: list[Any] = []
        self._items = 0
        self._depth = 0

    def read(self) -> Any:
        """The next object. Raises :class:`Unreadable`."""
        self._items += 1
        self._depth += 1
        if self._items > MAX_ITEMS or self._depth > MAX_NESTING:
            raise Unreadable("too many objects, or too deep")
        kind = self._byte()
        slot = -1
        if kind & _REF:
            slot = len(self._refs)
            self._refs.append(None)
        value = self._value(chr(kind & ~_REF))
        if slot >= 0:
            self._refs[slot] = value
        self._depth -= 1
        return value

    def _value(self, kind: str) -> Any:
        if kind in _SIZES:
            self._take(_SIZES[kind])
            return None
        read = _READERS.get(kind)
        if read is None:
            raise Unreadable(f"unknown type {kind!r}")
        return read(self)

    def _long_number(self) -> None:
        self._take(2 * abs(self._long()))

    def _float_text(self) -> None:
        self._take(self._byte())

    def _complex_text(self) -> None:
        self._float_text()
        self._float_text()

    def _bytes(self) -> bytes:
        return self._take(self._long())

    def _text(self) -> str:
        return self._take(self._long()).decode("utf-8", "replace")

    def _short_text(self) -> str:
        return self._take(self._byte()).decode("latin-1")

    def _reference(self) -> Any:
        return self._refs[self._long()]

    def _items_of(self) -> tuple[Any, ...]:
        return tuple(self.read() for _ in range(self._count(self._long())))

    def _few_items(self) -> tuple[Any, ...]:
        return tuple(self.read() for _ in range(self._count(self._byte())))

    def _slice(self) -> tuple[Any, ...]:
        return tuple(self.read() for _ in range(3))

    def _dict(self) -> tuple[Any, ...]:
        found = []
        while self.place < len(self.data) and self.data[self.place] != ord("0"):
            found += [self.read(), self.read()]
        self._byte()
        return tuple(found)

    def _code(self) -> CodeObject:
        """Read a code object; Python before 3.11 stores one more integer (``nlocals``) before the byte code."""
        start, refs = self.place, len(self._refs)
        for new in (False, True):
            self.place = start
            del self._refs[refs:]
            items, depth = self._items, self._depth
            try:
                return self._code_of(new)
            except (Unreadable, IndexError, TypeError, UnicodeDecodeError):
                if new:
                    raise
                self._items, self._depth = items, depth
        raise Unreadable("no code object")

    def _code_of(self, new: bool) -> CodeObject:
        count = _INTS_311 if new else _INTS_38
        numbers = [self._long() for _ in range(count)]
        if self.data[self.place] & ~_REF not in b"sr" or any(not 0 <= n < 1 << 31 for n in numbers):
            raise Unreadable("not this layout")
        instructions = self.read()
        consts, names, variables = self.read(), self.read(), self.read()
        rest = [self.read()] if new else [self.read(), self.read()]
        _filename, name = self.read(), self.read()
        if new:
            self.read()  # the qualified name
        self._long()
        self.read()
        if new:
            self.read()
        if not isinstance(instructions, bytes) or not isinstance(name, str) or not isinstance(variables, tuple):
            raise Unreadable("not a code object")
        flags = numbers[-1]
        width = numbers[0] + numbers[2] + bool(flags & 4) + bool(flags & 8)
        found = [*variables, *names, *(free for part in rest if isinstance(part, tuple) for free in part)]
        return CodeObject(
            name=name,
            parameters=tuple(v for v in variables[:width] if isinstance(v, str)),
            names=[word for word in found if isinstance(word, str)],
            consts=[value for value in consts if value is not None] if isinstance(consts, tuple) else [],
            code=instructions,
        )

    # ------------------------------------------------------------------------------------ bytes
    def _byte(self) -> int:
        return self._take(1)[0]

    def _long(self) -> int:
        return int.from_bytes(self._take(4), "little", signed=True)

    def _count(self, size: int) -> int:
        if size < 0 or size > len(self.data) - self.place:
            raise Unreadable("more items than bytes")
        return size

    def _take(self, size: int) -> bytes:
        found = self.data[self.place : self.place + size] if size >= 0 else b""
        if size < 0 or len(found) != size:
            raise Unreadable("the data ends too early")
        self.place += size
        return found


_SIZES = {**dict.fromkeys("NFTS.0", 0), "i": 4, "I": 8, "g": 8, "y": 16}
"""Types whose values are skipped, and their size in bytes."""
_READERS: dict[str, Callable[[MarshalReader], Any]] = {
    "l": MarshalReader._long_number,
    "f": MarshalReader._float_text,
    "x": MarshalReader._complex_text,
    "s": MarshalReader._bytes,
    **dict.fromkeys("aAut", MarshalReader._text),
    **dict.fromkeys("zZ", MarshalReader._short_text),
    "r": MarshalReader._reference,
    **dict.fromkeys("([<>", MarshalReader._items_of),
    ")": MarshalReader._few_items,
    "{": MarshalReader._dict,
    ":": MarshalReader._slice,
    "c": MarshalReader._code,
}
