"""Numbers in the code of functions that nobody could guess, and the ways in which it writes numbers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from math import isfinite

from excise.extractors.python.analysis.ast_walk import last_name
from excise.extractors.python.needs.test_uses import Function

MIN_DIGITS, MIN_LARGE = 4, 10_000
"""Digits of a number from which on nobody could guess it, and the smallest integer that may be such a number."""
MAX_BITS = 256
"""Bits of an integer up to which it may be one."""
MAX_NUMBERS = 40
"""Maximum number of numbers of one function."""
_SPEC = re.compile(
    r"\{[\w.…]*(?:![rsa])?:(?=[^{}])(?:\W?[<>^=])?[-+ ]?#?0?\d*[,_]?(?:\.\d+)?[bcdeEfFgGosxX%]?\}"
    r"|(?<!%)(?:%%)*%(?:\(\w+\))?(?:[-+#0]*[1-9]\d*(?:\.\d+)?|[-+#0]*\.\d+|[-+#0]+)[defgxo](?!\w)"
)
"""A value with the way in which it is written."""
_DATE = re.compile(r"%-?[aAbBcHIjmMpSUwWxXyYzZ](?![a-z])|\{[^{}]*:[^{}]*%[A-Za-z]")
"""A text that says how a date is written."""
_LOGS = frozenset({"debug", "info", "warning", "warn", "error", "critical", "exception", "log"})


def numbers_of(nodes: Sequence[ast.AST], lines: Sequence[bytes]) -> list[str]:
    """The numbers among the ``nodes`` of a function, in order and as ``lines`` of its file have them.

    None if each of them could be guessed. One that is all that is returned is the answer.
    """
    answers = {id(node.value) for node in nodes if isinstance(node, ast.Return)}
    numbers = (node for node in nodes if isinstance(node, ast.Constant) and id(node) not in answers)
    constants = sorted(numbers, key=_place)
    counted = [(each, _num_digits(each.value)) for each in constants]
    if not any(digits >= MIN_DIGITS for _, digits in counted):
        return []
    told = (lines[each.lineno - 1][each.col_offset : each.end_col_offset] for each, digits in counted if digits > 1)
    return [text.decode("utf-8", "replace") for text in told][:MAX_NUMBERS]


def formats_of(function: Function, nodes: Sequence[ast.AST]) -> Iterator[str]:
    """The ways in which a function writes numbers, ``{:.2f}`` or ``%05d``, in order; as whole texts where these have no
    word. Messages of errors and of logs are no data, nor are texts about dates."""
    left_out = {id(inner) for node in nodes if _is_message(node) for inner in ast.walk(node)}
    if ast.get_docstring(function, clean=False) is not None:
        left_out |= set(map(id, ast.walk(function.body[0])))
    joined: list[ast.JoinedStr | ast.Constant] = [node for node in nodes if isinstance(node, ast.JoinedStr)]
    left_out |= {id(part) for node in joined for part in ast.walk(node) if part is not node}
    texts = [node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    for node in sorted([*joined, *texts], key=_place):
        if id(node) in left_out:
            continue
        text = "".join(map(_of_format, node.values)) if isinstance(node, ast.JoinedStr) else str(node.value)
        specs = [] if _DATE.search(text) else [found[0] for found in _SPEC.finditer(text)]
        if specs and not re.search(r"[^\W\d_]", _SPEC.sub("", text)):
            yield repr(text)
        else:
            yield from map(repr, specs)


def _place(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _is_message(node: ast.AST) -> bool:
    """Whether a statement raises or checks, or a call logs something."""
    return isinstance(node, ast.Raise | ast.Assert) or (isinstance(node, ast.Call) and last_name(node.func) in _LOGS)


def _of_format(part: ast.expr) -> str:
    """A part of an f-string as a template has it, with ``…`` for the value."""
    if isinstance(part, ast.Constant):
        return str(part.value)
    spec = part.format_spec if isinstance(part, ast.FormattedValue) else None
    values = spec.values if isinstance(spec, ast.JoinedStr) else []
    written = "".join(str(each.value) for each in values if isinstance(each, ast.Constant))
    is_known = bool(values) and all(isinstance(each, ast.Constant) for each in values)
    return f"{{…:{written}}}" if is_known else "{…}"


def _num_digits(value: object) -> int:
    """The number of digits of a measured value, zeros around it aside; 0 for what is none."""
    if isinstance(value, float) and isfinite(value):
        mantissa = repr(value).lower().partition("e")[0]
        return len(mantissa.replace(".", "").strip("0"))
    if not isinstance(value, int) or isinstance(value, bool) or value.bit_length() > MAX_BITS or value < MIN_LARGE:
        return 0
    return len(str(value).rstrip("0"))
