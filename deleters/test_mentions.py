"""What of test files cannot be compiled without removed code: in a compiled language, all that mentions it.

One mention is enough to break every test of a package or target, so that all of them go with the hidden tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from excise.extractors.compiled_codebase import CompiledCodebase, Definition, DefinitionKind
from excise.types import TestId, path_of


def names_by_file(codebase: CompiledCodebase[Any], tests: Iterable[str]) -> dict[str, set[tuple[str, ...]]]:
    """Path of each test file to the names in it, from outside to inside, that the ids of its tests have."""
    wanted: dict[str, set[tuple[str, ...]]] = {}
    for each in map(TestId.parse, tests):
        if each.path in codebase.modules and codebase.is_test(each.path) and each.names:
            wanted.setdefault(each.path, set()).add(each.names)
    return wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Mentions:
    """Where test files mention removed code."""

    owners: frozenset[str] = frozenset()
    """Ids of the definitions of test files that refer to it, and paths of files that do so outside of their symbols."""
    names: frozenset[str] = frozenset()
    """The plain names of what is removed."""
    lost: frozenset[str] = frozenset()
    """Those of them that nothing in the sources has any more: no file can import them."""

    @property
    def paths(self) -> frozenset[str]:
        """Files that mention it."""
        return frozenset(map(path_of, self.owners))

    def seeds(self, definitions: Iterable[Definition]) -> list[Definition]:
        """Those of the definitions that mention it themselves."""
        return [d for d in definitions if d.key in self.owners or (d.path in self.owners and _has(d, self.names))]


NOTHING = Mentions()
"""Of tests that go alone."""


def mentions_of(
    codebase: CompiledCodebase[Any], gone: Sequence[Definition], named: frozenset[str] = frozenset()
) -> Mentions:
    """Where test files mention definitions; ``named`` are ids of others that do, as the compiler says."""
    callers = {caller for each in gone for caller in codebase.callers(each.key)}
    return Mentions(
        owners=frozenset(caller for caller in callers if codebase.is_test(path_of(caller))) | named,
        names=frozenset(name for each in gone for name in each.names),
        lost=lost_names(codebase, gone),
    )


def lost_names(codebase: CompiledCodebase[Any], gone: Sequence[Definition]) -> frozenset[str]:
    """The names of definitions, but for those that others in the sources have, too."""
    keys = {each.key for each in gone}
    staying = (each for each in codebase.definitions() if each.key not in keys and not codebase.is_test(each.path))
    left = {name for each in staying for name in each.names}
    return frozenset(name for each in gone for name in each.names) - left


def with_mentions(
    codebase: CompiledCodebase[Any], definitions: Sequence[Definition], seeds: Iterable[Definition]
) -> list[Definition]:
    """The seeds, and those of the definitions that mention one of them, directly or not."""
    by_key = {each.key: each for each in definitions}
    found = {each.key: each for each in seeds}
    pending = list(found.values())
    while pending:
        each = pending.pop()
        for user in (*_users(codebase, each, definitions), *_belonging(each, definitions)):
            if user.key not in found and user.key in by_key:
                found[user.key] = user
                pending.append(user)
    return list(found.values())


def _users(
    codebase: CompiledCodebase[Any], definition: Definition, definitions: Sequence[Definition]
) -> Iterable[Definition]:
    """What refers to a definition: by its symbol, or by its name if it has none."""
    if definition.key in codebase.symbols():
        callers = codebase.callers(definition.key)
        users = [d for d in definitions if d.key in callers or (d.path in callers and _has(d, definition.names))]
    elif definition.kind is DefinitionKind.PART:
        return []
    else:
        users = [d for d in definitions if d.uses & definition.names and d is not definition]
    return [each for each in users if codebase.may_name(each.path, definition)]


def _belonging(definition: Definition, definitions: Sequence[Definition]) -> Iterable[Definition]:
    """The type that a method belongs to, which goes with it; what is in a type or block, and what is about a type."""
    if definition.kind is DefinitionKind.FUNCTION:
        return [d for d in definitions if d.kind is DefinitionKind.TYPE and d.names & definition.about]
    inside = [d for d in definitions if d.path == definition.path and d.holder == definition.qualname]
    is_type = definition.kind is DefinitionKind.TYPE
    return [*inside, *(d for d in definitions if is_type and d.about & definition.names)]


def _has(definition: Definition, names: frozenset[str]) -> bool:
    """Whether a definition that is no symbol of its own has one of the names."""
    return definition.kind in {DefinitionKind.VALUE, DefinitionKind.PART} and bool(definition.uses & names)
