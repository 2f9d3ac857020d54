"""Takes tests out of test files, with the helpers and tables that nothing else in their file uses.

Tests that a macro defines go with its call, and with the other tests that this defines. A file stays, however little is
left: the module that it is would be missing otherwise.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from tree_sitter import Node

from excise.deleters.deletion_record import Changed
from excise.deleters.edits.byte_edits import Edit, apply_edits
from excise.deleters.edits.removed_lines import removals
from excise.deleters.rust.tidy import imports_of, tidied
from excise.deleters.test_mentions import Mentions, names_by_file, with_mentions
from excise.extractors.rust.analysis.codebase import RustCodebase
from excise.extractors.rust.analysis.grammar import descendants, field_text, parse_tree, text
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
        shorter = _shorter_calls(module, gone)
        _add_unused(module, gone)
        hidden |= {joined(path, *each) for each in found}
        after = _without(codebase, module, gone, mentions.lost, shorter)
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


def _shorter_calls(module: RustModule, gone: list[Item]) -> list[Edit]:
    """The edits that take names which calls of macros among ``gone`` define out of lists that are calls of others, such
    as ``criterion_main!(first, second)``; calls of which nothing would be left are added to ``gone``."""
    if not any(item.kind in _CALLS for item in gone):
        return []
    arguments = _arguments_of_calls(module)
    edits: dict[int, Edit] = {}
    while True:
        left = [item for item in module.items if item not in gone]
        definers = {_macro_of(arguments[item.start], module.source) for item in gone if item.start in arguments}
        others = [
            item
            for item in left
            if item.start in arguments and _macro_of(arguments[item.start], module.source) not in definers
        ]
        lists = {item.start: _names_in_list(arguments[item.start], module.source) for item in others}
        kept = {name for item in left if not lists.get(item.start) for name in (item.name, *item.uses)}
        defined = {_first_name(arguments[i.start], module.source) for i in gone if i.start in arguments} - kept
        emptied = [item for item in others if lists[item.start] and defined.issuperset(lists[item.start])]
        for item in others:
            names = [name for name in lists[item.start] if name not in defined]
            if names != lists[item.start]:
                edits[item.start] = _list_of(names, arguments[item.start], module.source)
        gone += emptied
        if not emptied:
            return [edit for start, edit in edits.items() if any(item.start == start for item in left)]


def _arguments_of_calls(module: RustModule) -> dict[int, Node]:
    """The first byte of each call of a macro among the items of a file to the tree of its arguments."""
    nodes = descendants(parse_tree(module.source).root_node)
    trees = [
        n for n in nodes if n.type == "token_tree" and n.parent is not None and n.parent.type == "macro_invocation"
    ]
    starts = [tree.start_byte for tree in trees]
    calls = ((item, bisect_left(starts, item.start)) for item in module.items if item.kind in _CALLS)
    return {item.start: trees[i] for item, i in calls if i < len(trees) and starts[i] < item.end}


def _macro_of(tree: Node, source: bytes) -> str:
    """The name of the macro that has some arguments."""
    return field_text(tree.parent, "macro", source) if tree.parent is not None else ""


def _first_name(tree: Node, source: bytes) -> str:
    """The name that a call of a macro defines, by its arguments: ``X`` of ``(X, …)`` and of ``(name = X; …)``."""
    tokens = [text(each, source) for each in tree.children[1:4]]
    return tokens[2] if tokens[:2] == ["name", "="] else tokens[0]


def _names_in_list(tree: Node, source: bytes) -> list[str]:
    """The names or paths that are all of the arguments of a macro; none if there are others."""
    if any(each.type not in {"identifier", "::", ",", "self", "crate", "super"} for each in tree.children[1:-1]):
        return []
    inner = source[tree.start_byte + 1 : tree.end_byte - 1].decode("utf-8", "replace")
    return [name for each in inner.split(",") if (name := each.strip())]


def _list_of(names: Sequence[str], tree: Node, source: bytes) -> Edit:
    """The edit that makes names the arguments of a macro, with the blanks that the first two of them have."""
    inner = source[tree.start_byte + 1 : tree.end_byte - 1].decode("utf-8", "replace")
    first, _, rest = inner.partition(",")
    before, between = (each[: len(each) - len(each.lstrip())] for each in (first, rest))
    end = inner[len(inner.rstrip().rstrip(",").rstrip()) :]
    return Edit(tree.start_byte + 1, tree.end_byte - 1, f"{before}{f',{between}'.join(names)}{end}".encode())


def _without(
    codebase: RustCodebase, module: RustModule, gone: list[Item], lost: frozenset[str], more: Sequence[Edit]
) -> bytes:
    """The file after ``more`` edits, without some items, and without imports that only they used, or that are of what
    is ``lost``."""
    edits = [*more, *removals(module.source, [(item.start, item.end) for item in gone])]
    edits += imports_of(codebase, module, lost)
    return tidied(module, apply_edits(module.source, edits))
