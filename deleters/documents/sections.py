"""Sections of documents: those about what is gone go whole, and from others text and examples that name it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType

from excise.deleters.deletion_record import Changed
from excise.deleters.documents.document_text import (
    BULLET,
    MAX_REMOVED,
    ChunkKind,
    all_examples_lose,
    chunks_of,
    end_of_fence,
    is_about,
    utf8_text,
    without_mentions,
)
from excise.deleters.documents.gone_names import SEPARATOR, GoneCode, any_of, stems, with_owner
from excise.deleters.documents.headings import heading_without_arguments, words_of_heading
from excise.deleters.documents.link_targets import without_unused_targets

_CALL = re.compile(r"(?<![\w.])(?:\w+\.)*(\w+)\(\)")
"""How texts name a function."""
MAX_PROSE = 400
"""Number of characters of a section's text up to which it goes with its last directive, which it introduces."""
_FRAME = re.compile(r"\.\.\s+(?:(?:current)?module|contents)::|\.\.\s+_[^:]+:\s*$|:(?:local|depth):|(?:<br\s?/?>)+$")
"""What a page has around its content."""
_NAMED = re.compile(r"`[^`\n]+`|\b\w+\(\)")
"""What names something as code."""
_FIRST_PAGE = re.compile(r"(?:readme|index|overview|introduction|contents|home|main)\b", re.IGNORECASE)
_LABEL = re.compile(r"\.\. _[^:]+:\s*$|<a (?:name|id)=[\"'][^\"'<>]*[\"']>\s*</a>\s*$")
"""What references lead to: the heading below it."""
_ANCHOR = re.compile(r"<a (?:name|id)=[\"']([^\"'<>]+)[\"']")
_ENTRY = re.compile(
    r"(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[^\[\]\n]{1,200}(?:\[[^\[\]\n]{0,100}\][^\[\]\n]{0,100})?\]\(#([^()\s]{1,200})\)"
    r"|<a href=[\"']#([^\"'\s]{1,200})[\"']>[^\n]{1,400}</a>|`([^`<>\n]{1,200})`_)[.:]?"
)
"""An item of a list that is a link to a place in the document, and nothing else."""
_KIND = r"(?:command|function|method|class|decorator|exception|module|script|tool|option)"
"""What a heading calls a name."""
_WHAT_IT_IS = re.compile(r"(?<=[`*)])(?:\s+[-\u2013\u2014]{1,3}\s|:\s)[^`*\n]{1,300}$")
"""What a heading says of the name, in marks or called, that it begins with; it has no other name."""
_ABOUT_COMMANDS = re.compile(r"\bcommand[- ]lines?\b|\bCLI\b", re.IGNORECASE)
"""What the heading of a section has that is about the commands of a project."""
_HISTORY = re.compile(
    r"^(?:#+\s+)?(?:(?:recent |latest |version )?(?:change ?logs?|changes|history|releases)|release notes|what'?s new"
    r"|news)"
    r"(?:\s+(?:in|since|for)\s+(?:version\s+)?v?\d.*|\s*[:\d(].*)?$",
    re.IGNORECASE,
)
"""A heading above what was new in each version."""
MAX_INDENT = 3
"""Number of spaces by which a heading may be indented."""
_RULE = re.compile(r"([^\w\s`])\1{2,}\s*$")
_MARK = re.compile(r"\s*(?:\.\.(?:\s|$)|:::|```|~~~|>>>|[-*+•]\s|\d+[.)]\s|\||<)")
"""The beginning of what is no running text."""
_USUAL_HEADINGS = frozenset(
    {
        "usage", "use", "using", "example", "examples", "install", "installation", "setup", "build", "building", "test",
        "tests", "testing", "run", "running", "config", "configure", "configuration", "options", "features", "help",
        "version", "versions", "license", "api", "errors", "start", "gettingstarted", "quickstart", "overview",
    }
)  # fmt: skip
"""Headings of parts that many documents have."""


@dataclass(slots=True)
class Section:
    """A heading with the lines below it, up to the next heading."""

    level: str
    """The mark of the heading: sections are nested in the order in which their marks first occur; empty for the top."""
    heading: list[str]
    lines: list[str]
    has_lost: bool = False
    """Whether a directive, or all of its text, is gone from it."""

    def keep(self, left: list[str]) -> None:
        """Leave only these of its lines."""
        self.has_lost = left != self.lines and not says_something(left)
        self.lines = left


def words_of(names: GoneCode) -> re.Pattern[bytes]:
    """What finds a word of which every document has one that names what is gone."""
    last = {
        *names.mentioned.names,
        *names.mentioned.bare,
        *names.mentioned.called,
        *names.mentioned.headed,
        *names.mentioned.keys,
        *(each.rpartition(".")[2] for each in (*names.dotted, *names.mentioned.qualified)),
        *names.cases,
        *names.commands.words(),
        *(each.function for each in names.calls),
    }
    about = [f"(?i:{_ABOUT_COMMANDS.pattern})"] if names.commands.is_last else []
    return re.compile("|".join([*map(re.escape, sorted(last)), *about]).encode() or b"(?!)")


def shortened_documents(
    documents: Mapping[str, bytes], names: GoneCode, changed: Changed = MappingProxyType({})
) -> Changed:
    """Path to (content before, content after) of documents without text and examples that name what is gone.

    ``changed`` are those that other edits change. Nothing if it were more than :data:`MAX_REMOVED` characters.
    """
    words = words_of(names)
    naming = {path: data for path, data in documents.items() if words.search(data)}
    for change in (_without_whole_sections, _without_sections):
        found = dict(_shortened(naming, names, changed, change))
        if sum(len(before) - len(after or b"") for before, after in found.values()) <= MAX_REMOVED:
            return found
    return {}


def _shortened(
    documents: Mapping[str, bytes], names: GoneCode, changed: Changed, change: Callable[[str, GoneCode], str]
) -> Iterator[tuple[str, tuple[bytes, bytes | None]]]:
    for path, original in documents.items():
        before = utf8_text(changed.get(path, (original, original))[1] or b"")
        if before and path not in changed and _is_page_about(path, before, names):
            yield path, (original, None)
            continue
        after = with_line_ends_of(before, lambda text: _changed(text, names, change)) if before else ""
        if before and after.strip() and after.split() != before.split():
            yield path, (original, after.encode())


def _changed(text: str, names: GoneCode, change: Callable[[str, GoneCode], str]) -> str:
    after = change(text, names)
    return without_unused_targets(text, after) if after.split() != text.split() else after


def _is_page_about(path: str, text: str, names: GoneCode) -> bool:
    """Whether a page is no more than a section about what is gone; the first page of a project or a manual is not."""
    if _FIRST_PAGE.match(path.rpartition("/")[2]):
        return False
    first, *others = sections_of(text)
    if len(others) != 1 or any(map(str.strip, first.lines)) or not is_about(others[0].lines, names):
        return False
    left = "\n".join(without_mentions(others[0].lines, names))
    return _NAMED.search(left) is None and len(left) <= MAX_PROSE


def _without_whole_sections(text: str, names: GoneCode) -> str:
    """A document without sections about what is gone, and then without text and examples."""
    sections = with_labels(sections_of(text))
    left = list(_without_sections_about(sections, names))
    if len(left) == len(sections):
        return _without_sections(text, names)
    return _without_sections("\n".join(_lines_of(left, sections)), names)


def _lines_of(left: Sequence[Section], sections: Sequence[Section]) -> Iterator[str]:
    """The lines of the sections that are left of ``sections``, without entries of contents for the others."""
    kept = {id(section) for section in left}
    anchors = {anchor for each in sections if id(each) not in kept for anchor in _anchors(each.heading)}
    anchors -= {anchor for each in left for anchor in _anchors(each.heading)}
    return _without_entries([line for each in left for line in (*each.heading, *each.lines)], anchors)


def _anchors(heading: Iterable[str]) -> Iterator[str]:
    """What links to a heading have behind ``#``, in Markdown: names above it, and what is made of its words; and the
    title by which reStructuredText refers to it."""
    for line in heading:
        if found := _ANCHOR.search(line):
            yield found[1]
        elif line.startswith("#"):
            words = re.sub(r"<[^<>]*>", "", words_of_heading(line)).strip("# ").lower()
            yield re.sub(r"[^\w -]", "", words).replace(" ", "-")
        elif line.strip() and not _is_rule(line) and not _LABEL.match(line):
            yield line.strip().lower()


def _without_entries(lines: Sequence[str], anchors: Collection[str]) -> Iterator[str]:
    """The lines without those of tables of contents that are a link to one of the anchors, and nothing else."""
    for line, following in pairwise([*lines, ""]):
        entry = _ENTRY.fullmatch(line.strip())
        is_whole = not following.strip() or BULLET.match(following) is not None
        if entry is None or not is_whole or (entry[1] or entry[2] or entry[3].lower()) not in anchors:
            yield line


def _without_sections(text: str, names: GoneCode) -> str:
    """A document without text and examples, and without sections that were nothing else; its title stays."""
    sections = with_labels(sections_of(text))
    depths = _depths(sections)
    of_history = set(map(id, _of_history(sections)))
    for number, section in enumerate(sections):
        if id(section) in of_history:
            continue
        has_inner = number + 1 < len(sections) and depths[sections[number + 1].level] > depths[section.level]
        is_whole = number > 1 and not has_inner and is_about(section.lines, names)
        section.keep([] if is_whole else without_mentions(section.lines, names))
    title = sections[1] if len(sections) > 1 and not any(map(str.strip, sections[0].lines)) else None
    kept = {id(section) for section in (*not_emptied(sections), title)}
    staying = [section for section in sections if id(section) in kept]
    kept_text = "\n".join(_lines_of(staying, sections))
    return kept_text.rstrip() + text[len(text.rstrip()) :]


def with_line_ends_of(text: str, change: Callable[[str], str]) -> str:
    """What ``change`` makes of a text, with the line ends that the text had; mixed ones are parts of its lines."""
    if "\r\n" not in text or text.count("\n") > text.count("\r\n"):
        return change(text)
    return change(text.replace("\r\n", "\n")).replace("\n", "\r\n")


def sections_of(text: str) -> Iterator[Section]:
    """The sections of a document; the first is what stands above the first heading."""
    lines = text.split("\n")
    headings = _headings(text)
    for (level, start, length), (_, end, _) in pairwise([("", 0, 0), *headings, ("", len(lines), 0)]):
        yield Section(level, lines[start : start + length], lines[start + length : end])


@lru_cache(maxsize=128)
def _headings(text: str) -> tuple[tuple[str, int, int], ...]:
    """(mark, number of the first line, number of lines) of each heading of a document; the same ones are asked for
    again and again."""
    lines, number = text.split("\n"), 0
    indented = Counter(_indented_mark(*pair) for pair in pairwise(lines))
    found: list[tuple[str, int, int]] = []
    while number < len(lines):
        level, length = _heading_at(lines, number)
        if not level and number + 1 < len(lines):  # one that is indented alone may be a part of something else
            mark = _indented_mark(lines[number], lines[number + 1])
            level, length = (mark, 2) if mark and indented[mark] > 1 else ("", 0)
        stop = number if level else end_of_fence(lines, number)
        found += [(level, number, length)] if level else []
        number = stop + 1 if stop > number else number + max(length, 1)
    return tuple(found)


def sections_now(text: str) -> list[Section]:
    """The sections of a document but for those about earlier versions."""
    sections = list(sections_of(text))
    history = set(map(id, _of_history(sections)))
    return [section for section in sections if id(section) not in history]


def _heading_at(lines: list[str], number: int) -> tuple[str, int]:
    """The mark and the number of lines of the heading that begins at a line; an empty mark if there is none."""
    line = lines[number]
    if found := re.match(r"(#{1,6})\s+\S", line):
        return found[1], 1
    following = lines[number + 1 : number + 3]
    if _is_rule(line) and len(following) == 2 and following[0].strip() and following[1].rstrip() == line.rstrip():
        return line[0] * 2, 3
    if following and _is_underlined(line, following[0]):
        return following[0][0], 2
    return "", 0


def _is_underlined(title: str, rule: str) -> bool:
    """Whether a line is the title of a section, and the next one the rule below it."""
    is_title = bool(title.strip()) and not title[0].isspace() and not _MARK.match(title) and not _is_rule(title)
    return is_title and _is_rule(rule) and len(rule.rstrip()) >= len(title.rstrip())


def _indented_mark(title: str, rule: str) -> str:
    """The mark of a heading that is indented by one to three spaces, behind these; empty if it is none."""
    indent = " " * (len(title) - len(title.lstrip(" ")))
    is_indented = 0 < len(indent) <= MAX_INDENT and rule.startswith(indent)
    if not is_indented or not _is_underlined(title.removeprefix(indent), rule.removeprefix(indent)):
        return ""
    return f"{indent}{rule.removeprefix(indent)[0]}"


def _is_rule(line: str) -> bool:
    return _RULE.match(line) is not None


def not_emptied(sections: list[Section]) -> list[Section]:
    """The sections without those that were nothing but what is gone; those with sections inside them stay."""
    depths = _depths(sections)
    left = []
    for section, following in zip(sections, [*sections[1:], None], strict=True):
        has_inner = following is not None and depths[following.level] > depths[section.level]
        if section.level and section.has_lost and not has_inner and not _holds_more(section.lines):
            continue
        left.append(section)
    return left


def _without_sections_about(sections: list[Section], names: GoneCode) -> Iterator[Section]:
    """The sections without those whose headings say that they are about what is gone, and those in them.

    The title and what is above it stay.
    """
    depths, about = _depths(sections), _heading_pattern(names)
    of_history = set(map(id, _of_history(sections)))
    inside: int | None = None
    for number, section in enumerate(sections):
        depth = depths[section.level]
        if inside is not None and depth > inside:
            continue
        following = sections[number + 1 : number + 2]
        is_flat = not any(depths[each.level] > depth for each in following)
        headings = [line for each in section.heading for line in _names_in(each, is_flat=is_flat)]
        is_named = any(map(about.search, headings)) or (is_flat and _is_headed_by_words(section, names))
        is_about = number > 1 and id(section) not in of_history and is_named
        inside = depth if is_about else None
        if not is_about:
            yield section


def _is_headed_by_words(section: Section, names: GoneCode) -> bool:
    """Whether the heading of a section is the words of a name that is gone, and each of its examples loses a line; or
    the heading has one of the words, nothing is left of any example, and the text names no call of another one."""
    if not any(map(_is_of_words, section.heading)):
        return False
    gone = names.mentioned
    every = (*gone.names, *gone.bare, *gone.called, *gone.qualified, *names.dotted)
    known = {_letters_of(each.rpartition(".")[2]) for each in every}
    is_name = any(_letters_of(words_of_heading(line)) in known for line in section.heading)
    if is_name:
        return all_examples_lose(section.lines, names)
    words = {word for each in every for word in stems(each.rpartition(".")[2])}
    has_word = not words.isdisjoint(*(stems(words_of_heading(line)) for line in section.heading[:1]))
    prose = [chunk for chunk in chunks_of(section.lines) if chunk.kind is ChunkKind.PROSE]
    called = {each for part in prose for line in section.lines[part.start : part.end] for each in _CALL.findall(line)}
    is_of_others = not called <= {each.rpartition(".")[2] for each in every}
    return has_word and not is_of_others and all_examples_lose(section.lines, names, everything=True)


def _is_of_words(heading: str) -> bool:
    """Whether a heading is a few words that do not stand above a part of any document."""
    if _letters_of(words_of_heading(heading)) in _USUAL_HEADINGS:
        return False
    return re.fullmatch(r"(?:#+\s+)?\w{2,40}(?:[ -]\w{1,40}){0,4}", words_of_heading(heading)) is not None


def _letters_of(words: str) -> str:
    """A name or its words in a form that is the same for both: ``jarowinkler``."""
    return re.sub(r"[\W_]+", "", words).lower()


def _names_in(heading: str, *, is_flat: bool) -> Iterator[str]:
    """A heading without arguments, and, of a section without others in it, without what it says of a name."""
    yield heading_without_arguments(heading)
    words = words_of_heading(heading)
    if is_flat and (said := _WHAT_IT_IS.search(words)) is not None:
        yield heading_without_arguments(words[: said.start()])


def _of_history(sections: Sequence[Section]) -> Iterator[Section]:
    """The sections about earlier versions, and those in them: what these say was true then."""
    depths = _depths(sections)
    inside: int | None = None
    has_text_above = bool(sections) and any(map(str.strip, sections[0].lines))  # else the first heading is a title
    for section in sections[1 if has_text_above else 2 :]:
        depth = depths[section.level]
        if inside is None or depth <= inside:
            inside = depth if any(_HISTORY.match(line.strip()) for line in section.heading) else None
        if inside is not None:
            yield section


def with_labels(sections: Iterable[Section]) -> list[Section]:
    """The sections with the labels above their headings in these."""
    found = list(sections)
    for section, following in pairwise(found):
        first = _first_label(section.lines)
        section.lines, following.heading = section.lines[:first], [*section.lines[first:], *following.heading]
    return found


def _first_label(lines: list[str]) -> int:
    """Where the labels at the end of a section begin; the number of lines if there are none."""
    first = len(lines)
    for number in range(len(lines) - 1, -1, -1):
        if _LABEL.match(lines[number]):
            first = number
        elif lines[number].strip():
            break
    return first


def _heading_pattern(names: GoneCode) -> re.Pattern[str]:
    """What finds a heading that is nothing but a name of what is gone, and perhaps what that is."""
    own, commands = any_of(names.mentioned.names), any_of(names.commands.words())
    owner = rf"(?:[\w.]{{1,100}}{SEPARATOR}|\.)?"
    marked = rf"[`*]{{1,2}}{owner}(?:{own})(?:\([^()]{{0,100}}\))?[`*]{{1,2}}"
    owned = (with_owner(each) for each in (*names.dotted, *names.mentioned.qualified) if "." in each)
    dotted = any_of(owned).replace(r"\.", SEPARATOR)
    parts = [
        rf"[`*]{{0,2}}(?:{dotted})[`*]{{0,2}}(?:\([^()]{{0,100}}\))?",
        rf"(?:{marked}|{owner}(?:{own})\([^()]{{0,100}}\))(?:\s+{_KIND})?",
        rf"(?:{own})\s+{_KIND}",
        rf"[`*]{{0,2}}\.(?:{any_of(names.mentioned.headed)})\(\)[`*]{{0,2}}",
        rf"[`*]{{0,2}}(?:{commands})(?: [\w-]{{1,40}})?(?:[`*]{{1,2}}|[`*]{{0,2}}\s+{_KIND})",
    ]
    pattern = rf"^(?:#+\s+)?(?:[Tt]he\s+)?(?:{'|'.join(parts)})$"
    return re.compile(f"{pattern}|(?i:{_ABOUT_COMMANDS.pattern})" if names.commands.is_last else pattern)


def _depths(sections: Iterable[Section]) -> dict[str, int]:
    """How deep the sections of each level are nested: those with indented headings below all others."""
    levels = sorted(dict.fromkeys(section.level for section in sections), key=lambda level: level.startswith(" "))
    marks = {level: number for number, level in enumerate(levels)}
    return {level: len(level) if level.startswith("#") else number for level, number in marks.items()}


def _holds_more(lines: Iterable[str]) -> bool:
    """Whether a section holds more than a paragraph that introduces it."""
    rest = [line for line in lines if not _FRAME.match(line.strip())]
    paragraphs = [each for each in "\n".join(rest).split("\n\n") if each.strip()]
    is_running = not any(_MARK.match(line) or line.startswith("  ") for line in rest)
    return len(paragraphs) > 1 or sum(map(len, paragraphs)) > MAX_PROSE or not is_running


def says_something(lines: Iterable[str]) -> bool:
    """Whether lines have more than what a page has around its content."""
    return any(line.strip() and not _FRAME.match(line.strip()) for line in lines)
