"""The names that a file binds and uses, as this interpreter's compiler sees them (:mod:`symtable`)."""

from __future__ import annotations

import symtable
import warnings
from collections.abc import Iterator
from functools import lru_cache


def symbol_table(source: bytes) -> symtable.SymbolTable:
    """The symbol table of a module.

    Raises :class:`SyntaxError`, :class:`ValueError`, :class:`RecursionError` or :class:`MemoryError` if this
    interpreter does not compile it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return symtable.symtable(source.decode(), "<file>", "exec")


def tables_below(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    """The tables of all scopes inside one."""
    for child in table.get_children():
        yield child
        yield from tables_below(child)


def global_names(top: symtable.SymbolTable) -> tuple[set[str], set[str]]:
    """The names that a module binds, and those that it or its functions use."""
    bound = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported() or s.is_namespace()}
    used = {s.get_name() for s in top.get_symbols() if s.is_referenced()}
    for table in tables_below(top):
        for symbol in table.get_symbols():
            if symbol.is_global():
                used |= {symbol.get_name()} if symbol.is_referenced() else set()
                bound |= {symbol.get_name()} if symbol.is_assigned() or symbol.is_imported() else set()
    return bound, used


@lru_cache(maxsize=256)
def names_used_in_code(source: bytes) -> frozenset[str]:
    """The names of the module that its code uses; none if this interpreter does not compile it."""
    try:
        return frozenset(global_names(symbol_table(source))[1])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
