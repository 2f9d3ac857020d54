"""Entries of tables that name removed code by a dotted text: ``EXTENSIONS = ["pkg.module.Extension"]``."""

from __future__ import annotations

from tree_sitter import Node

from excise.deleters.python.references.dependent_removal import DependentRemover

_LISTS = frozenset({"list", "tuple", "set"})


def remove_named_entries(remover: DependentRemover) -> None:
    """Plan the removal of elements of lists and tables of sources that are the dotted name of what is lost.

    What reads the table imports what stands in it, and would fail.
    """
    codebase, names = remover.codebase, remover.codebase.names
    for lost in sorted(remover.lost):
        dotted = f"{names.name_of(lost.path)}.{lost.qualname}" if lost.qualname else names.name_of(lost.path)
        for path, start, end in remover.uses.dotted_strings(dotted):
            if codebase.is_test(path) or codebase.modules[path].has_error or remover.is_removed(path, start, end):
                continue
            plan = remover.plan(path)
            found = _entry_of(plan.node_at(start, end))
            if found is not None:
                plan.remove_element(*found)


def _entry_of(text: Node) -> tuple[Node, Node] | None:
    """The list or dictionary that a text is an element or a value of, and this entry; ``None`` if it is none."""
    entry, container = text, text.parent
    if container is not None and container.type == "pair" and container.child_by_field_name("value") == text:
        entry, container = container, container.parent
    if container is None or container.type not in (_LISTS if entry == text else {"dictionary"}):
        return None
    return container, entry
