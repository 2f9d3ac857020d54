"""Index of the uses of names in a codebase: in import statements and in code that runs at import."""

from __future__ import annotations

import io
import re
from argparse import ArgumentParser
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from email.message import Message
from functools import cached_property
from itertools import pairwise
from logging import Logger
from pathlib import Path
from posixpath import dirname
from queue import Queue
from socket import socket
from subprocess import Popen
from threading import Lock, Thread
from typing import NamedTuple
from weakref import WeakKeyDictionary
from xml.etree.ElementTree import Element

from excise.extractors.python.analysis.codebase import BUILTIN_ATTRIBUTES, PythonCodebase
from excise.extractors.python.analysis.name_resolution import Entity
from excise.extractors.python.analysis.parsed_file import Import, Phase, Reference
from excise.types import SymbolKind

_DOTTED_STRING = re.compile(rb"""["']((?:\w+\.)+\w+)["']""")
"""A string that is a dotted name."""
_SET_NAME = re.compile(rb"""(?:(?<!get)(?<!has)attr|object)\(\s*([\w.]+)\s*,\s*["'](\w+)["']""")
"""A name that is set, or replaced, in an object: ``setattr(cli, "json", …)``, ``patch.object(cli, "json")``."""


MIN_DISTINCTIVE = 6
"""Length from which on a name of one word is one that other projects' objects seldom have."""
_PLAIN_BASES = frozenset(
    {
        "object", "TestCase", "IsolatedAsyncioTestCase", "Enum", "IntEnum", "StrEnum", "Flag", "IntFlag", "ABC",
        "Exception", "ValueError", "TypeError", "KeyError", "RuntimeError", "NamedTuple", "Generic", "Protocol", "dict",
        "list", "set", "tuple", "str", "int", "float",
    }
)  # fmt: skip
"""Base classes from outside that use no names of their own of a class, but for special ones."""


_COMMON = frozenset(
    name
    for kind in (
        io.TextIOWrapper, io.BytesIO, Path, datetime, timedelta, re.Pattern, re.Match, Logger, Thread, socket, Popen,
        Decimal, deque, OrderedDict, ArgumentParser, Element, Lock, Queue, Message,
    )
    for name in dir(kind)
)  # fmt: skip
"""Attributes of objects that are often not of the repository."""


class LostBinding(NamedTuple):
    """A binding that no longer exists: a module-level name, ``Class.attr``, or a module."""

    path: str
    """File of the binding."""
    qualname: str
    """Dotted name; empty for the module itself."""

    @property
    def name(self) -> str:
        """The last part of the dotted name."""
        return self.qualname.rpartition(".")[2]


class UseIndex:
    """Finds code that depends on a binding and runs while modules are imported."""

    def __init__(self, codebase: PythonCodebase) -> None:
        self.codebase = codebase
        self.resolver = codebase.resolver

    @cached_property
    def _references(self) -> dict[str, list[tuple[str, Reference]]]:
        return self._by_part(lambda ref: ref.phase is not Phase.LAZY and ref.via < 0)

    @cached_property
    def _later_references(self) -> dict[str, list[tuple[str, Reference]]]:
        return self._by_part(lambda ref: ref.phase is Phase.LAZY)

    def _by_part(self, is_wanted: Callable[[Reference], bool]) -> dict[str, list[tuple[str, Reference]]]:
        """Part of a chain to the wanted references that have it."""
        found: dict[str, list[tuple[str, Reference]]] = defaultdict(list)
        for path, module in self.codebase.modules.items():
            for ref in filter(is_wanted, module.references):
                for part in set(ref.chain.split(".")):
                    found[part].append((path, ref))
        return found

    @cached_property
    def _imports(self) -> dict[str, list[tuple[str, Import]]]:
        found: dict[str, list[tuple[str, Import]]] = defaultdict(list)
        for path, module in self.codebase.modules.items():
            for record in module.imports:
                for name in {record.name, *record.module.split(".")}:
                    found[name].append((path, record))
        return found

    @cached_property
    def imported(self) -> frozenset[str]:
        """Paths of the files that another file imports, also inside functions."""
        found: set[str] = set()
        for path, module in self.codebase.modules.items():
            for record in module.imports:
                source = self.resolver.module_of(path, record)
                entity = self.resolver.imported(path, record) if record.name != "*" else None
                found.update(e.path for e in (source, entity) if e is not None and e.path != path)
                found.update(self._parents(path, record))
        return frozenset(found)

    def _parents(self, path: str, record: Import) -> Iterator[str]:
        parts = record.module.split(".")
        for count in range(1, len(parts)):
            found = self.codebase.names.absolute(".".join(parts[:count]), path) if not record.level else None
            if found:
                yield found

    def is_script(self, path: str) -> bool:
        """Whether a file is run but never imported: set-up code, examples, benchmarks, build tools."""
        return (
            path not in self.imported
            and not self.codebase.is_test(path)
            and dirname(path) not in self.codebase.names.packages
        )

    def is_loose_test_file(self, path: str) -> bool:
        """Whether a test file is neither imported nor collected by pytest, such as a file for type checkers."""
        name = path.rpartition("/")[2]
        collected = name.startswith("test") or name.endswith(("_test.py", "_tests.py")) or name == "conftest.py"
        return self.codebase.is_test(path) and not collected and path not in self.imported

    # -------------------------------------------------------------------------------------- uses
    def references_to(self, lost: LostBinding) -> Iterator[tuple[str, Reference]]:
        """References outside function bodies whose chain contains the lost binding."""
        for path, ref in self._references.get(lost.name or self._module_name(lost.path), ()):
            if self._passes_through(path, ref, lost):
                yield path, ref

    def later_references_to(self, lost: LostBinding) -> Iterator[tuple[str, Reference]]:
        """References inside function bodies whose chain contains the lost binding."""
        for path, ref in self._later_references.get(lost.name or self._module_name(lost.path), ()):
            if self._passes_through(path, ref, lost):
                yield path, ref

    def likely_references_to(self, lost: LostBinding) -> Iterator[tuple[str, Reference]]:
        """Attributes of unknown objects inside function bodies, if the lost binding is the only method of this name, or
        the object is an attribute that the file gives an object of the class."""
        for path, ref in self.possible_references_to(lost):
            is_only = lost.name not in _COMMON and f"{lost.path}::{lost.qualname}" in self.codebase.targets(path, ref)
            if is_only or self._is_of_class(path, ref, lost):
                yield path, ref

    def _is_of_class(self, path: str, ref: Reference, lost: LostBinding) -> bool:
        """Whether a method is one of an attribute (``a.b.method``) that the file gives a new object of its class."""
        *_, attribute, name = ["", "", *ref.chain.split(".")]
        owner = lost.qualname.rpartition(".")[0]
        if name != lost.name or not owner or ref.chain.count(".") < 2:
            return False
        made = rf"\.{re.escape(attribute)}\s*(?::[^=\n]+)?=\s*(?:\w+\.)*{re.escape(owner)}\("
        return re.search(made.encode(), self.codebase.modules[path].source) is not None

    def possible_references_to(self, lost: LostBinding) -> Iterator[tuple[str, Reference]]:
        """Attributes inside function bodies that have the name of a lost method, and may be of any object.

        Those with the name of a lost function, which other modules have, too, may be of its module: an object holds one
        of them.
        """
        is_method = "." in lost.qualname
        if lost.name in BUILTIN_ATTRIBUTES or lost.name.startswith("__") or not (is_method or self._has_twin(lost)):
            return
        for path, ref in self.attributes_named(lost.name):
            head = ref.chain.rpartition(".")[0]
            is_own = head.startswith("<") and "." not in head
            num_known = 2 if is_method else head.count(".") + 2
            if not is_own and len(self.resolver.prefixes(path, ref)) < num_known:
                yield path, ref

    def _has_twin(self, lost: LostBinding) -> bool:
        """Whether it is a function of the sources, and another module has one of the same name."""
        paths = self._functions.get(lost.qualname, ())
        return lost.path in paths and any(path != lost.path for path in paths)

    @cached_property
    def _functions(self) -> dict[str, list[str]]:
        """Name to the paths of the sources that have a function of this name."""
        found: dict[str, list[str]] = defaultdict(list)
        for symbol in self.codebase.symbols().values():
            is_top = symbol.kind is SymbolKind.FUNCTION and "." not in symbol.qualname
            if is_top and not self.codebase.is_test(symbol.path):
                found[symbol.qualname].append(symbol.path)
        return found

    def is_distinctive(self, name: str) -> bool:
        """Whether a name is that of one method alone, and of no attribute of common objects."""
        symbols = self.codebase.symbols().values()
        methods = [s for s in symbols if s.name.partition("#")[0] == name and not self.codebase.is_test(s.path)]
        is_short = "_" not in name.strip("_") and len(name) < MIN_DISTINCTIVE
        if is_short or name in _COMMON or len({s.qualname.partition("#")[0] for s in methods}) != 1:
            return False
        return not any(ref.is_assigned for _, ref in self.attributes_named(name))

    def attributes_named(self, name: str) -> Iterator[tuple[str, Reference]]:
        """Attributes of any object with this name inside function bodies: read, assigned and deleted ones."""
        return (each for each in self._later_references.get(name, ()) if _is_attribute(each[1], name))

    def attributes_at_import(self, name: str) -> Iterator[tuple[str, Reference]]:
        """Attributes of any object with this name that are read when their modules are imported."""
        return (each for each in self._references.get(name, ()) if _is_attribute(each[1], name))

    def attributes_with(self, name: str) -> Iterator[tuple[str, Reference]]:
        """Like :meth:`attributes_named`, and those of which an attribute is used: ``self.name.get``."""
        for path, ref in self._later_references.get(name, ()):
            if name in ref.chain.split(".")[1:]:
                yield path, ref

    def _passes_through(self, path: str, ref: Reference, lost: LostBinding) -> bool:
        parts = ref.chain.split(".")
        inside = "." not in lost.qualname and bool(lost.qualname)
        if inside and path == lost.path and parts[0] == lost.qualname and not self._shadowed(path, ref, parts[0]):
            return True
        target = Entity(lost.path, lost.qualname)
        prefixes = self.resolver.prefixes(path, ref)
        if target in prefixes:
            return True
        if not inside:
            return False
        module = Entity(lost.path, "")
        return any(e == module and parts[i + 1 : i + 2] == [lost.qualname] for i, e in enumerate(prefixes))

    def _shadowed(self, path: str, ref: Reference, name: str) -> bool:
        return bool(ref.klass) and self.resolver.scope(path).has_member(ref.klass, name, ref.start)

    def importers_of(self, lost: LostBinding) -> Iterator[tuple[str, Import]]:
        """Import clauses outside functions that need the lost binding."""
        return (each for each in self._importers_of(lost) if self.at_import(*each))

    def later_importers_of(self, lost: LostBinding) -> Iterator[tuple[str, Import]]:
        """Import clauses in functions that need the lost binding."""
        return (each for each in self._importers_of(lost) if not self.at_import(*each))

    def _importers_of(self, lost: LostBinding) -> Iterator[tuple[str, Import]]:
        if "." in lost.qualname:
            return
        module = Entity(lost.path, "")
        name = lost.qualname or self._module_name(lost.path)
        candidates = [*self._imports.get(name, ())]
        if not lost.qualname:
            candidates += [c for c in self._imports.get("*", ()) if c not in candidates]
            candidates += self._relative_to(lost.path)
        for path, record in dict.fromkeys(candidates):
            if self._needs(path, record, lost, module):
                yield path, record

    def _relative_to(self, path: str) -> list[tuple[str, Import]]:
        """Clauses such as ``from . import x``, which import a package without naming it."""
        return self._imports.get("", []) if path.endswith("__init__.py") else []

    def _needs(self, path: str, record: Import, lost: LostBinding, module: Entity) -> bool:
        source = self.resolver.module_of(path, record)
        if lost.qualname:
            return record.name == lost.qualname and source == module
        if source == module:
            return True
        return record.name not in {"", "*"} and self.resolver.imported(path, record) == module

    def at_import(self, path: str, record: Import) -> bool:
        """Whether an import clause is outside functions."""
        return not record.owner or self.resolver.scope(path).kinds.get(record.owner) is SymbolKind.CLASS

    def star_importers(self, path: str) -> Iterator[str]:
        """Other files with a star import of a file."""
        for importer, record in self._imports.get("*", ()):
            if self.resolver.module_of(importer, record) == Entity(path, "") and importer != path:
                yield importer

    def named_from(self, path: str, name: str) -> Iterator[tuple[str, Import]]:
        """Imports of a name from a file in other files, also inside functions."""
        module = Entity(path, "")
        for importer, record in self._imports.get(name, ()):
            if record.name == name and importer != path and self.resolver.module_of(importer, record) == module:
                yield importer, record

    def is_named_from(self, path: str, name: str) -> bool:
        """Whether another file imports a name from a file, also inside functions."""
        return any(True for _ in self.named_from(path, name))

    def replacements_of(self, path: str, name: str) -> Iterator[tuple[str, int, int]]:
        """Path and span of strings that may name a name of a file to replace it, as ``patch("module.name")`` and
        ``setattr`` do."""
        yield from (place for place, owner in self._set_names.get(name, ()) if not self._is_foreign(place[0], owner))
        yield from self._dotted_strings.get(f"{self._module_name(path)}.{name}", ())

    @cached_property
    def _set_names(self) -> dict[str, list[tuple[tuple[str, int, int], str]]]:
        """Name to the places where it is set, each with the object that gets it."""
        found: dict[str, list[tuple[tuple[str, int, int], str]]] = defaultdict(list)
        for path, module in self.codebase.modules.items():
            for match in _SET_NAME.finditer(module.source):
                owner, name = (part.decode("utf-8", "replace") for part in match.groups())
                found[name].append(((path, *match.span()), owner))
        return found

    def dotted_strings(self, dotted: str) -> Iterator[tuple[str, int, int]]:
        """Path and span of the strings, quotes included, that are a dotted name and nothing else."""
        for path, start, end in self._dotted_strings.get(".".join(dotted.split(".")[-2:]), ()):
            if self.codebase.modules[path].source[start + 1 : end - 1] == dotted.encode():
                yield path, start, end

    def _is_foreign(self, path: str, owner: str) -> bool:
        """Whether a dotted name begins with what a file imports from outside the repository."""
        records = self.resolver.scope(path).imports.get(owner.partition(".")[0], ())
        known = [self.resolver.module_of(path, r) or (r.name and self.resolver.imported(path, r)) for r in records]
        return bool(records) and not any(known)

    @cached_property
    def _dotted_strings(self) -> dict[str, list[tuple[str, int, int]]]:
        """Two neighbouring parts of dotted names to the strings that they stand in."""
        found: dict[str, list[tuple[str, int, int]]] = defaultdict(list)
        for path, module in self.codebase.modules.items():
            for match in _DOTTED_STRING.finditer(module.source):
                for first, second in pairwise(match[1].decode("utf-8", "replace").split(".")):
                    found[f"{first}.{second}"].append((path, *match.span()))
        return found

    def attribute_reads(self, path: str, name: str) -> Iterator[tuple[str, Reference]]:
        """References in other files, also inside functions, that use a name as ``module.name``."""
        module = Entity(path, "")
        for other, ref in self._attribute_uses.get(name, ()):
            if other != path:
                prefixes = self.resolver.prefixes(other, ref)
                parts = ref.chain.split(".")
                if any(e == module and parts[i + 1 : i + 2] == [name] for i, e in enumerate(prefixes)):
                    yield other, ref

    @cached_property
    def _attribute_uses(self) -> dict[str, list[tuple[str, Reference]]]:
        found: dict[str, list[tuple[str, Reference]]] = defaultdict(list)
        for path, module in self.codebase.modules.items():
            for ref in module.references:
                root, _, rest = ref.chain.partition(".")
                if rest and root and not root.startswith("<"):
                    for part in set(rest.split(".")):
                        found[part].append((path, ref))
        return found

    def has_known_bases(self, path: str, klass: str) -> bool:
        """Whether all base classes are in the repository, or known to look for no private names in a class."""
        pending, done = [Entity(path, klass)], set[Entity]()
        while pending:
            entity = pending.pop()
            if entity in done:
                continue
            done.add(entity)
            for chain in self.resolver.scope(entity.path).bases.get(entity.qualname, ()):
                base = self.resolver.chain(entity.path, chain, "")
                if base is not None and base.path in self.codebase.modules:
                    pending.append(self.resolver.follow(base))
                elif chain.rpartition(".")[2] not in _PLAIN_BASES:
                    return False
        return True

    def _module_name(self, path: str) -> str:
        return self.codebase.names.name_of(path).rpartition(".")[2]


def _is_attribute(ref: Reference, name: str) -> bool:
    """Whether a reference is to an attribute of this name, of whatever object."""
    head, _, last = ref.chain.rpartition(".")
    return last == name and (bool(head) or ref.chain.startswith("."))


_INDICES: WeakKeyDictionary[PythonCodebase, UseIndex] = WeakKeyDictionary()


def use_index(codebase: PythonCodebase) -> UseIndex:
    """The index of a codebase; cached as long as the codebase is alive."""
    if codebase not in _INDICES:
        _INDICES[codebase] = UseIndex(codebase)
    return _INDICES[codebase]
