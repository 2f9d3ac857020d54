"""Titles that are computed: they stay in observing forms, so they must say nothing but what is given to the code."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from tree_sitter import Node

from excise.extractors.divided_tests import Undividable
from excise.extractors.javascript.analysis.bindings import Binding, parameters_of
from excise.extractors.javascript.analysis.grammar import children, descendants, string_value, text, unwrapped
from excise.extractors.javascript.execution.expected_places import ExpectedPlaces

_NEUTRAL = frozenset({
    "a", "an", "and", "as", "at", "by", "called", "calls", "case", "example", "fixture", "for", "from", "given",
    "handles", "in", "input", "number", "of", "on", "or", "row", "should", "test", "tests", "that", "the", "to",
    "using", "value", "when", "with", "works",
    "errors", "fails", "raises", "refuses", "rejects", "throw", "throws",
})  # fmt: skip
"""Words that say nothing of what is expected, or no more than that something is thrown, which every form says."""
_SHOWN = re.compile(r"%[a-zA-Z#$%]|\$[\w.#]+")
_NAMED = re.compile(r"\$([A-Za-z_]\w*)")
_WORDS = re.compile(r"[^\W_]+")
_TEXTS = frozenset({"string", "string_fragment", "number", "regex", "true", "false", "null"})


class ComputedTitles:
    """Judges the computed titles of one file; ``depending``: names of the code under test."""

    def __init__(self, places: ExpectedPlaces, depending: Collection[str]) -> None:
        self.places, self.bindings, self.source = places, places.bindings, places.source
        self.depending = {word.lower() for name in depending for word in _WORDS.findall(name)}

    def require_silent(self, title: Node, function: Node | None) -> None:
        """Raise :class:`Undividable` if a title may tell what is expected; ``function`` is that of its block."""
        literal = string_value(title, self.source)
        words = [_SHOWN.sub(" ", literal)] if literal is not None else list(self._literals(title))
        if literal is not None and function is not None:
            words += self._columns(literal, function)
        for use, binding in self.bindings.uses_in(title):
            path = self.places.values.place_of(use)
            if not any(self._is_input(each, path, title) for each in binding.uses):
                words += self._texts(self.places.cells_of(use, binding))
        named = self._named(function) if function is not None else set()
        silent = _NEUTRAL | self.depending | named
        if not all(word.lower() in silent for each in words for word in _WORDS.findall(each)):
            raise Undividable("title that tells what is expected")

    def _literals(self, title: Node) -> Iterator[str]:
        """The literals of a title, but for those that name members."""
        for node in descendants(title):
            around = node.parent
            if node.type in _TEXTS and (around is None or around.type != "subscript_expression"):
                yield text(node, self.source)

    def _columns(self, literal: str, function: Node) -> Iterator[str]:
        """The texts of the columns of a table that a title shows, but for those that the code gets."""
        found = self.places.values.rows_given_to(function)
        shown = sum(part != "%%" for part in _SHOWN.findall(literal))
        names = {found.partition(".")[0] for found in _NAMED.findall(literal)}
        for row in children(unwrapped(found[0])) if found is not None else ():
            cells = children(unwrapped(row)) if unwrapped(row).type in {"array", "object"} else [row]
            for number, cell in enumerate(cells):
                key = cell.child_by_field_name("key")
                name = text(key, self.source) if key is not None else ""
                is_shown = name in names if name else number < shown
                if is_shown and not self._gets(function, name or number):
                    yield from self._texts([cell.child_by_field_name("value") or cell])

    def _gets(self, function: Node, column: str | int) -> bool:
        """Whether a test gives a column of its table to the code."""
        for use, binding in self.bindings.uses_in(function):
            if binding.kind == "parameter" and binding.owner == function and self.places.is_given(use):
                path = binding.source.path if binding.source is not None else ()
                if column in {binding.number if isinstance(column, int) else "", *path[:1]}:
                    return True
                if self.places.values.place_of(use)[:1] == (column,):
                    return True
        return len(parameters_of(function)) == 1 and self._gets_whole(function)

    def _gets_whole(self, function: Node) -> bool:
        uses: list[tuple[Node, Binding]] = list(self.bindings.uses_in(function))
        return any(
            binding.owner == function and not self.places.values.place_of(use) and self.places.is_given(use)
            for use, binding in uses
            if binding.source is None or not binding.source.path
        )

    def _texts(self, cells: Collection[Node]) -> Iterator[str]:
        for cell in cells:
            yield from (text(node, self.source) for node in descendants(cell) if node.type in _TEXTS)

    def _is_input(self, use: Node, path: tuple[str | int, ...], title: Node) -> bool:
        """Whether a use outside the title gives the same value to the code."""
        is_outside = not title.start_byte <= use.start_byte < title.end_byte
        return is_outside and self.places.values.place_of(use) == path and self.places.is_given(use)

    def _named(self, function: Node) -> set[str]:
        """The words in the names of the variables of a test."""
        names = {text(node, self.source) for node in descendants(function) if node.type == "identifier"}
        return {word.lower() for name in names for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}
