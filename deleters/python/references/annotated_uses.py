"""Uses of a removed method, or property, of objects whose class is written beside their names."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from tree_sitter import Node

from excise.deleters.python.references.dependent_removal import DependentRemover, without_numbers
from excise.deleters.python.references.remaining_words import paths_of_words
from excise.extractors.python.analysis.grammar import field, of_types, parse_tree, text_of
from excise.extractors.python.analysis.name_resolution import Entity
from excise.extractors.python.analysis.parsed_file import Import
from excise.types import Symbol

_CLASS = re.compile(r"""["']?([\w.]+)(?:\s*\|\s*None)?["']?""")
"""An annotation that is the dotted name of a class."""


def annotated_uses(remover: DependentRemover, method: Symbol) -> Iterator[str]:
    """The functions of sources that stay which use a method of a parameter or variable of the method's class.

    The class is in the annotation of the parameter, or called where the variable is bound.
    """
    codebase, name = remover.codebase, method.name.partition("#")[0]
    klass = Entity(method.path, without_numbers(method.qualname).rpartition(".")[0])
    words = paths_of_words(codebase)
    for path in sorted(set(words.get(klass.qualname.rpartition(".")[2], ())) & set(words.get(name, ()))):
        module = codebase.modules[path]
        if codebase.is_test(path) or module.has_error:
            continue
        places = [found.start() for found in re.finditer(rb"\b%s\b" % re.escape(name.encode()), module.source)]
        for node in of_types(parse_tree(module.source).root_node, "function_definition"):
            is_using = bisect_left(places, node.start_byte) < bisect_left(places, node.end_byte)
            if is_using and not remover.is_removed(path, node.start_byte, node.end_byte):
                uses = {text_of(field(each, "object")) for each in _uses_in(remover, path, node, name)}
                found = (kind for each, kind in _objects_of(node) if each in uses) if uses else ()
                if any(_is_class(remover, path, node, kind, klass) for kind in found):
                    yield text_of(field(node, "name"))


def _uses_in(remover: DependentRemover, path: str, function: Node, name: str) -> Iterator[Node]:
    """The attributes of this name in a function that stay."""
    for node in of_types(field(function, "body"), "attribute"):
        is_named = text_of(field(node, "attribute")) == name
        if is_named and not remover.is_removed(path, node.start_byte, node.end_byte):
            yield node


def _objects_of(function: Node) -> Iterator[tuple[str, str]]:
    """The names of a function that stand for objects, with the dotted names of their classes."""
    for node in field(function, "parameters").named_children:
        annotation = node.child_by_field_name("type")
        found = _CLASS.fullmatch(text_of(annotation)) if annotation is not None else None
        if found and node.named_children:
            yield text_of(node.child_by_field_name("name") or node.named_children[0]), found[1]
    for node in of_types(field(function, "body"), "assignment"):
        value = node.child_by_field_name("right")
        made = value.child_by_field_name("function") if value is not None and value.type == "call" else None
        if made is not None:
            yield text_of(field(node, "left")), text_of(made)


def _is_class(remover: DependentRemover, path: str, function: Node, dotted: str, klass: Entity) -> bool:
    """Whether a dotted name in a function is that of a class.

    What the file does not bind may be in a text that no import stands for: there, the last part decides.
    """
    resolver, (first, *rest) = remover.uses.resolver, dotted.split(".")
    scope = resolver.scope(path)
    inside = [each for each in remover.codebase.modules[path].imports if each.bound == first and _is_in(each, function)]
    found = resolver.imported(path, inside[0]) if inside else resolver.name(path, first)
    for part in rest:
        found = resolver.attribute(found, part) if found is not None else None
    if found is not None:
        return resolver.follow(found) == klass
    is_bound = bool(inside) or first in scope.imports or first in scope.symbols or ("", first) in scope.bindings
    return not is_bound and (rest or [first])[-1] == klass.qualname.rpartition(".")[2]


def _is_in(record: Import, function: Node) -> bool:
    return function.start_byte <= record.start < function.end_byte
