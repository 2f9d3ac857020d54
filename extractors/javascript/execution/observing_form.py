"""How an observing form is written: the changes of a file, the name of its reporter, and what says nothing any more."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator

from tree_sitter import Node

from excise.extractors.divided_tests import Edit
from excise.extractors.javascript.analysis.grammar import descendants
from excise.extractors.javascript.execution.divided_function import MARK

_PRAGMA = re.compile(rb"@(?:jest|vitest)-[\w-]+[ \t]+(?:[\w./-]+|\{[^\n]*\})")
_TAKEN = {
    True: "import { inspect as NAMEOf } from 'node:util'",
    False: "const { inspect: NAMEOf } = require('node:util')",
}
"""How an ECMAScript module, and another file, take the reporter."""


def observing_form(source: bytes, root: Node, edits: Iterable[Edit]) -> bytes:
    """The file with the edits, without comments, and with its reporter."""
    name = f"report{hashlib.sha256(source).hexdigest()[:8]}"
    body = edited(source, [*edits, *_comments(root)]).replace(MARK.encode(), name.encode())
    is_module = any(node.type in {"import_statement", "export_statement"} for node in root.named_children)
    return with_reporter(body, name, is_module=is_module)


def _comments(root: Node) -> Iterator[Edit]:
    """The edits that take comments out, but for what runners read in them."""
    for node in descendants(root):
        if node.type == "comment":
            found = _PRAGMA.findall(node.text or b"")
            pragmas = b"/** %s */" % b"\n * ".join(found) if found else b""
            yield Edit(node.start_byte, node.end_byte, pragmas or (b"\n" if b"\n" in (node.text or b"") else b" "))


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


def with_reporter(body: bytes, name: str, *, is_module: bool) -> bytes:
    """The file with its reporter, which the hook has put where every context finds it."""
    head = f"{_TAKEN[is_module]}\nconst NAME = NAMEOf.reportValue\n".replace("NAME", name).encode()
    start = re.match(rb"(?:#![^\n]*\n)?(?:\s+|//[^\n]*\n|/\*.*?\*/)*(?:(['\"])use strict\1;?)?", body, re.DOTALL)
    place = start.end() if start is not None else 0
    first = re.match(rb"(?:#![^\n]*\n)?(?:\s+|//[^\n]*\n|/\*.*?\*/)*", body, re.DOTALL)
    top = first.end() if first is not None else 0
    return body[:top] + b"// @ts-nocheck\n" + body[top:place] + b"\n" + head + body[place:]
