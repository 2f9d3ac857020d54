"""Minified JavaScript: what minifiers keep of the source, which is everything but the names of local variables.

Properties, keys and texts stay, in nearly the same order. So a bundle is compared with the deleted code by
these words alone (:func:`kept_words`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from excise.verifiers.leaks.decoders.strings import line_spans
from excise.verifiers.leaks.fragments import DecodingLimits

_LONG_LINE = 400
"""Bytes of a line from which on a text may be minified."""
_BESIDE = 3
"""Lines on each side of a minified one that are read with it."""
_SCRIPT = re.compile(rb"\bfunction\b|=>|\breturn\b")
_JSON = re.compile(rb"\s*[{\[]\s*(?:[{\[]\s*)?\"")
_TOKEN = re.compile(
    rb"//[^\n]{0,160}(?=\n|\Z)|/\*.*?\*/"
    rb"|(?<=[=(,:;!&|?{}\[+>~ \n])/(?![*/ ])(?:\\[^\n]|\[(?:\\[^\n]|[^\]\\\n])*\]|[^/\\\n\[])+/[a-z]*"
    rb"|\"((?:\\.|[^\"\\\n])*)\"|'((?:\\.|[^'\\\n])*)'|`((?:\\.|[^`\\])*)`"
    rb"|\.\s*([A-Za-z_$][\w$]*)"
    rb"|[{,]\s*([A-Za-z_$][\w$]*)\s*:(?!:)",
    re.DOTALL,
)
"""Comments (in minified code, two slashes are part of something else), regular expressions, texts, properties, keys."""
_EXPRESSION = re.compile(rb"\$\{[^}]*\}")
SCRIPTS = (".js", ".cjs", ".mjs", ".jsx", ".ts", ".tsx", ".mts", ".cts")
"""Suffixes of files whose code is also looked for in minified form."""
MIN_WORDS = 12
"""Words that a definition must keep to be looked for in minified code."""


def kept_words(code: bytes) -> bytes:
    """The words of some JavaScript that a minifier keeps, in their order, separated by spaces."""
    words: list[bytes] = []
    for found in _TOKEN.finditer(code):
        text = found[1] or found[2] or found[3]
        if text:
            plain = _EXPRESSION.sub(b" ", text)
            words += (word for word in re.findall(rb"\w{3,}", plain) if word != b"undefined")
        elif name := found[4] or found[5]:
            words.append(name.replace(b"$", b"_"))
    return b" ".join(words)


class MinifiedJavaScript:
    """Yields the words that minifiers keep, of scripts with very long lines."""

    name = "minified_js"
    whole = False

    def fits(self, data: bytes) -> bool:
        """Recognise long lines and words of scripts. JSON is none; scripts in its texts are decoded before."""
        if _JSON.match(data) or not _SCRIPT.search(data):
            return False
        return bool(_minified_lines(data))

    def parts(self, data: bytes, _limits: DecodingLimits, /) -> Iterator[bytes]:
        """Yield the words of minified lines and of those next to them; they are no script any more."""
        words = kept_words(_minified_lines(data))
        if words:
            yield words


def _minified_lines(data: bytes) -> bytes:
    """The minified lines with :data:`_BESIDE` others on each side: a text in code may have line breaks."""
    starts, ends = line_spans(data)
    chosen: set[int] = set()
    for line in np.flatnonzero(ends - starts >= _LONG_LINE).tolist():
        if data.find(b";", starts[line], ends[line]) >= 0:
            chosen.update(range(max(0, line - _BESIDE), min(len(ends), line + _BESIDE + 1)))
    return b"".join(data[starts[line] : ends[line]] for line in sorted(chosen))
