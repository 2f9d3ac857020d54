"""What a document would be left with that makes no sense any more after a removal: only a writer could mend it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from excise.deleters.documents.document_text import BULLET, Chunk, ChunkKind, chunks_of
from excise.deleters.documents.gone_names import GoneCode, any_of, is_distinct, with_owner
from excise.deleters.documents.running_text import indent_of
from excise.deleters.documents.sections import Section, sections_now

MAX_TEXT = 100
"""Number of characters that are shown of a line."""
_LISTED = re.compile(r"\s*(?:\||\+[-=]|={3,}|<|!?\[|\.\.\s|:\w|>)")
"""The beginning of a table, a picture, a link, a directive, a field or a quotation."""
_NAME_PART = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{3,}")
"""A word of a name."""
_ON_EXAMPLE = re.compile(
    r"\s*(?:In (?:the|this) (?:above |previous |preceding )?example\b|In this case\b|Here,? (?:we|the)\b"
    r"|As you can see\b|The (?:above|previous|preceding) (?:example|code|snippet|program)\b"
    r"|The (?:example|code|snippet|program) above\b"
    r"|(?:The )?[Oo]utput (?:is|will|would|should)\b|(?:The )?[Rr]esult (?:is|will|would|should)\b"
    r"|(?:Which|This|That|It) (?:will |would )?(?:prints?|outputs?|gives?|yields?|produces?|results? in)\b"
    r"|(?:\.{3}|…) ?[a-z])"
)
"""The beginning of a paragraph about the example above it."""
_DEFINED = re.compile(
    r"\b(?:class|def|function|func|fn|type|struct|const|let|var|interface|enum|trait)\s+(?:mut\s+)?(\w+)"
    r"|^\s*(?:>>> )?(\w+) :?=(?!=)",
    re.MULTILINE,
)
"""A name to which an example gives something."""


_OF_TWO = re.compile(r"\b[Tt]he (?:former|latter)\b")
_COUNT = re.compile(
    r"\b(?:[Bb]oth|(?:[Tt]he|[Tt]hese|[Ff]ollowing|[Aa]re|[Hh]as|[Hh]ave|[Cc]ontains?|[Ii]ncludes?|[Dd]efines?|"
    r"offers?|provides?|with) "
    r"(?:two|three|four|five|six|seven|eight|nine|ten))\b"
)
"""A number of what follows, or of what has been told."""


_BESIDE = re.compile(r"\b(?:[Aa]lso|[Ll]ikewise|[Ss]imilarly|[Oo]therwise|as well)\b")
"""What an item of a list says of the one before it."""


def mentions_left(text: str, names: GoneCode) -> Iterator[tuple[str, str]]:
    """(line, mention in it) of a document that still names what is gone, history aside."""
    owned = any_of(with_owner(name) for name in names.dotted if "." in name)
    last = any_of(name.rpartition(".")[2] for name in names.dotted)
    of_object = any_of(name for name in names.mentioned.methods if is_distinct(name))
    labels = any_of(_labels(text, names))
    pattern = re.compile(
        rf"{names.mentioned.pattern().pattern}|(?<![\w.])(?:{owned})(?!\w)|(?<![\w.])(?:{last})\((?:self|cls)[,)]"
        rf"|(?<=[\])}}'\"]\.)(?:{of_object})(?=\()|(?:(?<=\.\. _)|(?<![\w$./-]))(?:{labels})(?=_?(?![\w$/-]))"
    )
    if not pattern.search(text):
        return
    for section in sections_now(text):
        for line in (*section.heading, *section.lines):
            if found := pattern.search(line):
                yield line.strip()[:MAX_TEXT], found[0]


def _labels(text: str, names: GoneCode) -> set[str]:
    """Ordinary words, names of what is gone, to which a document links as to a place in it: there, they are no words
    but mean the code. The line below a label has the name: “Installation” is about no ``install``."""
    plain = any_of(name for name in names.mentioned.names if not is_distinct(name))
    between = r"\n(?:[ \t]*(?:\.\. _[^\n]*|\([\w.-]+\)=|[-=~^\"'*+#]{2,})?[ \t]*\n){0,20}"
    label = re.compile(
        rf"(?m)^[ \t]*\.\. _({plain}):[ \t]*(?={between}[^\n]*\b\1\b)|^\(({plain})\)=[ \t]*(?={between}[^\n]*\b\2\b)"
        rf"|\[`?({plain})(?:\(\))?`?\]\(#(?:{plain})\)"
    )
    return {name for found in label.finditer(text) for name in found.groups() if name}


def loose_ends(before: str, after: str, names: GoneCode) -> Iterator[str]:
    """What a document says of examples and lists that it lost: introductions, explanations, names that these made; and
    examples that it lost although they are about something else."""
    old, new = before.split("\n"), after.split("\n")
    chunks_before, chunks_after = list(chunks_of(old)), list(chunks_of(new))
    for find in (_dangling, _on_nothing):
        known = find(old, chunks_before)
        for line in find(new, chunks_after):
            if line in known:
                known.remove(line)
            else:
                yield line.strip()[:MAX_TEXT]
    sections, sections_left = sections_now(before), sections_now(after)
    yield from _without_examples(sections, sections_left)
    yield from _lost_for_others(sections, after, names)
    yield from _halves(sections, sections_left, names)
    yield from _counted(sections, sections_left)
    lost = _made_names(old, chunks_before) - _made_names(new, chunks_after)
    prose = "\n".join("\n".join(new[c.start : c.end]) for c in chunks_after if c.kind is ChunkKind.PROSE)
    words = set(re.findall(r"\w+", prose))
    yield from sorted(name for name in lost if is_distinct(name) and name in words)


def _without_examples(before: Sequence[Section], after: Sequence[Section]) -> Iterator[str]:
    """The headings of sections that lost all their examples, while text about these is left."""
    had = {tuple(section.heading) for section in before if ChunkKind.CODE in _kinds(section.lines)}
    for section in after:
        kinds = _kinds(section.lines)
        if (
            section.heading
            and tuple(section.heading) in had
            and ChunkKind.CODE not in kinds
            and ChunkKind.PROSE in kinds
        ):
            yield _title(section)


def _lost_for_others(before: Sequence[Section], after: str, names: GoneCode) -> Iterator[str]:
    """The first lines of examples that are gone, while neither the heading nor the text beside them has a word of what
    is gone: they show something else."""
    told = (*names.mentioned.names, *names.mentioned.qualified, *names.commands.words(), *names.dotted)
    parts = {part.lower() for name in told for part in _NAME_PART.findall(name.rpartition(".")[2])}
    about = re.compile(rf"(?<![a-z])(?:{any_of(parts)})")
    left = {line.strip() for line in after.split("\n")}
    for section in before:
        chunks = [chunk for chunk in chunks_of(section.lines) if chunk.kind is not ChunkKind.BLANK]
        for number, chunk in enumerate(chunks):
            code = [line.strip() for line in section.lines[chunk.code : chunk.stop] if line.strip()]
            if chunk.kind is not ChunkKind.CODE or not code or any(line in left for line in code):
                continue
            beside = (c for c in chunks[max(0, number - 1) : number + 2] if c.kind is ChunkKind.PROSE)
            text = [*section.heading, *(line for each in beside for line in section.lines[each.start : each.end])]
            if not about.search(" ".join(text).lower()):
                yield code[0][:MAX_TEXT]


def _halves(before: Sequence[Section], after: Sequence[Section], names: GoneCode) -> Iterator[str]:
    """The headings of sections of which text about what is gone went, while a part of an example is left."""
    left = {tuple(section.heading): section for section in after}
    pattern = names.mentioned.pattern()
    for section in before:
        now = left.get(tuple(section.heading))
        if not section.heading or now is None or now.lines == section.lines:
            continue
        lines = set(now.lines)
        for above, chunk in pairwise(c for c in chunks_of(section.lines) if c.kind is not ChunkKind.BLANK):
            own = [line in lines for line in section.lines[chunk.code : chunk.stop] if line.strip()]
            text = " ".join(section.lines[above.start : above.end])
            is_half = chunk.kind is ChunkKind.CODE and any(own) and not all(own)
            if is_half and above.kind is ChunkKind.PROSE and pattern.search(text):
                yield _title(section)


def _counted(before: Sequence[Section], after: Sequence[Section]) -> Iterator[str]:
    """The lines that count what stands below them, tell one of two things from the other, or are about the item above
    them, where text is gone."""
    left = {tuple(section.heading): section for section in after}
    for section in before:
        now = left.get(tuple(section.heading))
        if now is None or now.lines == section.lines or len(now.lines) > len(section.lines):
            continue
        has_fewer = _num_items(now.lines) < _num_items(section.lines)
        for line in now.lines:
            if _OF_TWO.search(line) or (has_fewer and _COUNT.search(line) and not BULLET.match(line)):
                yield line.strip()[:MAX_TEXT]
        left_items = set(filter(BULLET.match, now.lines))
        for item, below in pairwise(filter(BULLET.match, section.lines)):
            if item not in left_items and below in left_items and _BESIDE.search(below):
                yield below.strip()[:MAX_TEXT]


def _num_items(lines: Sequence[str]) -> int:
    return sum(1 for line in lines if BULLET.match(line))


def _title(section: Section) -> str:
    return next((line.strip() for line in section.heading if re.search(r"\w", line)), "")


def _kinds(lines: Sequence[str]) -> set[ChunkKind]:
    return {chunk.kind for chunk in chunks_of(lines)}


def _dangling(lines: Sequence[str], chunks: Sequence[Chunk]) -> list[str]:
    """The last lines of paragraphs that introduce something with a colon, below which nothing stands."""
    texts = [chunk for chunk in chunks if chunk.kind is not ChunkKind.BLANK]
    found: list[str] = []
    for number, chunk in enumerate(texts):
        last = lines[chunk.end - 1]
        if chunk.kind is not ChunkKind.PROSE or not _introduces(last) or _LISTED.match(last):
            continue
        below = texts[number + 1] if number + 1 < len(texts) else None
        first = lines[below.start] if below is not None else ""
        is_shown = below is not None and (
            below.kind is ChunkKind.CODE
            or BULLET.match(first)
            or _LISTED.match(first)
            or indent_of(first) > indent_of(last)
        )
        found += [] if is_shown else [last]
    return found


def _introduces(line: str) -> bool:
    """Whether a line of running text ends with a colon."""
    return line.rstrip().endswith(":") and re.search(r"\w", line) is not None


def _on_nothing(lines: Sequence[str], chunks: Sequence[Chunk]) -> list[str]:
    """The first lines of paragraphs about an example that is not above them."""
    texts = [chunk for chunk in chunks if chunk.kind is not ChunkKind.BLANK]
    return [
        lines[chunk.start]
        for above, chunk in zip([None, *texts], texts, strict=False)
        if chunk.kind is ChunkKind.PROSE
        and _ON_EXAMPLE.match(lines[chunk.start])
        and (above is None or above.kind is not ChunkKind.CODE)
    ]


def _made_names(lines: Sequence[str], chunks: Sequence[Chunk]) -> set[str]:
    """The names to which examples give something."""
    codes = ("\n".join(lines[chunk.code : chunk.stop]) for chunk in chunks if chunk.kind is ChunkKind.CODE)
    return {found[1] or found[2] for code in codes for found in _DEFINED.finditer(code)}
