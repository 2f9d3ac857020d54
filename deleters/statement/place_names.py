"""The names of the places that code may name before a definition."""

from __future__ import annotations

from pathlib import PurePosixPath

from excise.deleters.statement.spelling import unnumbered
from excise.protocols import Codebase
from excise.types import Symbol, SymbolKind


def places_of_name(codebase: Codebase, symbol: Symbol) -> tuple[set[str], set[str]]:
    """The last names of the places that code may name before a symbol, and of those of others with its name: of classes
    for a method, of files and folders for a function."""

    def places(one: Symbol) -> set[str]:
        holder = unnumbered(one.qualname).rpartition(".")[0].rpartition(".")[2]
        path = PurePosixPath(one.path)
        return {holder} if symbol.kind is SymbolKind.METHOD else {holder, path.stem, path.parent.name}

    name = symbol.name.partition("#")[0]
    named = (each for each in codebase.symbols().values() if name and each.name.partition("#")[0] == name)
    own = places(symbol) - {""}
    others = (each for each in named if each.symbol_id != symbol.symbol_id and not codebase.is_test(each.path))
    return own, set().union(*map(places, others)) - own - {""}
