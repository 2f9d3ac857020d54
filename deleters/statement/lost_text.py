"""The words that a removal takes out of documents, and out of docstrings and comments of code that stays."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, groupby, takewhile

from excise.deleters.documents.running_text import sentences_of
from excise.deleters.patches.patch_reader import Change, changes_of, parse_patch
from excise.deleters.statement.project_docs import one_line
from excise.protocols import Codebase

MIN_LINE_WORDS = 3
"""Number of words of the longest line from which on removed lines of a document are text, and no list of names."""
LEFT_SHARE = 0.7
"""Share of the words of a sentence of which another one has only lost the rest."""
_COMMENT = re.compile(r"\s*(?://[/!]?|/\*[*!]?|\*/|\*(?=\s|$)|#(?!\[))[ \t]?")
"""The mark of a line of a comment."""
_CALL = re.compile(r"\w\(")
"""A call: a line with one is an example, however short."""
_REFERENCE = re.compile(r"(?m)^[ \t]*(?:\.\.[ \t]+auto\w+::|:::)[^\n]*(?:\n[ \t]+:[^\n]*)*\n?")
_CLOSING = re.compile(r"\s*(?:`{3,}|~{3,})?\s*$")
"""A blank line, or a fence that closes a block."""
_LINK = re.compile(r"`[^`<]*<[^`<>]*>`__?|\[[^][]*\](?:\([^()]*\)|\[[^][]*\])")
"""A link of reStructuredText or Markdown."""
_RULE = re.compile(r"([=~^\"'`#*+-])\1{2,}\s*$")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_NAMES = re.compile(r"(?:[\s,;.]|\b(?:and|or)\b|(?::[\w:]+:)?`{1,2}[^`\n]+`{1,2})*")
"""A part of a list of names in a sentence."""
_PART = re.compile(r"\s*(?:(?:(?:pub )?use|import|from)\b[^()]*|[\w:,*$ \t]*[])};,]+[;,]?)\s*$")
"""The beginning of an import that goes on below, and the end of a list of names or of a block."""


def removed_text(
    documents: Mapping[str, str], codebase: Codebase, removed: Collection[str], patch: str
) -> dict[str, str]:
    """Path to the text that a patch takes out of each document, without directives for docstrings; and to what it takes
    out of docstrings and comments of code that is not ``removed``.

    ``documents`` maps paths to texts before the patch. Of lines that were broken anew, the sentences that stay are left
    out; lines of a fenced example are fenced.
    """
    found: dict[str, str] = {}
    for part in parse_patch(patch):
        changes: Iterable[Change] = changes_of(part)
        if part.path in documents:
            changes = _fenced(changes, documents[part.path].splitlines())
        elif part.path in codebase.modules and not part.deletes:
            lines = codebase.modules[part.path].source.decode(errors="replace").splitlines()
            comments = [_unmarked(line) if _COMMENT.match(line) else None for line in lines]
            changes = _fenced(_changed_words(codebase, part.path, removed, changes), comments)
        else:
            continue
        lost = (text for text in map(_lost_text, changes) if not _NAMES.fullmatch(text))
        texts = dict.fromkeys(lost)  # one may stand below each of several functions
        text = _REFERENCE.sub("", "\n\n".join(texts)).strip("\n")
        text = "\n".join(line for line in text.split("\n") if not _is_row_of_links(line))
        if any(len(line.split()) >= MIN_LINE_WORDS or _CALL.search(line) for line in text.splitlines()):
            found[part.path] = re.sub(r"\n{3,}", "\n\n", text)
    return found


def _is_row_of_links(line: str) -> bool:
    """Whether a line is a row of a table that says nothing beside the links in it."""
    cells = line.strip()
    rest = _LINK.sub("", cells)
    return cells.startswith("|") and cells.endswith("|") and rest != cells and not re.search(r"[^\W\d_]{2}", rest)


def _fenced(changes: Iterable[Change], lines: Sequence[str | None]) -> Iterator[Change]:
    """The changes of a document with these lines, or of a source with these lines of comments, ``None`` for others;
    those within a fenced example with its fences around them."""
    opening, opened, above = "", [], ""
    for line in lines:
        opened.append(opening)
        if line is None:
            opening = ""
        elif _FENCE.match(line) and (opening or not _is_underline(line, above)):
            opening = "" if opening else line
        above = line or ""
    for change in (_moved_out(each, lines, opened) for each in changes):
        fence = opened[change.first] if change.first < len(opened) else ""
        if not fence or any(map(_FENCE.match, [*change.before, *change.after])):
            yield change
            continue
        lost = change.before if change.after else _whole_lines(_from_a_statement(change))
        before, after = ([fence, *own, _FENCE.findall(fence)[0]] if own else [] for own in (lost, change.after))
        yield change._replace(before=before, after=after, below=[])


def _is_underline(line: str, above: str) -> bool:
    """Whether a line of tildes is the rule below a heading, and opens no example."""
    is_rule = not line.rstrip().strip("~")
    return is_rule and bool(above.strip()) and len(line.rstrip()) >= len(above.rstrip())


def _moved_out(change: Change, lines: Sequence[str | None], opened: Sequence[str]) -> Change:
    """The change; if it deletes the end of one example and all of the next up to its end, which is the same, the whole
    next one is deleted instead."""
    first, number = change.first, len(change.before)
    if change.after:
        return change
    while first + number < len(lines) and opened[first] and lines[first] == lines[first + number]:
        first += 1
    if first == change.first or opened[first]:
        return change
    return change._replace(first=first, before=[line or "" for line in lines[first : first + number]], below=[])


def _from_a_statement(change: Change) -> list[str]:
    """The lines that a change deletes from an example, without blank ones around them; of equal lines above and below
    them, the one below if it is blank or ends a statement that begins above it."""
    lines, below = list(change.before), list(change.below)
    while lines and below and lines[0] == below[0] and (not lines[0].strip() or _closes(lines[0])):
        lines = [*lines[1:], below.pop(0)]
    text = "\n".join(lines).strip("\n")
    return text.split("\n") if text else []


def _closes(line: str) -> bool:
    """Whether a line closes a bracket that it does not open."""
    depths = accumulate(1 if bracket in "([{" else -1 for bracket in re.findall(r"[][(){}]", line))
    return any(depth < 0 for depth in depths)


def _whole_lines(code: Sequence[str]) -> list[str]:
    """The lines of an example without parts of lists and ends of blocks whose other brackets are not among them."""
    opened: list[int] = []
    broken = set()
    for number, line in enumerate(code):
        for bracket in re.findall(r"[][(){}]", line):
            if bracket in "([{":
                opened.append(number)
            elif opened:
                opened.pop()
            else:
                broken.add(number)
    broken.update(opened)
    return [line for number, line in enumerate(code) if number not in broken or not _PART.match(line)]


def _lists_names(line: str, left: str) -> bool:
    """Whether a line of code, of which a text is ``left``, only lists names, most of which are still there."""
    names = re.findall(r"\w+", line)
    is_list = "," in line and "=" not in line and not _CALL.search(line)
    return is_list and 2 * len(set(names) & set(re.findall(r"\w+", left))) >= len(names)


def _changed_words(
    codebase: Codebase, path: str, removed: Collection[str], changes: Iterable[Change]
) -> Iterator[Change]:
    """The changes of docstrings and comments in a source, outside of what is removed; those of comments without their
    marks."""
    docstrings, gone = _docstring_lines(codebase, path, removed), _lines_of(codebase, path, removed)
    for change in changes if not codebase.is_test(path) else ():
        if change.first in docstrings:
            yield change
        elif change.first not in gone and all(map(_COMMENT.match, [*change.before, *change.after])):
            lines = codebase.modules[path].source.decode(errors="replace").splitlines()
            above, below = _around(lines, change.first, change.first + len(change.before))
            above = above if all(map(_unmarked, change.before[:1])) else []  # another paragraph
            below = below if all(map(_unmarked, change.before[-1:])) else []
            before, after = ([*above, *map(_unmarked, each), *below] for each in (change.before, change.after))
            yield change._replace(before=before, after=after if change.after else [*above, *below], below=[])


def _around(lines: Sequence[str], first: int, end: int) -> tuple[list[str], list[str]]:
    """The texts of the comment lines above and below others that belong to the same paragraph."""
    above = list(takewhile(str.strip, map(_unmarked, reversed(lines[:first]))))
    return above[::-1], list(takewhile(str.strip, map(_unmarked, lines[end:])))


def _unmarked(line: str) -> str:
    """The text of a line of a comment; empty for other lines."""
    mark = _COMMENT.match(line)
    return line[mark.end() :].removesuffix("*/").rstrip() if mark is not None else ""


def _lines_of(codebase: Codebase, path: str, removed: Collection[str]) -> set[int]:
    """Numbers, from 0, of the lines of what is removed from a file, with the comments directly above."""
    module = codebase.modules.get(path)
    lines: set[int] = set()
    if module is not None:
        texts = module.source.decode(errors="replace").splitlines()
        for symbol in (each for each in module.symbols if each.symbol_id in removed):
            first, last = (module.source.count(b"\n", 0, place) for place in (symbol.start, symbol.end))
            above = takewhile(_COMMENT.match, reversed(texts[:first]))
            lines.update(range(first - len(list(above)), last + 1))
    return lines


def _docstring_lines(codebase: Codebase, path: str, removed: Collection[str]) -> set[int]:
    """Numbers, from 0, of the lines of the docstrings that stay in a file."""
    module = codebase.modules.get(path)
    if module is None or codebase.is_test(path):
        return set()
    gone = [s for s in module.symbols if s.symbol_id in removed]
    left = (s for s in module.symbols if not any(each.start <= s.start and s.end <= each.end for each in gone))
    lines: set[int] = set()
    for symbol in left:
        first, last = (module.source.count(b"\n", 0, place) for place in (symbol.body_start, symbol.code_start))
        lines.update(range(first, last))
    return lines


def _lost_text(change: Change) -> str:
    """What is gone of lines that others took the place of; of code, without its indentation."""
    before, after = textwrap.dedent("\n".join(_from_its_beginning(change))).split("\n"), change.after
    if not after:
        return "\n".join(before).strip("\n")
    left, width = one_line(" ".join(after)), max(1, *map(len, before))
    found = []
    for is_example, group in groupby(_with_examples(before), lambda pair: pair[1]):
        own = [line for line, _ in group]
        if is_example:
            code = [line for line in own if one_line(line) not in left and not _FENCE.match(line)]
            code = _whole_lines([line for line in code if not _lists_names(line, left)])
            fences = [line for line in own[:1] if _FENCE.match(line)]
            found.append("\n".join([*fences, *code, *(_FENCE.findall(line)[0] for line in fences)] if code else []))
            continue
        for paragraph in (list(lines) for is_text, lines in groupby(own, lambda line: bool(line.strip())) if is_text):
            gone = " ".join(each for each in sentences_of(one_line(" ".join(paragraph))) if not _is_left(each, left))
            found.append(textwrap.fill(gone, width, break_long_words=False, break_on_hyphens=False))
    return "\n\n".join(filter(None, found))


def _is_left(sentence: str, left: str) -> bool:
    """Whether a sentence is among a text, or one of it is the same without some names."""
    words = re.findall(r"\w+", sentence)

    def is_shorter(other: str) -> bool:
        rest, kept = iter(words), re.findall(r"\w+", other)
        return len(kept) > LEFT_SHARE * len(words) and all(word in rest for word in kept)

    return sentence in left or any(map(is_shorter, sentences_of(left)))


def _from_its_beginning(change: Change) -> list[str]:
    """The lines that are gone; of equal blank lines and fences above and below them, the one below: what is gone begins
    with a heading or with text."""
    lines, below = list(change.before), list(change.below)
    while lines and _RULE.match(lines[0]) and not (change.after and lines[0].lstrip().startswith("```")):
        lines = lines[1:]  # the line below a heading that stays
    while not change.after and lines and below and lines[0] == below[0] and _CLOSING.match(lines[0]):
        lines = [*lines[1:], below.pop(0)]
    return lines


def _with_examples(lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """The lines, and whether each is of an example: code, or what it prints up to a blank line."""
    is_session = is_fenced = False
    for line in lines:
        is_session = line.startswith((">>>", "...", ".. ")) or (is_session and bool(line.strip()))
        is_fence = _FENCE.match(line) is not None
        yield line, is_session or is_fence or is_fenced or line.startswith(("    ", "\t"))
        is_fenced ^= is_fence
