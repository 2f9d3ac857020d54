"""The words of a codebase's code before and after a planned deletion, without comments.

A word counts wherever it stands, also in a string: names may be looked up by their texts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from weakref import WeakKeyDictionary

from excise.deleters.edits.byte_edits import Edit, apply_edits, merged
from excise.deleters.python.edits.file_plan import FilePlan
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.analysis.grammar import comments, parse_tree
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

    def removed(self, *, of_tests: bool) -> frozenset[str]:
        """The words of the removed code of the sources, or of the tests."""
        chosen = (words for path, words in self._counts.items() if self._codebase.is_test(path) is of_tests)
        return frozenset().union(*(words.removed for words in chosen))

    def removed_in(self, path: str) -> frozenset[str]:
        """The words of the removed code of one file."""
        return self._counts[path].removed if path in self._counts else frozenset()

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
