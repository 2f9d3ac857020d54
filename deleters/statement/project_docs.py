"""Quotes from a project's documentation: paragraphs of prose that name given code, without code and examples."""

from __future__ import annotations

import ast
import builtins
import keyword
import posixpath
import re
import textwrap
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from excise.deleters.documents.headings import code_of_heading
from excise.deleters.statement.spelling import unnumbered
from excise.protocols import Codebase
from excise.types import Symbol

MAX_PARAGRAPHS, MAX_CHARS = 3, 1200
"""Number of quoted paragraphs of a task, and of their characters, up to which one may name what others name, too."""
MOST_PARAGRAPHS, MOST_CHARS = 12, 4000
"""The same of those that name something new."""
MIN_WORDS = 5
"""Minimum number of words of a paragraph; text with fewer is a heading, a list of names or code."""
MIN_CODE_LINE = 12
"""Minimum length of a line of deleted code that no paragraph may contain; shorter lines also occur in prose."""
MAX_FILE = 1 << 20
"""Maximum size of a document in bytes."""
_FOLDERS = frozenset(
    {"doc", "docs", "documentation", "docstrings", "docsrc", "guide", "guides", "manual", "site", "website"}
)
"""Names of folders of documents, at the top or in a package: links at the top may lead there."""
_OF_TESTS = frozenset({"test", "tests", "testing"})
_MARKUP = (".md", ".markdown", ".rst", ".adoc", ".asciidoc")
_SUFFIXES = (*_MARKUP, ".txt")
_HISTORY = re.compile(
    r"chang|histor|news|release|^versions?\b|what_?s_?new|migrat|upgrad|licen[cs]e|authors|contribut|roadmap",
    re.IGNORECASE,
)
"""Names of files about versions and people, whose statements about code may be outdated."""
_PROSE = frozenset(
    (
        "admonition", "attention", "caution", "danger", "deprecated", "hint", "important", "note", "seealso", "tip",
        "versionadded", "versionchanged", "warning",
    )
)  # fmt: skip
"""Directives of reStructuredText with prose; others are not read."""
_DIRECTIVE = re.compile(r"\.\.\s+([\w-]+)::\s*(.*)")
_ITEM = re.compile(r"^\s*(?:[-*+•]|(?:\d+|#)[.)])\s+")
_RULE = re.compile(r"[^\w\s]{3,}(?:\s+[^\w\s]{3,})*")
_EXAMPLE = re.compile(r"(?:>>>|\.\.\.(?:\s|$)|In \[|\$ |% )")
_CODE = re.compile(r"`[^`]+`|[\w.]+\([^()]*\)")
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_ANNOUNCING = re.compile(
    r"\b(?:for (?:example|instance)|examples?|e\.g\.|follow(?:s|ing)|like (?:this|so)|below)\b", re.IGNORECASE
)
"""What a sentence has that leads to the code below it."""
_TITLE = re.compile(r"^`[^`]*`: ")
"""A heading that is code, before a paragraph."""
_NAMED = re.compile(
    r"(?P<role>:(?:\w+:)+)?`(?:[^`<]*<)?[@~!.]?(?P<quoted>[A-Za-z_][\w.]*)(?P<call>\()?(?:[`>]|(?<=\())"
    r"|(?<![\w.`~])(?P<called>[A-Za-z_][\w.]*)\("
)
"""A name that is marked as code: by a role, in backticks, or as a call."""
MAX_BEFORE = 40
"""Number of characters before a name that tell whether it is one of an option."""
_OPTION = r"(?:options?|parameters?|arguments?|flags?|settings?)"
_BEFORE_OPTION = re.compile(rf"[`>]*\s+{_OPTION}\b", re.IGNORECASE)
"""What follows a name that is one of an option."""
_AFTER_OPTION = re.compile(rf"\b{_OPTION}\s+`*$", re.IGNORECASE)
"""What stands before such a name."""
_OBJECT_TITLE = re.compile(r"`(?:[A-Za-z_$][\w$]*)?\.([A-Za-z_$][\w$]*)\([^`]*`: ")
"""A heading that is a call, before a paragraph, with what stands after the dot: what stands before it, if anything, is
what the document calls the package, or what it exports."""
MAX_BELOW = 2
"""Number of paragraphs below such a heading that it stands for."""
_MEMBER = re.compile(r"\b(?:methods?|propert(?:y|ies)|attributes?)\b")


def read_documents(root: Path, paths: Iterable[str]) -> dict[str, str]:
    """Path to text of the documents of a repository: README files first, then the text files in ``docs``."""
    chosen = sorted((path for path in paths if is_document(path)), key=lambda path: ("/" in path, path))
    found = {}
    for path in chosen:
        file = root / path
        if file.is_file() and not file.is_symlink() and file.stat().st_size <= MAX_FILE:
            found[path] = file.read_bytes().decode("utf-8-sig", errors="replace")
    return found


def is_document(path: str) -> bool:
    """Whether a file is a README or another manual at the top, or a text below a folder of documents, and not about
    versions or people."""
    *folders, name = path.split("/")
    if any(_HISTORY.search(part) for part in (*folders, name)):
        return False
    if not folders:
        is_readme = name.lower().startswith("readme")
        return Path(name).suffix.lower() in ({"", *_SUFFIXES} if is_readme else _MARKUP)
    parts = {folder.lower() for folder in folders}
    return not parts.isdisjoint(_FOLDERS) and parts.isdisjoint(_OF_TESTS) and name.lower().endswith(_SUFFIXES)


@dataclass(frozen=True, slots=True)
class Quote:
    """A paragraph that names removed code."""

    path: str
    """Path of the document."""
    text: str
    """The paragraph on one line, with its markup."""
    names: frozenset[str]
    """Ids of the symbols that the paragraph names."""


def quotes(
    documents: Mapping[str, str], codebase: Codebase, symbols: Sequence[Symbol], deleted: Iterable[str]
) -> list[Quote]:
    """At most :data:`MOST_PARAGRAPHS` paragraphs about ``symbols``, in the order of the documents.

    ``deleted`` are the deleted source texts, none of whose lines a paragraph may contain. Paragraphs that name symbols
    which no chosen paragraph names are preferred, of these such whose heading names one. Equal arguments give equal
    results.
    """
    names = _NameMatcher(codebase, symbols)
    code = _code_lines(deleted, symbols)
    known = [one_line(symbol.docstring) for symbol in symbols if symbol.docstring]
    found: dict[str, Quote] = {}
    titled: set[str] = set()
    for path, text in documents.items():
        for paragraph in paragraphs(text) if any(word in text for word in names.words) else ():
            named = names.in_text(paragraph)
            bare = _TITLE.sub("", paragraph)
            is_known = any(bare in docstring for docstring in known)
            if named and not is_known and not any(line in paragraph for line in code):
                found.setdefault(paragraph, Quote(path, paragraph, named))
                title = _TITLE.match(paragraph)
                titled.update({paragraph} if title is not None and names.in_text(title[0]) else ())
    return _chosen(list(found.values()), titled)


def is_quoted(quote: Quote, gone: str) -> bool:
    """Whether text that is gone from a document has a quote of it, or the quote has a paragraph of that text."""
    parts = [one_line(part) for part in gone.split("\n\n")]
    return quote.text in one_line(gone) or any(part and part in quote.text for part in parts)


def _chosen(found: list[Quote], first: Collection[str]) -> list[Quote]:
    """Those to show, in order; the texts ``first`` are preferred."""
    chosen: list[Quote] = []
    ranked = sorted(found, key=lambda quote: quote.text not in first)
    for new_ones_only, most, chars in ((True, MOST_PARAGRAPHS, MOST_CHARS), (False, MAX_PARAGRAPHS, MAX_CHARS)):
        for quote in ranked:
            chars_left = chars - sum(len(other.text) for other in chosen)
            named = frozenset[str]().union(*(other.names for other in chosen))
            fits = len(chosen) < most and len(quote.text) <= chars_left and quote not in chosen
            if fits and (quote.names - named or not new_ones_only):
                chosen.append(quote)
    return sorted(chosen, key=found.index)


def rendered(chosen: Sequence[Quote]) -> str:
    """The quotes as Markdown."""
    lines: list[str] = []
    for number, quote in enumerate(chosen):
        if not number or chosen[number - 1].path != quote.path:
            lines.append(f"From `{quote.path}`:")
        wrapped = textwrap.fill(quote.text, 110, break_long_words=False, break_on_hyphens=False)
        lines.append(textwrap.indent(wrapped, "> "))
    return "\n\n".join(lines)


def one_line(text: str) -> str:
    """A text on one line."""
    return " ".join(text.split())


def _code_lines(deleted: Iterable[str], symbols: Sequence[Symbol]) -> set[str]:
    prose = {one_line(line) for symbol in symbols for line in symbol.docstring.splitlines()}
    lines = {one_line(line) for text in deleted for line in text.splitlines()}
    return {line for line in lines - prose if len(line) >= MIN_CODE_LINE}


# ------------------------------------------------------------------------------------------ names
class _NameMatcher:
    """Finds the symbols that a text names as code."""

    def __init__(self, codebase: Codebase, symbols: Sequence[Symbol]) -> None:
        bare = Counter(
            _plain(symbol).rpartition(".")[2]
            for symbol in codebase.symbols().values()
            if symbol.qualname and "#" not in symbol.qualname and not codebase.is_test(symbol.path)
        )
        taken = {*dir(builtins), *keyword.kwlist, *keyword.softkwlist}
        self.unique = {name for name, number in bare.items() if number == 1}
        self.alone = self.unique - taken
        self.symbols = [s for s in symbols if not s.name.startswith("__")]
        self.words = {_dotted(s)[-1] for s in self.symbols}

    def in_text(self, text: str) -> frozenset[str]:
        """Ids of the symbols that the text names in roles, in backticks, or as calls."""
        members = _MEMBER.search(text) is not None
        found = [match for match in _NAMED.finditer(text) if not _is_option(match)]
        spelled = {
            ((match["quoted"] or match["called"]).strip("."), bool(members or match["role"] or not match["quoted"]))
            for match in found
        } | {(match["quoted"].strip("."), True) for match in found if match["call"]}
        title = _OBJECT_TITLE.match(text)
        titled = title[1] if title and title[1] in self.unique else None  # no built-in function stands behind a dot
        return frozenset(
            s.symbol_id
            for s in self.symbols
            if _dotted(s)[-1] == titled or any(self._is(s, name, certain) for name, certain in spelled)
        )

    def _is(self, symbol: Symbol, spelled: str, certain: bool) -> bool:
        """Whether ``spelled`` names the symbol, as ``halve`` (if unique), ``core.halve``, ``Box.open`` or ``box.open``
        do.

        The bare name of a member may be a parameter's: it counts only if it is ``certain``, that is, in a role, as a
        call, or in a text about methods or attributes.
        """
        parts, own = spelled.split("."), _plain(symbol).split(".") if symbol.qualname else []
        place = _dotted(symbol)[: len(_dotted(symbol)) - len(own)]
        given = parts[:-1]
        if not own:
            return len(parts) > 1 and parts == place[-len(parts) :]
        if parts[-1] != own[-1]:
            return False
        if not given:
            return own[-1] in self.alone and (certain or len(own) == 1)
        if len(own) == 1:
            return set(given) <= set(place)
        return given[-1].lower() == own[-2].lower() if len(given) == 1 else given[-(len(own) - 1) :] == own[:-1]


def _is_option(match: re.Match[str]) -> bool:
    """Whether a name in backticks is called one of an option or a parameter, and not of code."""
    if not match["quoted"] or match["role"] or match["call"]:
        return False
    before = match.string[max(0, match.start() - MAX_BEFORE) : match.start()]
    return _BEFORE_OPTION.match(match.string, match.end()) is not None or _AFTER_OPTION.search(before) is not None


def _plain(symbol: Symbol) -> str:
    return unnumbered(symbol.qualname)


def _dotted(symbol: Symbol) -> list[str]:
    """Names of folders, file and symbol, the outermost first."""
    parts = posixpath.splitext(symbol.path)[0].removesuffix("/__init__").split("/")
    return [*parts, *(_plain(symbol).split(".") if symbol.qualname else [])]


# ------------------------------------------------------------------------------------- paragraphs
@lru_cache(maxsize=4096)
def paragraphs(text: str) -> tuple[str, ...]:
    """Paragraphs and list items that are prose, each on one line.

    Markdown and reStructuredText are read by the same rules, as many files are a mixture. Fenced, indented and literal
    blocks, directives, tables, headings and interactive examples are left out. A heading of Markdown that is nothing
    but a name or a call (``### `split(text)` ``) is what the first paragraphs below are about: it stands before them.
    """
    found: list[str] = []
    below: Counter[str] = Counter()
    for title, block in _blocks(text):
        first = _ITEM.sub("", block[0], count=1)
        flat = _without_announcement(one_line(" ".join([first, *block[1:]])))
        words = re.findall(r"[A-Za-z]{2,}", _CODE.sub(" ", _TAG.sub("", flat)))
        is_fragment = first == block[0] and flat[:1].islower()  # the rest of a sentence whose beginning is code
        code = ">>>" in flat or any(is_code(line.strip()) for line in block)
        if len(words) >= MIN_WORDS and not is_fragment and not code:
            below[title] += 1
            found.append(f"`{title}`: {flat}" if title and below[title] <= MAX_BELOW else flat)
    return tuple(found)


def _without_announcement(text: str) -> str:
    """A paragraph without the last sentence, if that only says that an example follows, and without its colon."""
    bare = text.removesuffix("::").removesuffix(":")
    if bare == text and not text.endswith(","):
        return text
    *others, last = re.split(r"(?<=[.!?]) ", bare)
    return " ".join(others) if others and _ANNOUNCING.search(last) else bare


def _blocks(text: str) -> Iterator[tuple[str, list[str]]]:
    """Groups of adjacent lines, without titles, tables and lines of markup; with the code that the title above is."""
    block: list[str] = []
    title = ""
    for line in [*_outside_of_code(text), ""]:
        bare = line.strip()
        rule = _RULE.fullmatch(bare) is not None
        item = _ITEM.match(line) is not None and not rule
        if item and (heading := _ITEM.sub("", line, count=1).strip()).startswith("##"):
            bare, item = heading, False
        markup = bare.startswith(("#", "<", "|")) and (not block or bare.startswith("# ") or "##" in bare)
        if bare and not markup and not rule and not item:
            block.append(line)
            continue
        if block and not rule:  # text above a rule is a title
            yield title, block
        if bare.startswith("#"):
            title = code_of_heading(bare)
        block = [line] if item else []


def _outside_of_code(text: str) -> Iterator[str]:
    """The lines of a text, with a blank line in place of each line of code."""
    fence = ""
    owner: int | None = None  # indentation of the line to which the current literal block or directive belongs
    margin = 0  # indentation of text
    after_blank = True
    for line in text.expandtabs().splitlines():
        bare = line.strip()
        indent = len(line) - len(line.lstrip())
        directive = _DIRECTIVE.match(bare)
        shown = ""
        if fence:
            fence = "" if bare.startswith(fence) else fence
        elif bare.startswith(("```", "~~~")):
            fence = bare[:3]
        elif bare and (owner is None or indent <= owner):
            margin, owner = min(margin, indent), None
            if directive and directive[1] in _PROSE:
                margin = indent + 4
                yield ""
                shown = directive[2]
            elif bare == ".." or bare.startswith(".. "):
                owner = indent
            elif after_blank and indent >= margin + 4:
                owner = indent - 1
            else:
                owner = indent if bare.endswith("::") else None
                shown = line
        after_blank = not shown
        yield shown


def is_code(line: str) -> bool:
    """Whether a line of text is code, or the output of an example."""
    if _EXAMPLE.match(line) or re.search(r"\S {3,}\S", line):
        return True
    if not re.search(r"[(=\[]|\bimport\b", line):
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for ending in ("", " pass"):
            try:
                ast.parse(line + ending)
            except (SyntaxError, ValueError, MemoryError, RecursionError):
                continue
            return True
    return False
