"""Compiled Python: every code object of a ``.pyc`` or of bare marshalled data, whatever the file is called."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from excise.verifiers.leaks.marshal_reader import CodeObject, MarshalReader, Unreadable
from excise.verifiers.leaks.pieces import Code, Limits

_HEADER = 16
_MAGIC = re.compile(rb"..\r\n", re.DOTALL)
_CODE = frozenset((ord("c"), ord("c") | 0x80))
_NAME = re.compile(r"[^\W\d]\w*")
_SYNTHETIC = re.compile(r"<\w+>$")
_EMBEDDED = re.compile(rb"[\x63\xe3][\0-\x20]\0\0\0[\0-\x20]\0\0\0[\0-\x20]\0\0\0")
_MAX_EMBEDDED = 5000


class ByteCode:
    """Walks the code objects; docstrings and other long strings are texts of their own."""

    name = "pyc"
    whole = True

    def fits(self, data: bytes) -> bool:
        """A magic number and a code object behind it, or marshalled code anywhere in a binary."""
        if len(data) < _HEADER + 8:
            return False
        if _MAGIC.match(data) and (data[_HEADER] in _CODE or data[12] in _CODE):
            return True
        return _EMBEDDED.search(data) is not None

    def parts(self, data: bytes, limits: Limits, /) -> Iterator[bytes | Code]:
        """Code objects; a file that is none of one piece is searched for them."""
        if _MAGIC.match(data):
            start = _HEADER if data[_HEADER] in _CODE else 12
            try:
                yield from _walk(MarshalReader(data, start).read())
                return
            except (Unreadable, IndexError, TypeError, UnicodeDecodeError, RecursionError):
                limits.partial = True
        place = 0
        for _ in range(_MAX_EMBEDDED):
            found = _EMBEDDED.search(data, place)
            if found is None:
                return
            place = found.start() + 1
            reader = MarshalReader(data, found.start())
            try:
                value = reader.read()
            except (Unreadable, IndexError, TypeError, UnicodeDecodeError, RecursionError):
                continue
            place = reader.place
            yield from _walk(value)


def _walk(top: Any) -> Iterator[bytes | Code]:
    if not isinstance(top, CodeObject):
        return
    texts: list[bytes] = []
    yield from codes_of(top, texts)
    if texts:
        yield b"\n".join(texts)


def codes_of(code: CodeObject, texts: list[bytes]) -> list[Code]:
    """A code object and all inside of it, each with the words of what it holds; long strings go to ``texts``."""
    found: list[Code] = []
    _collect(code, texts, found)
    return found


def _collect(code: CodeObject, texts: list[bytes], found: list[Code]) -> set[str]:
    words = {w for name in code.names for w in _NAME.findall(name)}
    for value in _flat(code.consts):
        if isinstance(value, CodeObject):
            words |= _collect(value, texts, found)
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
        found.append(Code(code.name, code.parameters, frozenset(words)))
    return words


def _flat(values: Any) -> Iterator[Any]:
    todo = list(values)
    while todo:
        value = todo.pop()
        if isinstance(value, tuple):
            todo.extend(value)
        else:
            yield value
