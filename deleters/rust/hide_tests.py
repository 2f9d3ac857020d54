"""Takes tests out of test files, with the helpers and tables that nothing else in their file uses.

Tests that a macro defines go with its call, and with the other tests that this defines. A file stays, however little is
left: the module that it is would be missing otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable

from excise.deleters.deletion_record import Changed
from excise.deleters.edits.byte_edits import apply_edits
from excise.deleters.edits.removed_lines import removals
from excise.deleters.rust.tidy import imports_of, tidied
from excise.deleters.test_mentions import Mentions, names_by_file, with_mentions
from excise.extractors.rust.analysis.codebase import RustCodebase
from excise.extractors.rust.analysis.parsed_file import Item, RustModule
from excise.types import TestId, joined

_HELPERS = frozenset(
    {
        "function_item",
        "const_item",
        "static_item",
        "struct_item",
        "enum_item",
        "type_item",
        "impl_item",
        "macro_definition",
    }
)
_CALLS = frozenset({"macro_invocation", "expression_statement"})


def hide(codebase: RustCodebase, tests: Iterable[str], mentions: Mentions) -> tuple[Changed, set[str]]:
    """(test files before and after, ids of the hidden tests) without the ``tests``, and without all that mentions what
    is gone."""
    wanted = names_by_file(codebase, tests)
    changed: dict[str, tuple[bytes, bytes | None]] = {}
    hidden: set[str] = set()
    chosen = {path: _chosen(codebase.modules[path], names) for path, names in wanted.items()}
    _add_mentions(codebase, chosen, mentions)
    for path in {*chosen, *mentions.paths}:
        module, gone = codebase.modules[path], chosen.get(path, [])
        found = {(*item.modules, item.name) for item in gone if item.is_test}
        for call in (item for item in gone if item.kind in _CALLS):
            found |= _defined_by(codebase, path, call)
        _add_unused(module, gone)
        hidden |= {joined(path, *each) for each in found}
        after = _without(codebase, module, gone, mentions.lost)
        if after != module.source:
            changed[path] = (module.source, after)
    return changed, hidden


def _chosen(module: RustModule, names: set[tuple[str, ...]]) -> list[Item]:
    """The test functions with the names, and the calls of macros that define those which no function is."""
    gone = [item for item in module.items if item.is_test and (*item.modules, item.name) in names]
    found = {(*item.modules, item.name) for item in gone}
    return [*gone, *_calls_for(module, names - found)]


def _add_mentions(codebase: RustCodebase, chosen: dict[str, list[Item]], mentions: Mentions) -> None:
    """Add the items of test files that mention what is gone, or an item that does."""
    every = [d for path, module in codebase.modules.items() if codebase.is_test(path) for d in module.definitions]
    within = [d for d in every if any(item.start <= d.start < item.end for item in chosen.get(d.path, ()))]
    for definition in with_mentions(codebase, every, [*within, *mentions.seeds(every)]):
        items = chosen.setdefault(definition.path, [])
        around = (i for i in codebase.modules[definition.path].items if i.start <= definition.start < i.end)
        items += [item for item in around if item not in items]


def _calls_for(module: RustModule, names: Iterable[tuple[str, ...]]) -> list[Item]:
    """Calls of macros that name tests which no function of the file is."""
    calls = [item for item in module.items if item.kind in _CALLS]
    return [c for c in calls if any(name[:-1] in _modules_of(c) and name[-1] in c.uses for name in names)]


def _modules_of(call: Item) -> list[tuple[str, ...]]:
    """The modules that a call of a macro may define tests in: its own, and those that it names itself."""
    return [call.modules, *((*call.modules, name) for name in sorted(call.uses))]


def _defined_by(codebase: RustCodebase, path: str, call: Item) -> set[tuple[str, ...]]:
    """Names of the tests that a call of a macro defines, of those that were run."""
    functions = {(*item.modules, item.name) for item in codebase.modules[path].items if item.is_test}
    known = {TestId.parse(test).names for test in codebase.tests if test.startswith(f"{path}::")} - functions
    return {name for name in known if name[:-1] in _modules_of(call) and name[-1] in call.uses}


def _add_unused(module: RustModule, gone: list[Item]) -> None:
    """Add the items of the file that only what is gone uses."""
    while True:
        left = [item for item in module.items if item not in gone]
        dropped = {name for item in gone for name in item.uses}
        more = [
            item
            for item in left
            if item.kind in _HELPERS
            and not item.is_test
            and item.name in dropped
            and not any(item.name in other.uses for other in left if other.name != item.name)
        ]
        if not more:
            return
        gone += more


def _without(codebase: RustCodebase, module: RustModule, gone: list[Item], lost: frozenset[str]) -> bytes:
    """The file without some items, and without imports that only they used, or that are of what is ``lost``."""
    edits = removals(module.source, [(item.start, item.end) for item in gone])
    edits += imports_of(codebase, module, lost)
    return tidied(module, apply_edits(module.source, edits))
