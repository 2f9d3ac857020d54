"""Takes tests out of test files, with the helpers, fields and imports that nothing else in the file uses."""

from __future__ import annotations

import re
from collections.abc import Iterable

from excise.deleters.deletion_record import Changed
from excise.deleters.edits.byte_edits import Edit, apply_edits
from excise.deleters.java.imports import without_unused_imports
from excise.extractors.java.analysis.codebase import JavaCodebase
from excise.extractors.java.analysis.grammar import FUNCTIONS, TYPES
from excise.extractors.java.analysis.parsed_file import JavaModule, Member
from excise.types import TestId, joined

_TESTS = frozenset({"Test", "ParameterizedTest", "RepeatedTest", "TestFactory", "TestTemplate", "Theory"})
"""Annotations of test methods."""
_CALLED = frozenset(
    {"Before", "After", "BeforeClass", "AfterClass", "BeforeEach", "AfterEach", "BeforeAll", "AfterAll", "Rule",
     "ClassRule", "Parameters", "Parameter", "DataPoint", "DataPoints", "TempDir", "RegisterExtension", "Override"}
)  # fmt: skip
"""Annotations of what test runners, or types of others, call or fill."""
_CALLED_NAMES = frozenset({"setUp", "tearDown", "suite", "main"})
"""Methods that JUnit 3 or a user calls by their names."""


def hide(codebase: JavaCodebase, tests: Iterable[str]) -> tuple[Changed, set[str]]:
    """(test files before and after, ids of the hidden tests) without the test methods ``tests``.

    A test that its class inherits takes the whole file along, and so does the last one of a file.
    """
    wanted: dict[str, set[tuple[str, ...]]] = {}
    for each in map(TestId.parse, tests):
        if each.path in codebase.modules and codebase.is_test(each.path) and each.names:
            wanted.setdefault(each.path, set()).add(each.names)
    changed: dict[str, tuple[bytes, bytes | None]] = {}
    hidden: set[str] = set()
    for path, names in wanted.items():
        module = codebase.modules[path]
        gone = [member for member in module.members if is_test(module, member) and _names(member) & names]
        found = {each for member in gone for each in _names(member)}
        left = [m for m in module.members if is_test(module, m) and m not in gone]
        if names - found or not left:
            hidden |= {joined(path, *each) for each in names}
            hidden |= {joined(path, *each) for m in module.members if is_test(module, m) for each in _names(m)}
            if names - found or not _is_used_by_others(codebase, path):
                changed[path] = (module.source, None)
                continue
        hidden |= {joined(path, *each) for each in found}
        changed[path] = (module.source, _without(codebase, module, gone))
    return changed, hidden


def is_test(module: JavaModule, member: Member) -> bool:
    """Whether a member is a test method: by its annotation, or its name in a class of JUnit 3."""
    if member.kind != "method_declaration" or not member.names:
        return False
    if _TESTS.intersection(member.annotations):
        return True
    is_old = "TestCase" in module.supertypes.get(member.holder, ()) or any(
        name.endswith(("TestCase", "Test")) for name in module.supertypes.get(member.holder, ())
    )
    return is_old and re.match(r"test", member.names[0]) is not None


def _names(member: Member) -> set[tuple[str, ...]]:
    """The names of a method as those of a test's id."""
    return {(*member.holder.split("."), name) for name in member.names}


def _is_used_by_others(codebase: JavaCodebase, path: str) -> bool:
    module = codebase.modules[path]
    return any(
        caller.partition("::")[0] != path
        for symbol in module.symbols
        if symbol.qualname
        for caller in codebase.callers(symbol.symbol_id)
    )


def _without(codebase: JavaCodebase, module: JavaModule, gone: list[Member]) -> bytes:
    """The file without some members, and without what only they used."""
    others = {
        name
        for path, other in codebase.modules.items()
        if path != module.path and codebase.is_test(path)
        for reference in other.references
        for name in [reference.name]
    }
    gone = [*gone, *_emptied(module, gone)]
    while True:
        left = [member for member in module.members if member not in gone]
        dropped = {name for member in gone for name in member.uses}
        more = [member for member in left if _may_go(module, member, dropped, others) and not _is_used(member, left)]
        if not more:
            break
        gone += more
    outer = [m for m in gone if not any(o is not m and o.start <= m.start and m.end <= o.end for o in gone)]
    edits = [Edit(each.start, _with_blank_line(module.source, each.end), b"") for each in outer]
    return without_unused_imports(module, apply_edits(module.source, edits))


def _emptied(module: JavaModule, gone: list[Member]) -> list[Member]:
    """The types inside others that had tests, and have none left in them."""
    had = [member for member in module.members if is_test(module, member)]
    inner = [member for member in module.members if member.kind in TYPES and member.holder]
    inside = {id(each): [m for m in had if each.start <= m.start and m.end <= each.end] for each in inner}
    return [each for each in inner if inside[id(each)] and all(member in gone for member in inside[id(each)])]


def _may_go(module: JavaModule, member: Member, dropped: set[str], others: set[str]) -> bool:
    if not member.holder or not member.names or not dropped.issuperset(member.names):
        return False
    if is_test(module, member) or _CALLED.intersection(member.annotations) or _CALLED_NAMES.intersection(member.names):
        return False
    if member.kind not in FUNCTIONS | TYPES | {"field_declaration", "constant_declaration"}:
        return False
    holder = member.holder.rpartition(".")[2]
    return holder not in member.names and (member.is_private or others.isdisjoint(member.names))


def _is_used(member: Member, left: Iterable[Member]) -> bool:
    """Whether another member that stays, and is not around or in this one, names one of its names."""
    names = set(member.names)
    apart = (o for o in left if o is not member and (o.end <= member.start or o.start >= member.end))
    return any(names & other.uses for other in apart)


def _with_blank_line(source: bytes, end: int) -> int:
    """The end of a member with the blank line after it."""
    line = source.find(b"\n", end)
    return line + 1 if line >= 0 and not source[end:line].strip() else end
