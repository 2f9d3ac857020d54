"""Parameters and variables of functions that stay which only their removed statements read."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from tree_sitter import Node

from excise.deleters.python.edits.file_plan import FilePlan
from excise.deleters.python.references.dependent_removal import DependentRemover
from excise.deleters.python.references.loop_ends import variables_in
from excise.extractors.python.analysis.grammar import field, text_of
from excise.types import Symbol

_RECEIVERS = frozenset({"self", "cls"})
_TARGETS = frozenset({"pattern_list", "tuple_pattern", "list_pattern"})
_WORD = re.compile(rb"(?<![\w.])\w+")
"""A word that is no attribute."""


def unread_names(remover: DependentRemover) -> Iterator[tuple[str, str]]:
    """(path, what would be left) for each such name, after all edits are planned."""
    for path, plan in sorted(remover.plans.items()):
        if not plan.is_changed or plan.deleted or remover.codebase.is_test(path):
            continue
        spans = [*plan.statements, *((edit.start, edit.end) for edit in plan.replacements)]
        for symbol in plan.module.symbols:
            inner = [span for span in spans if symbol.code_start <= span[0] and span[1] <= symbol.end]
            if symbol.is_callable and inner and not plan.is_removed(symbol.start, symbol.end):
                for name in sorted(_unread_in(plan, symbol, inner) - _RECEIVERS):
                    yield path, f"{symbol.qualname} would not read {name} any more"


def _unread_in(plan: FilePlan, symbol: Symbol, spans: Collection[tuple[int, int]]) -> set[str]:
    """The names of a function that are bound where it stays, and read in some spans of it which go and nowhere else."""
    node = plan.root.descendant_for_byte_range(symbol.body_start, symbol.body_start)
    while node is not None and not (node.type == "function_definition" and node.end_byte == symbol.end):
        node = node.parent
    if node is None:
        return set()
    bound = set(_parameters(node))
    kept = {word for edit in plan.replacements for word in _WORD.findall(edit.replacement)}
    gone, left = set[str](), {word.decode(errors="replace") for word in kept}
    for each in variables_in(field(node, "body")):
        is_gone = any(start <= each.start_byte and each.end_byte <= end for start, end in spans)
        if not _is_target(each):
            (gone if is_gone else left).add(text_of(each))
        elif not is_gone and each.parent is not None and each.parent.type in _TARGETS:
            bound.add(text_of(each))  # of a plain assignment only the value stays
        if each.parent is not None and each.parent.type in {"global_statement", "nonlocal_statement"}:
            left.add(text_of(each))
    return {name for name in bound & gone - left if not name.startswith("_")}


def _parameters(function: Node) -> Iterator[str]:
    """The names of the parameters of a function."""
    for each in field(function, "parameters").named_children:
        name = each.child_by_field_name("name") or each
        while name.type not in {"identifier", "tuple_pattern"} and name.named_children:
            name = name.named_children[0]
        yield from map(text_of, variables_in(name))


def _is_target(name: Node) -> bool:
    """Whether a name is given a value by an assignment."""
    node, parent = name, name.parent
    while parent is not None and parent.type in _TARGETS:
        node, parent = parent, parent.parent
    return parent is not None and parent.type == "assignment" and parent.child_by_field_name("left") == node
