"""What a removal would leave that no developer would: empty tables, foreign methods in the place of removed ones."""

from __future__ import annotations

import builtins
import collections
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from excise.deleters.python.references.dependent_removal import DependentRemover
from excise.deleters.python.references.entry_points import SETUP
from excise.extractors.python.analysis.grammar import descendants
from excise.extractors.python.analysis.name_resolution import Entity
from excise.types import Symbol, SymbolKind


class Leftover(NamedTuple):
    """What a removal would leave."""

    path: str
    """The file."""
    text: str
    """What would be left."""
    symbol: str
    """Id of the removed method that should stay as a stub; empty if no single one should."""


def leftovers(remover: DependentRemover, removed: Iterable[Symbol]) -> Iterator[Leftover]:
    """What would be left in sources, after all edits are planned."""
    yield from _emptied_tables(remover)
    yield from _inherited_instead(remover, removed)


def _emptied_tables(remover: DependentRemover) -> Iterator[Leftover]:
    """Dictionaries with a name that lose all their entries, while the names stay; a list of handlers may be empty."""
    for path, plan in sorted(remover.plans.items()):
        if not plan.elements or plan.deleted or path == SETUP or remover.codebase.is_test(path):
            continue
        for node in descendants(plan.root):
            span, assignment = (node.start_byte, node.end_byte), node.parent
            if node.type != "dictionary" or span not in plan.elements or not plan.is_emptied(node):
                continue
            if assignment is None or assignment.type != "assignment" or plan.is_removed(*span):
                continue
            name = assignment.child_by_field_name("left")
            if name is not None and name.text != b"__all__" and assignment.child_by_field_name("right") == node:
                text = f"{(name.text or b'').decode(errors='replace')} would be left without entries"
                yield Leftover(path, text, "")


def _inherited_instead(remover: DependentRemover, removed: Iterable[Symbol]) -> Iterator[Leftover]:
    """Removed methods for which those of Python's own containers and exceptions would be called without a word."""
    for symbol in removed:
        klass = remover.codebase.symbols().get(symbol.holder_id)
        if symbol.kind is not SymbolKind.METHOD or klass is None or remover.codebase.is_test(symbol.path):
            continue
        plan = remover.plans.get(symbol.path)
        if plan is not None and plan.is_removed(klass.start, klass.end):
            continue
        name = symbol.name.partition("#")[0]
        found = _foreign_method(remover, Entity(klass.path, klass.qualname), name)
        if found:
            yield Leftover(
                symbol.path, f"{symbol.qualname} would be {found}, which does something else", symbol.symbol_id
            )


def _foreign_method(remover: DependentRemover, klass: Entity, name: str) -> str:
    """The method of Python that objects of a class would have without their own; empty if there is none."""
    resolver, pending, seen = remover.uses.resolver, [klass], set[Entity]()
    while pending:
        entity = pending.pop(0)
        if entity in seen:
            continue
        seen.add(entity)
        if entity != klass and resolver.attribute(entity, name) is not None:
            return ""
        own = resolver.bases(entity)
        pending += own
        for base in resolver.scope(entity.path).bases.get(entity.qualname, ()):
            last = base.rpartition(".")[2]
            kind = getattr(builtins, last, None) or getattr(collections, last, None)
            is_own = any(each.qualname.rpartition(".")[2] == last for each in own)
            if isinstance(kind, type) and not is_own and hasattr(kind, name) and not hasattr(object, name):
                return f"{last}.{name}"
    return ""
