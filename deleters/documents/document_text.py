"""Text and examples of documents that name what is gone.

Sentences and items of lists that name it go, as in docstrings, and statements of examples that use it, with what only
these need. What introduces an example goes with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from itertools import islice, takewhile
from typing import NamedTuple

from excise.deleters.documents.code_examples import LANGUAGES as BRACED
from excise.deleters.documents.code_examples import looks_like_code, without_uses
from excise.deleters.documents.gone_names import GoneCode, item_pattern, stems
from excise.deleters.documents.python_examples import LostInExamples, is_python, without_statements
from excise.deleters.documents.running_text import (
    block_without,
    blocks,
    indent_of,
    sentences_of,
    with_end_of,
    without_back_references,
    without_empty_callouts,
    without_introduction,
)
from excise.deleters.documents.tables import rows_left, rows_of, start_of_table

MAX_REMOVED = 12_000
"""Number of characters of text up to which documents lose it: a statement shows all of it."""
_FENCE = re.compile(r"\s*(?P<fence>`{3,}|~{3,})\s*\{?\.?(?P<language>[\w+-]*)")
_CODE = re.compile(
    r"\s*\.\.\s+(?:code-block|code|sourcecode|ipython|testcode|testsetup|testcleanup|doctest)::\s*(?P<language>[\w+-]*)\s*$"
)
_DIRECTIVE = re.compile(r"\s*\.\.\s+[\w:-]+::\s*$")
"""A directive whose content stands below it."""
_TITLE = re.compile(r"\s*[-*+•]\s+\*{0,2}[A-Z][\w&/-]{0,30}(?: [\w&/-]{1,30}){0,3}:?\*{0,2}\s*$")
"""An item of a list that is the title of what stands further in: a few words, and no code."""
_CODE_ITEM = re.compile(r"\s*[-*+•]\s+\[?`")
"""An item of a list that begins with code."""
BULLET = re.compile(r"\s*(?:[-*+•]|(?:\d{1,3}|#)[.)])\s")
"""The beginning of an item of a list."""
_CAPITALISED = re.compile(r"\s*[-*+•]\s+`{0,2}[A-Z]\w*`{0,2}\s*(?:[:(]|$)")
"""An item of a list that begins with, or is, a capitalised word."""
_FIELDS = frozenset(
    {
        "Author", "Authors", "Changes", "Date", "Default", "Description", "Error", "Example", "License", "Name", "Note",
        "Python", "Required", "Status", "Title", "Type", "Usage", "Value", "Version", "Warning",
    }
)  # fmt: skip
"""Words with which items begin that tell something of a project, or of a setting."""
_OUTPUT = re.compile(
    r"\W*(?:[Tt]he |[Ii]ts )?(?:[Oo]utputs?|[Pp]rints|[Rr]esults?|[Gg]ives|[Pp]roduces)\b[^.\n]{0,40}:{1,2}\W*$"
)
"""A line above what an example prints."""
_CODE_LINE = re.compile(r"\s*(?!(?:#|//|\*|/\*|import\b|from\b|use\s))\S")
_WORD = re.compile(r"\w+")
_EXAMPLE_LABEL = re.compile(r"\s*[*_]{0,2}(?:Examples?|Usage|Sample)[*_]{0,2}\s*::?[*_]{0,2}\s*$", re.IGNORECASE)
"""A line that is nothing but the label of the example below it."""
_ENDS = (".", ":", "!", "?", "/", "*")
"""What a line ends with, markers of comments included, after which another sentence begins."""
_BOLD = re.compile(r"\s*(?:\*\*[^*\n]+\*\*|__[^_\n]+__)[.:]?\s*$")
"""A line that is a title of what stands below it, up to the next one."""
_NO_TEXT = re.compile(rf"{BULLET.pattern}|{_BOLD.pattern}|\s*(?:\.\.\s|[|>+=:])")
"""The beginning of what is no plain paragraph."""
_LEADING = re.compile(r"\b(?:also|possible|sometimes)\b", re.IGNORECASE)
"""What a sentence has that leads to another example."""
_OF_CODE = re.compile(r"`|\w\(")
_OPTION = re.compile(r"\s*:[\w-]+:")
_SHELL = frozenset({"sh", "bash", "zsh", "fish", "shell", "console", "shell-session", "shellsession", "terminal"})
_DATA = frozenset({"text", "txt", "output", "http", "json", "yaml", "xml", "html", "csv", "none"})
"""What examples show that are no code of the project: also what it prints."""
_LANGUAGES = frozenset({"", "python", "python3", "py", "pycon", "py3", "doctest", "ipython", "default"})


class ChunkKind(Enum):
    """What consecutive lines of a document are."""

    BLANK = "blank"
    PROSE = "prose"
    CODE = "code"


class Chunk(NamedTuple):
    """Consecutive lines of a document: ``lines[start:end]``, of which those from ``code`` to ``stop`` are code."""

    kind: ChunkKind
    start: int
    end: int
    code: int = 0
    stop: int = 0
    language: str = ""
    """What the document says of the code; empty if nothing."""


def utf8_text(data: bytes) -> str | None:
    """The text of a file; ``None`` if it is not UTF-8, or no text: such files stay as they are."""
    try:
        return None if b"\0" in data else data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def without_mentions(lines: Sequence[str], gone: GoneCode) -> list[str]:
    """The lines of a section without text and examples that name what is gone."""
    return _without(lines, gone, has_text=True)


def without_examples(lines: Sequence[str], gone: GoneCode) -> list[str]:
    """The lines of a section without examples that name what is gone."""
    return _without(lines, gone, has_text=False)


def is_about(lines: Sequence[str], gone: GoneCode) -> bool:
    """Whether a section is about what is gone, so that what else it says is, too.

    It has examples, of which each uses what is gone. Its first sentence names that, and begins with it, or each example
    ends with it; or another sentence names it, nothing is left of the examples, and it has no list. Of a section
    without text, each example loses half of its lines.
    """
    chunks, lost = list(chunks_of(lines)), LostInExamples(gone)
    texts = [lines[chunk.start : chunk.end] for chunk in chunks if chunk.kind is ChunkKind.PROSE]
    first = next((chunk for chunk in chunks if chunk.kind is not ChunkKind.BLANK), None)
    examples = [c for c in chunks if c.kind is ChunkKind.CODE and c.language not in _SHELL | _DATA]
    if first is None or not examples or not gone.mentioned:
        return False
    if not texts:
        return all(_loses_half(lines[each.code : each.stop], each.language, lost) for each in examples)
    if first.kind is not ChunkKind.PROSE or BULLET.match(lines[first.start]):
        return False
    pattern = gone.mentioned.pattern()
    sentence = sentences_of(" ".join(map(str.strip, texts[0])))[0]
    found = pattern.search(sentence)
    begins = found is not None and not re.search(r"\w", sentence[: found.start()])
    has_others = len(examples) < sum(c.kind is ChunkKind.CODE for c in chunks) or any(map(BULLET.match, lines))
    if found is None and (has_others or not any(pattern.search(" ".join(text)) for text in texts)):
        return False

    def is_lost(example: Chunk) -> bool:
        own = lines[example.code : example.stop]
        left = _without_uses(own, example.language, lost)
        last = next((line for line in reversed(own) if re.search(r"\w", line)), "")
        return left is not None and not (left and found is None) and (begins or last not in left)

    return all(map(is_lost, examples))


def all_examples_lose(lines: Sequence[str], gone: GoneCode, *, everything: bool = False) -> bool:
    """Whether a section has no commands, but examples of code each of which has a line that uses what is gone, or of
    which nothing is left (``everything``)."""
    lost = LostInExamples(gone)
    every = [chunk for chunk in chunks_of(lines) if chunk.kind is ChunkKind.CODE]
    if any(chunk.language in _SHELL for chunk in every):
        return False
    examples = [chunk for chunk in every if chunk.language not in _DATA]
    left = [_without_uses(lines[each.code : each.stop], each.language, lost) for each in examples]
    return bool(left) and all(each is not None and not (each and everything) for each in left)


def _loses_half(lines: Sequence[str], language: str, lost: LostInExamples) -> bool:
    """Whether at least a half of the lines of an example go, comments, imports and blank ones aside."""
    left = _without_uses(lines, language, lost)
    before, after = (sum(bool(_CODE_LINE.match(line)) for line in some) for some in (lines, left or ()))
    return left is not None and 2 * after <= before


def _without(lines: Sequence[str], gone: GoneCode, *, has_text: bool) -> list[str]:
    if not (gone.mentioned or gone.dotted or gone.local or gone.members or gone.commands or gone.calls or gone.cases):
        return list(lines)
    chunks, lost = list(chunks_of(lines)), LostInExamples(gone)
    lost.last_lines = {word: at for at, line in enumerate(lines) for word in _WORD.findall(line)}
    left: list[list[str]] = []
    emptied: list[int] = []
    lost_heads: dict[int, str] = {}
    """Numbers of chunks whose last item of a list, or term, is gone, to its first line."""
    for number, chunk in enumerate(chunks):
        own = list(lines[chunk.start : chunk.end])
        if chunk.kind is ChunkKind.PROSE and (gone.mentioned or gone.commands or gone.cases) and has_text:
            parts = _parts_left(own, gone)
            own = list(without_empty_callouts([line for _, kept in parts for line in kept], own))
            own = list(_without_bare_titles(own, lines[chunk.start : chunk.end]))
            lost_heads.update({number: head} if (head := _lost_head(parts, gone)) else {})
        elif chunk.kind is ChunkKind.CODE:
            lost.end = chunk.stop
            kept = _without_uses(lines[chunk.code : chunk.stop], chunk.language, lost)
            if kept:
                own = [*lines[chunk.start : chunk.code], *kept, *lines[chunk.stop : chunk.end]]
            elif kept is not None:
                own = []
                emptied.append(number)
        left.append(own)
    emptied += _drop_without_introduction(lines, chunks, left)
    for number, head in lost_heads.items():
        _drop_rest_of_item(lines, chunks, left, number, head)
    _drop_around(lines, chunks, left, emptied)
    for number in emptied if has_text else ():
        _drop_topic(lines, chunks, left, gone, number)
    found = list(_without_double_blanks(chunks, left))
    return with_end_of(lines, found) if found != list(lines) and found else found


def _further_in(head: str, below: Iterable[str]) -> Iterator[str]:
    """The lines below another one that are further in, up to the first that is not."""
    return takewhile(lambda line: indent_of(line) > indent_of(head), below)


def _without_bare_titles(left: Sequence[str], before: Sequence[str]) -> Iterator[str]:
    """The lines that are left of a list without the titles of its parts whose items are all gone."""
    for line, following in zip(left, [*left[1:], ""], strict=False):
        is_title = following and _TITLE.match(line) and indent_of(following) <= indent_of(line)
        below = before[before.index(line) + 1 :] if is_title and before.count(line) == 1 else []
        inside = list(_further_in(line, below))
        if not inside or not all(map(_CODE_ITEM.match, inside)):
            yield line


def _drop_around(lines: Sequence[str], chunks: Sequence[Chunk], left: list[list[str]], emptied: Sequence[int]) -> None:
    """Take what is about lost examples and lists, of which ``emptied`` are gone, out of what is left."""
    for number in (n for n, c in enumerate(chunks) if c.kind is ChunkKind.CODE and len(left[n]) < c.end - c.start):
        _drop_output(lines, chunks, left, number)
    for number in emptied:
        _drop_introduction(lines, chunks, left, number)
        _drop_consequence(chunks, left, number)
    for number, chunk in enumerate(chunks):
        if chunk.kind is ChunkKind.PROSE and not left[number] and BULLET.match(lines[chunk.start]):
            _drop_introduction(lines, chunks, left, number)
    for number in reversed(range(len(chunks))):
        _drop_bare_head(lines, chunks, left, number)
    _drop_bare_titles(lines, chunks, left)


def _drop_without_introduction(lines: Sequence[str], chunks: Sequence[Chunk], left: list[list[str]]) -> Iterator[int]:
    """Take shortened examples whose introductions are gone, since they were about that, out of what is left; yield
    their numbers."""
    for number, chunk in enumerate(chunks):
        is_shorter = chunk.kind is ChunkKind.CODE and 0 < len(left[number]) < chunk.end - chunk.start
        if is_shorter and _lost_introduction(lines, chunks, left, number):
            left[number] = []
            yield number


def _without_double_blanks(chunks: Sequence[Chunk], left: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines that are left; of the blank ones around a chunk that is gone, those above it stay."""
    is_after_gone = False
    last_blank = True
    for chunk, own in zip(chunks, left, strict=True):
        if chunk.kind is not ChunkKind.BLANK and not own:
            is_after_gone = True
            continue
        if chunk.kind is ChunkKind.BLANK and is_after_gone and last_blank:
            continue
        is_after_gone = is_after_gone and chunk.kind is ChunkKind.BLANK
        last_blank = chunk.kind is ChunkKind.BLANK
        yield from own


def _drop_introduction(lines: Sequence[str], chunks: Sequence[Chunk], left: list[list[str]], gone: int) -> None:
    """Take the sentence before an example or a list that is gone out of what is left, if it ends with a colon and
    introduces nothing else."""
    before, after = gone - 1, gone + 1
    is_list = chunks[gone].kind is ChunkKind.PROSE
    while before >= 0 and (chunks[before].kind is ChunkKind.BLANK or (is_list and not left[before])):
        before -= 1
    if before < 0 or chunks[before].kind is not ChunkKind.PROSE:
        return
    while after < len(chunks) and (chunks[after].kind is ChunkKind.BLANK or not left[after]):
        after += 1
    has_more = after < len(chunks) and chunks[after].kind is ChunkKind.CODE
    has_more |= is_list and after < len(chunks) and BULLET.match(lines[chunks[after].start]) is not None
    if left[before] and not has_more:
        last = left[before][-1]
        has_text = after < len(chunks) and indent_of(lines[chunks[after].start]) > indent_of(last)
        above = left[before][-2].rstrip() if len(left[before]) > 1 else ""  # a sentence may end with the word
        is_label = (
            not (is_list or has_text)
            and (not above or above.endswith(_ENDS))
            and _EXAMPLE_LABEL.match(last) is not None
        )
        left[before] = left[before][:-1] if is_label else without_introduction(left[before])


def _drop_topic(
    lines: Sequence[str], chunks: Sequence[Chunk], left: list[list[str]], gone: GoneCode, example: int
) -> None:
    """Take the paragraph above an example that is gone out of what is left, if it was about that example alone.

    Nothing is left of what stood below it up to the next paragraph with an example, no text stands above it, and it has
    no code. It has a word of what is gone that no other line has, or is the rest of an introduction and leads to that.
    """
    texts = [number for number, chunk in enumerate(chunks) if chunk.kind is not ChunkKind.BLANK]
    at = texts.index(example)
    above, own = ([None, None, *texts[:at]])[-2:]
    kinds = [chunks[number].kind for number in [n for n in texts[at:] if left[n]][:2]]
    is_after_text = above is not None and chunks[above].kind is not ChunkKind.CODE
    if own is None or is_after_text or kinds not in ([], [ChunkKind.PROSE, ChunkKind.CODE]):
        return
    text = " ".join(left[own])
    if not text or chunks[own].kind is not ChunkKind.PROSE or _NO_TEXT.match(text) or _OF_CODE.search(text):
        return
    names = (*gone.mentioned.names, *gone.mentioned.qualified, *gone.dotted)
    others = {word for number in texts if number != own for line in left[number] for word in stems(line)}
    told = {word for line in left[own] for word in stems(line)} - others
    is_rest = above is not None and left[own] != list(lines[chunks[own].start : chunks[own].end])
    leads_on = is_rest and _LEADING.search(text) is not None
    if leads_on or any(told & stems(name.rpartition(".")[2]) for name in names):
        left[own] = []


def _lost_introduction(lines: Sequence[str], chunks: Sequence[Chunk], left: list[list[str]], example: int) -> bool:
    """Whether the sentence that introduced an example is gone: the example was about what is gone."""
    before = next((n for n in range(example - 1, -1, -1) if chunks[n].kind is not ChunkKind.BLANK), None)
    if before is None or chunks[before].kind is not ChunkKind.PROSE:
        return False
    last = left[before][-1] if left[before] else ""
    return lines[chunks[before].end - 1].rstrip().endswith(":") and not last.rstrip().endswith(":")


def _drop_consequence(chunks: Sequence[Chunk], left: list[list[str]], example: int) -> None:
    """Take what the text below an example that is gone says of it out of what is left."""
    below = next((n for n in range(example + 1, len(chunks)) if chunks[n].kind is not ChunkKind.BLANK and left[n]), 0)
    if below and chunks[below].kind is ChunkKind.PROSE:
        left[below] = without_back_references(left[below])


def _drop_output(lines: Sequence[str], chunks: Sequence[Chunk], left: list[list[str]], example: int) -> None:
    """Take what an example printed, whose last statement is gone, out of what is left, with the words above it."""
    texts = (number for number in range(example + 1, len(chunks)) if chunks[number].kind is not ChunkKind.BLANK)
    following = list(islice(texts, 2))
    last = lines[chunks[example].stop - 1]
    if len(following) < 2 or (left[example] and last in left[example]):
        return
    words, output = following
    is_output = chunks[words].end - chunks[words].start == 1 and _OUTPUT.match(lines[chunks[words].start])
    if is_output and chunks[words].kind is ChunkKind.PROSE and chunks[output].kind is ChunkKind.CODE:
        left[words] = left[output] = []


def _drop_bare_head(lines: Sequence[str], chunks: Sequence[Chunk], left: list[list[str]], number: int) -> None:
    """Take a directive, ``.. caution::``, or the title of a part of a list out of what is left if nothing is left of
    what stood below it."""
    own = lines[chunks[number].start : chunks[number].end]
    head = left[number][-1] if left[number] else ""
    is_title = _TITLE.match(head) is not None
    if chunks[number].kind is not ChunkKind.PROSE or not (is_title or _DIRECTIVE.match(head)):
        return
    below = own[len(own) - own[::-1].index(head) :] if head in own else []
    inside = list(_further_in(head, below))
    if is_title and not all(map(_CODE_ITEM.match, inside)):
        return
    num_lost = len(inside)
    for after in range(number + 1, len(chunks)):
        if chunks[after].kind is ChunkKind.BLANK:
            continue
        if indent_of(lines[chunks[after].start]) <= indent_of(head):
            break
        if left[after]:
            return
        num_lost += 1
    if num_lost > (1 if is_title and not inside else 0):  # an introduction and an example, or items
        left[number] = left[number][:-1]


def _drop_bare_titles(lines: Sequence[str], chunks: Sequence[Chunk], left: list[list[str]]) -> None:
    """Take paragraphs that are a title in bold out of what is left if nothing is left up to the next one."""
    texts = [number for number, chunk in enumerate(chunks) if chunk.kind is not ChunkKind.BLANK]
    titles = {n for n in texts if chunks[n].end - chunks[n].start == 1 and _BOLD.match(lines[chunks[n].start])}
    for at, number in enumerate(texts):
        below = list(takewhile(lambda n: n not in titles, texts[at + 1 :]))
        if number in titles and below and not any(left[n] for n in below):
            left[number] = []


def _drop_rest_of_item(
    lines: Sequence[str], chunks: Sequence[Chunk], left: list[list[str]], number: int, head: str
) -> None:
    """Take the paragraphs below an item of a list, or a term, which are further in, out of what is left: its first line
    ``head`` is gone."""
    for after in range(number + 1, len(chunks)):
        chunk = chunks[after]
        if chunk.kind is ChunkKind.BLANK:
            continue
        own = lines[chunk.start : chunk.end]
        inside = next((n for n, line in enumerate(own) if indent_of(line) <= indent_of(head)), len(own))
        if not inside:
            return
        left[after] = [line for line in left[after] if line not in own[:inside]]
        if inside < len(own):
            return


# ------------------------------------------------------------------------------------------- chunks
def chunks_of(lines: Sequence[str]) -> Iterator[Chunk]:
    """The paragraphs, examples and blank lines of a document, in order."""
    number = 0
    while number < len(lines):
        chunk = _chunk_at(lines, number)
        yield chunk
        number = chunk.end
        last = lines[number - 1]
        if chunk.kind is ChunkKind.PROSE and last.rstrip().endswith("::") and not _DIRECTIVE.match(last):
            first = _first_text(lines, number)
            indent = indent_of(lines[number - 1])
            if number < first < len(lines) and indent_of(lines[first]) > indent:
                yield Chunk(ChunkKind.BLANK, number, first)
                number = _end_of_indented(lines, first, indent)
                yield Chunk(ChunkKind.CODE, first, number, first, number)


def _chunk_at(lines: Sequence[str], number: int) -> Chunk:
    line = lines[number]
    if not line.strip():
        return Chunk(ChunkKind.BLANK, number, number + 1)
    if fence := _FENCE.match(line):
        stop = end_of_fence(lines, number)
        return Chunk(ChunkKind.CODE, number, min(stop + 1, len(lines)), number + 1, stop, fence["language"].lower())
    if directive := _CODE.match(line):
        end = _end_of_indented(lines, number + 1, indent_of(line))
        code = _first_text(lines, number + 1)
        while code < end and _OPTION.match(lines[code]):
            code = _first_text(lines, code + 1)
        return Chunk(ChunkKind.CODE, number, end, min(code, end), end, directive["language"].lower())
    is_session = line.lstrip().startswith(">>>")
    is_first = not number or not lines[number - 1].strip()
    end = number + 1
    while end < len(lines) and lines[end].strip() and not _FENCE.match(lines[end]) and not _CODE.match(lines[end]):
        end += 1
    is_code = is_session or (is_first and _is_indented_code(lines[number:end]))
    return Chunk(ChunkKind.CODE, number, end, number, end) if is_code else Chunk(ChunkKind.PROSE, number, end)


def _is_indented_code(lines: Sequence[str]) -> bool:
    """Whether a paragraph is code in a language with braces, as comments of Go and Markdown show it."""
    return all(line.startswith(("\t", "    ")) for line in lines) and looks_like_code(lines)


def end_of_fence(lines: Sequence[str], number: int) -> int:
    """The number of the line that closes the fence of a line, or of all lines; the line's own if it opens none."""
    fence = _FENCE.match(lines[number])
    if fence is None:
        return number
    closing = re.compile(rf"\s*{fence['fence']}{fence['fence'][0]}*\s*$")
    return next((at for at in range(number + 1, len(lines)) if closing.match(lines[at])), len(lines))


def _first_text(lines: Sequence[str], number: int) -> int:
    while number < len(lines) and not lines[number].strip():
        number += 1
    return number


def _end_of_indented(lines: Sequence[str], number: int, indent: int) -> int:
    """Where the lines end that are indented by more than ``indent``; blank ones at the end do not count."""
    end = number
    while number < len(lines) and (not lines[number].strip() or indent_of(lines[number]) > indent):
        number += 1
        end = number if lines[number - 1].strip() else end
    return end


# --------------------------------------------------------------------------------------------- text
def _parts_left(lines: list[str], gone: GoneCode) -> list[tuple[list[str], list[str]]]:
    """(lines, those that are left) of each part of a chunk of text, which may stand directly above a table."""
    if 0 < (start := start_of_table(lines)) < len(lines):
        return [*_parts_left(lines[:start], gone), *_parts_left(lines[start:], gone)]
    names = [gone.mentioned.pattern().pattern] if gone.mentioned else []
    pattern, item = re.compile("|".join([*names, gone.commands.mention()])), item_pattern(gone.mentioned.names)
    if rows := rows_of(lines):
        return rows_left(rows, pattern, gone.cases)
    if not pattern.search("\n".join(lines)):
        item = item_pattern(tuple(n for n in gone.mentioned.names if n[0].isupper() and n not in _FIELDS))
        if not any(map(item.match, lines)) or not _lists_names(lines):
            return [(lines, lines)]
    return [(block, block_without(block, pattern, item)) for block in blocks(lines, item)]


def _lists_names(lines: Sequence[str]) -> bool:
    """Whether most items of a list begin with one capitalised word, as those of a list of classes do."""
    items = [line for line in lines if BULLET.match(line)]
    return 2 * sum(bool(_CAPITALISED.match(line)) for line in items) > len(items)


def _lost_head(parts: Sequence[tuple[list[str], list[str]]], gone: GoneCode) -> str:
    """The first line of the last item of a list, or term, of a chunk, if the item is gone; else empty."""
    item = item_pattern(gone.mentioned.names)
    last = next((each for each in reversed(parts) if BULLET.match(each[0][0]) or item.match(each[0][0])), None)
    return last[0][0] if last is not None and not last[1] else ""


# --------------------------------------------------------------------------------------------- code
def _without_uses(lines: Sequence[str], language: str, lost: LostInExamples) -> list[str] | None:
    """The lines of an example in a language that do not use what is gone; see :func:`without_statements`."""
    kept = without_statements(lines, lost) if language in _LANGUAGES else None
    is_braced = language in BRACED or (not language and looks_like_code(lines) and not is_python(lines))
    if kept is None and is_braced:
        return without_uses(lines, lost.uses())
    if kept is None and lost.commands and (language in _SHELL or not language):
        return lost.commands.left_of(lines, is_shell=language in _SHELL)
    return kept
