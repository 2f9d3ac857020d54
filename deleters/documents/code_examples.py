"""Examples in languages with braces lose the statements that use what is gone, and those that need what these gave.

No parser is needed: a statement ends where its brackets are closed, and blocks are looked into. An example whose
brackets or strings are not closed stays as it is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from excise.deleters.documents.gone_names import any_of
from excise.deleters.documents.masked_code import MaskedCode, depth_of, masked

LANGUAGES = frozenset(
    ("js", "javascript", "jsx", "mjs", "cjs", "ts", "typescript", "tsx", "go", "golang", "rust", "rs", "java")
)
"""What documents call these languages."""
_LOOKS_LIKE_CODE = re.compile(r"[;{]\s*(?://.*)?$|\w\s*:=\s|^\s*(?:const|let|var|use|fn|func)\s")
_RESULT = re.compile(
    r"\s*(?://|/?\*+)\s*(?:=>|->|→|>|[\[{(\"'`<]|-?\d|(?:true|false|null|undefined|nil|NaN|None|Some|Ok|Err)\b"
    r"|(?:[Oo]utput|[Pp]rints?|[Rr]eturns?|[Ll]ogs?|[Rr]esult|[Yy]ields?)\b)"
)
"""A comment below a statement that says what it gives."""
_CONTINUES = re.compile(r"(?:[=+*?:,|&<(\[]|=>|\breturn)\s*$")
"""The end of a line whose statement goes on with the next."""
_CHAINED = re.compile(r"\s*(?:\??\.\w|&&|\|\||\+\s|\?\s|:\s)")
"""The beginning of a line that goes on with the statement above."""
_ATTRIBUTE = re.compile(r"\s*(?:# )?(?:#!?\[.*\]|@[\w.]+(?:\(.*\))?)\s*$")
"""A line that belongs to the definition below it."""
_BOUND = (
    re.compile(r"\b(?:const|let|var)\s+(?:mut\s+)?(\w+|[\[{(][^=]{1,200}[\]})])\s*(?::[^=]{1,100})?="),
    re.compile(r"^\s*((?:\w+\s*,\s*){0,5}\w+)\s*:="),
    re.compile(r"^\s*(?:final\s+)?[A-Z][\w.]*(?:<[^=;]{0,100}>)?(?:\[\])?\s+(\w+)\s*="),
    re.compile(r"^\s*import\s+(\w+)\s+from\b"),
)
"""What gives values to names."""
_ASSIGNED = re.compile(r"^\s*((?:\w+\s*,\s*){0,5}\w+)\s*=(?![=>])")
_DEFINED = re.compile(r"\s*(?:export\s+)?(?:pub\s+)?(?:type|struct|class|enum|interface|trait)\s+(\w+)")
"""The definition of a type."""
_OF_RUST = re.compile(r"\blet\s|::|!\(")
_HIDDEN = re.compile(r"\s*#(?:\s|$)")
"""A line that Rust's documentation does not show."""
_LOOP = re.compile(r"\s*(?:for|while)\b")
_GO_PACKAGE = re.compile(r'\s*"(?:[^"\n]*/)?(\w+)(?:\.v\d+)?"\s*')
"""A line of Go's imports, with the name of the package."""
_MAX_ROUNDS = 10
"""How often statements are looked for whose values only statements used that went in the round before."""
_OF_ERRORS = frozenset({"_", "err", "ok", "error", "e", "mut"})
"""Names that examples give to one value after the other."""
_CHECKS_ERROR = re.compile(r"\s*if (?:(err) != nil|!(ok))\s*\{")
_ELSE_IF = re.compile(r"\s*\}\s*else\s+if\b")
_IMPORTS = re.compile(
    r"\s*(?:#\s)?(?:import\b(?!\s*[(.])|use\s|package\s|extern crate|(?:const|let|var)\s+[^=]{1,300}=\s*require\()"
)
_EXPORTS = re.compile(r"\s*export\s+(?:type\s+)?\{")
_DEFAULT = re.compile(r"\s*import\s+(?:type\s+)?[\w$]+\s*(,\s*)$")
"""What stands before a list of an import that brings another name, too."""
_ALIAS = re.compile(r"(?:\sas\s+|:\s*)(\w+)$")
"""The name that an import gives to what it brings."""
_LIBRARIES = "bytes errors fmt http io json log math net os sort strings time url"
"""Packages of Go's standard library that examples use: their functions are no members of other objects."""
_FOREIGN = "".join(rf"(?<!\b{each})" for each in _LIBRARIES.split())
_NAME = re.compile(r"(?<![\w$.])[A-Za-z_$][\w$]*")


class GoneUses(NamedTuple):
    """What code cannot use any more."""

    names: Collection[str]
    """Plain names of functions, types and values."""
    members: Collection[str]
    """Names that stand behind an object: ``x.name``."""
    owned: Collection[str]
    """Names behind those of their owners, ``Owner.name``, of which others may have the plain name."""

    def pattern(self) -> re.Pattern[str]:
        """What finds a use."""
        owned = any_of(self.owned).replace(r"\.", r"(?:\.|::)")
        parts = [
            rf"(?<![\w$])(?:{any_of(self.names)})(?![\w$])" if self.names else "",
            rf"{_FOREIGN}(?:\.|::)(?:{any_of(self.members)})(?![\w$])" if self.members else "",
            rf"(?<![\w$])(?:{owned})(?![\w$])" if self.owned else "",
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
    """The lines of an example without statements that use what is gone; ``None`` if none does, or it cannot be read.

    Nothing is left where only imports are, and what gives values to names that only lost statements use.
    """
    code = masked(lines)
    example = _Example(code, gone) if code is not None else None
    kept = example.left() if example is not None else []
    if example is None or not example.has_lost:
        return None
    kept = _without_unread(kept, example.needed)
    if example.only_prepares(kept):
        return []
    while kept and _is_blank(kept[-1]):
        kept.pop()
    return kept


def _is_blank(line: str) -> bool:
    """Whether a line is empty, or hidden and empty, as in documentation of Rust."""
    return line.strip() in {"", "#"}


class _Example:
    """One example, and the names that its lost statements gave to something."""

    def __init__(self, code: MaskedCode, gone: GoneUses) -> None:
        self._code = code
        self._use = gone._replace(owned={*gone.owned, *_behind_objects(code, gone.owned)}).pattern()
        self._bound: set[str] = set()
        self.needed: set[str] = set()
        """Names in statements that are gone."""
        self._read: set[str] = set()
        """Names in statements that stay, but for those to which these give values."""
        self._last_given: set[str] = set()
        """Names to which the last lost statement gave values."""
        self.has_lost = False

    def left(self) -> list[str]:
        """The lines that stay."""
        return self._left_of(0, len(self._code.lines))

    def only_prepares(self, kept: Sequence[str]) -> bool:
        """Whether all statements that stay import names, or give values to what only lost statements use."""
        code = masked(kept, is_rust=self._code.is_rust)
        return code is not None and all(self._prepares(code, each) for each in _statements(code, 0, len(kept)))

    def _prepares(self, code: MaskedCode, statement: _Statement) -> bool:
        own = code.code[statement.code : statement.stop]
        if _IMPORTS.match("\n".join(own)) or not any(map(_NAME.search, own)):  # a literal is a result
            return True
        if all(map(_HIDDEN.match, own)):
            return True
        if _is_import_block(own) or (_is_block(own) and not any(line.strip() for line in own[1:-1])):
            return True
        given = _names_given(own[:1]) - _OF_ERRORS
        return bool(given) and all(name in self.needed and name not in self._read for name in given)

    def _left_of(self, first: int, stop: int) -> list[str]:
        """The lines of a block that stay."""
        lines = self._code.lines
        kept: list[str] = []
        end = first
        is_after_lost = False
        for each in _statements(self._code, first, stop):
            between = list(lines[end : each.start])
            if is_after_lost and (not kept or _is_blank(kept[-1])):
                between = between[next((n for n, line in enumerate(between) if not _is_blank(line)), len(between)) :]
            left = self._left(each, is_after_lost=is_after_lost and not between)
            is_after_lost = not left
            kept += [*between, *left]
            end = each.end
        return [*kept, *lines[end:stop]]

    def _left(self, statement: _Statement, *, is_after_lost: bool) -> list[str]:
        lines = self._code.lines
        code = self._code.code[statement.code : statement.stop]
        given = _names_given(code[:1]) | _names_assigned(code[:1])
        using = [number for number, line in enumerate(code) if self._is_use(line, given)]
        check = _CHECKS_ERROR.match(code[0]) if is_after_lost else None
        if check is not None and (check[1] or check[2]) in self._last_given:
            self.needed |= _words(code)
            return []
        if not using:
            self._bound -= given
            self._read |= _words(code) - given
            return list(lines[statement.start : statement.end])
        self.has_lost = True
        if left := self._list_left(statement) or self._block_left(statement, using):
            return [*lines[statement.start : statement.code], *left, *lines[statement.stop : statement.end]]
        given |= _names_assigned(code[:1], from_themselves=True) | _names_filled(code)
        self._last_given = given
        self._bound |= given - _OF_ERRORS
        self.needed |= _words(code)
        return []

    def _is_use(self, line: str, given: Collection[str]) -> bool:
        """Whether a line uses what is gone, or a name that lost statements gave; ``given`` are those that it gives."""
        names = (name for name in _NAME.findall(line) if name in self._bound and name not in given)
        return self._use.search(line) is not None or any(names)

    def _block_left(self, statement: _Statement, using: Sequence[int]) -> list[str]:
        """A block without the statements that use what is gone; nothing if its head or end does, or it is no block.

        Of several ways (``} else if (x) {``), one whose head uses it goes; where another one's does, all of them do.
        """
        lines, code = self._code.lines, self._code.code
        heads = [statement.code, *self._heads(statement), statement.stop - 1]
        uses = [statement.code + number for number in using]
        if not code[statement.code].rstrip().endswith("{") or uses[0] == heads[0] or uses[-1] == heads[-1]:
            return []
        kept: list[str] = []
        bound = set(self._bound)
        holds_code = False
        for first, last in pairwise(heads):
            if first in uses:
                if not _ELSE_IF.match(code[first]):
                    return []
                continue
            inner = self._left_of(first + 1, last)
            left = masked(inner, is_rust=self._code.is_rust)
            holds_code |= left is None or any(map(left.is_code, range(len(inner))))
            kept += [lines[first], *inner]
        if _LOOP.match(code[heads[0]]) and (self._bound - bound).intersection(_NAME.findall(code[heads[0]])):
            return []  # what it waits for comes no more
        return [*kept, lines[heads[-1]]] if holds_code else []

    def _heads(self, statement: _Statement) -> list[int]:
        """Numbers of the lines of a block that close one of its ways and open the next: ``} else {``."""
        depth = 0
        found = []
        for number in range(statement.code, statement.stop):
            own = self._code.code[number]
            if depth == 1 and own.lstrip().startswith("}") and own.rstrip().endswith("{"):
                found.append(number)
            depth += depth_of(own)
        return found

    def _list_left(self, statement: _Statement) -> list[str]:
        """An import or export of a list without the names that are gone; nothing if no other is left, or it is none."""
        code = "\n".join(self._code.code[statement.code : statement.stop])
        text = "\n".join(self._code.lines[statement.code : statement.stop])
        opening = code.find("{")
        if opening < 0 or not (_IMPORTS.match(code) or _EXPORTS.match(code)):
            return []
        cuts = self._cuts(code, opening)
        if cuts == [(opening, _closing(code, opening) + 1)]:
            before = _DEFAULT.match(code[:opening])
            if before is None:
                return []
            cuts = [(before.start(1), cuts[0][1])]
        for start, end in reversed(cuts):
            text = text[:start] + text[end:]
        if text.lstrip().startswith("use ") and "\n" not in text:
            text = re.sub(r"\{\s*(\w+)\s*\}", lambda found: found[0] if found[1] == "self" else found[1], text)
        return [line.rstrip() for line in text.split("\n") if line.strip()] if cuts else []

    def _cuts(self, code: str, opening: int) -> list[tuple[int, int]]:
        """What goes of the list that a bracket opens: all of it, from bracket to bracket, or elements with commas."""
        closing = _closing(code, opening)
        elements = [(s, e) for s, e in _elements(code, opening + 1, closing) if code[s:e].strip()]
        cuts: list[tuple[int, int]] = []
        gone: list[bool] = []
        for start, end in elements:
            inner = code.find("{", start, end)
            own = self._cuts(code, inner) if inner >= 0 else []
            is_whole = inner >= 0 and own == [(inner, _closing(code, inner) + 1)]
            gone.append(is_whole or (inner < 0 and self._use.search(code, start, end) is not None))
            if not gone[-1]:
                cuts += own
            elif alias := _ALIAS.search(code[start:end]):
                self._bound.add(alias[1])
        if all(gone):
            return [(opening, closing + 1)] if elements else []
        last = max(n for n, is_gone in enumerate(gone) if not is_gone)
        for number, (start, end) in enumerate(elements):
            if gone[number] and number < last:
                following = elements[number + 1][0]
                is_last_of_line = "\n" in code[end:following] and "\n" not in code[elements[number - 1][1] : start]
                cuts.append((start, end + 1) if number and is_last_of_line else (start, following))
        if last + 1 < len(elements):
            cuts.append((elements[last][1], elements[-1][1]))
        return sorted(cuts)


def _behind_objects(code: MaskedCode, owned: Iterable[str]) -> Iterator[str]:
    """Names behind the objects that an example makes of their owners: ``b = Box(1)``, ``b := store.NewBox()``; what
    ``store.New()`` gives is no ``store``."""
    text = "\n".join(code.code)
    for dotted in owned:
        owner, _, name = dotted.rpartition(".")
        if owner and re.search(rf"\.{re.escape(name)}\b", text):
            named = rf"\b(?:New)?{re.escape(owner)}\b" + (r"(?!\.|::)" if owner.islower() else "")
            made = rf"\b(\w+)\s*(?::\s?[\w<>]{{1,60}}\s*)?:?=\s*[^=;\n]{{0,60}}?{named}"
            yield from (f"{each}.{name}" for each in re.findall(made, text))


def _closing(code: str, opening: int) -> int:
    """Where the bracket is that closes another one."""
    depth = 0
    for found in re.compile(r"[{}]").finditer(code, opening):
        depth += 1 if found[0] == "{" else -1
        if not depth:
            return found.start()
    return len(code) - 1


def _elements(code: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Where the elements of a list begin and end, without blanks around them."""
    depth = 0
    first = start
    for found in (*re.compile(r"[(){}\[\],]").finditer(code, start, stop), None):
        depth += depth_of(found[0]) if found is not None else 0
        if found is None or (found[0] == "," and not depth):
            end = found.start() if found is not None else stop
            own = code[first:end]
            yield first + len(own) - len(own.lstrip()), first + len(own.rstrip())
            first = end + 1


def _words(code: Iterable[str]) -> set[str]:
    return set(_every_word(code))


def _every_word(code: Iterable[str]) -> Iterator[str]:
    return (word for line in code for word in re.findall(r"[A-Za-z_]\w*", line))


def _names_given(code: Iterable[str]) -> set[str]:
    """The names to which lines give values."""
    matches = (match for line in code for pattern in _BOUND for match in pattern.finditer(line))
    return {name for match in matches for name in re.findall(r"[A-Za-z_]\w*", match[1])}


def _names_assigned(code: Iterable[str], *, from_themselves: bool = False) -> set[str]:
    """The names, known before, to which lines give values: ``a, b = …``; without ``from_themselves``, those whose new
    value does not depend on the old one."""
    matches = ((match, line[match.end() :]) for line in code if (match := _ASSIGNED.match(line)))
    return {
        name
        for match, value in matches
        for name in _NAME.findall(match[1])
        if from_themselves or name not in _NAME.findall(value)
    }


def _names_filled(code: Sequence[str]) -> set[str]:
    """The names whose values a statement may change through a pointer."""
    pointer = r"&mut\s+(\w+)" if any(_OF_RUST.search(line) for line in code) else r"(?<!&)&\s*(?:mut\s+)?(\w+)"
    return {name for line in code for name in re.findall(pointer, line)}


def _is_block(code: Sequence[str]) -> bool:
    """Whether a statement is a block of others, not one that gives a value to a name."""
    return len(code) > 1 and code[0].rstrip().endswith("{") and not (_names_given(code[:1]) | _names_assigned(code[:1]))


def _is_import_block(code: Sequence[str]) -> bool:
    """Whether a statement is Go's list of imports."""
    return code[0].strip() == "import ("


def _without_unread(lines: list[str], needed: Collection[str]) -> list[str]:
    """The lines without statements that give values to names ``needed`` by lost statements alone, and without imports
    of Go that only these used."""
    for _ in range(_MAX_ROUNDS):
        code = masked(lines)
        if code is None:
            break
        counts = Counter(_every_word(code.code))
        givers: list[tuple[_Statement, set[str], Counter[str]]] = []
        in_givers: Counter[str] = Counter()
        gone: set[int] = set()
        for each in _inner_statements(code, 0, len(lines)):
            own = code.code[each.code : each.stop]
            if _is_import_block(own):
                packages = {n: _GO_PACKAGE.fullmatch(lines[n]) for n in range(each.code + 1, each.stop - 1)}
                gone.update(n for n, found in packages.items() if found and found[1] in needed and not counts[found[1]])
                continue
            defined = _DEFINED.match(own[0])
            given = ({defined[1]} if defined else _names_given(own[:1]) | _names_assigned(own[:1])) - _OF_ERRORS
            givers.append((each, given, Counter(_every_word(own))))
            in_givers.update({name: givers[-1][2][name] for name in given})
        for each, given, inside in givers:
            if given and given <= set(needed) and all(counts[name] == in_givers[name] for name in given):
                gone.update(range(each.start, each.end))
                needed = {*needed, *inside}
        if not gone:
            break
        lines = [line for number, line in enumerate(lines) if number not in gone]
    return lines


def _inner_statements(code: MaskedCode, first: int, end: int) -> Iterator[_Statement]:
    """The statements of a block, and those of the blocks in it in place of these."""
    for each in _statements(code, first, end):
        own = code.code[each.code : each.stop]
        if _is_block(own) and not _DEFINED.match(own[0]):
            yield from _inner_statements(code, each.code + 1, each.stop - 1)
        else:
            yield each


def _statements(code: MaskedCode, first: int, end: int) -> Iterator[_Statement]:
    """The statements of a block."""
    number = first
    while number < end:
        start = number
        while number < end and code.is_comment(number):
            number += 1
        if number == end or _is_blank(code.lines[number]):
            number = max(number, start + 1)
            continue
        begin = number
        stop = number = _end_of_statement(code, number, end)
        while number < end and code.is_comment(number) and _RESULT.match(code.lines[number]):
            number += 1
        yield _Statement(start, begin, stop, number)


def _end_of_statement(code: MaskedCode, number: int, end: int) -> int:
    depth = 0
    while number < end:
        own = code.code[number]
        depth += depth_of(own)
        number += 1
        if number == end or _is_blank(code.lines[number]):
            if depth <= 0 and number not in code.inside:
                break
            continue
        goes_on = depth > 0 or number in code.inside or _CONTINUES.search(own) or _ATTRIBUTE.match(own)
        if not goes_on and not _CHAINED.match(code.code[number]):
            break
    return number
