"""Comments of code that stays lose what names removed code: sentences, items of lists and examples, in any language."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from tree_sitter import Node

from excise.deleters.documents.document_text import without_mentions
from excise.deleters.documents.gone_names import GoneCode
from excise.deleters.documents.running_text import sentences_of, shortened, with_shorter_lists
from excise.deleters.documents.sections import not_emptied, sections_of, words_of
from excise.deleters.documents.tables import start_of_table
from excise.deleters.edits.byte_edits import Edit

_LINE = re.compile(r"(?P<mark>//!|///?(?!/)|#(?!#))[ ]?")
"""The beginning of a comment that ends with its line."""
_RULE = re.compile(r"(?:#{2,}|/{4,})\s*$")
"""The top or the bottom of a box around a comment."""
_OPENING = re.compile(r"/\*[*!]?[ \t]*")
_STAR = re.compile(r"[ \t]*(?:\*(?!/) ?)?")
_DIRECTIVE = re.compile(
    r"(?m)^[ \t]*(?://(?:go:|nolint|export |\s*\+build|lint:)"
    r"|(?://|/\*+|\*)\s*(?:eslint|istanbul|[cv]8\s|@ts-|tslint|prettier|js[hl]int|globals?\s|NOSONAR|CHECKSTYLE"
    r"|@formatter|<reference|[#@]\s?source|biome-)"
    r"|#\s*(?:fmt|isort|yapf|mypy|ruff|flake8|pylint|pyright|type|noqa|pragma|coding|nosec|!|-\*-)\b|#!|#:)"
)
"""Comments that tools read."""
_REFERENCE = re.compile(r"\s*@(?:see|link)\b")
"""A line of documentation that is nothing but a reference."""

_LIKE = re.compile(
    r"\b(?:is|are|works?|behaves?|does|acts?) (?:\w+ ){0,3}?"
    r"(?:like|same as|equivalent (?:to|of)|identical to|similar to|variant of|version of|shorthand for) (?=\S)"
)
"""What says that something is another thing with a difference, before the name of that."""
_THING = r"(?:type|value|result|output|iterator|error|state|future|stream|option|argument|parameter|helper)s?"
_DONE = r"(?:returned|given|used|made|created|produced|yielded|accepted|taken)"
_OF = re.compile(
    rf"(?:(?:An?|The) (?:[\w-]{{0,30}}[^\Ws] )?|Return(?:ed)? )?{_THING}(?: {_DONE})? (?:of|by|from|for) [\[(`]*",
    re.IGNORECASE,
)
"""The beginning of a sentence that only says of which function a thing is, before the name of that."""
_SENTENCE_END = re.compile(r"(?:\(\))?[\])`]*\.?$")
MAX_NAME = 60
"""Number of characters that are shown from such a name on."""


class _Comment(NamedTuple):
    """The bytes ``start:end`` of a file: a comment, or several of one column on consecutive lines."""

    start: int
    end: int
    head: str
    """What stands before the text of the first line."""
    prefix: str
    """What stands before the text of each other line."""
    lines: list[str]
    tail: str
    """What stands behind the text."""
    is_box: bool
    """Whether there are rules above or below the text: then nothing but all of it can go."""


def comment_edits(
    source: bytes,
    comments: Iterable[Node],
    code: GoneCode,
    is_documentation: Callable[[Node], bool] = lambda _: False,
) -> Iterator[Edit]:
    """Edits of a file's comments.

    Documentation, and what has several paragraphs, keeps its first sentence, which says what the code that stays does,
    unless that is only of which removed function it is the result, or the like.
    """
    pattern, words = code.mentioned.pattern(), words_of(code)
    for nodes in _blocks(source, comments):
        start, end = nodes[0].start_byte, nodes[-1].end_byte
        text = source[start:end].decode(errors="replace").rstrip("\r\n")
        has_example = "```" in text and words.search(text.encode()) is not None
        if not (has_example or pattern.search(text)) or _DIRECTIVE.search(text) or "\ufffd" in text:
            continue
        end = start + len(text.encode())
        line_end = source.find(b"\n", end)
        before = source[source.rfind(b"\n", 0, start) + 1 : start].removeprefix(codecs.BOM_UTF8)
        after = source[end : line_end if line_end >= 0 else len(source)]
        comment = _comment(text.replace("\r\n", "\n"), start, end, before.decode(errors="replace"))
        if before.strip() or after.strip() or comment is None:
            if before.strip() and not after.strip():
                yield Edit(len(source[:start].rstrip(b" \t")), end)
            continue
        is_kept = is_documentation(nodes[0]) or any(not line.strip() for line in comment.lines)
        left = _documentation_left(comment.lines, code, pattern) if is_kept else shortened(comment.lines, pattern)
        is_asked_for = is_kept and b"missing_docs" in source and not any(map(str.strip, left))
        if left != comment.lines and not (left and comment.is_box) and not is_asked_for:
            yield _edit(source, comment, left)


def defined_by_what_is_gone(source: bytes, documentation: Iterable[Node], code: GoneCode) -> Iterator[str]:
    """The first sentences of documentation that say of code which stays that it is like what is gone."""
    pattern = code.mentioned.pattern()
    for nodes in _blocks(source, documentation):
        text = source[nodes[0].start_byte : nodes[-1].end_byte].decode(errors="replace")
        words = " ".join(filter(None, (line.strip().strip("/*!#").strip() for line in text.split("\n"))))
        first = next(iter(sentences_of(words)), "")
        for found in _LIKE.finditer(first):
            if pattern.search(first[found.end() :].split(" ", 1)[0]):
                yield first[: found.end() + MAX_NAME]


def _blocks(source: bytes, comments: Iterable[Node]) -> Iterator[list[Node]]:
    """Comments of one column and mark on consecutive lines; a block comment, or one behind code, alone."""
    block: list[Node] = []
    mark = ""
    for node in sorted(comments, key=lambda each: each.start_byte):
        own = _mark(source, node)
        is_below = bool(block) and node.start_point == (block[-1].start_point[0] + 1, block[-1].start_point[1])
        if block and not (own and mark and is_below and own[0] == mark[0] and (own == mark or _is_rule(own, mark))):
            yield block
            block = []
        block.append(node)
        mark = own
    if block:
        yield block


def _mark(source: bytes, node: Node) -> str:
    """What a comment that ends with its line begins with; a rule as a whole; empty for others, and behind code."""
    is_alone = not source[source.rfind(b"\n", 0, node.start_byte) + 1 : node.start_byte].strip()
    text = source[node.start_byte : node.end_byte].decode(errors="replace").rstrip()
    found = _RULE.match(text) or _LINE.match(text)
    return found[0].rstrip() if found is not None and is_alone else ""


def _is_rule(*marks: str) -> bool:
    return any(map(_RULE.match, marks))


def _comment(text: str, start: int, end: int, indent: str) -> _Comment | None:
    """A comment with its text; ``None`` for one whose lines do not begin alike."""
    if text.startswith("/*"):
        return _of_block(text, start, end)
    lines = [line.lstrip() for line in text.split("\n")]
    own = [line for line in lines if not _RULE.match(line)]
    found = [match for line in own if (match := _LINE.match(line)) is not None]
    if len(found) < len(own) or not found:
        return None
    mark = found[0]["mark"]
    plain = [line[match.end() :].rstrip() for line, match in zip(own, found, strict=True)]
    return _Comment(start, end, f"{mark} ", f"{indent}{mark} ", plain, "", len(own) < len(lines))


def _of_block(text: str, start: int, end: int) -> _Comment | None:
    opening = _OPENING.match(text)
    if opening is None or not text.endswith("*/") or len(text) < opening.end() + 2:
        return None
    inner = text[opening.end() : -2]
    tail = f"{inner[len(inner.rstrip()) :]}*/"
    first, *others = inner.rstrip().split("\n")
    star = next((_STAR.match(line) for line in others if line.strip(" \t*")), None)
    prefix = star[0] if star is not None else ""
    if any(line.strip(" \t*") and not line.startswith(prefix) for line in others):
        return None
    rest = [line[len(prefix) :].rstrip() if line.strip(" \t*") else "" for line in others]
    if first.strip():
        return _Comment(start, end, opening[0], prefix, [first.rstrip(), *rest], tail, is_box=False)
    head = f"{opening[0].rstrip()}\n{prefix}"
    return _Comment(start, end, head, prefix, rest, tail, is_box=False) if rest else None


def _documentation_left(lines: list[str], code: GoneCode, pattern: re.Pattern[str]) -> list[str]:
    """The lines of documentation: the first sentence stays, unless it only says whose result or the like a thing is."""
    lines = list(_without_references(lines, pattern))
    end = next((number for number, line in enumerate(lines) if not line.strip()), len(lines))
    first = lines[: (end := start_of_table(lines[:end]))]
    num_kept = 0 if _is_only_of_what_is_gone(first, pattern) else 1
    kept = with_shorter_lists(shortened(first, pattern, num_kept=num_kept), pattern)
    return [*kept, *(_sections_left(lines[end:], code) if end < len(lines) else [])]


def _is_only_of_what_is_gone(lines: list[str], pattern: re.Pattern[str]) -> bool:
    """Whether the first sentence only says that something is the result, or the like, of a function that is gone."""
    first = next(iter(sentences_of(" ".join(map(str.strip, lines)))), "")
    head = _OF.match(first)
    named = [found for found in pattern.finditer(first) if head is not None and found.end() > head.end()]
    return (
        head is not None
        and len(named) == 1
        and named[0].start() <= head.end()
        and _SENTENCE_END.match(first, named[0].end()) is not None
    )


def _sections_left(lines: list[str], code: GoneCode) -> list[str]:
    """The lines below the first paragraph of documentation, without headings below which nothing is left."""
    sections = list(sections_of("\n".join(lines)))
    for section in sections:
        section.keep(without_mentions(section.lines, code))
    return [line for each in not_emptied(sections) for line in (*each.heading, *each.lines)]


def _without_references(lines: Iterable[str], pattern: re.Pattern[str]) -> Iterator[str]:
    """The lines without references that name what is gone, and lines that go on with these."""
    is_lost = False
    for line in lines:
        goes_on = is_lost and line.startswith("  ")
        is_lost = goes_on or (_REFERENCE.match(line) is not None and pattern.search(line) is not None)
        if not is_lost:
            yield line


def _edit(source: bytes, comment: _Comment, lines: list[str]) -> Edit:
    newline = "\r\n" if b"\r\n" in source[comment.start : comment.end] else "\n"
    while lines and not lines[-1].strip():
        lines.pop()
    while lines and not lines[0].strip():
        lines.pop(0)
    if lines:
        text = "\n".join([comment.head + lines[0], *((comment.prefix + line).rstrip() for line in lines[1:])])
        return Edit(comment.start, comment.end, f"{text}{comment.tail}".replace("\n", newline).encode())
    stop = source.find(b"\n", comment.end)
    start = source.rfind(b"\n", 0, comment.start) + 1
    return Edit(start, stop + 1 if stop >= 0 else len(source))
