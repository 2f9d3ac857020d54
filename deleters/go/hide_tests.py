"""Takes tests out of test files, with the helpers, tables and imports that nothing else in their package uses."""

from __future__ import annotations

from collections.abc import Iterable

from excise.deleters.deletion_record import Changed
from excise.deleters.edits.byte_edits import Edit, apply_edits
from excise.deleters.go.imports import without_unused_imports
from excise.extractors.go.analysis.codebase import GoCodebase
from excise.extractors.go.analysis.parsed_file import Declaration, parse_file
from excise.types import TestId, joined

_ENTRIES = ("Test", "Example", "Benchmark", "Fuzz")
"""Beginnings of the names of functions that Go itself calls in test files."""


def hide(codebase: GoCodebase, tests: Iterable[str]) -> tuple[Changed, set[str]]:
    """(test files before and after, ids of the hidden tests) without the test functions ``tests``."""
    wanted: dict[str, set[str]] = {}
    for each in map(TestId.parse, tests):
        if each.path in codebase.modules and codebase.is_test(each.path) and each.names:
            wanted.setdefault(each.path, set()).add(each.names[0])
    changed: dict[str, tuple[bytes, bytes | None]] = {}
    hidden: set[str] = set()
    for folder in {tuple(codebase.package_files(path)) for path in wanted}:
        gone = {path: _tests_in(codebase, path, wanted.get(path, set())) for path in folder if codebase.is_test(path)}
        hidden |= {joined(path, name) for path, found in gone.items() for each in found for name in each.names}
        _add_unused(codebase, folder, gone)
        for path, declarations in gone.items():
            if declarations:
                changed[path] = (codebase.modules[path].source, _without(codebase, path, declarations))
    return changed, hidden


def _tests_in(codebase: GoCodebase, path: str, names: set[str]) -> list[Declaration]:
    declared = codebase.modules[path].declarations
    return [each for each in declared if each.kind == "function_declaration" and names.issuperset(each.names)]


def _add_unused(codebase: GoCodebase, folder: Iterable[str], gone: dict[str, list[Declaration]]) -> None:
    """Add the declarations of test files that only what is gone uses, and nothing else in the package."""
    every = [(path, each) for path in folder for each in codebase.modules[path].declarations]
    while True:
        left = [(path, each) for path, each in every if each not in gone.get(path, ())]
        dropped = {name for found in gone.values() for each in found for name in each.uses}
        more = [
            (path, each)
            for path, each in left
            if path in gone and _may_go(each, dropped) and not _is_used(each, [o for _, o in left if o is not each])
        ]
        if not more:
            return
        for path, each in more:
            gone[path].append(each)


def _may_go(declaration: Declaration, dropped: set[str]) -> bool:
    names = {name.rpartition(".")[0] or name for name in declaration.names}
    if not names or not names <= dropped:
        return False
    return not any(name.startswith(_ENTRIES) or name in {"init", "_"} for name in names)


def _is_used(declaration: Declaration, others: Iterable[Declaration]) -> bool:
    """Whether another declaration names one of its names; of a method, its type, which it goes with."""
    names = {name.rpartition(".")[0] or name for name in declaration.names}
    return any(names & other.uses and not _is_method_of(other, names) for other in others)


def _is_method_of(declaration: Declaration, names: set[str]) -> bool:
    return declaration.kind == "method_declaration" and {n.rpartition(".")[0] for n in declaration.names} <= names


def _without(codebase: GoCodebase, path: str, declarations: list[Declaration]) -> bytes | None:
    """The file without some declarations; ``None`` if none is left."""
    module = codebase.modules[path]
    if len(declarations) == len(module.declarations):
        return None
    edits = [Edit(each.start, _with_blank_line(module.source, each.end), b"") for each in declarations]
    after = without_unused_imports(module, apply_edits(module.source, edits))
    return after if parse_file(path, after).declarations else None


def _with_blank_line(source: bytes, end: int) -> int:
    """The end of a declaration with the blank line after it."""
    line = source.find(b"\n", end)
    return line + 1 if line >= 0 and not source[end:line].strip() else end
