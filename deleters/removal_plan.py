"""Which definitions of a compiled language go with a feature, and which stay as stubs.

A definition that code which stays refers to cannot go: the rest would not compile. Of a function, the body goes then; a
type stays as it is. What syntax does not show, such as a method that an interface asks for, the compiler says.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from excise.deleters.deletion_record import USED_ELSEWHERE
from excise.errors import DeletionRefused
from excise.extractors.compiled_codebase import Assignment, CompiledCodebase, Definition, DefinitionKind
from excise.types import Symbol, SymbolKind, joined

_TEMPLATE = re.compile(rb"\{\{[^{}\n]{1,400}\}\}")
"""What a template fills in."""
_MAKER = re.compile(r"[Nn]ew(?![a-z])")
"""Names of functions that make what they are named after."""


class RemovalPlan:
    """The definitions that a removal takes out of the sources."""

    def __init__(self, codebase: CompiledCodebase[Any], chosen: Iterable[Symbol], kept: frozenset[str]) -> None:
        """``kept`` are keys of definitions that have to stay.

        Raises :class:`DeletionRefused` unless a function can go.
        """
        self._codebase = codebase
        self._sources = {d.key: d for d in codebase.definitions() if not codebase.is_test(d.path)}
        self._by_holder = self._index(lambda d: [(d.path, d.holder)] if d.holder else [])
        self._by_about = self._index(lambda d: [(codebase.scope_of(d.path), name) for name in d.about])
        self._by_group = self._index(lambda d: [(codebase.scope_of(d.path), d.group)] if d.group else [])
        self.wanted = wanted = self._wanted(chosen)
        """Keys of what is to go."""
        self._kept = set(kept) | self._in_templates(wanted)
        gone = self._settled(wanted, self._kept)
        self.gone = [each for each in self._sources.values() if each.key in gone]
        """What is taken out."""
        self.dead: set[str] = set()
        """Keys of the functions of it that :meth:`drop_unused` added."""
        self.stubs = [self._sources[key] for key in sorted(wanted - gone) if self._can_be_stub(key)]
        """Functions that stay without their bodies, since other code needs them."""
        if not any(each.kind is DefinitionKind.FUNCTION for each in self.gone):
            what = self.stubs[0].key if self.stubs else next(iter(sorted(wanted)), "it")
            raise DeletionRefused(f"{what}: code that stays needs it", reason=USED_ELSEWHERE)
        self._require_makers(gone)

    def _in_templates(self, wanted: Iterable[str]) -> set[str]:
        """Keys of the wanted methods that a template in a text of the sources calls: ``{{ .Name }}``."""
        methods = [each for each in map(self._sources.__getitem__, wanted) if each.about or each.holder]
        modules = self._codebase.modules.values() if methods else ()
        templates = [found for module in modules for found in _TEMPLATE.findall(module.source)]
        names = {name.decode() for template in templates for name in re.findall(rb"\.([A-Z]\w*)", template)}
        return {each.key for each in methods if each.names & names}

    def _require_makers(self, gone: frozenset[str]) -> None:
        """Raise :class:`DeletionRefused` if a type stays that nothing makes or uses any more but its own methods."""
        left = [each for each in self._sources.values() if each.key not in gone]
        makers = [d for d in self.gone if d.kind is DefinitionKind.FUNCTION and not (d.holder or d.about)]
        for maker in (d for d in makers if any(map(_MAKER.match, d.names))):
            scope = self._codebase.scope_of(maker.path)
            for made in (d for d in left if d.kind is DefinitionKind.TYPE and d.names & maker.head):
                own = (made.path, made.qualname)
                others = (d for d in left if not d.names & made.names and not d.about & made.names)
                is_used = any(d.uses & made.names and (d.path, d.holder) != own for d in others)
                if self._codebase.scope_of(made.path) == scope and not is_used:
                    raise DeletionRefused(f"nothing makes {made.key} without {maker.key}", reason=USED_ELSEWHERE)

    def _index(self, keys_of: Any) -> dict[tuple[str, str], list[Definition]]:
        found: dict[tuple[str, str], list[Definition]] = defaultdict(list)
        for each in self._sources.values():
            for key in keys_of(each):
                found[key].append(each)
        return found

    def _can_be_stub(self, key: str) -> bool:
        is_function = self._sources[key].kind is DefinitionKind.FUNCTION
        return is_function and key in self._codebase.symbols() and self._codebase.is_removable(key)

    # ------------------------------------------------------------------------------------ what goes together
    def _wanted(self, chosen: Iterable[Symbol]) -> frozenset[str]:
        """Keys of the definitions that symbols are, of those in them, and of their methods.

        What the language itself calls, such as destructors, goes with its type alone.
        """
        found: set[str] = set()
        for symbol in chosen:
            if symbol.kind is SymbolKind.MODULE:
                found |= {each.key for each in self._sources.values() if each.path == symbol.path}
            elif symbol.symbol_id in self._sources:
                found |= {each.key for each in self._with_members(self._sources[symbol.symbol_id])}
        symbols = self._codebase.symbols()
        return frozenset(key for key in found if key not in symbols or self._codebase.is_removable(key))

    def _with_members(self, definition: Definition) -> Iterator[Definition]:
        yield definition
        for inner in self._by_holder[definition.path, definition.qualname]:
            yield from self._with_members(inner)
        if definition.kind is DefinitionKind.TYPE:
            scope, holder = self._codebase.scope_of(definition.path), definition.key
            for name in definition.names:
                methods = (d for d in self._by_about[scope, name] if d.kind is DefinitionKind.FUNCTION)
                yield from methods
            symbols = self._codebase.symbols()
            own = self._codebase.modules[definition.path].symbols
            yield from (self._sources[s.symbol_id] for s in own if s.holder_id == holder and s.symbol_id in symbols)

    def _closure(self, keys: Iterable[str]) -> frozenset[str]:
        """What goes with some definitions: variants, members, what is about a type, blocks that nothing is left in."""
        found: set[str] = set()
        pending = set(keys)
        while pending:
            found |= pending
            related = {other.key for key in pending for other in self._related(self._sources[key])}
            pending = (related | self._emptied(found)) - found
        return frozenset(key for key in found if not self._is_bound(self._sources[key], found))

    def _related(self, definition: Definition) -> Iterator[Definition]:
        scope = self._codebase.scope_of(definition.path)
        if definition.group:
            yield from self._by_group[scope, definition.group]
        yield from self._by_holder[definition.path, definition.qualname]
        if definition.kind is DefinitionKind.TYPE:
            for name in definition.names:
                yield from self._by_about[scope, name]

    def _emptied(self, found: set[str]) -> set[str]:
        """The blocks, of those that hold something in ``found``, all of whose functions are in it."""
        holders = {joined(d.path, d.holder) for d in map(self._sources.__getitem__, found) if d.holder} - found
        blocks = (self._sources[key] for key in holders if key in self._sources)
        return {each.key for each in blocks if each.kind is DefinitionKind.PART and self._is_empty(each, found)}

    def _is_empty(self, block: Definition, found: set[str]) -> bool:
        inside = self._by_holder[block.path, block.qualname]
        functions = [each for each in inside if each.kind is DefinitionKind.FUNCTION]
        left = inside if not all(each.is_fixed for each in inside) else functions
        return all(each.key in found for each in left)

    def _is_bound(self, definition: Definition, found: set[str]) -> bool:
        """Whether a definition has to be where it is, since what it is in stays."""
        return definition.is_fixed and joined(definition.path, definition.holder) not in found

    # ------------------------------------------------------------------------------------ what is needed
    def _settled(self, wanted: frozenset[str], kept: set[str]) -> frozenset[str]:
        """What can go of the wanted definitions, with what goes along: nothing that code which stays refers to.

        Raises :class:`DeletionRefused` if one that stays goes along with another that does not.
        """
        while True:
            gone = self._closure(wanted - kept)
            needed = {key for key in gone if self._is_needed(self._sources[key], gone, wanted)}
            if not needed:
                return gone
            before = len(kept)
            kept |= needed | {around for key in needed for around in self._around(self._sources[key])}
            kept |= {key for key in gone if any(each.key in needed for each in self._related(self._sources[key]))}
            if len(kept) == before:
                raise DeletionRefused(f"{min(needed)}: code that stays needs it", reason=USED_ELSEWHERE)

    def _around(self, definition: Definition) -> Iterator[str]:
        """What has to stay where a definition stays: what it is in, and the types that it is about."""
        scope = self._codebase.scope_of(definition.path)
        if definition.holder:
            holder = self._sources[joined(definition.path, definition.holder)]
            yield holder.key
            yield from self._around(holder)
        for each in self._sources.values():
            is_type = each.kind is DefinitionKind.TYPE and self._codebase.scope_of(each.path) == scope
            if is_type and each.names & definition.about:
                yield each.key

    def _is_needed(self, definition: Definition, gone: frozenset[str], wanted: frozenset[str]) -> bool:
        """Whether code that stays refers to a definition, as far as syntax tells."""
        if definition.key not in self._codebase.symbols() or self._has_overload(definition, gone):
            return False
        callers = (c for c in self._codebase.callers(definition.key) if c not in gone)
        users = (user for caller in callers for user in self._places(caller) if user.key not in gone)
        return any(definition.names & self._used_by(user, wanted) for user in users if user.key != definition.key)

    def _has_overload(self, definition: Definition, gone: frozenset[str]) -> bool:
        """Whether another function of the same name stays in the same type: then a call may be one of that."""
        beside = self._by_holder[definition.path, definition.holder] if definition.holder else []
        functions = (each for each in beside if each.kind is DefinitionKind.FUNCTION and each.key not in gone)
        return any(each.names == definition.names for each in functions)

    def _places(self, caller: str) -> Iterator[Definition]:
        """The definitions in sources that a reference may be in: of a file or type, those in it that are no symbols."""
        symbols = self._codebase.symbols()
        if caller in self._sources:
            owner = self._sources[caller]
            yield owner
            if owner.kind is not DefinitionKind.FUNCTION:
                inside = self._by_holder[owner.path, owner.qualname]
                yield from (each for each in inside if each.key not in symbols)
        elif caller in self._codebase.modules:
            every = (each for each in self._sources.values() if each.path == caller)
            yield from (each for each in every if each.key not in symbols)

    def _used_by(self, user: Definition, wanted: frozenset[str]) -> frozenset[str]:
        return user.head if user.key in wanted and self._can_be_stub(user.key) else user.uses

    # ------------------------------------------------------------------------------------ what is dead then
    def drop_unused(self, named_in_tests: dict[str, frozenset[str]]) -> None:
        """Add to what goes the private definitions that only what is gone used.

        ``named_in_tests`` maps parts of the project to the names in tests that stay.
        """
        heads, scope_of = {each.key: each.head for each in self.stubs}, self._codebase.scope_of
        stubs = set(heads)
        staying = stubs | self._kept
        while True:
            gone = {each.key for each in self.gone}
            dropped = {name for each in self.gone for name in each.uses}
            dropped |= {name for each in self.stubs for name in each.uses - each.head}
            lost = [assignment for _, assignment in self.lost_assignments()]
            dropped |= {name for each in lost for name in each.uses}
            left = [each for each in self._sources.values() if each.key not in gone]
            counts: dict[str, Counter[str]] = defaultdict(Counter)
            for each in left:
                for name in self._read_by(each, stubs, lost):
                    counts[name][each.path] += 1
            dead = [
                each
                for each in left
                if (each.is_private or self._codebase.is_internal(each))
                and each.names
                and not each.is_fixed
                and each.key not in staying
                if each.names <= dropped and not each.names & named_in_tests.get(scope_of(each.path), frozenset())
                if self._is_unused(each, gone, counts) or self._codebase.is_unused_function(each, gone, heads)
            ]
            more = self._closure(gone | {each.key for each in dead}) - gone
            if not more or more & staying:
                return
            self.gone = [each for each in self._sources.values() if each.key in gone | more]
            self.dead |= {key for key in more if self._sources[key].kind is DefinitionKind.FUNCTION}

    def lost_assignments(self) -> list[tuple[str, Assignment]]:
        """(path, statement) of those in functions that stay which give a value to what goes."""
        gone = {each.key for each in (*self.gone, *self.stubs)}
        values = [each for each in self.gone if each.kind is DefinitionKind.VALUE]
        lost = {(self._codebase.scope_of(each.path), name) for each in values for name in each.names}
        return [
            (each.path, assignment)
            for each in (self._sources.values() if lost else ())
            for assignment in each.assignments
            if each.key not in gone and (self._codebase.scope_of(each.path), assignment.name) in lost
        ]

    def _read_by(self, definition: Definition, stubs: Collection[str], lost: Collection[Assignment]) -> frozenset[str]:
        """The names that a definition which stays uses, without ``lost`` statements, for more than to give them a
        value."""
        if definition.key in stubs:
            return definition.head
        of_lost = {name for each in definition.assignments if each in lost for name in each.uses}
        return definition.uses - {each.name for each in definition.assignments} - of_lost

    def _is_unused(self, definition: Definition, gone: set[str], counts: Mapping[str, Mapping[str, int]]) -> bool:
        """Whether nothing but a definition, and what goes with it, has its name, of what is not gone yet, in files that
        may mean it by that; ``counts`` maps names to files to numbers of definitions there."""
        own = {each.key: each for each in (definition, *self._related(definition)) if each.key not in gone}
        uses = Counter(name for each in own.values() for name in each.uses)
        may_name = self._codebase.may_name
        return all(
            sum(count for path, count in counts.get(name, {}).items() if may_name(path, definition)) <= uses[name]
            for name in definition.names
        )
