"""How an observing form is written: the changes of a file, the name of its reporter, and what says nothing any more."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator

from tree_sitter import Node

from excise.extractors.javascript.analysis.grammar import descendants
from excise.extractors.javascript.execution.divided_function import MARK, Edit

_PRAGMA = re.compile(rb"@(?:jest|vitest)-")
_ESM = re.compile(rb"^\s*(?:import\b(?!\s*\()|export\b)", re.MULTILINE)
_TAKEN = {
    True: "import { inspect as NAMEOf } from 'node:util'",
    False: "const { inspect: NAMEOf } = require('node:util')",
}
"""How an ECMAScript module, and another file, take the reporter."""


def observing_form(source: bytes, root: Node, edits: Iterable[Edit]) -> bytes:
    """The file with the edits, without comments, and with its reporter."""
    name = f"report{hashlib.sha256(source).hexdigest()[:8]}"
    body = edited(source, [*edits, *_comments(root)]).replace(MARK.encode(), name.encode())
    return with_reporter(body, name)


def _comments(root: Node) -> Iterator[Edit]:
    """The edits that take comments out, but for those that runners read."""
    for node in descendants(root):
        if node.type == "comment" and not _PRAGMA.search(node.text or b""):
            yield Edit(node.start_byte, node.end_byte, b"\n" if b"\n" in (node.text or b"") else b"")


def edited(source: bytes, edits: Iterable[Edit]) -> bytes:
    """A file with changes; one within another is left out, of two equal places the last one stays."""
    chosen: dict[tuple[int, int], Edit] = {(edit.start, edit.end): edit for edit in edits}
    result, place = bytearray(), 0
    for edit in sorted(chosen.values(), key=lambda each: (each.start, -each.end)):
        if edit.start < place:
            continue
        result += source[place : edit.start] + edit.text
        place = edit.end
    return bytes(result + source[place:])


def with_reporter(body: bytes, name: str) -> bytes:
    """The file with its reporter, which the hook has put where every context finds it."""
    is_module = _ESM.search(body) is not None
    take = (
        "import { inspect as NAMEOf } from 'node:util'"
        if is_module
        else "const { inspect: NAMEOf } = require('node:util')"
    )
    head = f"{take}\nconst NAME = NAMEOf.reportValue\n".replace("NAME", name).encode()
    start = re.match(rb"(?:#![^\n]*\n)?(?:\s+|//[^\n]*\n|/\*.*?\*/)*(?:(['\"])use strict\1;?)?", body, re.DOTALL)
    place = start.end() if start is not None else 0
    first = re.match(rb"(?:#![^\n]*\n)?(?:\s+|//[^\n]*\n|/\*.*?\*/)*", body, re.DOTALL)
    top = first.end() if first is not None else 0
    return body[:top] + b"// @ts-nocheck\n" + body[top:place] + b"\n" + head + body[place:]
