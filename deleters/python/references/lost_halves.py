"""Removals that would leave half of something: of a pair, of a family of methods, of a class."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from excise.deleters.python.references.dependent_removal import DependentRemover, without_numbers
from excise.deleters.python.references.uses_by_name import staying
from excise.extractors.python.analysis.name_resolution import Entity
from excise.types import Symbol, SymbolKind

_PAIRS = (
    ("acquire", "release"), ("lock", "unlock"), ("left", "right"), ("first", "last"), ("encode", "decode"),
    ("encoder", "decoder"), ("keys", "values"), ("keys", "items"), ("values", "items"), ("push", "pop"),
    ("open", "close"), ("start", "stop"), ("begin", "end"), ("enter", "exit"), ("load", "dump"), ("loads", "dumps"),
    ("read", "write"), ("pack", "unpack"), ("compress", "decompress"), ("encrypt", "decrypt"), ("lower", "upper"),
    ("serialize", "deserialize"), ("quote", "unquote"), ("escape", "unescape"), ("previous", "next"),
    ("prev", "next"), ("startswith", "endswith"), ("prefix", "suffix"), ("connect", "disconnect"), ("min", "max"),
    ("enable", "disable"), ("show", "hide"), ("attach", "detach"), ("register", "unregister"), ("rows", "columns"),
    ("row", "column"), ("subscribe", "unsubscribe"), ("before", "after"), ("even", "odd"), ("any", "all"),
    ("split", "merge"), ("split", "join"), ("add", "remove"), ("insert", "delete"), ("create", "destroy"),
    ("import", "export"), ("get", "set"), ("parse", "format"), ("increment", "decrement"), ("wrap", "unwrap"),
    ("bind", "unbind"), ("mount", "unmount"), ("install", "uninstall"), ("activate", "deactivate"),
    ("minimum", "maximum"), ("upload", "download"), ("send", "receive"), ("input", "output"), ("width", "height"),
    ("horizontal", "vertical"), ("top", "bottom"), ("up", "down"), ("earliest", "latest"), ("oldest", "newest"),
    ("success", "failure"), ("to", "from"), ("client", "server"), ("request", "response"), ("sender", "receiver"),
    ("reader", "writer"), ("source", "target"), ("old", "new"), ("sync", "async"), ("ascending", "descending"),
)  # fmt: skip
"""Words for two halves of something: without one of them, the other one is half of it."""
MIN_FIRST_PART = 4
"""Number of letters of a word of a pair with which a name may begin, without anything that divides them."""


def lost_halves(
    remover: DependentRemover, removed: Iterable[Symbol], methods: Sequence[Symbol]
) -> Iterator[tuple[str, str, str]]:
    """(path, what would be half of something, id of the definition that should stay as a stub, or nothing).

    ``methods`` are those of the removed definitions whose classes stay.
    """
    yield from _halves(remover, removed)
    yield from _of_family(remover, methods)
    yield from _shells(remover, methods)


def _halves(remover: DependentRemover, removed: Iterable[Symbol]) -> Iterator[tuple[str, str, str]]:
    """Removed definitions whose other half stays beside them, in the same class or file."""
    for symbol in removed:
        is_named = symbol.is_callable or symbol.kind is SymbolKind.CLASS
        if not is_named or remover.codebase.is_test(symbol.path):
            continue
        beside = {other for name in _other_halves(without_numbers(symbol.name)) for other in (name, name.lower())}
        for left in remover.codebase.modules[symbol.path].symbols if beside else ():
            is_beside = left.name in beside and left.holder_id == symbol.holder_id
            if is_beside and not remover.is_removed(left.path, left.start, left.end):
                yield symbol.path, f"{left.qualname} would be half of a pair", symbol.symbol_id


def _other_halves(name: str) -> Iterator[str]:
    """The names that differ from a name in one word, which is the other one of a pair."""
    for pair in _PAIRS:
        for one, two in (pair, pair[::-1]):
            if name.startswith(one) and len(one) >= MIN_FIRST_PART:
                yield two + name.removeprefix(one)
            elif re.search(rf"(?<![a-z]){one}(?![a-z])", name):
                yield re.sub(rf"(?<![a-z]){one}(?![a-z])", two, name)
            elif re.search(rf"{one.capitalize()}(?![a-z])", name):
                yield re.sub(rf"{one.capitalize()}(?![a-z])", two.capitalize(), name)


def _of_family(remover: DependentRemover, methods: Iterable[Symbol]) -> Iterator[tuple[str, str, str]]:
    """Removed methods with a name that one stays of in a class that is derived from theirs, or from the same base."""
    resolver = remover.uses.resolver
    for symbol in methods:
        own, name = Entity(symbol.path, symbol.qualname.rpartition(".")[0]), without_numbers(symbol.name)
        around = set(resolver.with_bases([own])) - {own}
        for other in staying(remover, name) if not name.startswith("_") else ():
            klass = Entity(other.path, other.qualname.rpartition(".")[0])
            if other.kind is not SymbolKind.METHOD or klass == own or remover.codebase.is_test(other.path):
                continue
            bases = set(resolver.with_bases([klass])) - {klass}
            if own in bases or (bases & around and klass not in around):
                yield symbol.path, f"{other.qualname} would be left", symbol.symbol_id


def _shells(remover: DependentRemover, methods: Iterable[Symbol]) -> Iterator[tuple[str, str, str]]:
    """Classes that stay, and lose all of several public methods: nobody could do anything with their objects."""
    for holder, name in sorted({(symbol.path, symbol.holder_id) for symbol in methods}):
        inside = [s for s in remover.codebase.modules[holder].symbols if s.holder_id == name and s.is_callable]
        public = [s for s in inside if not s.name.startswith("_") and not _is_property(s)]
        klass = remover.codebase.symbols()[name]
        is_alone = not remover.uses.resolver.bases(Entity(holder, klass.qualname))
        if is_alone and len(public) > 1 and all(remover.is_removed(s.path, s.start, s.end) for s in public):
            yield holder, f"{klass.qualname} would have no method left", ""


def _is_property(symbol: Symbol) -> bool:
    names = (each.rpartition(".")[2].strip("()") for each in symbol.decorators)
    return not {"property", "setter", "deleter", "cached_property"}.isdisjoint(names)
