"""Takes out imports that a file no longer uses: they would tell what the missing code was made of."""

from __future__ import annotations

import re

from excise.deleters.edits.byte_edits import Edit, apply_edits
from excise.extractors.java.analysis.parsed_file import JavaModule, parse_file

_WORD = re.compile(rb"[A-Za-z_$\x80-\xff][\w$]*")


def without_unused_imports(before: JavaModule, after: bytes) -> bytes:
    """The edited file ``after`` without the imports that it no longer uses, but did use ``before``.

    Imports of all members stay. A name that a comment has counts as used: documentation refers to types by it.
    """
    module = parse_file(before.path, after)
    used = _words(after, module)
    was_used = _words(before.source, before)
    gone = [each for each in module.imports if each.name and each.name in was_used and each.name not in used]
    return apply_edits(after, [Edit(each.start, each.end, b"") for each in gone]) if gone else after


def _words(source: bytes, module: JavaModule) -> frozenset[str]:
    """All words of a file outside its imports."""
    rest, place = [], 0
    for each in module.imports:
        rest.append(source[place : each.start])
        place = each.end
    rest.append(source[place:])
    return frozenset(word.decode("utf-8", "replace") for word in _WORD.findall(b"\n".join(rest)))
