"""Comments before definitions: which belong to one, and what they say."""

from __future__ import annotations

import re

from tree_sitter import Node

from excise.extractors.javascript.analysis.grammar import text

_DIRECTIVE = re.compile(r"^\s*(eslint|jshint|jslint|istanbul|c8|v8 ignore|prettier|global|@ts-|ts-|#region|\*?\s*$)")
_DOCUMENTS = re.compile(r"/\*\*(?s:.*?)@(?:param|arg|returns?|throws|yields|api)\b")
"""A comment in JSDoc that may be on a function."""
_ON_VALUE = re.compile(r"/\*\*(?s:.*?)@(?:private|const(?:ant)?|type|public|default|readonly)\b")
"""A comment in JSDoc that may be on a value."""
_DECLARATIONS = frozenset({"variable_declaration", "lexical_declaration"})
_OF_OTHERS = re.compile(
    r"@(?:callback|typedef|license|licence|module|file|fileoverview|overview|copyright|namespace|preserve|event|interface)\b"
)
"""What documents a type or a file."""
_FUNCTION = re.compile(rb"\b(?:function|class)\b|=>")
_BEGINNING = 400
"""Number of bytes of a statement in which a function begins."""


def comments_before(node: Node, source: bytes) -> list[Node]:
    """The comments that belong to a statement or element: those directly above it, without an empty line between, but
    for one behind a documentation comment on parameters or results, or on the one value below it."""
    found: list[Node] = []
    below = node
    above = node.prev_sibling
    while above is not None and above.type == "comment":
        between = source[above.end_byte : below.start_byte]
        is_near = below is node and between.count(b"\n") == 2 and _documents(above, node, source)
        if (between.count(b"\n") > 1 and not is_near) or not _is_alone(above, source):
            break
        found.append(above)
        below, above = above, above.prev_sibling
    return found[::-1]


def _documents(comment: Node, node: Node, source: bytes) -> bool:
    """Whether a comment is plainly on the function or value in a statement or element."""
    said = text(comment, source)
    if node.type in _DECLARATIONS and _ON_VALUE.match(said) is not None and _OF_OTHERS.search(said) is None:
        below = node.next_sibling
        return below is None or source[node.end_byte : below.start_byte].count(b"\n") > 1  # else it may be on several
    is_function = node.type == "method_definition" or (
        node.type != "import_statement"
        and _FUNCTION.search(source, node.start_byte, min(node.end_byte, node.start_byte + _BEGINNING)) is not None
    )
    return is_function and _DOCUMENTS.match(said) is not None and _OF_OTHERS.search(said) is None


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
