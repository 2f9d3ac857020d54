"""Takes tests out of test files, with the helpers, fields and imports that nothing else in the file uses."""

from __future__ import annotations

from collections.abc import Iterable

from excise.deleters.deletion_record import Changed
from excise.deleters.edits.byte_edits import Edit, apply_edits
from excise.deleters.edits.removed_lines import removals
from excise.deleters.java.tidy import tidied
from excise.deleters.test_mentions import Mentions, names_by_file, with_mentions
from excise.extractors.compiled_codebase import Definition
from excise.extractors.java.analysis.codebase import JavaCodebase
from excise.extractors.java.analysis.grammar import TYPES
from excise.extractors.java.analysis.parsed_file import JavaModule, Member
from excise.types import joined

_TESTS = frozenset({"Test", "ParameterizedTest", "RepeatedTest", "TestFactory", "TestTemplate", "Theory"})
"""Annotations of test methods."""
_CALLED = frozenset(
    {"Before", "After", "BeforeClass", "AfterClass", "BeforeEach", "AfterEach", "BeforeAll", "AfterAll", "Rule",
     "ClassRule", "Parameters", "Parameter", "DataPoint", "DataPoints", "TempDir", "RegisterExtension", "Override"}
)  # fmt: skip
"""Annotations of what test runners, or types of others, call or fill."""
_CALLED_NAMES = frozenset({"setUp", "tearDown", "suite", "main"})
"""Methods that JUnit 3 or a user calls by their names."""


def hide(codebase: JavaCodebase, tests: Iterable[str], mentions: Mentions) -> tuple[Changed, set[str]]:
    """(test files before and after, ids of the hidden tests) without the test methods ``tests``, and without all that
    mentions what is gone.

    A test that its class inherits takes the whole file along, and so does the last one of a file.
    """
    wanted = names_by_file(codebase, tests)
    named = {m for path, names in wanted.items() for m in _tests_of(codebase, path) if _names(m) & names}
    every = _gone(codebase, named, mentions)
    changed: dict[str, tuple[bytes, bytes | None]] = {}
    hidden: set[str] = set()
    for path in {*wanted, *(member.path for member in every)}:
        module, names = codebase.modules[path], wanted.get(path, set())
        gone = [member for member in module.definitions if member in every]
        found = {each for member in gone if is_test(module, member) for each in _names(member)}
        left = [member for member in _tests_of(codebase, path) if member not in every]
        hidden |= {joined(path, *each) for each in found}
        is_whole = bool(names - found) or any(not member.holder for member in gone)
        if is_whole or not left:
            hidden |= {joined(path, *each) for each in names}
            hidden |= {joined(path, *each) for member in _tests_of(codebase, path) for each in _names(member)}
            if is_whole or not _is_used_by_others(codebase, path, every):
                changed[path] = (module.source, None)
                continue
        changed[path] = (module.source, _without(codebase, module, gone, mentions.lost))
    return changed, hidden


def _tests_of(codebase: JavaCodebase, path: str) -> list[Member]:
    module = codebase.modules[path]
    return [member for member in module.definitions if is_test(module, member)]


def _gone(codebase: JavaCodebase, named: set[Member], mentions: Mentions) -> set[Member]:
    """The members ``named``, and all that mentions what is gone; what JUnit calls takes its type along."""
    files = {path: codebase.modules[path].definitions for path in codebase.modules if codebase.is_test(path)}
    every = [member for members in files.values() for member in members]
    seeds: list[Definition] = [*named, *mentions.seeds(every)]
    while True:
        found = {each.key for each in with_mentions(codebase, every, seeds)}
        gone = {member for member in every if member.key in found}
        called = {joined(m.path, m.holder) for m in gone - named if _is_called(m) or m.is_fixed}
        more = [member for member in every if member.key in called and member not in gone]
        if not more:
            return gone
        seeds += more


def _is_called(member: Member) -> bool:
    """Whether a test runner calls or fills a member, or a type of others asks for it."""
    return bool(_CALLED.intersection(member.annotations) or _CALLED_NAMES & member.names)


def is_test(module: JavaModule, member: Member) -> bool:
    """Whether a member is a test method: by its annotation, or its name in a class of JUnit 3."""
    if member.node != "method_declaration" or not member.names:
        return False
    if _TESTS.intersection(member.annotations):
        return True
    is_old = "TestCase" in module.supertypes.get(member.holder, ()) or any(
        name.endswith(("TestCase", "Test")) for name in module.supertypes.get(member.holder, ())
    )
    return is_old and any(name.startswith("test") for name in member.names)


def _names(member: Member) -> set[tuple[str, ...]]:
    """The names of a method as those of a test's id."""
    return {(*member.holder.split("."), name) for name in member.names}


def _is_used_by_others(codebase: JavaCodebase, path: str, gone: set[Member]) -> bool:
    """Whether other files use a type of a file, besides what is gone."""
    keys = {member.key for member in gone}
    return any(
        caller not in keys and caller.partition("::")[0] != path
        for symbol in codebase.modules[path].symbols
        if symbol.qualname
        for caller in codebase.callers(symbol.symbol_id)
    )


def _without(codebase: JavaCodebase, module: JavaModule, gone: list[Member], lost: frozenset[str]) -> bytes:
    """The file without some members, without what only they used, and without imports of what is ``lost``."""
    others = {
        name
        for path, other in codebase.modules.items()
        if path != module.path and codebase.is_test(path)
        for reference in other.references
        for name in [reference.name]
    }
    gone = [*gone, *_emptied(module, gone)]
    while True:
        left = [member for member in module.definitions if member not in gone]
        dropped = frozenset().union(*(member.uses for member in gone))
        more = [member for member in left if _may_go(module, member, dropped, others) and not _is_used(member, left)]
        if not more:
            break
        gone += more
    outer = [m for m in gone if not any(o is not m and o.start <= m.start and m.end <= o.end for o in gone)]
    edits = removals(module.source, [(each.start, each.end) for each in outer])
    edits += [Edit(each.start, each.end) for each in module.imports if each.name in lost and codebase.is_own(each)]
    return tidied(module, apply_edits(module.source, edits))


def _emptied(module: JavaModule, gone: list[Member]) -> list[Member]:
    """The types inside others that had tests, and have none left in them."""
    had = [member for member in module.definitions if is_test(module, member)]
    inner = [member for member in module.definitions if member.node in TYPES and member.holder]
    inside = {id(each): [m for m in had if each.start <= m.start and m.end <= each.end] for each in inner}
    return [each for each in inner if inside[id(each)] and all(member in gone for member in inside[id(each)])]


def _may_go(module: JavaModule, member: Member, dropped: frozenset[str], others: set[str]) -> bool:
    if not member.holder or not member.names or not member.names <= dropped:
        return False
    if is_test(module, member) or _is_called(member) or member.is_fixed:
        return False
    return member.is_of_file or others.isdisjoint(member.names)


def _is_used(member: Member, left: Iterable[Member]) -> bool:
    """Whether another member that stays, and is not in this one, names one of its names."""
    apart = (o for o in left if o is not member and not (member.start <= o.start and o.end <= member.end))
    return any(member.names & other.uses for other in apart)
