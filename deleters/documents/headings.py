"""Headings of documents as code: what a heading names, whatever marks, links, arguments and results are around it."""

from __future__ import annotations

import re

MAX_HEADING = 400
"""Number of characters from which on a heading is taken as it is."""
_LABEL = re.compile(r"\{:?[^{}]*\}$")
_LINK = re.compile(r"\[([^\[\]]+)\]\([^()]*\)")
_PARTS = re.compile(r"(?P<level>#*\s*)(?P<mark>[`*]*)(?P<rest>.*)")
_RESULT = re.compile(r"(?:[`*]* ?(?:→|⇒|=>|->)|(?<=\))[`*]* ?:) ?[`*]*[^()`*]+$")
"""What a call returns, behind its code."""
_NAME = re.compile(r"\.?[A-Za-z_$]")
_CALLED = re.compile(r"\.?[A-Za-z_$][\w.$#:]*(?=\()")


def words_of_heading(line: str) -> str:
    """A heading without the marks and the label that may close it, and without the address if it is a link."""
    plain = line.strip().rstrip("#").rstrip() if line.startswith("#") else line.strip()
    return plain if len(plain) > MAX_HEADING else _LINK.sub(r"\1", _LABEL.sub("", plain).rstrip())


def heading_without_arguments(line: str) -> str:
    """The words of a heading, without the arguments and the result of the call that it is: ``## `cut()` `` of
    ``## `cut(text, by = find()) → Array` ``."""
    words = words_of_heading(line)
    level, mark, code = _parts_of(words)
    if called := _called(code):
        return f"{level}{mark}{called}(){mark}"
    return f"{level}{mark}{code}{mark}" if mark and code else words


def code_of_heading(line: str) -> str:
    """The code that a heading of Markdown below the first level is, with its arguments; empty if it is other text."""
    level, mark, code = _parts_of(words_of_heading(line))
    is_code = bool(_called(code)) or (mark == "`" and _NAME.match(code) is not None)
    return code if is_code and 2 <= len(level.rstrip()) <= 6 else ""


def _parts_of(words: str) -> tuple[str, str, str]:
    """The level of a heading, the mark that is around its code, and that code without a result; no code if it is
    other text, too."""
    parts = _PARTS.fullmatch(words)
    if parts is None or len(words) > MAX_HEADING:
        return "", "", ""
    level, mark, rest = parts.groups()
    closed = rest.rstrip("`*") if mark else rest
    code = _RESULT.sub("", closed).rstrip("`* " if mark else " ")
    return level, mark, "" if (mark or "`") in code else code


def _called(code: str) -> str:
    """What a piece of code calls, if it is nothing but a call; else empty."""
    called = _CALLED.match(code)
    return called[0] if called is not None and _is_one_pair(code[called.end() :]) else ""


def _is_one_pair(text: str) -> bool:
    """Whether a text is one pair of parentheses, whatever is in them."""
    depth = 0
    for number, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return letter == ")" and number == len(text) - 1
    return False
