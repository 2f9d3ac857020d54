"""The visible text of HTML and XML."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from excise.verifiers.leaks.decoders.strings import affected_lines
from excise.verifiers.leaks.fragments import DecodingLimits

_TAG = re.compile(rb"<(/?)([a-zA-Z][a-zA-Z0-9:-]*)(?:\s[^<>]{0,4000})?/?>|<!--")
_INLINE = frozenset(b"a abbr b code em font i kbd mark s samp small span strong sub sup tspan tt u var".split())
_PROBE = re.compile(rb"</[a-zA-Z]|&(?:lt|gt|amp|quot|#\d+|#x[0-9a-fA-F]+);")


class Html:
    """Removes tags and resolves entities; inline tags (``<b>``, ``<span>``) are removed without a line break."""

    name = "html"
    whole = False

    def fits(self, data: bytes) -> bool:
        """Recognise an end tag or an entity."""
        return _PROBE.search(data) is not None

    def parts(self, data: bytes, _limits: DecodingLimits, /) -> Iterator[bytes]:
        """Yield the text, if it differs from the data."""
        data = affected_lines(data, b"<&")
        plain = _TAG.sub(lambda tag: b"" if (tag[2] or b"").lower() in _INLINE else b"\n", data)
        plain = html.unescape(plain.decode(errors="replace")).replace("\xa0", " ").encode(errors="replace")
        if plain != data:
            yield plain
