"""Classes that only removed code made objects of, while code that stays handles such objects."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tree_sitter import Node

from excise.deleters.python.references.dependent_removal import DependentRemover
from excise.deleters.python.references.name_uses import LostBinding
from excise.extractors.python.analysis.grammar import field, text_of
from excise.extractors.python.analysis.name_resolution import Entity
from excise.extractors.python.analysis.parsed_file import Reference
from excise.types import Symbol, SymbolKind

_EXCEPTIONS = ("Error", "Exception", "Warning")
_TESTS_OF_TYPES = frozenset({"isinstance", "issubclass", "type"})


def uninstantiated_classes(remover: DependentRemover, removed: Symbol) -> Iterator[str]:
    """The names of such classes: exceptions, and classes whose names are private.

    Of other classes, those who use the project may make objects.
    """
    symbols, seen = remover.codebase.symbols(), set[Entity]()
    for ref in remover.codebase.modules[removed.path].references:
        if not removed.start <= ref.start < removed.end:
            continue
        entity = next(iter(remover.uses.resolver.prefixes(removed.path, ref)[-1:]), None)
        klass = symbols.get(entity.id) if entity is not None else None
        if entity is None or klass is None or klass.kind is not SymbolKind.CLASS or entity in seen:
            continue
        if not _makes(remover, removed.path, ref):
            continue
        seen.add(entity)
        is_chosen = klass.name.startswith("_") or _is_exception(remover, entity)
        stays = not remover.is_removed(klass.path, klass.start, klass.end) and not remover.codebase.is_test(klass.path)
        if is_chosen and stays and not _is_made(remover, entity):
            yield klass.name


def _is_exception(remover: DependentRemover, klass: Entity) -> bool:
    """Whether a class has a base that says so by its name."""
    resolver = remover.uses.resolver
    return any(
        base.endswith(_EXCEPTIONS)
        for entity in resolver.with_bases([klass])
        for base in resolver.scope(entity.path).bases.get(entity.qualname, ())
    )


def _is_made(remover: DependentRemover, klass: Entity) -> bool:
    """Whether sources that stay may make an object of a class, or of one that inherits from it."""
    lost = LostBinding(klass.path, klass.qualname)
    for path, ref in (*remover.uses.references_to(lost), *remover.uses.later_references_to(lost)):
        if remover.codebase.is_test(path) or remover.is_removed(path, ref.start, ref.end):
            continue
        if remover.codebase.modules[path].has_error or ref.is_base or not _handles(_nodes_around(remover, path, ref)):
            return True
    return False


def _makes(remover: DependentRemover, path: str, ref: Reference) -> bool:
    """Whether a use calls a class, or raises it."""
    if remover.codebase.modules[path].has_error:
        return False
    node, *around = _nodes_around(remover, path, ref)
    return bool(around) and (
        around[0].type == "raise_statement" or (around[0].type == "call" and field(around[0], "function") == node)
    )


def _handles(nodes: Collection[Node]) -> bool:
    """Whether a use of a class only tells its objects from others: in annotations, handlers, and tests of types."""
    child: Node | None = None
    for node in nodes:
        if node.type in {"type", "except_clause", "comparison_operator"}:
            return True
        if node.type == "call" and child is not None and child == node.child_by_field_name("arguments"):
            return text_of(field(node, "function")) in _TESTS_OF_TYPES
        if node.type == "call" or node.type.endswith(("_statement", "block")):
            return False
        child = node
    return False


def _nodes_around(remover: DependentRemover, path: str, ref: Reference) -> list[Node]:
    """The node of a use with its dotted name, and those around it, from inside to outside."""
    node: Node | None = remover.plan(path).root.descendant_for_byte_range(ref.start, ref.end)
    while node is not None and node.parent is not None and node.parent.type == "attribute":
        node = node.parent
    found: list[Node] = []
    while node is not None:
        found.append(node)
        node = node.parent
    return found
