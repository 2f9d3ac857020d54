"""What a removal would leave that no developer would: empty tables, foreign methods in the place of removed ones."""

from __future__ import annotations

import builtins
import collections
from collections.abc import Iterable, Iterator

from excise.deleters.python.references.dependent_removal import DependentRemover
from excise.extractors.python.analysis.grammar import descendants
from excise.types import Symbol, SymbolKind

_TABLES = frozenset({"list", "tuple", "set", "dictionary"})


def leftovers(remover: DependentRemover, removed: Iterable[Symbol]) -> Iterator[tuple[str, str]]:
    """(path, what would be left) in sources, after all edits are planned."""
    yield from _emptied_tables(remover)
    yield from _inherited_instead(remover, removed)


def _emptied_tables(remover: DependentRemover) -> Iterator[tuple[str, str]]:
    """Displays with a name that lose all their elements, while their names stay."""
    for path, plan in sorted(remover.plans.items()):
        if not plan.elements or plan.deleted or remover.codebase.is_test(path):
            continue
        for node in descendants(plan.root):
            span = node.start_byte, node.end_byte
            if node.type not in _TABLES or span not in plan.elements or not plan.is_emptied(node):
                continue
            assignment = node.parent
            name = assignment.child_by_field_name("left") if assignment is not None else None
            if name is None or name.text == b"__all__" or plan.is_removed(*span):
                continue
            yield path, f"{(name.text or b'').decode(errors='replace')} would be left without entries"


def _inherited_instead(remover: DependentRemover, removed: Iterable[Symbol]) -> Iterator[tuple[str, str]]:
    """Removed methods for which those of Python's own containers and exceptions would be called without a word."""
    for symbol in removed:
        if symbol.kind is not SymbolKind.METHOD or remover.codebase.is_test(symbol.path):
            continue
        owner, _, name = symbol.qualname.rpartition(".")
        plan = remover.plans.get(symbol.path)
        klass = remover.codebase.symbols().get(symbol.holder_id)
        if klass is None or (plan is not None and plan.is_removed(klass.start, klass.end)):
            continue
        for base in remover.uses.resolver.scope(symbol.path).bases.get(owner, ()):
            last = base.rpartition(".")[2]
            kind = getattr(builtins, last, None) or getattr(collections, last, None)
            if isinstance(kind, type) and hasattr(kind, name) and not hasattr(object, name):
                yield symbol.path, f"{symbol.qualname} would be {last}.{name}, which does something else"
