"""Removed code in documents: directives that ask for its docstring, text and examples that name it.

A section goes that was nothing but such directives, and a page with nothing else, together with the entries of tables
of contents that name it. Text and examples go from the documents that a statement quotes, as long as it can show them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from posixpath import dirname, relpath

from excise.deleters.documents.document_text import utf8_text
from excise.deleters.documents.gone_commands import GoneCommands
from excise.deleters.documents.gone_names import GoneCode
from excise.deleters.documents.running_text import indent_of
from excise.deleters.documents.sections import (
    not_emptied,
    says_something,
    sections_of,
    shortened_documents,
    with_labels,
    with_line_ends_of,
    words_of,
)
from excise.deleters.python.references.dependent_removal import DependentRemover
from excise.deleters.python.references.find_gone_names import gone_keys, gone_names, publicly_gone
from excise.deleters.statement.project_docs import is_document
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.analysis.name_resolution import Entity
from excise.types import Symbol, SymbolKind, name_in_file, path_of

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
_SHOWN_MODULE = re.compile(r"(?P<indent>[ \t]*)\.\.\s+automodule::\s+(?P<name>[\w.]+)")
"""A directive for a module, with what is in it."""
_MEMBERS = re.compile(r"[ \t]+:(?:inherited-|special-|private-)?members:(?=[ \t]+\w)")
"""An option of such a directive: the members of the class, or module, that it shows."""
_TOCTREE = re.compile(r"[ \t]*\.\.\s+toctree::")
"""The head of a table of contents; its entries stand below it, indented."""


def gone_code(
    remover: DependentRemover, gone: Collection[Symbol], aliases: Collection[str], commands: GoneCommands
) -> GoneCode:
    """The names of removed definitions (``gone``) with those of files that are gone, of removed names that assignments
    bound (ids: ``aliases``), and of commands."""
    modules = remover.codebase.modules
    files = [path for path, plan in remover.plans.items() if plan.deleted and not remover.codebase.is_test(path)]
    whole = [modules[path].symbols[0] for path in sorted(files) if path in modules]
    names, dotted = gone_names(remover, gone), _dotted_names(remover, [*gone, *whole], aliases)
    inside = {name for each in whole if "." in (name := remover.codebase.names.name_of(each.path))}
    return GoneCode(replace(names, qualified=(*names.qualified, *sorted(inside))), dotted, commands=commands)


def documents_without(
    remover: DependentRemover, gone: Collection[Symbol], names: GoneCode
) -> dict[str, tuple[bytes, bytes | None]]:
    """Path to (content before, content after) of documents without what is gone; ``None``: no page left."""
    names = as_documents_mean(remover, gone, names)
    changed: dict[str, tuple[bytes, bytes | None]] = {}
    others = remover.codebase.others
    paths = others.paths - remover.other_files.keys()
    words = words_of(names)
    for path in sorted(paths) if names.dotted else ():
        if path.endswith(_DOCUMENTS) and b"::" in (before := others.read(path)) and words.search(before):
            text = utf8_text(before)
            after = with_line_ends_of(text, lambda plain: _without_directives(plain, names)) if text else text
            if after != text:
                changed[path] = (before, after.encode() if after else None)
    quoted = sorted(filter(is_document, paths - remover.codebase.suite.collected))
    changed |= shortened_documents({path: others.read(path) for path in quoted}, names, changed)
    pages = {path for path, (_, after) in changed.items() if after is None}
    for path in sorted(paths - pages) if pages else ():
        if path.endswith((*_DOCUMENTS, *_CONTENTS)):
            before = others.read(path)
            known = changed.get(path, (before, before))[1] or b""
            left = _without_entries(path, known, {_entry(path, page) for page in pages})
            if path.endswith(".md"):
                left = _without_links(left, {relpath(page, dirname(path) or ".") for page in pages})
            if left != known:
                changed[path] = (before, left)
    return changed


def as_documents_mean(remover: DependentRemover, gone: Collection[Symbol], names: GoneCode) -> GoneCode:
    """The names with those that only private definitions still have, and those under which tables had the code."""
    public, keys = publicly_gone(remover, gone), gone_keys(remover)
    if not public and not keys:
        return names
    methods = {s.name.partition("#")[0] for s in gone if s.kind is SymbolKind.METHOD} & public
    own = names.mentioned
    mentioned = replace(
        own,
        names=tuple(sorted({*own.names, *public})),
        methods=own.methods | methods,
        keys=tuple(sorted(keys.difference(own.names, public))),
    )
    return replace(names, mentioned=mentioned)


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
    sections = with_labels(sections_of(text))
    for section in sections:
        lines, section.lines = section.lines, []
        number = 0
        shown: re.Match[str] | None = None
        while number < len(lines):
            line = lines[number]
            number += 1
            if shown is not None and line.strip() and indent_of(line) <= len(shown["indent"]):
                shown = None
            shown = _CLASS.match(line) or _SHOWN_MODULE.match(line) or shown
            klass = shown if shown is not None and _CLASS.match(shown[0]) else None
            if found := _MODULE.match(line):
                module = found[1]
                section.lines.append(line)
                continue
            if shown is not None and _MEMBERS.match(line):
                end = number
                while end < len(lines) and indent_of(lines[end]) > indent_of(line):
                    end += 1
                place = (module, shown["name"]) if klass is not None else (shown["name"], "")
                option = _without_members(lines[number - 1 : end], names, *place)
                section.has_lost |= option != lines[number - 1 : end]
                section.lines += option
                number = end
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
    left = not_emptied(sections)
    if not any(says_something(section.lines) for section in left):
        return ""
    return "\n".join(line for section in left for line in (*section.heading, *section.lines)).rstrip() + "\n"


def _without_members(lines: list[str], names: GoneCode, module: str, klass: str) -> list[str]:
    """The lines of an option with the members of a class, or of a module if ``klass`` is empty, without those that are
    gone; none if no other is left."""
    head = _MEMBERS.match(lines[0])
    listed = re.findall(r"\w+", "\n".join([lines[0][head.end() if head else 0 :], *lines[1:]]))
    gone = [n for n in listed if (_has(names, n, module, klass) if klass else f"{module}.{n}" in names.dotted)]
    if not gone:
        return lines
    if len(gone) == len(listed):
        return []
    name = "|".join(map(re.escape, gone))
    text = re.sub(rf",\s*(?:{name})\b(?!:)|(?<=\s)(?:{name}),[ ]*", "", "\n".join(lines))
    return [line for line in text.split("\n") if line.strip()]


def _has(names: GoneCode, name: str, module: str, klass: str) -> bool:
    """Whether a directive's name, below those for a module and a class, is of what is gone.

    It may lack a part, or have another.
    """
    parts = name.split(".")
    if any(".".join(parts[:end]) in names.dotted for end in range(2, len(parts) + 1)):
        return True
    if name in names.dotted or (module and f"{module}.{name}" in names.dotted):
        return True
    if klass and "." not in name:
        return any(f".{dotted}".endswith(f".{klass.rpartition('.')[2]}.{name}") for dotted in names.dotted)
    last = name.rpartition(".")[2]
    return last in names.mentioned.names and any(
        f".{dotted}".endswith(f".{name}") or (name != last and dotted.endswith(f".{last}")) for dotted in names.dotted
    )


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
