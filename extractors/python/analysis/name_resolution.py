"""Resolve names across files: through imports, re-exports, star imports, and attributes of modules and classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from excise.extractors.python.analysis.module_names import ModuleNames
from excise.extractors.python.analysis.parsed_file import SELF, SUPER, Binding, Import, PythonModule, Reference
from excise.types import SymbolKind

_MAX_DEPTH = 40
"""Longest chain of imports, bases and aliases that is followed."""
_MAX_TRIES = 4
"""How often a name is looked for of which a cycle of imports hides whether there is one."""
_NEVER = 1 << 30


class Entity(NamedTuple):
    """The target of a name: a module (empty ``qualname``), a symbol, or another binding."""

    path: str
    """File; a folder with a trailing ``/`` for a package without ``__init__.py``."""
    qualname: str
    """Dotted name inside the file."""

    @property
    def id(self) -> str:
        """Symbol id of the entity."""
        return f"{self.path}::{self.qualname}" if self.qualname else self.path


class Resolver:
    """Resolves names of a file to entities of the repository; results are cached."""

    def __init__(self, modules: Mapping[str, PythonModule], names: ModuleNames) -> None:
        self.modules = modules
        self.names = names
        self._scopes: dict[str, _ModuleScope] = {}
        self._found: dict[tuple[str | Entity, str], Entity | None] = {}
        self._open: dict[tuple[str | Entity, str], int] = {}
        """What is looked for at the moment, with its depth."""
        self._cut_at = _NEVER
        """The smallest depth of what was asked for again while it was looked for."""
        self._tries = Counter[tuple[str | Entity, str]]()

    def scope(self, path: str) -> _ModuleScope:
        """The module-level and class-level bindings of a file."""
        if path not in self._scopes:
            self._scopes[path] = _ModuleScope(self.modules[path])
        return self._scopes[path]

    # ------------------------------------------------------------------------------------ imports
    def module_of(self, path: str, record: Import) -> Entity | None:
        """The module named by the ``from`` part of an import, or by a plain import."""
        if record.level:
            found = self.names.relative(record.level, record.module, path)
        else:
            found = self.names.absolute(record.module, path)
        return Entity(found, "") if found else None

    def imported(self, path: str, record: Import, depth: int = 0) -> Entity | None:
        """The entity that the local name of an import refers to."""
        if record.name:
            module = self.module_of(path, record)
            return self.attribute(module, record.name, depth + 1) if module else None
        if record.alias:
            return self.module_of(path, record)
        top = record.module.partition(".")[0]
        found = self.names.absolute(top, path)
        return Entity(found, "") if found else None

    # -------------------------------------------------------------------------------------- names
    def name(self, path: str, name: str, depth: int = 0) -> Entity | None:
        """The entity that a module-level name of a file refers to."""
        if path not in self.modules:
            return None
        return self._once((path, name), depth, lambda: self._find_name(path, name, depth))

    def _once(self, key: tuple[str | Entity, str], depth: int, find: Callable[[], Entity | None]) -> Entity | None:
        """What ``find`` gives, kept for the next time; ``None`` while it is looked for, which ends cycles of imports.

        That nothing was found is kept only if no such end of a cycle, which begins further outside, may be the cause.
        """
        if key in self._found:
            return self._found[key]
        if key in self._open:
            self._cut_at = min(self._cut_at, self._open[key])
            return None
        if depth > _MAX_DEPTH:
            return None
        place, cut_outside, self._cut_at = len(self._open), self._cut_at, _NEVER
        self._open[key] = place
        try:
            found = find()
        finally:
            del self._open[key]
        is_cut = self._cut_at < place
        self._tries[key] += is_cut
        if found is not None or not is_cut or self._tries[key] >= _MAX_TRIES:
            self._found[key] = found
        self._cut_at = min(cut_outside, self._cut_at) if is_cut and found is None else cut_outside
        return found

    def _find_name(self, path: str, name: str, depth: int) -> Entity | None:
        scope = self.scope(path)
        if name in scope.symbols:
            return Entity(path, name)
        for record in scope.imports.get(name, ()):
            found = self.imported(path, record, depth)
            if found is not None:
                return found
        if name in scope.imports:
            return None
        if ("", name) in scope.bindings:
            return Entity(path, name)
        for record in scope.stars:
            module = self.module_of(path, record)
            if module is not None and self._star_exports(module.path, name):
                found = self.attribute(module, name, depth + 1)
                if found is not None:
                    return found
        return None

    def _star_exports(self, path: str, name: str) -> bool:
        module = self.modules.get(path)
        if module is None:
            return False
        exported = {e.name for e in module.exports}
        return name in exported if module.has_all and exported else not name.startswith("_")

    # --------------------------------------------------------------------------------- attributes
    def attribute(self, entity: Entity, name: str, depth: int = 0) -> Entity | None:
        """The entity that ``entity.name`` refers to."""
        return self._once((entity, name), depth, lambda: self._find_attribute(entity, name, depth))

    def member(self, path: str, names: Sequence[str]) -> Entity | None:
        """The entity that dotted names lead to from the module of a file."""
        entity = self.name(path, names[0])
        for name in names[1:]:
            entity = self.attribute(entity, name) if entity is not None else None
        return entity

    def _find_attribute(self, entity: Entity, name: str, depth: int) -> Entity | None:
        if not entity.qualname:
            found = self.name(entity.path, name, depth)
            if found is not None:
                return found
            submodule = self.names.submodule(entity.path, name)
            return Entity(submodule, "") if submodule else None
        scope = self.scope(entity.path)
        member = f"{entity.qualname}.{name}"
        if member in scope.symbols or (entity.qualname, name) in scope.bindings:
            return Entity(entity.path, member)
        target = self._alias(entity)
        if target is not None:
            return self.attribute(target, name, depth + 1)
        for base in self.bases(entity):
            found = self.attribute(base, name, depth + 1)
            if found is not None:
                return found
        return None

    def bases(self, entity: Entity) -> list[Entity]:
        """The base classes of a class, as far as they are defined in the repository."""
        scope = self.scope(entity.path)
        found = (self.chain(entity.path, chain, "") for chain in scope.bases.get(entity.qualname, ()))
        return [self.follow(b) for b in found if b is not None and b != entity]

    def with_bases(self, classes: Iterable[Entity]) -> Iterator[Entity]:
        """Classes and all their bases that are defined in the repository, each once."""
        pending, seen = list(classes), set[Entity]()
        while pending:
            entity = pending.pop()
            if entity not in seen:
                seen.add(entity)
                yield entity
                pending += self.bases(entity)

    def follow(self, entity: Entity) -> Entity:
        """The target of an alias such as ``g = f``; other entities unchanged."""
        for _ in range(_MAX_DEPTH):
            target = self._alias(entity)
            if target is None or target == entity:
                return entity
            entity = target
        return entity

    def _alias(self, entity: Entity) -> Entity | None:
        if entity.path not in self.modules:
            return None
        scope = self.scope(entity.path)
        klass, _, name = entity.qualname.rpartition(".")
        binding = scope.bindings.get((klass, name))
        if binding is None or not binding.target or entity.qualname in scope.symbols:
            return None
        return self.chain(entity.path, binding.target, klass, binding.start)

    # ------------------------------------------------------------------------------------- chains
    def prefixes(self, path: str, ref: Reference) -> list[Entity | None]:
        """The entities of a chain's prefixes (``a``, ``a.b``, ``a.b.c``), up to the first that cannot be resolved."""
        parts = ref.chain.split(".")
        start = self._root(path, ref, parts)
        if start is None:
            return []
        found: list[Entity | None] = [start]
        for part in parts[1:]:
            current = found[-1]
            following = self.attribute(current, part) if current is not None else None
            if following is None:
                break
            found.append(following)
        return found

    def _root(self, path: str, ref: Reference, parts: list[str]) -> Entity | None:
        if parts[0] in {SELF, SUPER}:
            return self._enclosing_class(path, ref, parts)
        if not parts[0]:
            return None
        if ref.via >= 0:
            return self.imported(path, self.modules[path].imports[ref.via])
        return self._scoped(path, parts[0], ref.klass, ref.start)

    def _enclosing_class(self, path: str, ref: Reference, parts: list[str]) -> Entity | None:
        scope = self.scope(path)
        klass = ref.owner.rpartition(".")[0]
        if scope.kinds.get(klass) is not SymbolKind.CLASS:
            return None
        entity = Entity(path, klass)
        if parts[0] == SELF:
            return entity
        return next((b for b in self.bases(entity) if self.attribute(b, parts[1])), None)

    def _scoped(self, path: str, name: str, klass: str, position: int) -> Entity | None:
        if klass and self.scope(path).has_member(klass, name, position):
            return Entity(path, f"{klass}.{name}")
        return self.name(path, name)

    def chain(self, path: str, chain: str, klass: str, position: int = 0) -> Entity | None:
        """The entity of a dotted chain at a byte position; ``None`` unless every part can be resolved."""
        first, *rest = chain.split(".")
        entity = self._scoped(path, first, klass, position)
        for part in rest:
            if entity is None:
                return None
            entity = self.attribute(entity, part)
        return entity


class _ModuleScope:
    """The names that one file binds at module and class level."""

    def __init__(self, module: PythonModule) -> None:
        self.kinds = {s.qualname: s.kind for s in module.symbols if s.qualname}
        self.symbols = frozenset(self.kinds)
        self._starts = {s.qualname: s.start for s in module.symbols if s.qualname}
        self.imports: dict[str, list[Import]] = {}
        self.stars: list[Import] = []
        for record in module.imports:
            if record.owner and self.kinds.get(record.owner) is not SymbolKind.CLASS:
                continue
            if record.name == "*":
                self.stars.append(record)
            elif not record.owner:
                self.imports.setdefault(record.bound, []).append(record)
        self.bindings: dict[tuple[str, str], Binding] = {}
        for binding in module.bindings:
            self.bindings.setdefault((binding.klass, binding.name), binding)
        self.bases: dict[str, list[str]] = {}
        for ref in module.references:
            if ref.is_base:
                self.bases.setdefault(ref.owner, []).append(ref.chain)

    def has_member(self, klass: str, name: str, position: int) -> bool:
        """Whether the class body binds the name before the byte position."""
        start = self._starts.get(f"{klass}.{name}")
        if start is not None and start < position:
            return True
        binding = self.bindings.get((klass, name))
        return binding is not None and binding.end <= position
