"""Removes declarations of functions, classes and their members from the ``.d.ts`` files beside the code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tree_sitter import Node

from excise.deleters.deletion_record import Changed
from excise.deleters.edits.byte_edits import apply_edits
from excise.deleters.javascript.byte_spans import Range, removals
from excise.deleters.javascript.mentions import left_sources, qualified_name
from excise.extractors.javascript.analysis.codebase import DECLARATIONS, JavaScriptCodebase
from excise.extractors.javascript.analysis.grammar import (
    CLASSES,
    DECLARED,
    VARIABLES,
    children,
    descendants,
    parse_tree,
    text,
)
from excise.types import Symbol

_NAMED = frozenset({"function_signature", *DECLARED, *CLASSES})
_WRAPPERS = frozenset({"export_statement", "ambient_declaration"})
_WITH_MEMBERS = frozenset({"interface_declaration", *CLASSES})
_BODIES = frozenset({"interface_body", "object_type", "class_body"})


def without_declarations(codebase: JavaScriptCodebase, removed: Iterable[Symbol], sources: Changed) -> Changed:
    """Path to (content before, content after) of the type declarations that lose functions and classes of these names.

    These are declarations at the main level, all signatures of overloads, and names in lists of exports, each with the
    comment above it; and members, of the class or interface of their class's name, of all where no code of ``sources``
    that stays has the name. A file that could no longer be parsed stays as it is.
    """
    paths = [qualified_name(symbol) for symbol in removed]
    names = {parts[0] for parts in paths if len(parts) == 1}
    members = {(parts[-2], parts[-1]) for parts in paths if len(parts) > 1 and parts[-1] != "constructor"}
    left = left_sources(codebase, sources)
    alone = {name for _, name in members if not left.have(name)}
    changed: dict[str, tuple[bytes, bytes | None]] = {}
    for path, before in codebase.others.items():
        if not path.endswith(DECLARATIONS):
            continue
        root = parse_tree(before).root_node
        if root.has_error:
            continue
        statements: set[Range] = set()
        elements: set[Range] = set()
        for statement in children(root):
            if _declares_only(statement, names, before):
                statements.add((statement.start_byte, statement.end_byte))
            elements |= {(each.start_byte, each.end_byte) for each in _specifiers(statement, names, before)}
        for owner, member, node in _members(root, before) if members else ():
            if (owner, member) in members or (member in alone and _is_method(node)):
                statements.add((node.start_byte, node.end_byte))
        after = apply_edits(before, removals(before, statements, elements))
        if after != before and not parse_tree(after).root_node.has_error:
            changed[path] = (before, after)
    return changed


def _is_method(member: Node) -> bool:
    """Whether a member is a method, or a property that must be a function."""
    kind = member.child_by_field_name("type")
    is_function = kind is not None and any(child.type == "function_type" for child in children(kind))
    return member.type.endswith("method_signature") or (is_function and not any(c.type == "?" for c in member.children))


def _members(root: Node, source: bytes) -> Iterator[tuple[str, str, Node]]:
    """(name of the class or interface, name, node) of each member that a file declares."""
    for node in descendants(root):
        name = node.child_by_field_name("name") if node.type in _WITH_MEMBERS else None
        for body in children(node) if name is not None else ():
            for member in children(body) if body.type in _BODIES else ():
                own = member.child_by_field_name("name")
                if name is not None and own is not None:
                    yield text(name, source), text(own, source), member


def _declares_only(statement: Node, names: set[str], source: bytes) -> bool:
    """Whether a statement declares nothing but functions, classes or constants of these names."""
    node = statement
    while node.type in _WRAPPERS:
        inner = node.child_by_field_name("declaration") or next(iter(children(node)), None)
        if inner is None:
            return False
        node = inner
    if node.type in _NAMED:
        declared = [node.child_by_field_name("name")]
    elif node.type in VARIABLES:
        declared = [each.child_by_field_name("name") for each in children(node)]
    else:
        return False
    return bool(declared) and all(each is not None and text(each, source) in names for each in declared)


def _specifiers(statement: Node, names: set[str], source: bytes) -> Iterator[Node]:
    """The elements of a list of exports that export one of these names."""
    if statement.type != "export_statement":
        return
    for clause in children(statement):
        for each in children(clause) if clause.type == "export_clause" else ():
            named = each.child_by_field_name("name")
            if named is not None and text(named, source) in names:
                yield each
