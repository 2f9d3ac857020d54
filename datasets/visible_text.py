"""Makes text of repositories and models harmless to look at: what is invisible or reorders signs is named."""

from __future__ import annotations

import re

_SUSPICIOUS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Control characters except tab and line feed, marks of direction, invisible characters, lone surrogates, tags."""

MAX_MARKS = 4
"""Combining marks over one character that are drawn; more would cover the lines above and below."""
_PILED_MARKS = re.compile("[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]{5,}")


def visible(text: str) -> str:
    """``text`` with a visible name in place of each character that is invisible or reorders others."""
    text = _SUSPICIOUS.sub(_named, text.replace("\r\n", "\n"))
    return _PILED_MARKS.sub(lambda match: match[0][:MAX_MARKS] + "…", text)


def _named(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(0x2400 + code) if code < 0x20 else "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"


def shortened(text: str, limit: int) -> str:
    """The beginning of ``text``, with an ellipsis if it is longer than ``limit`` characters."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
