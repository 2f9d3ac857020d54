"""Compiled Python: the code objects of a ``.pyc``, and marshalled ones in any file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from excise.verifiers.leaks.fragments import CodeShape, DecodingLimits
from excise.verifiers.leaks.marshal_reader import CodeObject, MarshalReader, Unreadable

_HEADER = 16
_MAGIC = re.compile(rb"..\r\n", re.DOTALL)
_CODE = frozenset((ord("c"), ord("c") | 0x80))
_NAME = re.compile(r"[^\W\d]\w*")
_SYNTHETIC = re.compile(r"<\w+>$")
_BROKEN = (Unreadable, IndexError, TypeError, UnicodeDecodeError, RecursionError)
_MOST_ARGUMENTS = 32
_MAX_EMBEDDED = 5000


class ByteCode:
    """Reads the code objects of a file with a ``.pyc`` header; docstrings become a text part."""

    name = "pyc"
    whole = True

    def fits(self, data: bytes) -> bool:
        """Recognise a magic number followed by a code object."""
        return len(data) >= _HEADER + 8 and bool(_MAGIC.match(data)) and _CODE & {data[_HEADER], data[12]} != set()

    def parts(self, data: bytes, limits: DecodingLimits, /) -> Iterator[bytes | CodeShape]:
        """Yield the code objects; nothing for a damaged file, which other decoders then search."""
        try:
            top = MarshalReader(data, _HEADER if data[_HEADER] in _CODE else 12).read()
        except _BROKEN:
            limits.partial = True
            return
        yield from _walk(top)


class EmbeddedByteCode:
    """Reads marshalled code inside other data: frozen modules, pickles, damaged files."""

    name = "embedded_pyc"
    whole = False

    def fits(self, data: bytes) -> bool:
        """Recognise the beginning of a code object anywhere in the data."""
        return len(code_positions(data)) > 0

    def parts(self, data: bytes, limits: DecodingLimits, /) -> Iterator[bytes | CodeShape]:
        """Yield the code objects; the search continues after each one."""
        found = code_positions(data)
        limits.partial |= len(found) > _MAX_EMBEDDED
        place = 0
        for start in found[:_MAX_EMBEDDED].tolist():
            if start < place:
                continue
            reader = MarshalReader(data, start)
            try:
                value = reader.read()
            except _BROKEN:
                continue
            place = reader.place
            yield from _walk(value)


def code_positions(data: bytes) -> NDArray[np.int64]:
    """Positions of ``c``, the type code of a code object, followed by three small integers, its argument counts."""
    if b"\0\0\0" not in data:
        return np.zeros(0, dtype=np.int64)
    letters = np.frombuffer(data, dtype=np.uint8)
    places = np.flatnonzero((letters & 0x7F) == ord("c"))
    places = places[places + 13 <= len(letters)]
    for number in (1, 5, 9):
        places = places[letters[places + number] <= _MOST_ARGUMENTS]
        for zero in range(number + 1, number + 4):
            places = places[letters[places + zero] == 0]
    return places


def _walk(top: Any) -> Iterator[bytes | CodeShape]:
    if not isinstance(top, CodeObject):
        return
    texts: list[bytes] = []
    yield from nested_code_shapes(top, texts)
    if texts:
        yield b"\n".join(texts)


def nested_code_shapes(code: CodeObject, texts: list[bytes]) -> list[CodeShape]:
    """The shapes of a code object and all nested ones; texts among their constants are appended to ``texts``."""
    found: list[CodeShape] = []
    _collect(code, texts, found, "")
    return found


def _collect(code: CodeObject, texts: list[bytes], found: list[CodeShape], enclosing: str) -> set[str]:
    words = {w for name in code.names for w in _NAME.findall(name)}
    for value in _flat(code.consts):
        if isinstance(value, CodeObject):
            words |= _collect(
                value, texts, found, enclosing if _SYNTHETIC.match(code.name) and enclosing else code.name
            )
            if not _SYNTHETIC.match(value.name):
                words.add(value.name)
        elif isinstance(value, str):
            if len(value) < 200:
                words |= set(_NAME.findall(value))
            if " " in value:
                texts.append(value.encode(errors="replace"))
        elif isinstance(value, bytes) and len(value) > 40:
            texts.append(value)
    if not _SYNTHETIC.match(code.name) or code.name == "<module>":
        found.append(CodeShape(code.name, code.parameters, frozenset(words), enclosing))
    return words


def _flat(values: Any) -> Iterator[Any]:
    todo = list(values)
    while todo:
        value = todo.pop()
        if isinstance(value, tuple):
            todo.extend(value)
        else:
            yield value
