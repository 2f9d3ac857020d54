"""A reader of the ``marshal`` format: code objects of CPython 3.8 to 3.14 as plain values.

``marshal.loads`` builds objects and may crash on untrusted data; this reads the format as data. The layout of code
objects changed in 3.8 (positional-only parameters) and 3.11 (one table of local names). It is recognised from the
data itself, so that damaged or missing version numbers do not matter.
"""

from __future__ import annotations

import struct
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
    """The fields of a code object that come from its source."""

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
    """Reads objects in sequence from ``data``, beginning at ``place``.

    Each kind of object has one function that reads its bytes without further calls: a standard library has a million.
    """

    def __init__(self, data: bytes, place: int = 0) -> None:
        self.data, self.place = data, place
        self._refs: list[Any] = []
        self._items = 0
        self._depth = 0

    def read(self) -> Any:
        """The next object. Raises :class:`Unreadable`, and ``IndexError`` or ``TypeError`` for damaged data."""
        try:
            return self._object()
        except struct.error:
            raise Unreadable(_TOO_SHORT) from None

    def _object(self) -> Any:
        self._items += 1
        if self._items > MAX_ITEMS or self._depth >= MAX_NESTING:
            raise Unreadable("too many objects, or too deep")
        place = self.place
        if place < 0 or place >= len(self.data):
            raise Unreadable(_TOO_SHORT)
        kind = self.data[place]
        self.place = place + 1
        if kind < _REF:
            return _READERS[kind](self)
        slot = len(self._refs)
        self._refs.append(None)
        value = self._refs[slot] = _READERS[kind & ~_REF](self)
        return value

    # ------------------------------------------------------------------------------------- plain values
    def _unknown(self) -> Any:
        raise Unreadable(f"unknown type {self.data[self.place - 1]:#x}")

    def _nothing(self) -> None:
        return None

    def _bytes(self) -> bytes:
        return self._take(self._long())

    def _text(self) -> str:
        return self._take(self._long()).decode("utf-8", "replace")

    def _short_text(self) -> str:
        start = self.place + 1
        end = self.place = start + self.data[start - 1]
        if end > len(self.data):
            raise Unreadable(_TOO_SHORT)
        return self.data[start:end].decode("latin-1")

    def _long_number(self) -> None:
        self._take(2 * abs(self._long()))

    def _float_text(self) -> None:
        self._take(self._take(1)[0])

    def _complex_text(self) -> None:
        self._float_text()
        self._float_text()

    def _reference(self) -> Any:
        return self._refs[self._long()]

    # --------------------------------------------------------------------------------------- containers
    def _items_of(self) -> tuple[Any, ...]:
        return self._objects(self._long())

    def _few_items(self) -> tuple[Any, ...]:
        self.place += 1
        return self._objects(self.data[self.place - 1])

    def _slice(self) -> tuple[Any, ...]:
        return self._objects(3)

    def _objects(self, count: int) -> tuple[Any, ...]:
        if count < 0 or count > len(self.data) - self.place:
            raise Unreadable("more items than bytes")
        self._depth += 1
        found = tuple([self._object() for _ in range(count)])
        self._depth -= 1
        return found

    def _dict(self) -> tuple[Any, ...]:
        found = []
        self._depth += 1
        while self.place < len(self.data) and self.data[self.place] != ord("0"):
            found += [self._object(), self._object()]
        self._depth -= 1
        self._take(1)
        return tuple(found)

    def _code(self) -> CodeObject:
        """Read a code object; Python before 3.11 stores one more integer (``nlocals``) before the byte code."""
        start, refs = self.place, len(self._refs)
        items, depth = self._items, self._depth
        for new in (False, True):
            self.place, self._items, self._depth = start, items, depth
            del self._refs[refs:]
            try:
                return self._code_of(new)
            except (Unreadable, struct.error, IndexError, TypeError, UnicodeDecodeError):
                if new:
                    raise
        raise Unreadable("no code object")

    def _code_of(self, new: bool) -> CodeObject:
        numbers = (_FIVE_INTS if new else _SIX_INTS).unpack_from(self.data, self.place)
        self.place += 4 * len(numbers)
        if self.data[self.place] & ~_REF not in b"sr" or min(numbers) < 0:
            raise Unreadable("not this layout")
        self._depth += 1
        read = self._object
        instructions = read()
        consts, names, variables = read(), read(), read()
        rest = [read()] if new else [read(), read()]
        _filename, name = read(), read()
        if new:
            read()  # the qualified name
        self._long()
        read()
        if new:
            read()
        self._depth -= 1
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
    def _long(self) -> int:
        (found,) = _ONE_INT.unpack_from(self.data, self.place)
        self.place += 4
        return int(found)

    def _take(self, size: int) -> bytes:
        start = self.place
        end = self.place = start + size
        if size < 0 or end > len(self.data):
            raise Unreadable(_TOO_SHORT)
        return self.data[start:end]


def _skip(size: int) -> Callable[[MarshalReader], None]:
    def skipped(reader: MarshalReader) -> None:
        reader._take(size)

    return skipped


_TOO_SHORT = "the data ends too early"
_ONE_INT, _FIVE_INTS, _SIX_INTS = struct.Struct("<i"), struct.Struct("<5i"), struct.Struct("<6i")
_KINDS: dict[str, Callable[[MarshalReader], Any]] = {
    **dict.fromkeys("NFTS.0", MarshalReader._nothing),
    "i": _skip(4),
    **dict.fromkeys("Ig", _skip(8)),
    "y": _skip(16),
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
_READERS = [_KINDS.get(chr(kind), MarshalReader._unknown) for kind in range(_REF)]
"""The function that reads each type of object, by its type code; numbers and singletons are skipped."""
