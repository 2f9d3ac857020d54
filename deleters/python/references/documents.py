"""Removed code in documents: directives that ask for its docstring, text and examples that name it.

A section goes that was nothing but such directives, and a page with nothing else, together with the entries of tables
of contents that name it. Text and examples go from the documents that a statement quotes, as long as it can show them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from posixpath import dirname, relpath

from excise.deleters.python.references.dependent_removal import DependentRemover
from excise.deleters.python.references.document_text import (
    MAX_REMOVED,
    GoneCode,
    end_of_fence,
    utf8_text,
    without_mentions,
)
from excise.deleters.python.references.gone_commands import GoneCommands
from excise.deleters.python.references.gone_names import gone_names
from excise.deleters.python.references.running_text import indent_of
from excise.deleters.statement.project_docs import is_document
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.analysis.name_resolution import Entity
from excise.types import Symbol, SymbolKind, name_in_file, path_of

MAX_PROSE = 400
"""Number of characters of a section's text up to which it goes with its last directive, which it introduces."""
_DOCUMENTS = (".rst", ".md", ".txt")
_CONTENTS = ("mkdocs.yml", "mkdocs.yaml")
_LINK = r"[ \t]*[-*+][ \t]+\[[^\[\]\n]*\]\((?:\./)?(?:{pages})(?:#[^()\s]*)?\)"
"""An item of a list that is a link to a page, and nothing else."""
_REFERENCE = re.compile(
    r"^(?P<indent>[ \t]*)(?:"
    r"\.\.\s+(?:auto|py:)?(?:function|class|method|exception|data|attribute|module|decorator)::|:::)"
    r"\s+(?P<name>[\w.]+)(?:\s*\(.*)?\s*$"
)
"""A directive of Sphinx, or of mkdocstrings, that stands for a docstring or has what else there is to say."""
_MODULE = re.compile(r"^\.\.\s+(?:current)?module::\s+([\w.]+)\s*$")
"""A directive that says in which module the names below are."""
_CLASS = re.compile(r"(?P<indent>[ \t]*)\.\.\s+(?:auto|py:)?(?:class|exception)::\s+(?P<name>[\w.]+)")
"""A directive for a class, below which those for its members stand, further in."""
_FRAME = re.compile(r"\.\.\s+(?:(?:current)?module|contents)::|\.\.\s+_[^:]+:\s*$|:(?:local|depth):")
"""What a page has around its content."""
_LABEL = re.compile(r"\.\. _[^:]+:\s*$")
"""What references lead to: the heading below it."""
_TOCTREE = re.compile(r"[ \t]*\.\.\s+toctree::")
"""The head of a table of contents; its entries stand below it, indented."""
_KIND = r"(?:command|function|method|class|decorator|exception|module|script|tool|option)"
"""What a heading calls a name."""
_ABOUT_COMMANDS = re.compile(r"\bcommand[- ]lines?\b|\bCLI\b", re.IGNORECASE)
"""What the heading of a section has that is about the commands of a project."""
_RULE = re.compile(r"([^\w\s`])\1{2,}\s*$")
_MARK = re.compile(r"\s*(?:\.\.(?:\s|$)|:::|```|~~~|>>>|[-*+•]\s|\d+[.)]\s|\||<)")
"""The beginning of what is no running text."""


@dataclass(slots=True)
class _Section:
    """A heading with the lines below it, up to the next heading."""

    level: str
    """The mark of the heading: sections are nested in the order in which their marks first occur; empty for the top."""
    heading: list[str]
    lines: list[str]
    has_lost: bool = False
    """Whether a directive is gone from it."""


def gone_code(
    remover: DependentRemover, gone: Collection[Symbol], aliases: Collection[str], commands: GoneCommands
) -> GoneCode:
    """The names of removed definitions (``gone``) with those of files that are gone, of removed names that assignments
    bound (ids: ``aliases``), and of commands."""
    modules = remover.codebase.modules
    files = [path for path, plan in remover.plans.items() if plan.deleted and not remover.codebase.is_test(path)]
    whole = [modules[path].symbols[0] for path in sorted(files) if path in modules]
    return GoneCode(gone_names(remover, gone), _dotted_names(remover, [*gone, *whole], aliases), commands=commands)


def documents_without(remover: DependentRemover, names: GoneCode) -> dict[str, tuple[bytes, bytes | None]]:
    """Path to (content before, content after) of documents without what is gone; ``None``: no page left."""
    changed: dict[str, tuple[bytes, bytes | None]] = {}
    others = remover.codebase.others
    last = {*names.mentioned.names, *(each.rpartition(".")[2] for each in names.dotted), *names.commands.words()}
    about = [f"(?i:{_ABOUT_COMMANDS.pattern})"] if names.commands.is_last else []
    words = re.compile("|".join([*map(re.escape, sorted(last)), *about]).encode())
    for path in sorted(others.paths) if names.dotted else ():
        if path.endswith(_DOCUMENTS) and b"::" in (before := others.read(path)) and words.search(before):
            text = utf8_text(before)
            after = _with_line_ends_of(text, lambda plain: _without_directives(plain, names)) if text else text
            if after != text:
                changed[path] = (before, after.encode() if after else None)
    changed |= _without_text(remover, names, words, changed)
    pages = {path for path, (_, after) in changed.items() if after is None}
    for path in sorted(others.paths - pages) if pages else ():
        if path.endswith((*_DOCUMENTS, *_CONTENTS)):
            before = others.read(path)
            known = changed.get(path, (before, before))[1] or b""
            left = _without_entries(path, known, {_entry(path, page) for page in pages})
            if path.endswith(".md"):
                left = _without_links(left, {relpath(page, dirname(path) or ".") for page in pages})
            if left != known:
                changed[path] = (before, left)
    return changed


def _without_text(
    remover: DependentRemover,
    names: GoneCode,
    words: re.Pattern[bytes],
    changed: Mapping[str, tuple[bytes, bytes | None]],
) -> dict[str, tuple[bytes, bytes | None]]:
    """The documents that statements quote without text and examples; nothing if that were more than these can show."""
    for change in (_without_whole_sections, _without_sections):
        found = dict(_shortened(remover, names, words, changed, change))
        if sum(len(before) - len(after or b"") for before, after in found.values()) <= MAX_REMOVED:
            return found
    return {}


def _shortened(
    remover: DependentRemover,
    names: GoneCode,
    words: re.Pattern[bytes],
    changed: Mapping[str, tuple[bytes, bytes | None]],
    change: Callable[[str, GoneCode], str],
) -> Iterator[tuple[str, tuple[bytes, bytes | None]]]:
    """Path to (content before, content after) of the documents that ``change`` makes shorter."""
    codebase = remover.codebase
    for path in sorted(filter(is_document, codebase.others.paths - codebase.suite.collected)):
        original = codebase.others.read(path)
        if not words.search(original):
            continue
        before = utf8_text(changed.get(path, (original, original))[1] or b"")
        if not before:
            continue
        after = _with_line_ends_of(before, lambda plain: change(plain, names))
        if after.strip() and after.split() != before.split():
            yield path, (original, after.encode())


def _without_whole_sections(text: str, names: GoneCode) -> str:
    """A document without sections about what is gone, and then without text and examples."""
    sections = list(_sections(text.split("\n")))
    left = list(_without_sections_about(sections, names))
    lines = [line for section in left for line in (*section.heading, *section.lines)]
    return _without_sections("\n".join(lines) if len(left) < len(sections) else text, names)


def _without_sections(text: str, names: GoneCode) -> str:
    """A document without text and examples, and without sections that were nothing else; its title stays."""
    sections = list(_sections(text.split("\n")))
    for section in sections:
        left = without_mentions(section.lines, names)
        section.has_lost = left != section.lines and not any(line.strip() for line in left)
        section.lines = left
    title = sections[1] if len(sections) > 1 and not any(map(str.strip, sections[0].lines)) else None
    kept = {id(section) for section in (*_not_emptied(sections), title)}
    staying = (section for section in sections if id(section) in kept)
    kept_text = "\n".join(line for each in staying for line in (*each.heading, *each.lines))
    return kept_text.rstrip() + text[len(text.rstrip()) :]


def _with_line_ends_of(text: str, change: Callable[[str], str]) -> str:
    """What ``change`` makes of a text, with the line ends that the text had."""
    if "\r\n" not in text:
        return change(text)
    return change(text.replace("\r\n", "\n")).replace("\n", "\r\n")


def is_documented(codebase: PythonCodebase, name: str) -> bool:
    """Whether a document has the name as a word."""
    others = codebase.others
    word = re.compile(rb"\b%s\b" % re.escape(name.encode()))
    documents = (path for path in others.paths if path.endswith(_DOCUMENTS))
    return any(word.search(others.read(path)) for path in documents)


def _dotted_names(remover: DependentRemover, gone: Collection[Symbol], aliases: Collection[str]) -> frozenset[str]:
    """The dotted names of what is gone, and of what is in it; of other definitions of the same name one may stay."""
    name_of = remover.codebase.names.name_of
    found = {f"{name_of(path_of(each))}.{name_in_file(each)}" for each in aliases}
    for symbol in gone:
        module = name_of(symbol.path)
        for inner in remover.codebase.modules[symbol.path].symbols:
            if symbol.start <= inner.start and inner.end <= symbol.end and "#" not in inner.qualname:
                found.add(f"{module}.{inner.qualname}" if inner.qualname else module)
        if symbol.kind is SymbolKind.MODULE:
            found.add(module)
    found.update(_inherited_names(remover, [symbol for symbol in gone if symbol.kind is SymbolKind.METHOD]))
    return frozenset(found) | _offered_names(remover, found)


def _inherited_names(remover: DependentRemover, methods: Iterable[Symbol]) -> Iterator[str]:
    """The dotted names by which other classes had methods from theirs."""
    resolver, by_class = remover.uses.resolver, defaultdict[Entity, list[Symbol]](list)
    for method in methods:
        by_class[Entity(method.path, method.qualname.rpartition(".")[0])].append(method)
    for path in remover.codebase.modules if by_class else ():
        for qualname in resolver.scope(path).bases:
            klass = Entity(path, qualname)
            for base in resolver.with_bases(resolver.bases(klass)):
                for method in by_class.get(base, ()) if base != klass else ():
                    if resolver.attribute(klass, method.name) == Entity(method.path, method.qualname):
                        yield f"{remover.codebase.names.name_of(path)}.{qualname}.{method.name}"


def _offered_names(remover: DependentRemover, gone: Collection[str]) -> frozenset[str]:
    """The names by which packages offered what is gone: ``pkg.name`` for ``pkg.module.name``."""
    found = set()
    for lost in remover.lost:
        whole = remover.imported_from(lost)
        if whole != lost and f"{remover.codebase.names.name_of(whole.path)}.{whole.qualname}" in gone:
            found.add(f"{remover.codebase.names.name_of(lost.path)}.{lost.qualname}")
    return frozenset(found)


# ---------------------------------------------------------------------------------------- directives
def _without_directives(text: str, names: GoneCode) -> str:
    """A document without directives for these names, and what they leave empty; empty if it says nothing any more."""
    module = ""
    sections = list(_sections(text.split("\n")))
    for section in sections:
        lines, section.lines = section.lines, []
        number = 0
        klass: re.Match[str] | None = None
        while number < len(lines):
            line = lines[number]
            number += 1
            if klass is not None and line.strip() and indent_of(line) <= len(klass["indent"]):
                klass = None
            klass = _CLASS.match(line) or klass
            if found := _MODULE.match(line):
                module = found[1]
                section.lines.append(line)
                continue
            match = _REFERENCE.match(line)
            owner = klass["name"] if klass is not None and match is not None and klass[0] not in line else ""
            if match is None or not _has(names, match["name"], module, owner):
                section.lines.append(line)
                continue
            section.has_lost = True
            end = number
            while number < len(lines) and (
                not lines[number].strip() or indent_of(lines[number]) > len(match["indent"])
            ):
                number += 1
                end = number if lines[number - 1].strip() else end
            if section.lines and section.lines[-1].strip():  # what is below stays as far from what is above
                section.lines += lines[end:number]
    if not any(section.has_lost for section in sections):
        return text
    left = _not_emptied(sections)
    if not any(_says_something(section.lines) for section in left):
        return ""
    return "\n".join(line for section in left for line in (*section.heading, *section.lines)).rstrip() + "\n"


def _has(names: GoneCode, name: str, module: str, klass: str) -> bool:
    """Whether a directive's name, below those for a module and a class, is of what is gone.

    It may lack a part, or have another.
    """
    if name in names.dotted or (module and f"{module}.{name}" in names.dotted):
        return True
    if klass and "." not in name:
        return any(f".{dotted}".endswith(f".{klass.rpartition('.')[2]}.{name}") for dotted in names.dotted)
    last = name.rpartition(".")[2]
    return last in names.mentioned.names and any(
        f".{dotted}".endswith(f".{name}") or (name != last and dotted.endswith(f".{last}")) for dotted in names.dotted
    )


def _sections(lines: list[str]) -> Iterator[_Section]:
    current = _Section("", [], [])
    number = 0
    while number < len(lines):
        level, length = _heading_at(lines, number)
        stop = number if level else end_of_fence(lines, number)
        if stop > number:
            current.lines += lines[number : stop + 1]
            number = stop + 1
            continue
        if not level:
            current.lines.append(lines[number])
            number += 1
            continue
        yield current
        current = _Section(level, lines[number : number + length], [])
        number += length
    yield current


def _heading_at(lines: list[str], number: int) -> tuple[str, int]:
    """The mark and the number of lines of the heading that begins at a line; an empty mark if there is none."""
    line = lines[number]
    if found := re.match(r"(#{1,6})\s+\S", line):
        return found[1], 1
    following = lines[number + 1 : number + 3]
    if _is_rule(line) and len(following) == 2 and following[0].strip() and following[1].rstrip() == line.rstrip():
        return line[0] * 2, 3
    is_title = bool(line.strip()) and not line[0].isspace() and not _MARK.match(line) and not _is_rule(line)
    if is_title and following and _is_rule(following[0]) and len(following[0].rstrip()) >= len(line.rstrip()):
        return following[0][0], 2
    return "", 0


def _is_rule(line: str) -> bool:
    return _RULE.match(line) is not None


def _not_emptied(sections: list[_Section]) -> list[_Section]:
    """The sections without those that were nothing but what is gone; those with sections inside them stay."""
    depths = _depths(sections)
    left = []
    for section, following in zip(sections, [*sections[1:], None], strict=True):
        has_inner = following is not None and depths[following.level] > depths[section.level]
        if section.level and section.has_lost and not has_inner and not _holds_more(section.lines):
            continue
        left.append(section)
    return left


def _without_sections_about(sections: list[_Section], names: GoneCode) -> Iterator[_Section]:
    """The sections without those whose headings say that they are about what is gone, and those in them.

    The title and what is above it stay.
    """
    depths, about = _depths(sections), _heading_pattern(names)
    for section, following in pairwise(sections):  # the label of a section stands above its heading
        first = _first_label(section.lines)
        section.lines, following.heading = section.lines[:first], [*section.lines[first:], *following.heading]
    inside: int | None = None
    for number, section in enumerate(sections):
        depth = depths[section.level]
        if inside is not None and depth > inside:
            continue
        is_about = number > 1 and any(about.search(line) for line in section.heading)
        inside = depth if is_about else None
        if not is_about:
            yield section


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
    own = "|".join(map(re.escape, names.mentioned.names)) or "(?!)"
    commands = "|".join(map(re.escape, names.commands.words())) or "(?!)"
    marked = rf"[`*]{{1,2}}(?:[\w.]{{1,100}}\.)?(?:{own})(?:\([^()]{{0,100}}\))?[`*]{{1,2}}"
    parts = [
        rf"(?:{marked}|(?:[\w.]{{1,100}}\.)?(?:{own})\([^()]{{0,100}}\))(?:\s+{_KIND})?",
        rf"(?:{own})\s+{_KIND}",
        rf"[`*]{{0,2}}(?:{commands})(?: [\w-]{{1,40}})?(?:[`*]{{1,2}}|[`*]{{0,2}}\s+{_KIND})",
    ]
    pattern = rf"^(?:#+\s+)?(?:[Tt]he\s+)?(?:{'|'.join(parts)})\s*#*\s*$"
    return re.compile(f"{pattern}|(?i:{_ABOUT_COMMANDS.pattern})" if names.commands.is_last else pattern)


def _depths(sections: Iterable[_Section]) -> dict[str, int]:
    """How deep the sections of each level are nested."""
    marks = {level: number for number, level in enumerate(dict.fromkeys(section.level for section in sections))}
    return {level: len(level) if level.startswith("#") else number for level, number in marks.items()}


def _holds_more(lines: Iterable[str]) -> bool:
    """Whether a section holds more than a paragraph that introduces it."""
    rest = [line for line in lines if not _FRAME.match(line.strip())]
    paragraphs = [each for each in "\n".join(rest).split("\n\n") if each.strip()]
    is_running = not any(_MARK.match(line) or line.startswith("  ") for line in rest)
    return len(paragraphs) > 1 or sum(map(len, paragraphs)) > MAX_PROSE or not is_running


def _says_something(lines: Iterable[str]) -> bool:
    return any(line.strip() and not _FRAME.match(line.strip()) for line in lines)


# ---------------------------------------------------------------------------------------- contents
def _entry(path: str, page: str) -> str:
    """How a document names a page: without its ending, relative to the document; for mkdocs from its folder on."""
    if path.endswith(_CONTENTS):
        return page.partition("/")[2] if "/" in page else page
    return relpath(page, dirname(path) or ".").rpartition(".")[0]


def _without_links(text: bytes, pages: Collection[str]) -> bytes:
    """A document in Markdown without the items of lists that are links to pages."""
    link = re.compile(_LINK.format(pages="|".join(map(re.escape, sorted(pages)))))
    lines = text.decode("utf-8", "surrogateescape").splitlines(keepends=True)
    return "".join(line for line in lines if not link.fullmatch(line.rstrip())).encode("utf-8", "surrogateescape")


def _without_entries(path: str, text: bytes, entries: Collection[str]) -> bytes:
    """A table of contents without the lines that are an entry: ``   name``, ``   Title <name>``, ``- Title: name``."""
    wanted = "|".join(map(re.escape, sorted(entries)))
    forms = (rf"[ \t]+(?:{wanted})", rf"[ \t]+[^\s<>][^<>\n]*<(?:{wanted})>", rf"[ \t]*- (?:[^:\n]*: )?(?:{wanted})")
    line = re.compile(rf"(?:{'|'.join(forms)})[ \t]*\r?\n?")
    left: list[str] = []
    depth = -1 if path.endswith(_CONTENTS) else None
    for each in text.decode("utf-8", "surrogateescape").splitlines(keepends=True):
        if depth is None or not line.fullmatch(each):
            left.append(each)
        if _TOCTREE.match(each):
            depth = indent_of(each)
        elif depth is not None and each.strip() and indent_of(each) <= depth:
            depth = None
    return "".join(left).encode("utf-8", "surrogateescape")
