"""Uses of a removed method, or property, of objects whose class is written beside their names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from excise.deleters.python.references.dependent_removal import DependentRemover
from excise.deleters.python.references.remaining_words import paths_of_words
from excise.extractors.python.analysis.grammar import descendants, field, parse_tree, text_of
from excise.types import Symbol


def annotated_uses(remover: DependentRemover, method: Symbol) -> Iterator[str]:
    """The functions of sources that stay which use a method of a parameter or variable of the method's class.

    The class is in the annotation of the parameter, or called where the variable is bound.
    """
    codebase, name = remover.codebase, method.name.partition("#")[0]
    klass = method.qualname.rpartition(".")[0].rpartition(".")[2]
    words = paths_of_words(codebase)
    for path in sorted(set(words.get(klass, ())) & set(words.get(name, ()))):
        module = codebase.modules[path]
        if codebase.is_test(path) or module.has_error:
            continue
        for node in descendants(parse_tree(module.source).root_node):
            if node.type == "function_definition" and not remover.is_removed(path, node.start_byte, node.end_byte):
                objects = set(_objects_of(node, klass))
                uses = (each for each in descendants(field(node, "body")) if _is_use(each, objects, name))
                if any(not remover.is_removed(path, each.start_byte, each.end_byte) for each in uses):
                    yield text_of(field(node, "name"))


def _objects_of(function: Node, klass: str) -> Iterator[str]:
    """The names of a function that stand for objects of a class."""
    whole = re.compile(rf"""["']?(?:[\w.]+\.)?{re.escape(klass)}(?:\s*\|\s*None)?["']?""")
    for node in field(function, "parameters").named_children:
        annotation = node.child_by_field_name("type")
        if annotation is not None and whole.fullmatch(text_of(annotation)) and node.named_children:
            yield text_of(node.child_by_field_name("name") or node.named_children[0])
    for node in descendants(field(function, "body")):
        value = node.child_by_field_name("right") if node.type == "assignment" else None
        made = value.child_by_field_name("function") if value is not None and value.type == "call" else None
        if made is not None and text_of(made).rpartition(".")[2] == klass:
            yield text_of(field(node, "left"))


def _is_use(node: Node, objects: set[str], name: str) -> bool:
    is_member = node.type == "attribute" and text_of(field(node, "attribute")) == name
    return is_member and text_of(field(node, "object")) in objects
