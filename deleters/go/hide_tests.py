"""Takes tests out of test files, with the helpers, tables and imports that nothing else in their package uses."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from tree_sitter import Node

from excise.deleters.deletion_record import USED_ELSEWHERE, Changed
from excise.deleters.edits.byte_edits import apply_edits
from excise.deleters.edits.removed_lines import removals
from excise.deleters.go.tidy import tidied
from excise.deleters.test_mentions import Mentions, names_by_file, with_mentions
from excise.errors import DeletionRefused
from excise.extractors.compiled_codebase import Definition, DefinitionKind
from excise.extractors.go.analysis.codebase import GoCodebase
from excise.extractors.go.analysis.grammar import NAMES, descendants, parse_tree, text
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
        _add_unused(_Uses(codebase), every, in_tests, gone)
        for path in {each.path for each in gone}:
            changed[path] = (codebase.modules[path].source, _without(codebase, path, gone))
    return changed, hidden


def _is_function(definition: Definition) -> bool:
    return definition.kind is DefinitionKind.FUNCTION and not definition.about


def _names_of(definition: Definition) -> frozenset[str]:
    """The names by which others use a definition; a method goes with its type."""
    return definition.about if definition.kind is DefinitionKind.FUNCTION and definition.about else definition.names


class _Uses:
    """The names by which definitions refer to others of their package."""

    def __init__(self, codebase: GoCodebase) -> None:
        self._codebase = codebase
        self._names: dict[str, frozenset[str]] = {}

    def of(self, definition: Definition) -> frozenset[str]:
        """All names in a definition, but for fields, methods, and what other packages have."""
        if definition.key not in self._names:
            module = self._codebase.modules[definition.path]
            root = parse_tree(module.source).root_node
            renamed = {each.name for each in module.imports if each.name}
            nodes = descendants(root.descendant_for_byte_range(definition.code, definition.end) or root)
            inside = (each for each in nodes if definition.code <= each.start_byte < definition.end)
            own = {*renamed, module.package.removesuffix("_test")}
            self._names[definition.key] = frozenset(_package_names(inside, own, module.source))
        return self._names[definition.key]


def _package_names(nodes: Iterable[Node], own: Collection[str], source: bytes) -> Iterator[str]:
    """The names among nodes that may be those of a package's definitions, which ``own`` qualifiers may precede."""
    for node in (each for each in nodes if each.type in NAMES):
        around = node.parent
        parts = {"selector_expression": "operand", "qualified_type": "package"}
        owner = around.child_by_field_name(parts[around.type]) if around is not None and around.type in parts else None
        if owner is not None and owner != node:
            if text(owner, source) not in own:
                continue
        elif node.type == "field_identifier":
            continue
        yield text(node, source)


def _add_unused(uses: _Uses, every: list[Definition], in_tests: list[Definition], gone: list[Definition]) -> None:
    """Add the definitions of test files that only what is gone uses, and nothing else in the package."""
    while True:
        left = [each for each in every if each not in gone]
        dropped = frozenset().union(*(each.uses for each in gone))
        more = [each for each in in_tests if each in left and _may_go(each, dropped) and not _is_used(uses, each, left)]
        if not more:
            return
        gone += more


def _may_go(definition: Definition, dropped: frozenset[str]) -> bool:
    names = _names_of(definition)
    if not names or not names <= dropped or definition.is_fixed:
        return False
    return not (_is_function(definition) and definition.qualname.startswith(ENTRIES))


def _is_used(uses: _Uses, definition: Definition, left: Iterable[Definition]) -> bool:
    """Whether another definition names one of its names; of a method, its type, which it goes with."""
    names = _names_of(definition)
    others = (each for each in left if each is not definition and _names_of(each) != names and names & each.uses)
    return any(names & uses.of(each) for each in others)


def _without(codebase: GoCodebase, path: str, gone: list[Definition]) -> bytes | None:
    """The file without some definitions; ``None`` if none is left."""
    module = codebase.modules[path]
    edits = removals(module.source, [(each.start, each.end) for each in gone if each.path == path])
    after = tidied(module, apply_edits(module.source, edits))
    return after if parse_file(path, after).definitions else None
