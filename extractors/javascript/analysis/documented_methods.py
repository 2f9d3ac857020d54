"""What classes and interfaces say of their methods, and what they extend or implement."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from excise.extractors.javascript.analysis.comments import doc_comment
from excise.extractors.javascript.analysis.grammar import CLASSES, descendants, parse_tree, text

_HERITAGE = frozenset({"class_heritage", "extends_type_clause"})
_METHODS = frozenset({"method_definition", "method_signature", "abstract_method_signature"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentedType:
    """A class or interface of a file."""

    name: str
    """Name."""
    supertypes: tuple[str, ...]
    """Names of what it extends or implements."""
    methods: dict[str, str]
    """Name of a method to its documentation, where it has one."""


def documented_types(source: bytes) -> list[DocumentedType]:
    """The classes and interfaces of a file, in order."""
    return [
        _documented(node, source)
        for node in descendants(parse_tree(source).root_node)
        if node.type in CLASSES or node.type == "interface_declaration"
    ]


def _documented(node: Node, source: bytes) -> DocumentedType:
    name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    methods: dict[str, str] = {}
    for member in body.named_children if body is not None else ():
        called = member.child_by_field_name("name") if member.type in _METHODS else None
        if called is not None and (words := doc_comment(member, source)):
            methods.setdefault(text(called, source), words)
    heritage = [child for child in node.named_children if child.type in _HERITAGE]
    return DocumentedType(
        name=text(name, source) if name is not None else "",
        supertypes=tuple(dict.fromkeys(each for clause in heritage for each in _names(clause, source))),
        methods=methods,
    )


def _names(clause: Node, source: bytes) -> list[str]:
    """The names in a clause, without those of arguments."""
    if clause.type in {"identifier", "type_identifier"}:
        return [text(clause, source)]
    return [
        name
        for child in clause.named_children
        if child.type not in {"type_arguments", "arguments"}
        for name in _names(child, source)
    ]
