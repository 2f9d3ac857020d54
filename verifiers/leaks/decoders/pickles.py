"""Pickles, read opcode by opcode: no object is built, nothing is called.

Only the pickle machine's stack and memo are simulated, to find code objects that cloudpickle and joblib store by value,
and strings in order.
"""

from __future__ import annotations

import pickletools
import re
from collections.abc import Iterator
from typing import Any

from excise.verifiers.leaks.decoders.pyc import nested_code_shapes
from excise.verifiers.leaks.fragments import CodeShape, DecodingLimits
from excise.verifiers.leaks.marshal_reader import CodeObject

_MAX_OPCODES = 3_000_000
_MAX_STRINGS = 32 << 20
_MARK = object()
_OLD = re.compile(rb"(?:\(lp0\n|\(dp0\n|\(i|c[\w.]+\n[\w.]+\n|ccopy_reg\n|\(c[\w.]+\n)")
_GATHERS = frozenset({"TUPLE", "LIST", "DICT", "APPENDS", "SETITEMS", "ADDITEMS", "FROZENSET", "OBJ", "POP_MARK"})
_PUSHES: dict[str, Any] = {"MARK": _MARK, "EMPTY_TUPLE": (), "DUP": None}
_TAKES = {
    "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3, "REDUCE": 2, "NEWOBJ": 2, "STACK_GLOBAL": 2, "NEWOBJ_EX": 3, "APPEND": 1,
    "BUILD": 1, "POP": 1, "SETITEM": 2,
}  # fmt: skip


class Pickle:
    """Extracts the strings, byte strings and code objects of a pickle."""

    name = "pickle"
    whole = False

    def fits(self, data: bytes) -> bool:
        """Recognise the mark of protocol 2 or later, or a usual beginning of protocol 0."""
        return (data[:1] == b"\x80" and len(data) > 4 and 2 <= data[1] <= 5) or _OLD.match(data[:200]) is not None

    def parts(self, data: bytes, limits: DecodingLimits, /) -> Iterator[bytes | CodeShape]:
        """Yield code objects, byte strings, and all strings as one part, up to the first damage."""
        machine = _Machine()
        try:
            for number, (opcode, argument, _) in enumerate(pickletools.genops(data)):
                machine.step(opcode.name, argument)
                if number > _MAX_OPCODES or machine.size > _MAX_STRINGS:
                    limits.partial = True
                    break
        except Exception:  # pickletools may raise any exception for damaged data
            limits.partial = True
        texts: list[bytes] = []
        for code in machine.codes:
            yield from nested_code_shapes(code, texts)
        yield from machine.blobs
        yield b"\n".join(machine.strings + texts)


class _Machine:
    """Simulates the pickle stack: strings, byte strings, tuples and code objects; other values are ``None``."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.strings: list[bytes] = []
        self.blobs: list[bytes] = []
        self.codes: list[CodeObject] = []
        self.size = 0

    def step(self, name: str, argument: Any) -> None:
        """Simulate one opcode."""
        if isinstance(argument, str) and name not in {"GLOBAL", "INST"}:
            self._text(argument)
        elif isinstance(argument, (bytes, bytearray)):
            self.stack.append(bytes(argument))
            self.size += len(argument)
            if len(argument) > 20:
                self.blobs.append(bytes(argument))
        elif name in {"MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT"}:
            self.memo[len(self.memo) if name == "MEMOIZE" else int(argument)] = self.stack[-1] if self.stack else None
        elif name in {"GET", "BINGET", "LONG_BINGET"}:
            self._recall(self.memo.get(int(argument)))
        elif name in _GATHERS:
            self._gather(name)
        elif name in _PUSHES:
            self.stack.append(_PUSHES[name])
        elif name in _TAKES:
            self._take(name)
        elif name not in {"PROTO", "FRAME", "STOP"}:
            self.stack.append(argument if isinstance(argument, int) else None)

    def _take(self, name: str) -> None:
        """Simulate an opcode that pops a fixed number of values from the stack."""
        if name.startswith("TUPLE"):
            size = _TAKES[name]
            self.stack[-size:] = [tuple(self.stack[-size:])]
        elif name in {"REDUCE", "NEWOBJ", "STACK_GLOBAL"}:
            self._reduce()
        elif name == "NEWOBJ_EX":
            self.stack[-3:] = [None]
        else:
            self.stack[-_TAKES[name] :] = []

    def _text(self, text: str) -> None:
        self.stack.append(text)
        self.strings.append(text.encode(errors="replace"))
        self.size += len(text)

    def _recall(self, value: Any) -> None:
        self.stack.append(value)
        if isinstance(value, str):
            self.strings.append(value.encode(errors="replace"))
            self.size += len(value)

    def _gather(self, name: str) -> None:
        items: list[Any] = []
        while self.stack and (item := self.stack.pop()) is not _MARK:
            items.append(item)
        if name == "TUPLE":
            self.stack.append(tuple(reversed(items)))
        elif name in {"LIST", "DICT", "FROZENSET", "OBJ"}:
            self.stack.append(None)

    def _reduce(self) -> None:
        arguments = self.stack[-1] if self.stack else None
        self.stack[-2:] = [_code_from(arguments)]
        if self.stack[-1] is not None:
            self.codes.append(self.stack[-1])


def _code_from(values: Any) -> CodeObject | None:
    """A code object from the arguments of ``types.CodeType``, or ``None`` if they are not that."""
    if not isinstance(values, tuple) or len(values) < 12:
        return None
    at = next((n for n, value in enumerate(values[:8]) if isinstance(value, bytes)), -1)
    if at < 4 or len(values) < at + 6 or not all(isinstance(values[n], tuple) for n in (at + 1, at + 2, at + 3)):
        return None
    _, consts, names, variables, *rest = values[at:]
    texts = [value for value in rest if isinstance(value, str)]
    if len(texts) < 2:
        return None
    count = sum(value for value in values[:3] if isinstance(value, int))
    found = [*variables, *names, *(word for part in rest if isinstance(part, tuple) for word in part)]
    return CodeObject(
        name=texts[1],
        parameters=tuple(v for v in variables[:count] if isinstance(v, str)),
        names=[word for word in found if isinstance(word, str)],
        consts=[value for value in consts if value is not None],
    )
