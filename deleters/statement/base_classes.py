"""Base classes of a class, as far as statements can know them: those of the project, and Python's own."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator

from excise.protocols import Codebase
from excise.types import Symbol, SymbolKind


def base_classes(codebase: Codebase, symbol: Symbol) -> Iterator[Symbol | type]:
    """The base classes of a class, and theirs; of a method, those of its class."""
    owner = symbol if symbol.kind is SymbolKind.CLASS else class_of(codebase, symbol)
    pending, seen = [owner] if owner is not None else [], set()
    while pending:
        current = pending.pop()
        if current.symbol_id in seen:
            continue
        seen.add(current.symbol_id)
        names = set(re.findall(r"\w+", current.signature.partition("(")[2]))
        known = (codebase.symbols().get(callee) for callee in codebase.callees(current.symbol_id))
        own = [s for s in known if s is not None and s.kind is SymbolKind.CLASS and s.name in names]
        yield from own
        pending += own
        yield from (kind for name in sorted(names) if isinstance(kind := getattr(builtins, name, None), type))


def defines(base: type, name: str) -> bool:
    """Whether objects of a class have an attribute; not the class itself alone, as every class has ``__or__``."""
    return any(name in vars(each) for each in base.__mro__)


def class_of(codebase: Codebase, symbol: Symbol) -> Symbol | None:
    """The class around a definition; ``None`` if there is none."""
    found = codebase.symbols().get(symbol.holder_id)
    return found if found is not None and found.kind is SymbolKind.CLASS else None
