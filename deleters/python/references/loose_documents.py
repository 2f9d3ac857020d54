"""Documents that would still name removed code, or explain what is gone from them: the code stays as a stub then."""

from __future__ import annotations

import builtins
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from excise.deleters.deletion_record import Changed
from excise.deleters.documents.document_text import ChunkKind, chunks_of, utf8_text
from excise.deleters.documents.gone_names import GoneCode, any_of
from excise.deleters.documents.loose_ends import MAX_TEXT, loose_ends, mentions_left
from excise.deleters.documents.sections import says_something, sections_now, words_of
from excise.deleters.python.references.dependent_removal import DependentRemover, without_numbers
from excise.deleters.python.references.documents import as_documents_mean
from excise.deleters.python.references.leftovers import Leftover
from excise.deleters.python.references.remaining_words import source_left
from excise.deleters.statement.project_docs import is_document
from excise.extractors.features.feature_names import words_of as words_of_name
from excise.types import Symbol, SymbolKind

MIN_CALLED = 2
"""A name must be longer than this for its call in a document to count."""
_OF_PYTHON = frozenset({"", "python", "python3", "py", "pycon", "console", "text"})
"""Languages of examples that may be Python."""
_MADE = re.compile(r"(?<![\w.])(\w+)\s*=(?!=)\s*(?:(?:\w+\.)*(\w+)\()?")
"""A name to which an example gives something, and the name of what is called for it."""
_CALL = re.compile(r"(?<![\w$@-])([A-Za-z_]\w{3,})\(")
"""A call of a name of four letters or more."""
MIN_SPOKEN = 3
"""Number of letters of each word of a name, from which on text may mean it by its words."""
_OPENING = frozenset({"and", "are", "can", "for", "from", "get", "has", "not", "set", "the", "use", "was", "with"})
"""Words with which phrases begin that mean no name."""
_NAME_PART = re.compile(r"[A-Za-z][a-z]{4,}")
"""A word of a name, of five letters or more."""
_MANUAL = re.compile(r".+\.[1-9]")
"""Name of a page of a manual, as ``man`` shows it."""
_MANUAL_HEAD = re.compile(r"(?m)^\.(?:TH|SH|Dd)\b")
_FONT = re.compile(r"\\f(?:\[\w*\]|\w)|\\[&%:]|\\(?=[-_.])")
"""Marks in such a page that are no text."""


def loose_documents(
    remover: DependentRemover, gone: Collection[Symbol], wanted: Sequence[Symbol], names: GoneCode, changed: Changed
) -> Iterator[Leftover]:
    """What documents would say: ``gone`` is all removed code, ``wanted`` that of the feature, and ``changed`` are the
    documents that lose something."""
    yield from _in_manifests(remover, names, changed)
    yield from _in_other_words(remover, wanted, changed)
    yield from _called_in_documents(remover, wanted, changed)
    yield from _called_of_objects(remover, wanted, changed)
    yield from _others_lost(remover, changed)
    names = as_documents_mean(remover, gone, names)
    yield from _in_manual_pages(remover, names)
    words, others = words_of(names), remover.codebase.others
    is_told = False
    for path in _documents(remover):
        data = others.read(path)
        if not words.search(data):
            continue
        before, after = (utf8_text(each or b"") or "" for each in changed.get(path, (data, data)))
        call = next((line.strip() for line in before.split("\n") if names.commands.calls(line)), "")
        if names.commands.is_project and call and not is_told:
            is_told = True
            yield Leftover(path, f"documents are about the program that would be gone: {call}", "")
        for line, mention in mentions_left(after, names):
            named = set(re.findall(r"\w+", mention))
            yield from _leftovers(path, f"the document names it: {line}", wanted, named)
        if path in changed and after:
            told = set(re.findall(r"\w+", before))
            is_page = not PurePosixPath(path).stem.upper().startswith("README")
            if is_page and _says_something(before) and not _says_something(after):
                yield Leftover(path, "the document would have nothing but its title", "")
            for line in loose_ends(before, after, names):
                yield from _leftovers(path, f"the document would say: {line}", wanted, told)


def _in_manual_pages(remover: DependentRemover, names: GoneCode) -> Iterator[Leftover]:
    """Pages for ``man`` that name what is gone: these are not edited, as they are made from other documents."""
    others, words = remover.codebase.others, words_of(names)
    for path in sorted(filter(_MANUAL.fullmatch, others.paths - remover.other_files.keys())):
        text = utf8_text(others.read(path)) or ""
        shown = _FONT.sub("", text) if _MANUAL_HEAD.search(text) else ""
        if words.search(shown.encode()):
            for line, _ in mentions_left(shown, names):
                yield Leftover(path, f"the manual page names it: {line}", "")


def _says_something(text: str) -> bool:
    return any(says_something(section.lines) for section in sections_now(text))


def _documents(remover: DependentRemover) -> list[str]:
    """The paths of the documents that are no tests."""
    left = remover.codebase.others.paths - remover.codebase.suite.collected - remover.other_files.keys()
    return sorted(filter(is_document, left))


def _documents_left(remover: DependentRemover, changed: Changed) -> Iterator[tuple[str, str]]:
    """The path and the text of each document after the removal."""
    for path in _documents(remover):
        data = changed[path][1] if path in changed else remover.codebase.others.read(path)
        yield path, utf8_text(data or b"") or ""


def _in_manifests(remover: DependentRemover, names: GoneCode, changed: Changed) -> Iterator[Leftover]:
    """Manifests that name what is gone in other places than entry points, as hooks of tools."""
    dotted = any_of(name for name in names.dotted if "." in name)
    pattern = re.compile(rf"(?<![\w.])(?:{dotted})(?!\w)".encode())
    for path, data in sorted(remover.codebase.manifests.items()):
        found = pattern.search(changed.get(path, (data, data))[1] or b"")
        if found is not None and not remover.codebase.is_test(path):
            yield Leftover(path, f"it names {found[0].decode(errors='replace')}", "")


def _in_other_words(remover: DependentRemover, wanted: Sequence[Symbol], changed: Changed) -> Iterator[Leftover]:
    """Documents with a word of a removed name that no code has any more: “Greek” for ``_parse_date_greek``."""
    codebase = remover.codebase
    paths = (path for path in codebase.modules if not (codebase.is_test(path) or codebase.is_vendored(path)))
    code = b"\n".join(source_left(codebase, remover.plans, path) for path in paths).lower()
    names: dict[str, Symbol] = {}
    names_apart: dict[str, Symbol] = {}
    """Names of several words, with blanks between these."""
    for symbol in wanted:
        name = without_numbers(symbol.qualname).rpartition(".")[2] or PurePosixPath(symbol.path).stem
        apart = words_of_name(name)
        if len(apart) > 1 and apart[0] not in _OPENING and min(map(len, apart)) >= MIN_SPOKEN:
            names_apart[" ".join(apart)] = symbol
        names.update({word.lower(): symbol for word in _NAME_PART.findall(name)})
    rare = {word: symbol for word, symbol in names.items() if word.encode() not in code}
    word = re.compile(rf"\b(?:{any_of(rare)})\b", re.IGNORECASE)
    for path, text in _documents_left(remover, changed) if rare else ():
        for section in sections_now(text) if word.search(text) else ():
            if found := word.search("\n".join((*section.heading, *section.lines))):
                yield Leftover(path, f"a word of its name is left: {found[0]}", rare[found[0].lower()].symbol_id)
    yield from _spoken(remover, names_apart, code, changed)


def _spoken(
    remover: DependentRemover, names: Mapping[str, Symbol], code: bytes, changed: Changed
) -> Iterator[Leftover]:
    """Documents, and docstrings of modules, with the words of a removed name one after the other, which no name has any
    more: “moon phase” for ``moon_phase``."""
    gone = {name: each for name, each in names.items() if not _is_in_names(name, code)}
    if not gone:
        return
    forms = {name: re.compile(rf"\b{name.replace(' ', '[ -]')}s?\b", re.IGNORECASE) for name in gone}
    told = [(path, each.lines) for path, text in _documents_left(remover, changed) for each in sections_now(text)]
    told += [(path, [text]) for path, text in _docstrings_left(remover)]
    for path, lines in told:
        for name, form in forms.items():
            if found := form.search("\n".join(lines)):
                yield Leftover(path, f"the words of its name are left: {found[0]}", gone[name].symbol_id)


def _docstrings_left(remover: DependentRemover) -> Iterator[tuple[str, str]]:
    """The path and the docstring of each module of the sources that stays."""
    codebase = remover.codebase
    for path, module in codebase.modules.items():
        plan = remover.plans.get(path)
        is_other = codebase.is_test(path) or codebase.is_vendored(path) or (plan is not None and plan.deleted)
        if module.symbols and not is_other and (text := module.symbols[0].docstring):
            yield path, text


def _is_in_names(name: str, code: bytes) -> bool:
    """Whether a name in lower-case ``code`` has the words ``name`` one after the other."""
    return any(mark.join(name.split()).encode() in code for mark in ("_", ""))


def _called_in_documents(remover: DependentRemover, wanted: Sequence[Symbol], changed: Changed) -> Iterator[Leftover]:
    """Calls of a removed function of a module in documents, which no other code at module level has the name of.

    In examples and in backticks they are meant: ``findall(…)``, where only a method of the name stays.
    """
    names = {each.qualname: each for each in wanted if each.qualname.isidentifier() and len(each.qualname) > MIN_CALLED}
    gone = {name: each for name, each in names.items() if not (hasattr(builtins, name) or _is_bound(remover, name))}
    call = re.compile(rf"(?<![\w.$>@-])(?:{any_of(gone)})(?=\()")
    quoted = re.compile(rf"`(?:{any_of(gone)})(?=\([^`]*`)")
    own = remover.codebase.names.tops
    for path, text in _documents_left(remover, changed) if gone else ():
        for section in sections_now(text) if call.search(text) else ():
            for chunk in chunks_of(section.lines):
                lines, is_code = section.lines[chunk.start : chunk.end], chunk.kind is ChunkKind.CODE
                if is_code and chunk.language.lower() not in _OF_PYTHON:
                    continue
                for found in (call if is_code else quoted).finditer("\n".join(lines)):
                    name = found[0].lstrip("`")
                    if not (is_code and _is_own(name, lines, own)):
                        line = found.string[found.string.rfind("\n", 0, found.start()) + 1 :].partition("\n")[0].strip()
                        yield Leftover(path, f"the document calls it: {line[:MAX_TEXT]}", gone[name].symbol_id)


def _called_of_objects(remover: DependentRemover, wanted: Sequence[Symbol], changed: Changed) -> Iterator[Leftover]:
    """Uses of removed methods in documents, of objects that examples make: ``e = Encoder()``, ``e.encode(…)``."""
    by_class: dict[str, dict[str, Symbol]] = {}
    for symbol in (each for each in wanted if each.kind is SymbolKind.METHOD):
        owner, _, name = without_numbers(symbol.qualname).rpartition(".")
        by_class.setdefault(owner.rpartition(".")[2], {})[name] = symbol
    named = re.compile(rf"=\s*(?:[\w.]+\.)?(?:{any_of(by_class)})\(")
    for path, text in _documents_left(remover, changed) if by_class else ():
        objects: dict[str, str] = {}
        for section in sections_now(text) if named.search(text) else ():
            for line in section.lines:
                for name, used in re.findall(r"(?<![\w.])(\w+)\.(\w+)", line):
                    found = by_class.get(objects.get(name, ""), {}).get(used)
                    if found is not None:
                        what = f"the document uses it of an object: {line.strip()[:MAX_TEXT]}"
                        yield Leftover(path, what, found.symbol_id)
                objects.update(_MADE.findall(line))


def _others_lost(remover: DependentRemover, changed: Changed) -> Iterator[Leftover]:
    """Documents that lose the only call of a public function or method that stays."""
    calls = {
        path: [set(_CALL.findall(utf8_text(data or b"") or "")) for data in pair] for path, pair in changed.items()
    }
    lost = {name: path for path, (before, after) in calls.items() if is_document(path) for name in before - after}
    if not lost:
        return
    symbols = remover.codebase.symbols().values()
    public = (s for s in symbols if s.is_callable and s.is_public and without_numbers(s.name) in lost)
    left = {
        without_numbers(s.name)
        for s in public
        if not remover.codebase.is_test(s.path) and not remover.is_removed(s.path, s.start, s.end)
    }
    told = (
        {name for _, text in _documents_left(remover, changed) for name in re.findall(r"\w+", text)} if left else set()
    )
    for name in sorted(left - told):
        yield Leftover(lost[name], f"no document would call {name} any more, which stays", "")


def _is_bound(remover: DependentRemover, name: str) -> bool:
    """Whether a module that stays, no test, has a name."""
    for path, module in remover.codebase.modules.items():
        plan = remover.plans.get(path)
        if remover.codebase.is_test(path) or name.encode() not in module.source or (plan is not None and plan.deleted):
            continue
        spans = [(s.start, s.end) for s in module.symbols if s.qualname == name]
        spans += [(b.start, b.end) for b in module.bindings if b.name == name and not b.klass]
        imports = (r for r in module.imports if r.bound == name and not (plan is not None and plan.drops(r)))
        if any(True for _ in imports) or not all(remover.is_removed(path, *span) for span in spans):
            return True
    return False


def _is_own(name: str, lines: Sequence[str], packages: Collection[str]) -> bool:
    """Whether an example itself says what a name is: a definition, an assignment, or an import from elsewhere."""
    own = re.compile(rf"^\W*(?:def|class)\s+{name}\b|^\W*{name}\s*=[^=]")
    taken = re.compile(rf"^\W*from\s+(\w+)[\w.]*\s+import\b.*\b{name}\b")
    elsewhere = (found[1] for found in map(taken.search, lines) if found)
    return any(map(own.search, lines)) or any(each not in packages for each in elsewhere)


def _leftovers(path: str, text: str, wanted: Sequence[Symbol], words: Collection[str]) -> Iterator[Leftover]:
    """What is left, for each of the symbols with one of the words as its name; for none if there is no such symbol."""
    named = [each for each in wanted if without_numbers(each.qualname).rpartition(".")[2] in words]
    for symbol_id in [symbol.symbol_id for symbol in named] or [""]:
        yield Leftover(path, text, symbol_id)
