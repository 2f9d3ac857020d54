"""Running text in docstrings and documents: its sentences, lists and examples, without those that mention a name."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import partial
from itertools import accumulate, dropwhile

_SENTENCE_END = re.compile(r"(?:(?<=[.!?])|(?<=\w[.!?]\*\*)|(?<=\w[.!?]__))\s+(?=[A-Z`:*\"'(])")
"""What is between two sentences of running text."""
MAX_OPEN = 8
"""Number of sentences within which a parenthesis is closed."""
MAX_ABBREVIATION = 10
"""Number of characters of the longest abbreviation, with what stands before it."""
_ABBREVIATED = re.compile(r"(?:^|[\s(*_])(?:resp|e\.g|i\.e|cf|vs|viz|approx|esp|incl|ca)\.$")
"""The end of what a sentence does not end with."""
_SPECIAL = re.compile(
    r"\s*([-*+•]\s|(?:\d+|#)[.)]\s|>>>|\.\.\s|:\w[\w ]*:(?!`)|[-=~^#]{3,}|\||@|#\s|```|\$\s)|.*::$"
    r"|\s*(Args|Returns|Yields|Raises|Parameters|Attributes|Notes?|Examples?|See Also|References|Usage)\s*:?$"
)
"""Lines that belong to no running text."""
_NAMED_VALUE = re.compile(
    r"\s*(?!(?:NB|Note|NOTE|Warning|WARNING|Important|(?i:see)(?: also)?|(?i:related))\b)"
    r"[\w*`,]{1,40}(?: [\w*`,]{1,40}){0,3} ?:\s"
)
"""The beginning of a line that is a named value."""
_STRUCTURED = re.compile(
    r"\s*(?:<(?!https?:)/?[a-zA-Z!]|\[?!\[|\w+://\S+$|[^|\n]*\s\|\s|\S[^\n]{0,200}?[^\s.!?:] {2,}\S)"
)
"""Lines that are markup, an address, or a row of a table, whatever sentences are in them."""
MIN_WIDTH = 50
"""Length of the longest line from which on lines are taken for running text that was broken into them."""
SLACK = 12
"""Characters by which a line of running text may be shorter than it could be."""
_ENDED = re.compile(r"[.!?][\"'`)*]*$")
_LINK = r"\[`?[\w.:]{1,80}(?:\(\))?`?\](?:\([^()\s]{1,200}\))?"
"""A name as a link: in comments of Go and Rust, and in Markdown."""
_ITEM = rf"(?:(?::[\w:+-]{{1,30}}:)?(?:``[^`\n]{{1,100}}``|`[^`\n]{{1,100}}`)|{_LINK})"
_LIST = re.compile(rf"{_ITEM}(?:, {_ITEM}){{1,30}}(?P<comma>,?) (?P<word>and|or) {_ITEM}")
"""Three or more names in a sentence."""
_LED = (
    rf"(?P<items>{_ITEM}(?:, {_ITEM}){{1,30}}),? (?P<word>and|or) (?:[a-z]{{1,12}} ){{1,3}}(?P<last>{_ITEM})(?=[.;:]|$)"
)
_LED_LIST = re.compile(_LED)
"""The same at the end of a sentence, with words of its own before the last name: ``or use the `name```."""
_NOTED = rf"{_ITEM}(?: \([^()\n]{{1,100}}\))?"
_OPEN_LIST = re.compile(rf"{_NOTED}(?:, {_NOTED}){{2,30}}(?=[.;:]|$)")
"""The same without a word before the last one; what is in parentheses belongs to the name before it."""
_NAME = rf"(?:{_ITEM}|[\w.$]{{1,80}}(?:\(\))?)"
_IN_PARENTHESES = re.compile(rf"\((?P<first>{_NAME}(?:, {_NAME}){{1,30}}),? (?:(?P<word>and|or) )?(?P<last>{_NAME})\)")
"""Three or more names in parentheses."""
_PLAIN = r"[\w$]{1,80}(?:(?:\.|::|#)[\w$]{1,80}){0,4}(?:\(\))?"
_SEEN = rf"(?:{_ITEM}|{_PLAIN})"
_SEE = re.compile(
    rf"(?P<head>(?i:see(?: also)?:?|related:) )(?P<items>{_SEEN}(?:, {_SEEN}){{0,30}}(?:,? (?:and|or) {_SEEN})?)\.?$"
)
"""A sentence that is nothing but a reference to one or more names."""
_NAMES_ALONE = re.compile(rf"(?P<mark>\s*[-*+•]\s+)(?P<items>{_SEEN}(?:, {_SEEN}){{1,30}})\s*$")
"""An item of a list that is nothing but names."""
_PAIR = re.compile(
    rf"(?:(?i:both|either) )?(?P<first>{_ITEM}) (?:and|or) (?P<second>{_ITEM})(?! (?:are|were|have|do|both)\b)"
)
"""Two names in a sentence that is about one of them as well as about both."""
_ABOUT_BOTH = (", ", "between ")
"""What stands before two names that are a part of a list, or of a sentence that is about both."""
_WHOLE = re.compile(
    r"\b(?:combination|combinations|sum|union|product|intersection|composition|sequence|mixture)\s+of\s+(?:the\s+)?$"
    r"|\b(?:consists?|consisting|composed|made|made up|built|comprised)\s+(?:of|from)\s+(?:the\s+)?$"
    r"|\b(?:combines|comprises|unites|merges)\s+(?:the\s+)?$",
    re.IGNORECASE,
)
"""What stands before names that something is made of: without one of them, the sentence would be wrong."""
MAX_WHOLE = 40
"""Number of characters of the longest of these."""
_CALLOUT = re.compile(r">\s*\[!\w+\]\s*$")
MIN_WORDS = 3
"""Number of words of a sentence that is left without parentheses."""
_INSIDE = r"\((?:[^()]|\([^()]*\)){1,400}\)"
_ASIDE = re.compile(rf"(?<![\w\])`\s]){_INSIDE}|(?<!\s)\s+{_INSIDE}")
"""What a sentence says in parentheses; no arguments of a call, and no address of a link."""
MIN_ITEMS = 2
"""Number of names of a list that must stay, for the sentence to stay."""
_REFERRING = re.compile(
    r"(?:This|These|Those|It|Its|They|Their|Otherwise|Alternatively|Instead|After that|(?:Before|Previously)(?=,)"
    r"|In (?:this|that|such) cases?)\b"
    r"(?! (?:package|project|library|module|document|page|section|guide|tutorial|release|version))"
)
"""The beginning of a sentence that is about what another one says."""
_BACK = re.compile(
    r"(?:That|This|It) (?:will|would|prints?|outputs?|gives?|yields?|produces?|creates?|generates?|results? in"
    r"|displays?|shows?)\b|(?:The|This) (?:above |preceding |previous )?"
    r"(?:program|example|code|snippet|script|command)\b|The above\b|Running (?:this|it|that)\b|In this example\b"
    r"|(?:\.{3}|…) ?[a-z]"
)
"""The beginning of a sentence that says what the example above it does."""
_LIKEWISE = re.compile(r"(?:In the same (?:manner|spirit|vein|way)|Likewise|Similarly),\s+(\w)")
"""The beginning of a sentence that compares what it says to what stands above it."""
_ANNOUNCING = re.compile(r"(?!\s*(?:\.\.\s|[-*+•]\s)).*\w[`*)\"']*::$")
"""The last line of running text that announces a literal block."""
_EXAMPLE = re.compile(r"\s*>>> ")
"""The beginning of an example, whose further lines and result stand below."""
_BULLET = re.compile(r"\s*(?:[-*+•]|(?:\d{1,3}|#)[.)])\s+(?=[^\s\-=~|>])")
"""The mark of an item of a list, whose text stands behind it and, further in, below."""
_ADDRESS = re.compile(r"\s*\[(?P<label>[^\]\n]{1,200})\]:\s+\S+(?:\s+[\"'(][^\n]*)?\s*$")
"""The address of a link in Markdown, which stands elsewhere."""
_FIELD = re.compile(r"\s*:[a-z][\w *]{0,60}:\s+(?=\S)")
"""The name of a field of a docstring, as ``:param size:``, whose text stands behind it and, further in, below."""
_ROW = re.compile(r"\s*\|(?:\s*\|)+\s*`[^`|\n]{1,300}`_{0,2},\s*\|\s*$")
"""A further line of a cell of a table that is a list, one name or link a line; others follow it."""
_RELATED = re.compile(r"\s*(?:See Also|See also|Related)\s*:?$")
"""The head of a list of related names."""


class _Kind(Enum):
    RELATED = "related"
    EXAMPLE = "example"
    ITEM = "item"
    BULLET = "bullet"
    FIELD = "field"
    SINGLE = "single"
    TEXT = "text"


def blocks(lines: Sequence[str], item: re.Pattern[str]) -> Iterator[list[str]]:
    """Paragraphs, examples, items that name what is gone, lists of related names, and single lines."""
    number = 0
    while number < len(lines):
        block = [lines[number]]
        kind = _kind(block[0], item)
        number += 1
        while number < len(lines) and lines[number].strip() and _joins(kind, block, lines[number], item, number):
            block.append(lines[number])
            number += 1
        yield block


def _kind(first: str, item: re.Pattern[str]) -> _Kind:
    """The kind of the block that begins with a line."""
    if _RELATED.match(first):
        return _Kind.RELATED
    if _EXAMPLE.match(first):
        return _Kind.EXAMPLE
    if item.match(first):
        return _Kind.ITEM
    if _BULLET.match(first):
        return _Kind.BULLET
    if _FIELD.match(first):
        return _Kind.FIELD
    return _Kind.TEXT if first.strip() and not _SPECIAL.match(first) else _Kind.SINGLE


def _joins(kind: _Kind, block: list[str], line: str, item: re.Pattern[str], number: int) -> bool:
    """Whether a line that is not blank belongs to the block above it; ``number`` is that of the line."""
    if kind is _Kind.RELATED:
        return True
    if kind is _Kind.EXAMPLE:
        return not _EXAMPLE.match(line)
    if kind is _Kind.ITEM:
        return indent_of(line) > indent_of(block[0]) or _goes_on_below_mark(block, line, item)
    if kind in {_Kind.BULLET, _Kind.FIELD}:
        is_below = indent_of(line) > indent_of(block[0]) and not _SPECIAL.match(line) and not item.match(line)
        return is_below or _goes_on_below_mark(block, line, item)
    is_special = bool(_SPECIAL.match(line)) and not _ANNOUNCING.match(line)
    if kind is _Kind.SINGLE or is_special or item.match(line):
        return False
    return indent_of(line) == indent_of(block[-1]) or number == 1  # the first line stands behind the quotes


def _goes_on_below_mark(block: Sequence[str], line: str, item: re.Pattern[str]) -> bool:
    """Whether a line goes on with a sentence of a list's item, and is no further to the right than its mark."""
    is_plain = not _SPECIAL.match(line) and not _BULLET.match(line) and not item.match(line)
    is_open = not block[-1].rstrip().endswith((".", "!", "?", ":"))
    return bool(_BULLET.match(block[0])) and is_plain and is_open and indent_of(line) == indent_of(block[0])


def is_lost_in_cell(line: str, pattern: re.Pattern[str]) -> bool:
    """Whether a line is one name or link of a cell that lists several, and is gone."""
    return _ROW.match(line) is not None and pattern.search(line) is not None


def block_without(block: list[str], pattern: re.Pattern[str], item: re.Pattern[str]) -> list[str]:
    """What is left of a block."""
    if len(block) == 1 and (names := _NAMES_ALONE.match(block[0])):
        items = re.findall(_SEEN, names["items"])
        left = [each for each in items if not pattern.search(each)]
        if 0 < len(left) < len(items):
            return [f"{names['mark']}{', '.join(left)}"]
    if item.match(block[0]) or (_EXAMPLE.match(block[0]) and pattern.search(block[0].replace(".", " "))):
        return []
    if len(block) == 1 and _ROW.match(block[0]):
        return [] if pattern.search(block[0]) else block
    field = _FIELD.match(block[0])
    if mark := field or _BULLET.match(block[0]):
        own = mark[0]
        text = shortened([" " * len(own) + block[0][len(own) :], *block[1:]], pattern)
        nothing = block if field else []  # what is documented is there, whatever is said of it
        return [own + text[0][len(own) :], *text[1:]] if text else nothing
    if not _RELATED.match(block[0]):
        return shortened(block, pattern)
    head = 2 if len(block) > 1 and not block[1].strip().strip("-=~") else 1
    entries: list[list[str]] = []
    for line in block[head:]:
        if entries and indent_of(line) > indent_of(entries[0][0]):
            entries[-1].append(line)
        else:
            entries.append([line])
    left = [entry for entry in entries if not pattern.search(entry[0])]
    return [*block[:head], *(line for entry in left for line in entry)] if left or not entries else []


def shortened(lines: Sequence[str], pattern: re.Pattern[str], *, num_kept: int = 0) -> list[str]:
    """Running text without the sentences that name what is gone; the lines as they are where it is no such text.

    Only lines that were broken since they were full are joined. Of others, sentences go, and lines that begin with the
    name. New lines begin like those that they replace. The first ``num_kept`` sentences stay.
    """
    found: list[str] = []
    for group in _wrapped(lines):
        is_alone = len(group) == len(lines)
        if len(group) == 1 and (address := _ADDRESS.match(group[0])) is not None and pattern.search(address["label"]):
            continue
        left = _sentences_left(group, pattern, is_alone=is_alone, num_kept=0 if found else num_kept)
        if left is None:
            found += group
        elif left:
            found += _filled(left, group, max(map(len, lines)))
    return found


def sentences_of(text: str) -> list[str]:
    """The sentences of running text: none ends with an abbreviation, or in parentheses that are closed later."""
    parts = _SENTENCE_END.split(text)
    depths = [part.count("(") - part.count(")") for part in parts]
    found: list[list[str]] = []
    depth = 0
    for number, part in enumerate(parts):
        is_closed_later = depth > 0 and min(accumulate(depths[number : number + MAX_OPEN])) < 0
        if found and (is_closed_later or _ABBREVIATED.search(found[-1][-1][-MAX_ABBREVIATION:].rstrip("*_"))):
            found[-1].append(part)
            depth += depths[number]
        else:
            found.append([part])
            depth = depths[number]
    return [" ".join(sentence) for sentence in found]


def with_shorter_lists(lines: Sequence[str], pattern: re.Pattern[str]) -> list[str]:
    """Running text without the names that are gone in its lists; all of it as it is if another mention is left."""
    if not lines or any(line.startswith("  ") for line in _relative(lines[1:])):
        return list(lines)
    sentences = sentences_of(" ".join(line.strip() for line in lines))
    left = [_without_items(each, pattern) if pattern.search(each) else each for each in sentences]
    return _filled(left, lines, max(map(len, lines))) if all(left) and left != sentences else list(lines)


def without_introduction(lines: list[str]) -> list[str]:
    """A paragraph without its last sentence, if that ends with a colon and is running text."""
    group = list(_wrapped(lines))[-1]
    is_special = any(_SPECIAL.match(line.rstrip().rstrip(":")) for line in group) or _is_structured(group[:1])
    if not group[-1].rstrip().endswith(":") or is_special:
        return lines
    *kept, _ = sentences_of(" ".join(line.strip() for line in group))
    return [*lines[: len(lines) - len(group)], *_filled(kept, group, max(map(len, lines)))]


def without_back_references(lines: list[str]) -> list[str]:
    """A paragraph below an example that is gone, without the sentences at its beginning that say what that does, and
    without words that compare it to that."""
    sentences = sentences_of(" ".join(map(str.strip, lines)))
    left = list(dropwhile(_BACK.match, sentences))
    if left and (found := _LIKEWISE.match(left[0])):
        left[0] = f"{found[1].upper()}{left[0][found.end() :]}"
    if left == sentences or any(map(_SPECIAL.match, lines)):
        return lines
    return _filled(left, lines, max(map(len, lines))) if left else []


def _filled(sentences: Sequence[str], lines: Sequence[str], width: int) -> list[str]:
    """Sentences as lines that begin like ``lines``."""
    first, own = (line[: indent_of(line)] for line in (lines[0], lines[-1]))
    text = " ".join(sentences)
    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=own, break_on_hyphens=False, expand_tabs=False
    )


def _wrapped(lines: Sequence[str]) -> Iterator[list[str]]:
    """The lines in groups: a line to which the next one's first word could be added ends a group, and so does the
    address of a link in Markdown."""
    width = max(map(len, lines), default=0)
    is_broken = width >= MIN_WIDTH or any(len(sentences_of(line.strip())) > 1 for line in lines)
    group: list[str] = []
    for line in lines:
        word = line.split(maxsplit=1)[0] if line.strip() else ""
        is_short = bool(group) and len(group[-1].rstrip()) + 1 + len(word) + SLACK <= width
        if group and (not is_broken or is_short or _ADDRESS.match(line) or _ADDRESS.match(group[-1])):
            yield group
            group = []
        group.append(line)
    if group:
        yield group


def _sentences_left(
    lines: Sequence[str], pattern: re.Pattern[str], *, is_alone: bool, num_kept: int = 0
) -> list[str] | None:
    """The sentences of a group of lines without a mention; ``None`` if there is none, or it is no running text.

    Unless the group ``is_alone``, what ends like no sentence stays if it does not begin with the name.
    """
    text = " ".join(line.strip() for line in lines)
    sentences = sentences_of(text)
    gone = [each for each in sentences[num_kept:] if pattern.search(each)]
    if not gone or any(line.startswith("  ") for line in _relative(lines)):
        return None
    announces = bool(_ANNOUNCING.match(lines[-1])) and sentences[-1] not in gone
    if any(map(_SPECIAL.match, lines[:-1] if announces else lines)):
        return None
    if _is_structured(lines):
        return None

    def ends(sentence: str) -> bool:
        is_whole = _ENDED.search(sentence) or _SEE.match(sentence)
        return bool(is_whole or pattern.match(sentence.lstrip("`*:~")))

    if not is_alone and not all(map(ends, gone)):
        return None
    left: list[str] = []
    is_after_gone = False
    for sentence in sentences:
        kept = sentence if sentence not in gone else _without_items(sentence, pattern)
        if is_after_gone and not left and _REFERRING.match(sentence):
            kept = ""
        is_after_gone = not kept and not sentence.startswith("See ")
        left += [kept] if kept else []
    return left


def _is_structured(lines: Sequence[str]) -> bool:
    """Whether lines are no running text; a colon in the middle of a paragraph is no mark of a named value."""
    is_named = _NAMED_VALUE.match(lines[0]) or sum(bool(_NAMED_VALUE.match(line)) for line in lines) > 1
    return bool(is_named) or any(map(_STRUCTURED.match, lines))


def _without_items(sentence: str, pattern: re.Pattern[str]) -> str:
    """A sentence without the names that are gone of a list or a pair, if others stay in that; else empty."""
    is_told_apart = "respectively" in sentence
    sentence = _without_asides(sentence, pattern)
    if see := _SEE.match(sentence):
        return _without_seen(see, pattern)

    def shortened_list(found: re.Match[str]) -> str:
        items = re.findall(_ITEM, found[0])
        left = [each for each in items if not pattern.search(each)]
        if len(items) - len(left) == 0 or len(left) < MIN_ITEMS:
            return found[0]
        *first, last = left
        comma = "," if found["comma"] and len(left) > MIN_ITEMS else ""
        return f"{', '.join(first)}{comma} {found['word']} {last}"

    def without_led(found: re.Match[str]) -> str:
        *first, last = [each for each in re.findall(_ITEM, found["items"]) if not pattern.search(each)] or [""]
        if is_told_apart or not pattern.search(found["last"]) or len(first) + 1 < MIN_ITEMS:
            return found[0]
        return f"{', '.join(first)} {found['word']} {last}"

    def shortened_pair(found: re.Match[str]) -> str:
        left = [each for each in (found["first"], found["second"]) if not pattern.search(each)]
        start = found.start()
        is_about_both = is_told_apart or not start or found.string.endswith(_ABOUT_BOTH, max(0, start - 10), start)
        return left[0] if len(left) == 1 and not is_about_both else found[0]

    def shortened_open_list(found: re.Match[str]) -> str:
        if is_told_apart:
            return found[0]
        items = re.findall(_NOTED, found[0])
        left = [each for each in items if not pattern.search(each)]
        return ", ".join(left) if len(left) >= MIN_ITEMS else found[0]

    def shortened_parentheses(found: re.Match[str]) -> str:
        items = [*found["first"].split(", "), found["last"]]
        *first, last = [each for each in items if not pattern.search(each)] or [""]
        if len(first) + 1 in {0, 1, len(items)}:
            return found[0]
        return f"({', '.join(first)}{' ' + found['word'] if found['word'] else ','} {last})"

    changed = _IN_PARENTHESES.sub(shortened_parentheses, sentence)
    for listed, without in (
        (_LED_LIST, without_led),
        (_LIST, shortened_list),
        (_OPEN_LIST, shortened_open_list),
        (_PAIR, shortened_pair),
    ):
        changed = listed.sub(partial(_unless_whole, without), changed)
    return "" if pattern.search(changed) else changed


def _unless_whole(shortened_list: Callable[[re.Match[str]], str], found: re.Match[str]) -> str:
    """A list of names without some; as it is if something is made of all of them."""
    before = found.string[max(0, found.start() - MAX_WHOLE) : found.start()]
    return found[0] if _WHOLE.search(before) else shortened_list(found)


def _without_asides(sentence: str, pattern: re.Pattern[str]) -> str:
    """A sentence without what it says in parentheses of names that are gone; as it is if that is not all it says of
    them."""
    asides = [each for each in _ASIDE.finditer(sentence) if pattern.search(each[0])]
    asides = [each for each in asides if not _IN_PARENTHESES.fullmatch(each[0].strip())]
    asides = [each for each in asides if sentence.count("`", 0, each.start()) % 2 == 0]  # not those of code
    left = sentence
    for each in reversed(asides):
        left = left[: each.start()] + left[each.end() :]
    left = left.strip()
    return sentence if pattern.search(left) or len(re.findall(r"\w+", left)) < MIN_WORDS else left


def _without_seen(see: re.Match[str], pattern: re.Pattern[str]) -> str:
    """A reference without the names that are gone; empty if it has no other."""
    items, word = re.findall(_SEEN, see["items"]), ""
    if found := re.search(rf",? (and|or) {_SEEN}$", see["items"]):
        items, word = [*re.findall(_SEEN, see["items"][: found.start()]), items[-1]], found[1]
    *first, last = [each for each in items if not pattern.search(each)] or [""]
    if not last:
        return ""
    joined = f"{', '.join(first)}{f' {word}' if word else ','} {last}" if first else last
    return f"{see['head']}{joined}{'.' if see[0].endswith('.') else ''}"


def _relative(lines: Sequence[str]) -> Iterator[str]:
    """The lines without the indentation of the first."""
    indent = indent_of(lines[0]) if lines else 0
    return (line[min(indent, indent_of(line)) :] for line in lines)


def indent_of(line: str) -> int:
    """The number of blanks before a line's text."""
    return len(line) - len(line.lstrip())


def without_empty_callouts(lines: Sequence[str], before: Sequence[str]) -> Iterator[str]:
    """The lines without heads of callouts, ``> [!NOTE]``, below which nothing is left; those that had nothing stay."""
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if _CALLOUT.match(line) is None or following.startswith(">") or len(lines) == len(before):
            yield line


def with_end_of(lines: Sequence[str], found: list[str]) -> list[str]:
    """The lines that are left, with as many blank ones at their end as there were before: a heading may follow."""
    num_blank = next((number for number, line in enumerate(reversed(lines)) if line.strip()), 0)
    while len(found) > 1 and not found[-1].strip():
        found.pop()
    return [*found, *([""] * num_blank if found[-1].strip() else [])]
