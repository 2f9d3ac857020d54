"""Takes tests out of test files, with the helpers, tables and imports that nothing else in their package uses."""

from __future__ import annotations

from collections.abc import Iterable

from excise.deleters.deletion_record import USED_ELSEWHERE, Changed
from excise.deleters.edits.byte_edits import apply_edits
from excise.deleters.edits.removed_lines import removals
from excise.deleters.go.tidy import tidied
from excise.deleters.test_mentions import Mentions, names_by_file, with_mentions
from excise.errors import DeletionRefused
from excise.extractors.compiled_codebase import Definition, DefinitionKind
from excise.extractors.go.analysis.codebase import GoCodebase
from excise.extractors.go.analysis.parsed_file import parse_file
from excise.types import joined

ENTRIES = ("Test", "Example", "Benchmark", "Fuzz")
"""Beginnings of the names of functions that Go itself calls in test files."""


def hide(codebase: GoCodebase, tests: Iterable[str], mentions: Mentions) -> tuple[Changed, set[str]]:
    """(test files before and after, ids of the hidden tests) without the test functions ``tests``, and without all that
    mentions what is gone."""
    wanted = {path: {name for name, *_ in names} for path, names in names_by_file(codebase, tests).items()}
    changed: dict[str, tuple[bytes, bytes | None]] = {}
    hidden: set[str] = set()
    for folder in {tuple(codebase.package_files(path)) for path in {*wanted, *mentions.paths}}:
        every = [each for path in folder for each in codebase.modules[path].definitions]
        in_tests = [each for each in every if codebase.is_test(each.path)]
        gone = [each for each in in_tests if _is_function(each) and each.qualname in wanted.get(each.path, ())]
        gone = with_mentions(codebase, in_tests, [*gone, *mentions.seeds(in_tests)])
        if kept := next((each for each in gone if each.is_fixed), None):
            raise DeletionRefused(f"{kept.key}, which Go calls, needs it", reason=USED_ELSEWHERE)
        hidden |= {each.key for each in gone if _is_function(each) and each.qualname.startswith(ENTRIES)}
        hidden |= {joined(path, name) for path in folder for name in wanted.get(path, ())}
        _add_unused(every, in_tests, gone)
        for path in {each.path for each in gone}:
            changed[path] = (codebase.modules[path].source, _without(codebase, path, gone))
    return changed, hidden


def _is_function(definition: Definition) -> bool:
    return definition.kind is DefinitionKind.FUNCTION and not definition.about


def _names_of(definition: Definition) -> frozenset[str]:
    """The names by which others use a definition; a method goes with its type."""
    return definition.about if definition.kind is DefinitionKind.FUNCTION and definition.about else definition.names


def _add_unused(every: list[Definition], in_tests: list[Definition], gone: list[Definition]) -> None:
    """Add the definitions of test files that only what is gone uses, and nothing else in the package."""
    while True:
        left = [each for each in every if each not in gone]
        dropped = frozenset().union(*(each.uses for each in gone))
        more = [each for each in in_tests if each in left and _may_go(each, dropped) and not _is_used(each, left)]
        if not more:
            return
        gone += more


def _may_go(definition: Definition, dropped: frozenset[str]) -> bool:
    names = _names_of(definition)
    if not names or not names <= dropped or definition.is_fixed:
        return False
    return not (_is_function(definition) and definition.qualname.startswith(ENTRIES))


def _is_used(definition: Definition, left: Iterable[Definition]) -> bool:
    """Whether another definition names one of its names; of a method, its type, which it goes with."""
    names = _names_of(definition)
    return any(names & other.uses and other is not definition and _names_of(other) != names for other in left)


def _without(codebase: GoCodebase, path: str, gone: list[Definition]) -> bytes | None:
    """The file without some definitions; ``None`` if none is left."""
    module = codebase.modules[path]
    edits = removals(module.source, [(each.start, each.end) for each in gone if each.path == path])
    after = tidied(module, apply_edits(module.source, edits))
    return after if parse_file(path, after).definitions else None
