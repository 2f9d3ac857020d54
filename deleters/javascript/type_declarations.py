"""Removes functions, classes, their members and their types from the ``.d.ts`` files beside the code."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from tree_sitter import Node

from excise.deleters.deletion_record import Changed
from excise.deleters.documents.lost_names import LeftSources
from excise.deleters.edits.byte_edits import apply_edits
from excise.deleters.javascript.byte_spans import Range, removals
from excise.deleters.javascript.left_exports import LeftExports
from excise.deleters.javascript.mentions import left_sources, qualified_name
from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.extractors.javascript.analysis.declaration_files import DECLARATIONS
from excise.extractors.javascript.analysis.grammar import (
    CLASSES,
    DECLARED,
    TYPES,
    VARIABLES,
    children,
    descendants,
    parse_tree,
    text,
)
from excise.types import Symbol

_NAMED = frozenset({"function_signature", *DECLARED, *CLASSES})
_WRAPPERS = frozenset({"export_statement", "ambient_declaration"})
_WITH_MEMBERS = frozenset({"interface_declaration", "type_alias_declaration", *CLASSES})
_NAMESPACES = frozenset({"internal_module", "module"})
_BODIES = frozenset({"interface_body", "object_type", "class_body"})


class TypeNames(NamedTuple):
    """The names of what is removed, as declarations of types and tests of these have them."""

    functions: frozenset[str]
    """Functions, classes and values at the main level of a module."""
    members: frozenset[tuple[str, str]]
    """Members of classes, with the names of these."""
    alone: frozenset[str]
    """Those of both that no code which stays has."""


def names_in_types(codebase: JavaScriptCodebase, removed: Iterable[Symbol], sources: Changed) -> TypeNames:
    """The names of removed definitions; ``sources`` are the files that a removal changes."""
    paths = [qualified_name(symbol) for symbol in removed]
    functions = frozenset(parts[0] for parts in paths if len(parts) == 1)
    members = frozenset((p[-2], p[-1]) for p in paths if len(p) > 1 and p[-1] != "constructor")
    left = left_sources(codebase, sources)
    every = functions | {name for _, name in members}
    return TypeNames(functions, members, frozenset(name for name in every if not left.have(name)))


class ShortenedDeclarations(NamedTuple):
    """A declaration file that loses declarations."""

    before: bytes
    after: bytes
    texts: tuple[str, ...]
    """The declarations of functions, classes and values that went, and the names that lists of exports lost."""


def without_declarations(
    codebase: JavaScriptCodebase, names: TypeNames, removed: Collection[Symbol]
) -> dict[str, ShortenedDeclarations]:
    """Path to the type declarations that lose functions and classes of these names; ``removed`` are the definitions.

    These are declarations at the main level and in namespaces, all signatures of overloads, and names in lists of
    exports, each with the comment above it; and members, of the class or interface of their class's name, of all where
    no code that stays has the name. A declaration stays where a module that the file describes still exports the name.
    Types that nothing else needs go, too. A file that could no longer be parsed stays as it is.
    """
    left = LeftExports(codebase, removed)
    changed: dict[str, ShortenedDeclarations] = {}
    for path, before in codebase.others.items():
        if path.endswith(DECLARATIONS) and not parse_tree(before).root_node.has_error:
            own = TypeNames(
                frozenset(name for name in names.functions if not left.still_exports(path, name)),
                frozenset(pair for pair in names.members if not left.still_exports(path, *pair)),
                names.alone,
            )
            statements, elements = _lost(before, own)
            after = apply_edits(before, removals(before, statements, elements))
            after = _without_unused_types(codebase, path, before, after)
            if after != before and not parse_tree(after).root_node.has_error:
                texts = (before[start:end].decode(errors="replace") for start, end in sorted(statements | elements))
                changed[path] = ShortenedDeclarations(before, after, tuple(texts))
    return changed


def _lost(before: bytes, names: TypeNames) -> tuple[set[Range], set[Range]]:
    """The bytes of the statements and members that go, and of the elements of lists."""
    root = parse_tree(before).root_node
    statements: set[Range] = set()
    elements: set[Range] = set()
    for statement in _statements(root):
        if _declares_only(statement, names.functions, before):
            statements.add((statement.start_byte, statement.end_byte))
        elements |= {(each.start_byte, each.end_byte) for each in _specifiers(statement, names.functions, before)}
    for owner, member, node in _members(root, before) if names.members or names.alone else ():
        if (owner, member) in names.members or (member in names.alone and _is_method(node)):
            statements.add((node.start_byte, node.end_byte))
    return statements, elements


def _without_unused_types(codebase: JavaScriptCodebase, path: str, before: bytes, after: bytes) -> bytes:
    """A file without the types that only what it has lost needed; those that another file names stay."""
    if before == after:
        return after
    was_used = Counter(name for each in _units(before) for name in each.uses)
    units = _units(after)
    used = Counter(name for each in units for name in each.uses)
    pending = [each for each in units if each.type_name and was_used[each.type_name] and not used[each.type_name]]
    by_name: dict[str, list[_Unit]] = defaultdict(list)
    for unit in units:
        by_name[unit.type_name].append(unit)
    gone: set[_Unit] = set()
    elsewhere = _other_sources(codebase, path)
    while pending:
        unit = pending.pop()
        if unit in gone or elsewhere.have(unit.type_name):
            continue
        gone.add(unit)
        used.subtract(unit.uses)
        pending += [each for name in sorted(unit.uses) if not used[name] for each in by_name[name] if name]
    return apply_edits(after, removals(after, {(each.start, each.end) for each in gone}, set()))


class _Unit(NamedTuple):
    """A statement that holds no others."""

    type_name: str
    """The name of the type that it declares; empty for other statements."""
    uses: frozenset[str]
    """The names in it, but for its own."""
    start: int
    end: int


def _units(source: bytes) -> list[_Unit]:
    found = []
    for statement in _statements(parse_tree(source).root_node):
        node = _unwrapped(statement)
        if node is None or node.type not in _NAMESPACES:
            own = _type_name(statement, source)
            names = {text(n, source) for n in descendants(statement) if n.type in {"type_identifier", "identifier"}}
            found.append(_Unit(own, frozenset(names - {own}), statement.start_byte, statement.end_byte))
    return found


def _other_sources(codebase: JavaScriptCodebase, path: str) -> LeftSources:
    """The other declaration files, and the modules that are no tests."""
    others = {other: data for other, data in codebase.others.items() if other != path and other.endswith(DECLARATIONS)}
    modules = {other: each.source for other, each in codebase.modules.items() if not codebase.is_test(other)}
    return LeftSources({**others, **modules}, parse_tree)


def _type_name(statement: Node, source: bytes) -> str:
    """The name of the type that a statement declares; empty for others."""
    node = _unwrapped(statement)
    name = node.child_by_field_name("name") if node is not None and node.type in TYPES else None
    return text(name, source) if name is not None else ""


def _statements(root: Node) -> Iterator[Node]:
    """The statements of a file, and of the namespaces in it."""
    for statement in children(root):
        yield statement
        node = _unwrapped(statement)
        body = node.child_by_field_name("body") if node is not None and node.type in _NAMESPACES else None
        if body is not None:
            yield from _statements(body)


def _unwrapped(statement: Node) -> Node | None:
    """What a statement exports or declares, or itself."""
    node: Node | None = statement
    while node is not None and node.type in _WRAPPERS:
        node = node.child_by_field_name("declaration") or next(iter(children(node)), None)
    return node


def _is_method(member: Node) -> bool:
    """Whether a member is a method, or a property that must be a function."""
    kind = member.child_by_field_name("type")
    is_function = kind is not None and any(child.type == "function_type" for child in children(kind))
    return member.type.endswith("method_signature") or (is_function and not any(c.type == "?" for c in member.children))


def _members(root: Node, source: bytes) -> Iterator[tuple[str, str, Node]]:
    """(name of the class, interface or type, name, node) of each member that a file declares."""
    for node in descendants(root):
        name = node.child_by_field_name("name") if node.type in _WITH_MEMBERS else None
        value = node.child_by_field_name("value") if name is not None else None
        for body in [value] if value is not None else children(node) if name is not None else []:
            for member in children(body) if body.type in _BODIES else ():
                own = member.child_by_field_name("name")
                if name is not None and own is not None:
                    yield text(name, source), text(own, source), member


def _declares_only(statement: Node, names: frozenset[str], source: bytes) -> bool:
    """Whether a statement declares nothing but functions, classes or constants of these names."""
    node = _unwrapped(statement)
    if node is None:
        return False
    if node.type in _NAMED:
        declared = [node.child_by_field_name("name")]
    elif node.type in VARIABLES:
        declared = [each.child_by_field_name("name") for each in children(node)]
    else:
        return False
    return bool(declared) and all(each is not None and text(each, source) in names for each in declared)


def _specifiers(statement: Node, names: frozenset[str], source: bytes) -> Iterator[Node]:
    """The elements of a list of exports that export one of these names."""
    if statement.type != "export_statement":
        return
    for clause in children(statement):
        for each in children(clause) if clause.type == "export_clause" else ():
            named = each.child_by_field_name("name")
            if named is not None and text(named, source) in names:
                yield each
