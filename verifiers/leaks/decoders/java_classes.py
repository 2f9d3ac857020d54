"""Compiled Java: class files, also inside other data. Their methods are found by what they refer to, and by name.

A class file names in its constant pool every method, field and type that its code uses, and with debug information its
local variables: nearly all names of the source. So a method is a code object as one of Python is, and is known again in
a jar with other packages or of another version. Besides, each method yields the full name of its class and its own.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from excise.verifiers.leaks.fragments import COMPILED, CodeShape, DecodingLimits

MAGIC = b"\xca\xfe\xba\xbe"
_VERSIONS = range(45, 90)
"""Major versions of the format; programs for several processors begin with the same bytes, and a small number."""
_MAX_CLASSES = 50_000
_NAME = re.compile(r"[^\W\d]\w*")
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
"""Tag of a constant to the bytes that follow it; those of texts (tag 1) have a length."""
_WIDE = (5, 6)
"""Tags of constants that take two numbers."""
_OPERANDS = {
    **dict.fromkeys((0x10, 0x12, *range(0x15, 0x1A), *range(0x36, 0x3B), 0xA9, 0xBC), 1),
    **dict.fromkeys((0x11, 0x13, 0x14, 0x84, *range(0x99, 0xA9), *range(0xB2, 0xB9), 0xBB, 0xBD, 0xC0, 0xC1), 2),
    **{0xC6: 2, 0xC7: 2, 0xB9: 4, 0xBA: 4, 0xC5: 3, 0xC8: 4, 0xC9: 4},
}
"""Instruction to the bytes of its operands; 0 for others."""
_TABLESWITCH, _LOOKUPSWITCH, _WIDE_PREFIX, _IINC, _LDC = 0xAA, 0xAB, 0xC4, 0x84, 0x12
_WITH_CONSTANT = frozenset({0x13, 0x14, *range(0xB2, 0xBB), 0xBB, 0xBD, 0xC0, 0xC1, 0xC5})
"""Instructions whose first operand is the number of a constant."""
_LAMBDA = re.compile(r"lambda\$(.+)\$\d+")
_BROKEN = (struct.error, IndexError, KeyError, ValueError, RecursionError)


class JavaClasses:
    """Reads the methods of class files, wherever one begins in the data."""

    name = "java"
    whole = False

    def fits(self, data: bytes) -> bool:
        """Recognise the first bytes of a class file anywhere."""
        return MAGIC in data

    def parts(self, data: bytes, limits: DecodingLimits, /) -> Iterator[bytes | CodeShape]:
        """Yield one code object for each method and each class, and the texts among the constants."""
        place, count = data.find(MAGIC), 0
        while place >= 0:
            count += 1
            if count > _MAX_CLASSES:
                limits.partial = True
                return
            following = place + len(MAGIC)
            if place + 10 <= len(data) and int.from_bytes(data[place + 6 : place + 8], "big") in _VERSIONS:
                reader = _ClassReader(data, place)
                try:
                    reader.read()
                    following = max(following, reader.place)
                except _BROKEN:
                    limits.partial = True
                yield from reader.shapes()
                if texts := reader.texts():
                    yield texts
            place = data.find(MAGIC, following)


@dataclass(slots=True)
class _Method:
    """What the code of one method refers to."""

    name: str
    words: set[str] = field(default_factory=set)
    parameters: tuple[str, ...] = ()
    constants: set[int] = field(default_factory=set)


class _ClassReader:
    """Reads one class file."""

    def __init__(self, data: bytes, place: int) -> None:
        self.data, self.place = data, place
        self.constants: dict[int, tuple[int, Any]] = {}
        self.own = ""
        self.methods: list[_Method] = []
        self.fields: set[str] = set()
        self.bootstraps: list[list[int]] = []

    # --------------------------------------------------------------------------------- structure
    def read(self) -> None:
        """Read everything; what was read before damaged data stays."""
        self.place += 8
        self._read_constants()
        _, this, _ = self._take(">HHH")
        self.own = self._text(self.constants[this][1])
        (count,) = self._take(">H")
        self.place += 2 * count
        self.fields = {self._member()[0] for _ in range(self._take(">H")[0])}
        for _ in range(self._take(">H")[0]):
            self._member(is_method=True)
        for name, start, _ in self._attributes():
            if name == "BootstrapMethods":
                self._read_bootstraps(start)
        for method in self.methods:
            for number in method.constants:
                self._add_words(number, method.words)

    def _take(self, layout: str) -> tuple[int, ...]:
        found = struct.unpack_from(layout, self.data, self.place)
        self.place += struct.calcsize(layout)
        return found

    def _read_constants(self) -> None:
        (count,) = self._take(">H")
        number = 1
        while number < count:
            (tag,) = self._take(">B")
            if tag == 1:
                (size,) = self._take(">H")
                self.constants[number] = tag, self.data[self.place : self.place + size].decode("utf-8", "replace")
                self.place += size
            else:
                layout = {2: ">H", 3: ">BH", 4: ">HH", 8: ">Q"}[_SIZES[tag]]
                if tag in (3, 4):
                    layout = ">I"
                found = self._take(layout)
                self.constants[number] = tag, found if len(found) > 1 else found[0]
            number += 2 if tag in _WIDE else 1

    def _text(self, number: int) -> str:
        tag, value = self.constants[number]
        return value if tag == 1 else ""

    def _attributes(self) -> Iterator[tuple[str, int, int]]:
        """(name, first byte, size) of the attributes that follow."""
        for _ in range(self._take(">H")[0]):
            name, size = self._take(">HI")
            start = self.place
            yield self._text(name), start, size
            self.place = start + size

    def _member(self, *, is_method: bool = False) -> tuple[str, int]:
        flags, name, _ = self._take(">HHH")
        method = _Method(self._text(name))
        for attribute, start, _ in self._attributes():
            if attribute == "Code" and is_method:
                self._read_code(start, method, is_static=bool(flags & 8))
        if is_method:
            self.methods.append(method)
        return method.name, flags

    # --------------------------------------------------------------------------------- code
    def _read_code(self, start: int, method: _Method, *, is_static: bool) -> None:
        self.place = start + 4
        (size,) = self._take(">I")
        self._read_instructions(self.place, size, method)
        self.place += size
        (handlers,) = self._take(">H")
        for _ in range(handlers):
            method.constants.add(self._take(">HHHH")[3])
        first = 0 if is_static else 1
        for attribute, place, _ in self._attributes():
            if attribute == "LocalVariableTable":
                self.place = place
                found = [self._take(">HHHHH") for _ in range(self._take(">H")[0])]
                names = {slot: self._text(name) for begin, _, name, _, slot in found if begin == 0 and slot >= first}
                method.parameters = tuple(names[slot] for slot in sorted(names))
                method.words.update(self._text(row[2]) for row in found)
        method.constants.discard(0)
        method.words.discard("this")

    def _read_instructions(self, start: int, size: int, method: _Method) -> None:
        data, at, end = self.data, start, min(start + size, len(self.data))
        while at < end:
            code = data[at]
            if code == _LDC:
                method.constants.add(data[at + 1])
            elif code in _WITH_CONSTANT:
                method.constants.add(int.from_bytes(data[at + 1 : at + 3], "big"))
            if code in (_TABLESWITCH, _LOOKUPSWITCH):
                place = at + 1 + (3 - (at - start)) % 4
                if code == _TABLESWITCH:
                    low, high = struct.unpack_from(">ii", data, place + 4)
                    at = place + 12 + 4 * max(0, high - low + 1)
                else:
                    (pairs,) = struct.unpack_from(">i", data, place + 4)
                    at = place + 8 + 8 * max(0, pairs)
            elif code == _WIDE_PREFIX:
                at += 6 if data[at + 1] == _IINC else 4
            else:
                at += 1 + _OPERANDS.get(code, 0)

    def _read_bootstraps(self, start: int) -> None:
        self.place = start
        for _ in range(self._take(">H")[0]):
            _, count = self._take(">HH")
            self.bootstraps.append([self._take(">H")[0] for _ in range(count)])

    def _add_words(self, number: int, words: set[str], depth: int = 0) -> None:
        """Add the names that a constant holds."""
        tag, value = self.constants.get(number, (0, 0))
        if depth > 4:
            return
        if tag == 7:
            words.update(_simple(self._text(value)))
        elif tag == 8:
            text = self._text(value)
            if len(text) < 200:
                words.update(_NAME.findall(text))
        elif tag in (9, 10, 11):
            self._add_words(value[0], words, depth + 1)
            self._add_words(value[1], words, depth + 1)
        elif tag == 12:
            words.update(_NAME.findall(self._text(value[0])))
        elif tag == 15:
            self._add_words(value[1], words, depth + 1)
        elif tag in (17, 18) and value[0] < len(self.bootstraps):
            for argument in self.bootstraps[value[0]]:
                if self.constants.get(argument, (0, 0))[0] in (8, 15):
                    self._add_words(argument, words, depth + 1)

    # --------------------------------------------------------------------------------- results
    def shapes(self) -> Iterator[CodeShape]:
        """One code object for each method, with the lambdas in it, and one for the class; and full names."""
        if not self.own:
            return
        simple = self.own.rpartition("/")[2].rpartition("$")[2]
        found: dict[str, list[_Method]] = {}
        for method in self.methods:
            inside = _LAMBDA.fullmatch(method.name)
            name = inside[1] if inside else method.name
            name = simple if name in ("<init>", "new") else name
            found.setdefault(name, []).append(method)
        everything = set(self.fields)
        for name, methods in found.items():
            nested = {word for method in methods if _LAMBDA.fullmatch(method.name) for word in method.words}
            everything.update((name,), *(method.words for method in methods))
            for method in methods:
                if not _LAMBDA.fullmatch(method.name) and name not in ("<clinit>", "static"):
                    yield CodeShape(name, method.parameters, frozenset(method.words | nested), simple)
            yield CodeShape(f"{self.own}.{name}", (), frozenset({COMPILED}))
        yield CodeShape(simple, (), frozenset(everything))

    def texts(self) -> bytes:
        """The texts among the constants that hold several words."""
        found = [self._text(value) for tag, value in self.constants.values() if tag == 8]
        return "\n".join(text for text in found if " " in text or len(text) > 20).encode("utf-8", "replace")


def _simple(name: str) -> list[str]:
    """The simple names in the name of a class, or in the type of an array of it."""
    return _NAME.findall(name.rpartition("/")[2].replace("$", " "))[-2:]
