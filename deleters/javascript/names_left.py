"""Names of removed definitions, and whether code that stays has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from tree_sitter import Node

from excise.deleters.deletion_record import Changed
from excise.deleters.edits.byte_edits import Edit, apply_edits
from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.extractors.javascript.analysis.grammar import descendants, parse_tree
from excise.types import Symbol


def qualified_name(symbol: Symbol) -> list[str]:
    """The parts of the name of a definition, without the numbers that tell those of the same name apart."""
    return [part.partition("#")[0] for part in symbol.qualname.split(".")]


def without_properties(source: bytes, names: Iterable[str]) -> bytes:
    """A file whose comments lack ``@property {function} name - …`` for names that its code has no more; types that
    comments define keep theirs."""
    gone = [name.encode() for name in names if name.encode() in source and not _has(_code(source), name)]
    edits = [edit for node in _comments(source) for name in gone for edit in _tags(node, source, name)]
    return apply_edits(source, edits)


def _tags(comment: Node, source: bytes, name: bytes) -> Iterator[Edit]:
    """The edits that take the tags of a property out of a comment, with the lines that go on with them."""
    text = source[comment.start_byte : comment.end_byte]
    if b"@typedef" in text:
        return
    head = rb"[ \t]*\*[ \t]*@prop(?:erty)?[ \t]+(?:\{[^{}\n]{0,200}\}[ \t]+)?\[?"
    tag = re.compile(head + rb"%s(?![\w$])" % re.escape(name))
    start = comment.start_byte
    is_lost = False
    for line in text.splitlines(keepends=True):
        goes_on = is_lost and re.match(rb"[ \t]*\*[ \t]*(?!@|/)\S", line) is not None
        is_lost = tag.match(line) is not None or goes_on
        if is_lost:
            yield Edit(start, start + len(line))
        start += len(line)


def is_left(codebase: JavaScriptCodebase, name: str, sources: Changed) -> bool:
    """Whether code that stays, and is no test, has a name outside of comments.

    ``sources`` are the source files that the removal changes.
    """
    for path, module in codebase.modules.items():
        left = sources[path][1] if path in sources else module.source
        if not codebase.is_test(path) and left is not None and _has(left, name) and _has(_code(left), name):
            return True
    return False


def _has(source: bytes, name: str) -> bool:
    return re.search(rb"(?<![\w$])%s(?![\w$])" % re.escape(name.encode()), source) is not None


@lru_cache(maxsize=64)
def _code(source: bytes) -> bytes:
    """A file without its comments."""
    return apply_edits(source, [Edit(node.start_byte, node.end_byte) for node in _comments(source)])


def _comments(source: bytes) -> list[Node]:
    return [node for node in descendants(parse_tree(source).root_node) if node.type == "comment"]
