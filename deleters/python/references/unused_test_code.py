"""Removal of what only hidden tests used: helpers, fixtures and constants of test files and of ``conftest.py``."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from functools import cached_property
from itertools import chain

from tree_sitter import Node

from excise.deleters.python.edits.file_plan import FilePlan
from excise.deleters.python.references.dependent_removal import DependentRemover
from excise.deleters.python.references.remaining_words import RemainingWords, count_words, text_left
from excise.deleters.python.references.unused_code import is_reached_from_elsewhere
from excise.deleters.python.references.uses_by_name import is_fixture
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.extractors.python.analysis.name_resolution import Entity
from excise.types import Symbol, SymbolKind

_OWN_USE = re.compile(r"(?m)\b(?:(?:self|cls)\s*\.\s*|def\s+)(\w+)|^[ \t]+(\w+)[ \t]*(?::[^=\n]*)?=(?!=)")
"""A use, or the definition, of a member of the class that it stands in."""
_TEST_FILE = re.compile(r"test_\w+\.py|\w+_tests?\.py")
"""The name of a file that holds tests, and nothing for others."""
_SETTINGS = ("pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml")
"""Files that may name plug-ins of pytest."""
_UNITTEST = frozenset({"TestCase", "IsolatedAsyncioTestCase", "object"})
_AUTOMATIC = re.compile(r"pytest_|pytestmark$|pytest_plugins$|setup|teardown|setUp|tearDown|load_tests$|runTest$|__")
"""Names that a test runner looks for."""


def support_files(remover: DependentRemover, done: Collection[str]) -> Iterator[str]:
    """Files of the tests beside ``done`` that define something which only removed tests use."""
    words = RemainingWords(remover.codebase, remover.plans)
    names = words.uses_in_removed_tests()
    for path, module in sorted(remover.codebase.modules.items()):
        if path in done or module.has_error or not remover.codebase.is_test(path) or _is_package(path):
            continue
        if any(names.intersection(symbol.name for symbol in module.symbols[1:])) or any(
            binding.name in names for binding in module.bindings
        ):
            plan = remover.plan(path)
            if any(True for _ in _unused(remover, plan, words, names)):
                yield path


def drop_unused_helpers(remover: DependentRemover, path: str) -> None:
    """Remove from a file of the tests what only removed tests used, and what only that used, until there is no more.

    Names of fixtures must stand in no other file of the tests that stay; other names must not be imported by one.
    """
    plan = remover.plan(path)
    if _is_package(path):
        return
    before = -1
    while not plan.deleted and before != (before := len(plan.statements)):
        words = RemainingWords(remover.codebase, remover.plans)
        for start, end in list(_unused(remover, plan, words, words.uses_in_removed_tests())):
            plan.remove_span(start, end)


def _is_package(path: str) -> bool:
    return path.rpartition("/")[2] == "__init__.py"


def _unused(
    remover: DependentRemover, plan: FilePlan, words: RemainingWords, names: Collection[str]
) -> Iterator[tuple[int, int]]:
    """The spans of definitions and assignments of a file that nothing uses any more."""
    own, namesakes = words.globals_of_removed(plan.path), _Namesakes(remover, plan)
    for symbol in plan.module.symbols:
        if symbol.name not in names or not _is_helper(remover, symbol, plan):
            continue
        is_found_by_name = _is_found_by_name(remover, symbol)
        used = words.removed_uses(plan.path) if is_fixture(symbol) else own  # its users have a parameter of its name
        if not _was_used(remover, plan.path, symbol.name, used, is_found_by_name):
            continue
        is_whole = not any(symbol.start <= edit.start < symbol.end for edit in plan.edits())
        inside = count_words(plan.source[symbol.start : symbol.end]).get(symbol.name, 1) if is_whole else 1
        owner = symbol.qualname.rpartition(".")[0]
        if owner and not namesakes.was_used(owner, symbol.name, words):
            continue
        inside += namesakes.num_uses(owner, symbol.name)
        if _is_unused(remover, plan, words, symbol.name, is_found_by_name, symbol.qualname, inside):
            yield symbol.start, symbol.end
    bound = [(b.klass, b.name) for b in plan.module.bindings]
    for binding in plan.module.bindings:
        statement = plan.source[binding.start : binding.end].lstrip()
        is_simple = bound.count((binding.klass, binding.name)) == 1 and statement.startswith(binding.name.encode())
        if binding.name not in names or not is_simple or _AUTOMATIC.match(binding.name):
            continue
        if plan.is_removed(binding.start, binding.end) or not _is_in_body(plan.node_at(binding.start, binding.end)):
            continue
        if binding.klass and not remover.uses.has_known_bases(plan.path, binding.klass):
            continue
        if not _was_used(remover, plan.path, binding.name, own, bool(binding.klass)):
            continue
        if binding.klass and not namesakes.was_used(binding.klass, binding.name, words):
            continue
        inside = count_words(statement).get(binding.name, 1) + namesakes.num_uses(binding.klass, binding.name)
        if _is_unused(remover, plan, words, binding.name, bool(binding.klass), binding.klass, inside):
            yield binding.start, binding.end


class _Namesakes:
    """How often members of classes of a file are used in other classes that have one of the same name of their own."""

    def __init__(self, remover: DependentRemover, plan: FilePlan) -> None:
        self._remover = remover
        self._plan = plan
        self._bases: dict[str, set[str]] = {}

    @cached_property
    def _holders(self) -> dict[str, set[str]]:
        """Qualified name of a class to the names of the members that it defines."""
        holders: dict[str, set[str]] = defaultdict(set)
        for symbol in self._plan.module.symbols:
            if symbol.kind is SymbolKind.METHOD:
                holders[symbol.qualname.rpartition(".")[0]].add(symbol.name)
        for binding in self._plan.module.bindings:
            holders[binding.klass].add(binding.name)
        return holders

    @cached_property
    def _own_uses(self) -> dict[str, dict[str, int]]:
        """Name of a member to each class that defines it and stays, and how often it stands there for its own."""
        holders = self._holders
        found: dict[str, dict[str, int]] = defaultdict(dict)
        for symbol in self._plan.module.symbols:
            names = holders.get(symbol.qualname, set())
            if symbol.kind is SymbolKind.CLASS and names and not self._plan.is_removed(symbol.start, symbol.end):
                left = text_left(self._remover.codebase, self._remover.plans, symbol).decode(errors="replace")
                for name, count in Counter(filter(None, chain.from_iterable(_OWN_USE.findall(left)))).items():
                    if name in names:
                        found[name][symbol.qualname] = count
        return found

    def _bases_of(self, klass: str) -> set[str]:
        if klass not in self._bases:
            entities = self._remover.uses.resolver.with_bases([Entity(self._plan.path, klass)])
            self._bases[klass] = {each.qualname for each in entities}
        return self._bases[klass]

    def _is_related(self, one: str, other: str) -> bool:
        return one in self._bases_of(other) or other in self._bases_of(one)

    def num_uses(self, owner: str, name: str) -> int:
        """How often the name of a member of a class stands for that of an unrelated class."""
        uses = self._own_uses.get(name, {}) if owner else {}
        return sum(count for klass, count in uses.items() if not self._is_related(owner, klass))

    def was_used(self, owner: str, name: str, words: RemainingWords) -> bool:
        """Whether removed code may have used a member of a class: not that of another class which has its own."""
        path, place = self._plan.path, 0
        for each in self._plan.module.symbols:
            has_own = each.kind is SymbolKind.CLASS and name in self._holders.get(each.qualname, ())
            if has_own and each.start >= place and not self._is_related(owner, each.qualname):
                if name in words.removed_uses(path, place, each.start):
                    return True
                place = each.end
        return name in words.removed_uses(path, place) or name in words.uses_in_removed_tests(path)


def _was_used(remover: DependentRemover, path: str, name: str, own: Collection[str], is_found_by_name: bool) -> bool:
    """Whether removed code may have used a name of a file: its own code, importers, or those that find it by name.

    A word of another file that is equal by chance says nothing: what nobody used before stays.
    """
    if name in own or is_found_by_name or path.rpartition("/")[2] == "conftest.py":
        return True
    is_imported = remover.uses.is_named_from(path, name) or any(True for _ in remover.uses.star_importers(path))
    return is_imported or any(True for _ in remover.uses.attribute_reads(path, name))


def _is_unused(
    remover: DependentRemover,
    plan: FilePlan,
    words: RemainingWords,
    name: str,
    is_found_by_name: bool,
    inside: str,
    own: int = 1,
) -> bool:
    """Whether nothing uses a definition any more; ``inside``: its qualified name, or that of the class it is in.

    ``own`` is how often its name stands in itself.
    """
    if words.count_in(name, plan.path) > max(1, own):
        return False
    klass = inside.partition(".")[0]
    is_member = klass not in {"", name} and _has_bases_here(remover, plan.path, klass)
    is_member = is_member and _holds_tests(remover, plan.path, klass)  # other objects may be given to the sources
    if is_member and not is_reached_from_elsewhere(plan.path, klass, remover.uses, remover.plans):
        return True  # a member of a class that no other file has
    if is_found_by_name or plan.path.rpartition("/")[2] == "conftest.py":
        return not words.is_used(name, 0, without=plan.path)
    return not is_reached_from_elsewhere(plan.path, name, remover.uses, remover.plans)


def _is_helper(remover: DependentRemover, symbol: Symbol, plan: FilePlan) -> bool:
    is_special = bool(_AUTOMATIC.match(symbol.name)) or symbol.name.startswith(("test", "Test"))
    if "#" in symbol.qualname or not symbol.qualname or is_special:
        return False
    if plan.is_removed(symbol.start, symbol.end):
        return False
    if any("autouse" in d or "hookimpl" in d or "register" in d for d in symbol.decorators):
        return False
    if symbol.kind is SymbolKind.CLASS and _is_test_case(remover, symbol):
        return False
    owner = symbol.qualname.rpartition(".")[0]
    if symbol.kind is SymbolKind.METHOD:
        return remover.uses.has_known_bases(symbol.path, owner)
    return symbol.kind in {SymbolKind.FUNCTION, SymbolKind.CLASS} and not owner


def _has_bases_here(remover: DependentRemover, path: str, klass: str) -> bool:
    """Whether a class has no base but those of its file and unittest's: others may call its methods."""
    resolver = remover.uses.resolver
    bases = list(resolver.with_bases([Entity(path, klass)]))
    return all(entity.path == path for entity in bases) and all(
        base.rpartition(".")[2] in _UNITTEST or f"{path}::{base}" in remover.codebase.symbols()
        for entity in bases
        for base in resolver.scope(entity.path).bases.get(entity.qualname, ())
    )


def _holds_tests(remover: DependentRemover, path: str, klass: str) -> bool:
    """Whether a class, or one of its file that is derived from it, has tests."""
    resolver = remover.uses.resolver
    classes = (each for each in remover.codebase.modules[path].symbols if each.kind is SymbolKind.CLASS)
    collected = (each for each in classes if each.name.startswith("Test") or _is_test_case(remover, each))
    return any(
        entity == Entity(path, klass)
        for each in collected
        for entity in resolver.with_bases([Entity(path, each.qualname)])
    )


def _is_test_case(remover: DependentRemover, symbol: Symbol) -> bool:
    """Whether a class is one of unittest's cases, which are collected whatever their names are."""
    resolver = remover.uses.resolver
    return any(
        base.endswith("TestCase")
        for entity in resolver.with_bases([Entity(symbol.path, symbol.qualname)])
        for base in resolver.scope(entity.path).bases.get(entity.qualname, ())
    )


def _is_found_by_name(remover: DependentRemover, symbol: Symbol) -> bool:
    """Whether others use a definition without an import: a method, or a fixture; not one that only tests of its file
    can see, as nothing imports or loads that, no shared fixture has the name, and nothing looks for it by a text."""
    if symbol.kind is SymbolKind.METHOD:
        return True
    if not is_fixture(symbol):
        return False
    stem = symbol.path.rpartition("/")[2].removesuffix(".py")
    is_own = stem != "conftest" and symbol.path not in remover.uses.imported
    modules = remover.codebase.modules
    shared = (module.source for path, module in modules.items() if path.rpartition("/")[2] == "conftest.py")
    is_shared = any(re.search(rb"\b%s\b" % re.escape(symbol.name.encode()), source) for source in shared)
    is_taken = is_shared or any(True for _ in remover.uses.star_importers(symbol.path))
    is_found = b"getfixturevalue" in modules[symbol.path].source
    return not is_own or is_taken or is_found or _is_loaded(remover.codebase, symbol.path)


def _is_loaded(codebase: PythonCodebase, path: str) -> bool:
    """Whether another test file, or a file of settings, has a file's name as a module: it may be a plug-in."""
    name = path.rpartition("/")[2].removesuffix(".py").encode()
    if _TEST_FILE.fullmatch(path.rpartition("/")[2]):
        return False
    others = (module.source for other, module in codebase.modules.items() if other != path and codebase.is_test(other))
    settings = map(codebase.others.read, _SETTINGS)
    texts = (*others, *codebase.manifests.values(), *settings)
    return any(re.search(rb"\b%s\b" % re.escape(name), text) for text in texts)


def _is_in_body(assignment: Node) -> bool:
    """Whether an assignment is a statement directly in a module or a class."""
    statement = assignment.parent
    if statement is None or statement.type != "expression_statement" or statement.parent is None:
        return False
    block = statement.parent
    return block.type == "module" or (block.parent is not None and block.parent.type == "class_definition")
