"""The details that tests need from removed code: what the tests mention and the removed code supplies."""

from __future__ import annotations

import builtins
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import astuple, replace

from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.needs.removed_words import Piece, Role, Words, words_of
from excise.extractors.python.needs.test_uses import TestUses, Uses
from excise.types import Need, NeedKind

MAX_ANSWER = 160
"""Length of a text above which it is no detail any more: to name it would be to give the code."""
MIN_TEXT = 2
"""Minimum length of a text; single characters are conventions (separators, blanks)."""
MIN_SHOWN_LOC = 3
"""Lines of a function up to which a text with its placeholders would be its code."""
MIN_PART = 4
"""Minimum length of a test's text that is only a part of a text of the removed code."""
COMMON_NUMBERS = frozenset({"0", "1", "2", "0.0", "1.0"})
"""Numbers that any code has."""
_NO_TEXT = Piece("", Role.TEXT)
_KINDS = {Role.TEXT: NeedKind.TEXT, Role.KEY: NeedKind.KEY, Role.MESSAGE: NeedKind.MESSAGE}
_RANK = {Role.MESSAGE: 0, Role.KEY: 1, Role.TEXT: 2}


def find_needs(
    codebase: PythonCodebase, uses: TestUses, removed: Sequence[str], tests: Sequence[str]
) -> tuple[Need, ...]:
    """The details that ``tests`` need from the symbols ``removed``, sorted by owner, kind and word."""
    supplied = words_of(codebase, removed)
    defined = {name for words in supplied for name in (words.symbol.name.partition("#")[0],) if name}
    found: dict[tuple[NeedKind, str], tuple[str, Piece, bool]] = {}
    needing: dict[tuple[NeedKind, str], list[str]] = defaultdict(list)
    by_function: dict[str, list[str]] = defaultdict(list)
    for test in tests:
        by_function[test.partition("[")[0]].append(test)
    for function, cases in by_function.items():
        used = uses.of(function)
        for words in supplied:
            for kind, word, piece, is_answer in _needed(words, used, defined):
                found.setdefault((kind, word), (words.symbol.symbol_id, piece, is_answer))
                needing[kind, word] += cases
    for words in supplied:
        for word in _used_alone(codebase, words, removed):
            found.setdefault((NeedKind.USED, word), (words.symbol.symbol_id, _NO_TEXT, False))
            needing[NeedKind.USED, word] += tests
    for kind, word in [key for key in found if key[0] is NeedKind.KEY and (NeedKind.TEXT, key[1]) in found]:
        del found[kind, word]
    needs = (
        Need(
            kind=kind,
            word=word,
            owner=owner,
            tests=tuple(dict.fromkeys(needing[kind, word])),
            exception=piece.exception,
            template=piece.template,
            is_answer=is_answer,
        )
        for (kind, word), (owner, piece, is_answer) in found.items()
    )
    return tuple(sorted(needs, key=lambda need: (need.owner, need.kind, need.word)))


def _used_alone(codebase: PythonCodebase, words: Words, removed: Sequence[str]) -> Iterator[str]:
    """Names that the file of removed code binds and that nothing but removed code uses."""
    symbols = codebase.symbols()
    module = codebase.modules[words.symbol.path]
    gone = [symbols[s] for s in removed if s in symbols and symbols[s].path == module.path]
    bound = {b.name: b for b in module.bindings if not b.klass and b.name in words.identifiers}
    for name, binding in bound.items():
        spans = [(s.start, s.end) for s in gone] + [(b.start, b.end) for b in module.bindings if b.name == name]
        places = [match.start() for match in re.finditer(rf"\b{re.escape(name)}\b".encode(), module.source)]
        inside = all(any(start <= place < end for start, end in spans) for place in places)
        is_removed = any(s.start <= binding.start < s.end for s in gone)
        others = (other for other in codebase.modules.values() if other is not module)
        if inside and not is_removed and not any(name.encode() in other.source for other in others):
            yield name


def _needed(words: Words, used: Uses, defined: set[str]) -> Iterator[tuple[NeedKind, str, Piece, bool]]:
    """(kind, word, text with it, whether it is the answer) of each detail of one definition that a test needs."""
    mentioned = used.attributes | used.names | used.texts
    name = words.symbol.name.partition("#")[0]
    yield from ((NeedKind.NAME, word, _NO_TEXT, False) for word in (words.names & mentioned) - defined)
    yield from (
        (NeedKind.ATTRIBUTE, word, _NO_TEXT, False)
        for word in (words.attributes & (used.attributes | used.texts)) - defined
        if not _is_dunder(word)
    )
    called = {name, words.symbol.qualname.split(".")[-2]} if name == "__init__" else {name}
    keywords = {word for function, word in used.keywords if function in called}
    known = words.parameters | words.identifiers | {piece.text for piece in words.pieces}
    yield from ((NeedKind.KEYWORD, word, _NO_TEXT, False) for word in keywords & known)
    yield from ((NeedKind.EXCEPTION, word, _NO_TEXT, False) for word in words.exceptions & used.exceptions)
    yield from (
        (NeedKind.NUMBER, word, _NO_TEXT, words.numbers[word])
        for word in (used.numbers & words.numbers.keys()) - COMMON_NUMBERS
    )
    for target in used.replaced:
        last = target.rpartition(".")[2]
        if last in words.identifiers and last not in defined:
            yield NeedKind.REPLACED, target, _NO_TEXT, False
    yield from _needed_texts(words, used)


def _needed_texts(words: Words, used: Uses) -> Iterator[tuple[NeedKind, str, Piece, bool]]:
    whole = {piece.text for piece in words.pieces if piece.is_whole_code}
    best: dict[str, Piece] = {}
    for piece in sorted(words.pieces, key=lambda piece: (_RANK[piece.role], -len(piece.template), astuple(piece))):
        best.setdefault(piece.text, piece)
    for piece in best.values():
        role = Role.KEY if piece.role is Role.TEXT and piece.text in used.keys else piece.role
        for word in _common_words(piece, used):
            if piece.role is Role.MESSAGE and word in words.parameters:
                continue  # the name of what is filled in
            is_answer = len(word) > MAX_ANSWER or word in whole or piece.text in whole
            template = piece.template or (piece.text if word != piece.text.strip() else "")
            is_shown = len(template) <= MAX_ANSWER and words.symbol.loc > MIN_SHOWN_LOC
            yield _KINDS[role], word, replace(piece, template=template if is_shown else ""), is_answer


def _common_words(piece: Piece, used: Uses) -> set[str]:
    """What a text of the removed code and texts of the tests have in common: one whole text of either."""
    own = piece.text.strip()
    found = set()
    if piece.role is Role.KEY:
        return {own} & used.texts
    if len(own) >= MIN_TEXT:
        pattern = re.compile(_bounded(own))
        if any(own in text and pattern.search(text) for text in used.texts):
            found.add(own)
    for text in (used.texts - used.keys) | {text for text in used.texts if " " in text.strip()} | used.patterns:
        inner = text.strip()
        is_part = MIN_PART <= len(inner) < len(own) and inner in own and own not in found
        if is_part and re.search(_bounded(inner), own):
            found.add(inner)
    return found


def _bounded(word: str) -> str:
    """A pattern that finds a word only where no letter or digit joins it."""
    before = r"(?<!\w)" if word[:1].isalnum() else ""
    after = r"(?!\w)" if word[-1:].isalnum() else ""
    return f"{before}{re.escape(word)}{after}"


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def is_builtin_exception(name: str) -> bool:
    """Whether Python has an exception of this name."""
    found = getattr(builtins, name, None)
    return isinstance(found, type) and issubclass(found, BaseException)
