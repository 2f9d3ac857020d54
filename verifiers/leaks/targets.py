"""The targets of a leak scan: the fingerprints of each deleted definition, by channel (see ``fingerprints.py``)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from excise.extractors.languages import scan_rules_of
from excise.extractors.scanned_code import parameters_of, without_comments
from excise.protocols import Codebase, ScanRules
from excise.system.deadline import check_deadline
from excise.types import Symbol, SymbolKind, name_in_file, path_of
from excise.verifiers.leaks.decoders.minified_js import MIN_WORDS, SCRIPTS, kept_words
from excise.verifiers.leaks.fingerprints import EMPTY, Hashes, hashes_of, pairs, salted, unique, windows, words_of
from excise.verifiers.leaks.fragments import COMPILED

_NAME = re.compile(rb"[A-Za-z_\x80-\xff][\w\x80-\xff]*")


@dataclass(frozen=True, slots=True)
class Target:
    """One deleted definition: a function with all nested code, or a class or module without its functions."""

    symbol: str
    """Id of the symbol."""
    name: str
    """Last component of the symbol's name; ``<module>`` for a module."""
    body: Hashes
    """Windows of the definition's code without signature and docstring: source text (L4)."""
    plain: Hashes
    """Windows of the definition's code without comments, which tools that print code omit (L4)."""
    code: Hashes
    """Pairs of the definition's name and each name in its code: matches code objects (L3)."""
    member: Hashes
    """Like ``code``, but with the enclosing class, function or module in the name: matches nested code objects (L3)."""
    rare: Hashes
    """Names in the definition's code. A file that has most of those that are rare elsewhere holds its local names
    (L3)."""
    signature: Hashes
    """Pairs of the definition's name and each parameter (L2)."""
    docstring: Hashes
    """Windows of the definition's docstring (L2)."""
    mention: Hashes
    """The definition's name as a word (L1)."""
    compiled: Hashes = field(default_factory=lambda: EMPTY)
    """The name under which compiled programs hold a function, where its machine code is no code object (L3)."""
    is_minified: bool = False
    """Whether this is what minifiers keep of the definition: only ``body`` has fingerprints."""

    def all_fingerprints(self) -> Hashes:
        """The fingerprints of all channels, sorted, without duplicates."""
        channels = (
            self.body,
            self.plain,
            self.code,
            self.member,
            self.rare,
            self.signature,
            self.docstring,
            self.mention,
            self.compiled,
        )
        return unique(np.concatenate(channels))


def targets_of(codebase: Codebase, deleted: Sequence[tuple[str, str]]) -> list[Target]:
    """The targets of a deletion, which is given as (symbol id, text) pairs.

    Each function and method is one target; classes and modules are others, without their functions.
    """
    symbols = codebase.symbols()
    found: dict[str, Target] = {}
    for symbol_id, text in deleted:
        check_deadline()
        symbol = symbols.get(symbol_id)
        if symbol is None:
            found[symbol_id] = target(symbol_id, name_in_file(symbol_id), text.encode(errors="replace"))
            continue
        for inner, body in definitions_in(codebase, symbol):
            found[inner.symbol_id] = replace(_target(inner, body), compiled=_compiled(codebase, inner.symbol_id))
    minified = (_minified(symbol_id, text) for symbol_id, text in deleted)
    return [*found.values(), *(each for each in minified if each is not None)]


def _minified(symbol_id: str, text: str) -> Target | None:
    """The target of a definition as minifiers write it; ``None`` where none do, and for short ones."""
    words = kept_words(text.encode(errors="replace")) if path_of(symbol_id).endswith(SCRIPTS) else b""
    if len(words.split()) < MIN_WORDS:
        return None
    return Target(
        symbol=symbol_id,
        name=name_in_file(symbol_id).rpartition(".")[2].partition("#")[0],
        body=unique(windows(hashes_of(words_of(words)))),
        **dict.fromkeys(("plain", "code", "member", "rare", "signature", "docstring", "mention"), EMPTY),
        is_minified=True,
    )


def _compiled(codebase: Codebase, symbol_id: str) -> Hashes:
    name = codebase.compiled_name(symbol_id)
    return unique(pairs("code", name.encode(), [COMPILED.encode()])) if name else EMPTY


def definitions_in(codebase: Codebase, outer: Symbol) -> list[tuple[Symbol, bytes]]:
    """(definition, code) pairs of ``outer`` and all in it: functions whole, classes and modules without theirs.

    The code of a module begins below its docstring, and below comments at the top of the file: licences stand in other
    files, too.
    """
    module = codebase.modules[outer.path]
    inside = [s for s in module.symbols if outer.start <= s.start and s.end <= outer.end]
    functions = _outermost([s for s in inside if s.is_callable])
    found = [(s, module.source[s.code_start : s.end]) for s in inside if s.is_callable]
    for scope in inside:
        if not scope.is_callable:
            others = [s for s in inside if s is not scope and s.kind is not SymbolKind.MODULE]
            others = [s for s in others if scope.start <= s.start <= s.end <= scope.end]
            start = scope.code_start if scope.kind in {SymbolKind.CLASS, SymbolKind.MODULE} else scope.start
            if scope.kind is SymbolKind.MODULE:
                start = _end_of_header(module.source, scan_rules_of(outer.path), start)
            rest = _without(module.source, start, scope.end, [*others, *functions])
            found.append((scope, rest))
    return found


def _end_of_header(source: bytes, rules: ScanRules, start: int) -> int:
    """The place at which comments that begin at ``start`` end, with the white space around them."""
    literal = re.compile(rules.literals)
    while True:
        start += len(source[start:]) - len(source[start:].lstrip())
        comment = literal.match(source, start)
        if comment is None or not comment[0].startswith(rules.comments):
            return start
        start = comment.end()


def _outermost(symbols: Sequence[Symbol]) -> list[Symbol]:
    kept: list[Symbol] = []
    for symbol in sorted(symbols, key=lambda s: (s.start, -s.end)):
        if not kept or symbol.start >= kept[-1].end:
            kept.append(symbol)
    return kept


def _without(source: bytes, start: int, end: int, symbols: Sequence[Symbol]) -> bytes:
    """The bytes from ``start`` to ``end`` without some definitions in them."""
    parts, place = [], start
    for symbol in _outermost(symbols):
        if symbol.start >= place and symbol.end <= end:
            parts.append(source[place : symbol.start])
            place = symbol.end
    return b"\n".join([*parts, source[place:end]])


def _target(symbol: Symbol, body: bytes) -> Target:
    name = symbol.name or "<module>"
    return target(symbol.symbol_id, name, body, parameters_of(symbol), symbol.docstring, enclosing_name(symbol))


def enclosing_name(symbol: Symbol) -> str:
    """Name of the enclosing class or function, else ``<module>``; empty for a module itself."""
    if not symbol.qualname:
        return ""
    return symbol.qualname.rpartition(".")[0].rpartition(".")[2].partition("#")[0] or "<module>"


def target(
    symbol_id: str, name: str, body: bytes, parameters: Sequence[str] = (), docstring: str = "", enclosing: str = ""
) -> Target:
    """The target of one definition, computed from its source text, which is in the language of its file."""
    rules = scan_rules_of(path_of(symbol_id))
    plain = name.partition("#")[0].encode(errors="replace")
    words = (code_words(body, rules) | {p.encode() for p in parameters}) - {plain}
    own = [p.encode() for p in parameters if p not in {"self", "cls"}]
    return Target(
        symbol=symbol_id,
        name=plain.decode(),
        body=unique(windows(hashes_of(words_of(body)))),
        plain=unique(windows(hashes_of(words_of(without_comments(body, rules))))),
        code=unique(pairs("code", plain, words)),
        member=unique(pairs("member", f"{enclosing}.".encode(errors="replace") + plain, words)) if enclosing else EMPTY,
        rare=unique(salted("word", hashes_of(words))),
        signature=unique(pairs("signature", plain, own)) if own else EMPTY,
        docstring=unique(windows(hashes_of(words_of(docstring.encode(errors="replace"))))),
        mention=salted("word", hashes_of([plain])),
    )


@lru_cache(maxsize=4096)
def code_words(body: bytes, rules: ScanRules) -> frozenset[bytes]:
    """The names in some code; keywords, strings and comments are left out."""
    return frozenset(_NAME.findall(re.sub(rules.literals, b" ", body))) - rules.keywords


def code_pairs(symbol: Symbol, body: bytes) -> Hashes:
    """The fingerprints that a definition's code object would have: channels ``code`` and ``member``."""
    words = code_words(body, scan_rules_of(symbol.path)) | {p.encode() for p in parameters_of(symbol)}
    name = (symbol.name or "<module>").partition("#")[0].encode(errors="replace")
    enclosing = enclosing_name(symbol).encode(errors="replace")
    return np.concatenate([pairs("code", name, words), pairs("member", enclosing + b"." + name, words)])
