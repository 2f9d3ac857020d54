"""Text listings of compiled or parsed code: disassembly (``dis``) and dumps of syntax trees (``ast.dump``)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from excise.verifiers.leaks.fragments import CodeShape, DecodingLimits

_BEGIN = re.compile(rb"(?:Disassembly of |code object )<?(?:code object )?(\w+)[^\n]*")
_OPERAND = re.compile(rb"\b[A-Z][A-Z_]{3,}\s+\d+\s+\(([^\n]*)\)")
_NAME = re.compile(rb"[A-Za-z_]\w*")
_NOISE = frozenset({b"code", b"object", b"at", b"file", b"line", b"to", b"NULL", b"None", b"True", b"False", b"self"})
_SYNTHETIC = frozenset({b"genexpr", b"listcomp", b"setcomp", b"dictcomp", b"lambda"})
_DEFINED = re.compile(rb"(?:Async)?FunctionDef\(\s*(?:name=)?['\"](\w+)['\"]|ClassDef\(\s*(?:name=)?['\"](\w+)['\"]")
_QUOTED = re.compile(rb"['\"]([A-Za-z_]\w*)['\"]")


class Disassembly:
    """Reads the names that the instructions of each listed function use."""

    name = "dis"
    whole = False

    def fits(self, data: bytes) -> bool:
        """Recognise names of instructions."""
        return b"LOAD_" in data and b"RETURN_" in data

    def parts(self, data: bytes, _limits: DecodingLimits, /) -> Iterator[CodeShape]:
        """Yield one code object for each heading, comprehensions and lambdas below it included."""
        starts = [(found.start(), found[1]) for found in _BEGIN.finditer(data)] or [(0, b"")]
        ends = [start for start, _ in starts[1:]] + [len(data)]
        function, words_by_name = b"", dict[bytes, set[bytes]]()
        for (start, name), end in zip(starts, ends, strict=True):
            function = function if name in _SYNTHETIC else name
            operands = _OPERAND.findall(data, start, end)
            words_by_name.setdefault(function, set()).update(w for o in operands for w in _NAME.findall(o))
        for name, words in words_by_name.items():
            if words - _NOISE:
                yield CodeShape(name.decode(), (), frozenset(word.decode() for word in words - _NOISE))


class AstDump:
    """Reads the names in the dump of each function and class."""

    name = "ast"
    whole = False

    def fits(self, data: bytes) -> bool:
        """Recognise names of node types."""
        return b"FunctionDef(" in data or b"ClassDef(" in data

    def parts(self, data: bytes, _limits: DecodingLimits, /) -> Iterator[CodeShape]:
        """Yield one code object for each definition: the names from its beginning to the next definition."""
        starts = [(found.start(), found[1] or found[2]) for found in _DEFINED.finditer(data)]
        ends = [start for start, _ in starts[1:]] + [len(data)]
        for (start, name), end in zip(starts, ends, strict=True):
            words = frozenset(word.decode() for word in _QUOTED.findall(data, start, end))
            yield CodeShape(name.decode(), (), words)
