"""The words of a codebase's code before and after a planned deletion, without comments.

A word counts wherever it stands, also in a string: names may be looked up by their texts. Of removed tests, only uses
count: what was not used before stays, whatever a docstring that is gone says.
"""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from weakref import WeakKeyDictionary

from excise.deleters.edits.byte_edits import Edit, apply_edits, merged
from excise.deleters.python.edits.file_plan import FilePlan
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.analysis.grammar import comments, of_types, parse_tree
from excise.types import Symbol

_WORD = re.compile(r"[^\W\d]\w*")


class WordCounts:
    """The words of a file before and after edits; ``None`` deletes the file."""

    def __init__(self, source: bytes, edits: Sequence[Edit] | None) -> None:
        self._source = source
        self._edits = merged(edits or ())
        self._is_deleted = edits is None

    @cached_property
    def removed(self) -> frozenset[str]:
        """The words of the removed code."""
        gone = self._source if self._is_deleted else b"\n".join(self._source[e.start : e.end] for e in self._edits)
        return frozenset(words_in(gone))

    def removed_uses(self, start: int = 0, end: int | None = None) -> frozenset[str]:
        """The words of the removed code between two places that may be uses of names."""
        return _used_in(self._source, self._spans(start, end), in_code=True)

    def removed_uses_by_text(self) -> frozenset[str]:
        """The words of the removed strings that may be uses of names."""
        return _used_in(self._source, self._spans(0, None), in_code=False)

    def is_removed(self, place: int) -> bool:
        """Whether a byte of the file is removed or replaced."""
        return any(start <= place < end for start, end in self._spans(0, None))

    def _spans(self, start: int, end: int | None) -> tuple[tuple[int, int], ...]:
        """The removed bytes between two places."""
        end = len(self._source) if end is None else end
        gone = ((0, len(self._source)),) if self._is_deleted else ((edit.start, edit.end) for edit in self._edits)
        return tuple((max(a, start), min(b, end)) for a, b in gone if a < end and b > start)

    @cached_property
    def after(self) -> bytes:
        """The file after the edits."""
        return b"" if self._is_deleted else apply_edits(self._source, self._edits)

    @cached_property
    def kept(self) -> Mapping[str, int]:
        """How often each word stands in the code that stays."""
        return count_words(self.after)


def words_of(plan: FilePlan) -> WordCounts:
    """The words of a file before and after what is planned at the moment."""
    return _words_of(plan.source, None if plan.deleted else plan.edits())


def source_left(codebase: PythonCodebase, plans: Mapping[str, FilePlan], path: str) -> bytes:
    """What is planned at the moment leaves of a file: nothing of one that is deleted."""
    plan = plans.get(path)
    return codebase.modules[path].source if plan is None else words_of(plan).after


def text_left(codebase: PythonCodebase, plans: Mapping[str, FilePlan], symbol: Symbol) -> bytes:
    """The text of a definition that stays, without what is planned to be removed from it."""
    source, plan = codebase.modules[symbol.path].source, plans.get(symbol.path)
    edits = plan.edits() if plan is not None and plan.is_changed else ()
    inside = (
        Edit(edit.start - symbol.start, edit.end - symbol.start, edit.replacement)
        for edit in edits
        if symbol.start <= edit.start and edit.end <= symbol.end
    )
    return apply_edits(source[symbol.start : symbol.end], inside)


@lru_cache(maxsize=256)
def _words_of(source: bytes, edits: tuple[Edit, ...] | None) -> WordCounts:
    return WordCounts(source, edits)


class RemainingWords:
    """The words of all files, some of which have planned edits: those at the time when this was made."""

    def __init__(self, codebase: PythonCodebase, plans: Mapping[str, FilePlan]) -> None:
        self._codebase = codebase
        self._counts = {path: words_of(plan) for path, plan in plans.items() if plan.is_changed}
        self._paths = paths_of_words(codebase)

    def removed_from_sources(self) -> frozenset[str]:
        """The words of the removed code of the sources."""
        chosen = (words for path, words in self._counts.items() if not self._codebase.is_test(path))
        return frozenset().union(*(words.removed for words in chosen))

    def uses_in_removed_tests(self, without: str = "") -> frozenset[str]:
        """The words of the removed code of the tests, but for the file ``without``, that may be uses of names."""
        tests = (path for path in self._counts if self._codebase.is_test(path) and path != without)
        chosen = (self._counts[path] for path in tests)
        return frozenset().union(*(words.removed_uses() for words in chosen))

    def removed_uses(self, path: str, start: int = 0, end: int | None = None) -> frozenset[str]:
        """The words of the removed code between two places of a file that may be uses of names."""
        return self._counts[path].removed_uses(start, end) if path in self._counts else frozenset()

    def globals_of_removed(self, path: str) -> frozenset[str]:
        """The names of a file that its removed code uses, also by their texts; not the local ones of functions."""
        words = self._counts.get(path)
        if words is None:
            return frozenset()
        references = (ref for ref in self._codebase.modules[path].references if words.is_removed(ref.start))
        return words.removed_uses_by_text().union(ref.chain.partition(".")[0] for ref in references)

    def is_used(self, word: str, most: int = 1, *, without: str = "") -> bool:
        """Whether a word stands in the code that stays more often than ``most`` times, but for the file ``without``."""
        left = most
        for path in self._paths.get(word, ()):
            left -= self.count_in(word, path) if path != without else 0
            if left < 0:
                return True
        return False

    def count_in(self, word: str, path: str) -> int:
        """How often a word stands in the code of one file that stays."""
        if path in self._counts:
            return self._counts[path].kept.get(word, 0)
        return count_words(self._codebase.modules[path].source).get(word, 0)


_INDICES: WeakKeyDictionary[PythonCodebase, dict[str, list[str]]] = WeakKeyDictionary()


def paths_of_words(codebase: PythonCodebase) -> Mapping[str, list[str]]:
    """Word to the paths of the files that have it, comments included."""
    if codebase not in _INDICES:
        index: dict[str, list[str]] = {}
        for path, module in codebase.modules.items():
            for word in set(words_in(module.source)):
                index.setdefault(word, []).append(path)
        _INDICES[codebase] = index
    return _INDICES[codebase]


TYPE_COMMENT = re.compile(rb"#\s*type:\s*(?!ignore\b)(?![^#\n]*\w \w)([^#\n]+)")
"""A comment that says of which type something is."""


def words_in(text: bytes) -> list[str]:
    """The words of a text, in order."""
    return _WORD.findall(text.decode("utf-8", "replace"))


@lru_cache(maxsize=256)
def count_words(source: bytes) -> dict[str, int]:
    """How often each word stands in the code of a file."""
    counts: dict[str, int] = {}
    for word in words_in(_without_comments(source)):
        counts[word] = counts.get(word, 0) + 1
    return counts


def _without_comments(source: bytes) -> bytes:
    """A file without its comments, but for those that are types."""
    pieces: list[bytes] = []
    position = 0
    for comment in sorted(comments(parse_tree(source).root_node), key=lambda n: n.start_byte):
        if TYPE_COMMENT.match(source, comment.start_byte, comment.end_byte):
            continue
        pieces.append(source[position : comment.start_byte])
        position = comment.end_byte
    return b"".join([*pieces, source[position:]])


@lru_cache(maxsize=256)
def _used_in(source: bytes, spans: tuple[tuple[int, int], ...], *, in_code: bool) -> frozenset[str]:
    """The words in some parts of a file that may be uses of names: those of its strings that can be read as code, and
    of its code, if that is wanted."""
    code, strings = _uses_apart(source)
    texts = [text for start, text in strings if any(first <= start < end for first, end in spans)]
    return frozenset(words_in(b"\n".join([*texts, *(code[first:end] for first, end in spans if in_code)])))


@lru_cache(maxsize=64)
def _uses_apart(source: bytes) -> tuple[bytes, tuple[tuple[int, bytes], ...]]:
    """A file with blanks in place of its comments and of what its strings say, and the strings that can be read as
    code, with their places: of those that stand alone, as docstrings do, their examples."""
    root, code, strings = parse_tree(source).root_node, bytearray(source), []
    for node in (*comments(root), *of_types(root, "string_content")):
        if node.type == "comment" and TYPE_COMMENT.match(source, node.start_byte, node.end_byte):
            continue
        code[node.start_byte : node.end_byte] = b" " * (node.end_byte - node.start_byte)
        string = node.parent
        if node.type == "comment" or string is None:
            continue
        for inner in (each for each in string.children if each.type == "interpolation"):
            code[inner.start_byte : inner.end_byte] = source[inner.start_byte : inner.end_byte]
        around = string.parent
        while around is not None and around.type in {"concatenated_string", "parenthesized_expression"}:
            around = around.parent
        text = source[node.start_byte : node.end_byte]
        if around is not None and around.type == "expression_statement":
            strings.append((node.start_byte, b"\n".join(_EXAMPLE.findall(text))))
        elif _is_code(text):
            strings.append((node.start_byte, text))
    return bytes(code), tuple(strings)


_EXAMPLE = re.compile(rb"(?m)^[ \t]*(?:>>>|\.\.\.)(.*)$")


def _is_code(text: bytes) -> bool:
    """Whether a text can be read as code: a name, or what is evaluated."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(textwrap.dedent(text.decode(errors="replace")).strip())
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return True
