"""Comments before definitions: which belong to one, and what they say."""

from __future__ import annotations

import re

from tree_sitter import Node

from excise.extractors.javascript.analysis.grammar import text

_DIRECTIVE = re.compile(r"^\s*(eslint|jshint|jslint|istanbul|c8|v8 ignore|prettier|global|@ts-|ts-|#region|\*?\s*$)")
_DOCUMENTS = re.compile(r"/\*\*(?s:.*?)@(?:param|arg|returns?|throws|yields|api|example)\b")
"""A comment in JSDoc on a function: no header of a file."""


def comments_before(node: Node, source: bytes) -> list[Node]:
    """The comments that belong to a statement or element: those directly above it, without an empty line between, but
    for one behind a documentation comment on parameters or results."""
    found: list[Node] = []
    below = node
    above = node.prev_sibling
    while above is not None and above.type == "comment":
        between = source[above.end_byte : below.start_byte]
        is_apart = between.count(b"\n") > (2 if below is node and _DOCUMENTS.match(text(above, source)) else 1)
        if is_apart or not _is_alone(above, source):
            break
        found.append(above)
        below, above = above, above.prev_sibling
    return found[::-1]


def doc_comment(node: Node, source: bytes) -> str:
    """What the comments above a definition say, without their marks and without directives for tools."""
    parts = [_content(text(comment, source)) for comment in comments_before(node, source)]
    return "\n".join(part for part in parts if part and not _DIRECTIVE.match(part)).strip()


def _is_alone(comment: Node, source: bytes) -> bool:
    """Whether nothing else is before the comment on its line."""
    line_start = source.rfind(b"\n", 0, comment.start_byte) + 1
    return not source[line_start : comment.start_byte].strip()


def _content(comment: str) -> str:
    if comment.startswith("//"):
        return comment[2:].strip()
    lines = comment.removeprefix("/**").removeprefix("/*").removesuffix("*/").splitlines()
    return "\n".join(re.sub(r"^\s*\* ?", "", line).rstrip() for line in lines).strip()
