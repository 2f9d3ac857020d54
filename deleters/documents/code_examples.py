"""Examples in languages with braces lose the statements that use what is gone, and those that need what these gave.

No parser is needed: a statement ends where its brackets are closed, and blocks are looked into.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

LANGUAGES = frozenset(
    ("js", "javascript", "jsx", "mjs", "cjs", "ts", "typescript", "tsx", "go", "golang", "rust", "rs", "java")
)
"""What documents call these languages."""
_LOOKS_LIKE_CODE = re.compile(r"[;{]\s*(?://.*)?$|\w\s*:=\s|^\s*(?:const|let|var|use|import|fn|func)\s")
_NO_CODE = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`[^`\n]*`|//.*|/\*.*?\*/")
"""Strings and comments on one line."""
_COMMENT = re.compile(r"\s*(?://|/?\*)")
_RESULT = re.compile(
    r"\s*(?://|/?\*+)\s*(?:=>|->|→|>|[\[{(\"'`<]|-?\d|(?:true|false|null|undefined|nil|NaN|None|Some|Ok|Err)\b"
    r"|(?:[Oo]utput|[Pp]rints?|[Rr]eturns?|[Ll]ogs?|[Rr]esult|[Yy]ields?)\b)"
)
"""A comment below a statement that says what it gives."""
_CONTINUES = re.compile(r"(?:[=+*?:,|&<(\[]|=>|\breturn)\s*$")
"""The end of a line whose statement goes on with the next."""
_CHAINED = re.compile(r"\s*(?:\??\.\w|&&|\|\||\+\s|\?\s|:\s)")
"""The beginning of a line that goes on with the statement above."""
_BOUND = (
    re.compile(r"\b(?:const|let|var)\s+(?:mut\s+)?(\w+|[\[{(][^=]{1,200}[\]})])\s*(?::[^=]{1,100})?="),
    re.compile(r"^\s*((?:\w+\s*,\s*){0,5}\w+)\s*:="),
    re.compile(r"^\s*(?:final\s+)?[A-Z][\w.]*(?:<[^=;]{0,100}>)?(?:\[\])?\s+(\w+)\s*="),
    re.compile(r"^\s*import\s+(\w+)\s+from\b"),
)
"""What gives values to names."""
_OF_ERRORS = frozenset({"_", "err", "ok", "error", "e", "mut"})
"""Names that examples give to one value after the other."""
_CHECKS_ERROR = re.compile(r"\s*if (?:err|!ok)\b")
_IMPORTS = re.compile(
    r"\s*(?:import\b|use\s|package\s|extern crate|export\s+\{|(?:const|let|var)\s+[^=]{1,300}=\s*require\()"
)
_LIBRARIES = (
    "http",
    "fmt",
    "os",
    "log",
    "io",
    "time",
    "net",
    "sort",
    "json",
    "url",
    "errors",
    "strings",
    "bytes",
    "math",
)
"""Packages of Go's standard library that examples use: their functions are no members of other objects."""
_FOREIGN = "".join(rf"(?<!\b{each})" for each in _LIBRARIES)
_LIST = re.compile(r"\{([^{}]{1,400})\}")


class GoneUses(NamedTuple):
    """What code cannot use any more."""

    names: Collection[str]
    """Plain names of functions, types and values."""
    members: Collection[str]
    """Names that stand behind an object: ``x.name``."""
    owned: Collection[str]
    """Names behind those of their owners, ``Owner.name``, of which others may have the plain name."""

    def pattern(self, more: Collection[str] = ()) -> re.Pattern[str]:
        """What finds a use; also of ``more`` names, of variables."""
        owned = [re.escape(each).replace(r"\.", r"(?:\.|::)") for each in sorted(self.owned)]
        parts = [
            rf"(?<![\w$])(?:{'|'.join(map(re.escape, sorted(self.names)))})(?![\w$])" if self.names else "",
            rf"{_FOREIGN}(?:\.|::)(?:{'|'.join(map(re.escape, sorted(self.members)))})(?![\w$])"
            if self.members
            else "",
            rf"(?<![\w$])(?:{'|'.join(owned)})(?![\w$])" if owned else "",
            rf"(?<![\w$.])(?:{'|'.join(map(re.escape, sorted(more)))})(?![\w$])" if more else "",
        ]
        return re.compile("|".join(filter(None, parts)) or "(?!)")


class _Statement(NamedTuple):
    """``lines[start:end]`` with the comments that belong to it; its code begins at ``code``, and ends at ``stop``."""

    start: int
    code: int
    stop: int
    end: int


def looks_like_code(lines: Iterable[str]) -> bool:
    """Whether an example of unknown language may be in one with braces."""
    return any(_LOOKS_LIKE_CODE.search(line) for line in lines)


def without_uses(lines: Sequence[str], gone: GoneUses) -> list[str] | None:
    """The lines of an example without statements that use what is gone; ``None`` if none does.

    Nothing is left where only imports are, and what gives values to names that only lost statements use.
    """
    example = _Example(gone)
    kept = example.left_of(lines)
    if not example.has_lost:
        return None
    if all(example.only_prepares(kept[each.code : each.stop]) for each in _statements(kept)):
        return []
    while kept and not kept[-1].strip():
        kept.pop()
    return kept


class _Example:
    """One example, and the names that its lost statements gave to something."""

    def __init__(self, gone: GoneUses) -> None:
        self._gone = gone
        self._bound: set[str] = set()
        self._use = gone.pattern()
        self._needed: set[str] = set()
        """Names in statements that are gone."""
        self._read: set[str] = set()
        """Names in statements that stay, but for those to which these give values."""
        self.has_lost = False

    def only_prepares(self, lines: Sequence[str]) -> bool:
        """Whether a statement that stays imports names, or gives values to what only lost statements use."""
        code = [_NO_CODE.sub('""', line) for line in lines]
        if _IMPORTS.match("\n".join(code)):
            return True
        given = names_given(code[:1]) - _OF_ERRORS
        return bool(given) and given <= self._needed - self._read

    def left_of(self, lines: Sequence[str]) -> list[str]:
        """The lines of a block that stay."""
        kept: list[str] = []
        end = 0
        is_after_lost = False
        for each in _statements(lines):
            between = list(lines[end : each.start])
            if is_after_lost and (not kept or not kept[-1].strip()):
                between = between[next((n for n, line in enumerate(between) if line.strip()), len(between)) :]
            left = self._left(lines, each, is_after_lost=is_after_lost and not between)
            is_after_lost = not left
            kept += [*between, *left]
            end = each.end
        return [*kept, *lines[end:]]

    def _left(self, lines: Sequence[str], statement: _Statement, *, is_after_lost: bool) -> list[str]:
        own = lines[statement.code : statement.stop]
        code = [_NO_CODE.sub('""', line) for line in own]
        given = names_given(code[:1])
        use = self._use if self._bound.isdisjoint(given) else self._gone.pattern(self._bound - given)
        using = [number for number, line in enumerate(code) if use.search(line)]
        if is_after_lost and _CHECKS_ERROR.match(code[0]):
            return []
        if not using:
            self._bound -= given
            self._use = use
            self._read |= _words(code) - given
            return list(lines[statement.start : statement.end])
        self.has_lost = True
        if left := self._import_left(own, code) or self._block_left(own, code, using):
            return [*lines[statement.start : statement.code], *left, *lines[statement.stop : statement.end]]
        self._bound |= names_given(code) - _OF_ERRORS
        self._needed |= _words(code)
        self._use = self._gone.pattern(self._bound)
        return []

    def _block_left(self, lines: Sequence[str], code: Sequence[str], using: Sequence[int]) -> list[str]:
        """A block without the statements that use what is gone; nothing if its head or end does, or it is no block."""
        if not code[0].rstrip().endswith("{") or using[0] == 0 or using[-1] == len(code) - 1:
            return []
        inner = self.left_of(lines[1:-1])
        holds_code = any(line.strip() and not _COMMENT.match(line) for line in inner)
        return [lines[0], *inner, lines[-1]] if holds_code else []

    def _import_left(self, lines: Sequence[str], code: Sequence[str]) -> list[str]:
        """An import without the names that are gone; nothing if it brings no other, or is none."""
        if not _IMPORTS.match("\n".join(code)):
            return []
        if len(lines) > 1:
            left = [line for line in lines[1:-1] if not self._use.search(line)]
            return [lines[0], *left, lines[-1]] if any(re.search(r"\w", line) for line in left) else []
        found = _LIST.search(lines[0])
        names = [each.strip() for each in found[1].split(",")] if found is not None else []
        kept = [each for each in names if each and not self._use.search(each)]
        if found is None or not kept or len(kept) == len(names):
            return []
        blank = " " if found[1].startswith(" ") else ""
        brought = f"{{{blank}{', '.join(kept)}{blank}}}"
        if len(kept) == 1 and lines[0].lstrip().startswith("use ") and kept[0] != "self":
            brought = kept[0]
        return [f"{lines[0][: found.start()]}{brought}{lines[0][found.end() :]}"]


def _words(code: Iterable[str]) -> set[str]:
    return {word for line in code for word in re.findall(r"[A-Za-z_]\w*", line)}


def names_given(code: Iterable[str]) -> set[str]:
    """The names to which lines give values."""
    matches = (match for line in code for pattern in _BOUND for match in pattern.finditer(line))
    return {name for match in matches for name in re.findall(r"[A-Za-z_]\w*", match[1])}


def _statements(lines: Sequence[str]) -> Iterator[_Statement]:
    """The statements of a block."""
    number = 0
    while number < len(lines):
        start = number
        while number < len(lines) and _COMMENT.match(lines[number]):
            number += 1
        if number == len(lines) or not lines[number].strip():
            number = max(number, start + 1)
            continue
        code = number
        stop = number = _end_of_statement(lines, number)
        while number < len(lines) and _RESULT.match(lines[number]):
            number += 1
        yield _Statement(start, code, stop, number)


def _end_of_statement(lines: Sequence[str], number: int) -> int:
    depth = 0
    while number < len(lines):
        code = _NO_CODE.sub('""', lines[number])
        depth += sum(code.count(each) for each in "([{") - sum(code.count(each) for each in ")]}")
        number += 1
        is_open = depth > 0 or bool(_CONTINUES.search(code))
        if not is_open and not (number < len(lines) and _CHAINED.match(lines[number])):
            break
    return number
