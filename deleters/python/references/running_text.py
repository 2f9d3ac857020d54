"""Running text in docstrings and documents: its sentences, lists and examples, without those that mention a name."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`:*\"'(])")
"""What is between two sentences of running text."""
_SPECIAL = re.compile(
    r"\s*([-*+•]\s|\d+[.)]\s|>>>|\.\.\s|:\w[\w ]*:(?!`)|[-=~^#]{3,}|\||@|#\s|```|\$\s)|.*::$"
    r"|\s*(Args|Returns|Yields|Raises|Parameters|Attributes|Notes?|Examples?|See Also|References|Usage)\s*:?$"
)
"""Lines that belong to no running text."""
_EXAMPLE = re.compile(r"\s*>>> ")
"""The beginning of an example, whose further lines and result stand below."""
_RELATED = re.compile(r"\s*(?:See Also|See also|Related)\s*:?$")
"""The head of a list of related names."""


def blocks(lines: Sequence[str], item: re.Pattern[str]) -> Iterator[list[str]]:
    """Paragraphs, examples, items that name what is gone, lists of related names, and single lines."""
    number = 0
    while number < len(lines):
        block = [lines[number]]
        number += 1
        while number < len(lines) and lines[number].strip() and _joins(block, lines[number], item, number):
            block.append(lines[number])
            number += 1
        yield block


def _joins(block: list[str], line: str, item: re.Pattern[str], number: int) -> bool:
    """Whether a line that is not blank belongs to the block above it; ``number`` is that of the line."""
    if _RELATED.match(block[0]):
        return True
    if _EXAMPLE.match(block[0]):
        return not _EXAMPLE.match(line)
    if item.match(block[0]):
        return indent_of(line) > indent_of(block[0])
    if not block[0].strip() or _SPECIAL.match(block[0]) or _SPECIAL.match(line) or item.match(line):
        return False
    return indent_of(line) == indent_of(block[-1]) or number == 1  # the first line stands behind the quotes


def block_without(block: list[str], pattern: re.Pattern[str], item: re.Pattern[str]) -> list[str]:
    """What is left of a block."""
    if item.match(block[0]) or (_EXAMPLE.match(block[0]) and pattern.search(block[0].replace(".", " "))):
        return []
    if not _RELATED.match(block[0]):
        return _shortened(block, pattern)
    head = 2 if len(block) > 1 and not block[1].strip().strip("-=~") else 1
    entries: list[list[str]] = []
    for line in block[head:]:
        if entries and indent_of(line) > indent_of(entries[0][0]):
            entries[-1].append(line)
        else:
            entries.append([line])
    left = [entry for entry in entries if not pattern.search(entry[0])]
    return [*block[:head], *(line for entry in left for line in entry)] if left or not entries else []


def _shortened(paragraph: list[str], pattern: re.Pattern[str]) -> list[str]:
    """A paragraph without the sentences that name what is gone."""
    left = without_sentences(paragraph, pattern)
    if left is None:
        return paragraph
    indent, text = " " * indent_of(paragraph[0]), " ".join(left)
    width = max(map(len, paragraph))
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def without_sentences(lines: Sequence[str], pattern: re.Pattern[str]) -> list[str] | None:
    """The sentences of running text without those with a mention; ``None`` if there is none, or it is no such text."""
    text = " ".join(line.strip() for line in lines)
    sentences = SENTENCE_END.split(text)
    left = [each for each in sentences if not pattern.search(each)]
    if len(left) == len(sentences):
        return None
    is_running = not any(_SPECIAL.match(line) or line.startswith("  ") for line in _relative(lines))
    return left if is_running else None


def _relative(lines: Sequence[str]) -> Iterator[str]:
    """The lines without the indentation of the first."""
    indent = indent_of(lines[0]) if lines else 0
    return (line[min(indent, indent_of(line)) :] for line in lines)


def indent_of(line: str) -> int:
    """The number of blanks before a line's text."""
    return len(line) - len(line.lstrip())
