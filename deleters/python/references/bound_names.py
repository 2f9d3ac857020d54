"""Names that a part of a function binds, and whether the rest of it needs them."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from excise.extractors.python.analysis.grammar import DEFINITIONS, descendants, text_of

_BINDING = frozenset({
    "assignment", "augmented_assignment", "named_expression", "for_statement", "as_pattern", "import_statement",
    "import_from_statement", "global_statement", "nonlocal_statement", "function_definition", "class_definition",
})  # fmt: skip
"""Nodes that bind names in a function."""


def binds_what_stays(scope: Node, span: tuple[int, int], inside: Node) -> bool:
    """Whether the rest of the function uses a name that only the removed part binds."""
    bound = set(_bound_names(inside))
    if not bound:
        return False
    if bound & _read_below(scope, inside):
        return True
    start, end = span
    rest = [n for n in descendants(scope) if not (start <= n.start_byte and n.end_byte <= end)]
    known = _parameters(scope) | {name for n in rest if n.type in _BINDING for name in _targets(n)}
    used = {text_of(n) for n in rest if n.type == "identifier"}
    return bool((bound & used) - known)


def _read_below(scope: Node, arm: Node) -> set[str]:
    """The names that a function reads below an ``if`` whose last way an arm of it is, without having bound them
    outside of it before."""
    statement = arm.parent
    if arm.type not in {"else_clause", "elif_clause", "block"} or statement is None or statement.type != "if_statement":
        return set()
    others = (each for each in statement.children_by_field_name("alternative") if each != arm)
    if any(each.type == "else_clause" for each in others):
        return set()
    known = _parameters(scope)
    read: set[str] = set()
    for node in sorted(descendants(scope), key=lambda each: (each.start_byte, -each.end_byte)):
        if statement.start_byte <= node.start_byte < statement.end_byte:
            continue
        if node.type in _BINDING - {"augmented_assignment"}:
            known.update(_targets(node))
        elif node.type == "identifier" and node.start_byte >= statement.end_byte and not _is_attribute(node):
            read.update({text_of(node)} - known)
    return read


def _parameters(function: Node) -> set[str]:
    """The names of a function's parameters, and those in their types and default values."""
    node = function.child_by_field_name("parameters")
    return {text_of(n) for n in descendants(node) if n.type == "identifier"} if node is not None else set()


def _is_attribute(node: Node) -> bool:
    """Whether a name is that of an attribute, or of an argument of a call."""
    around = node.parent
    if around is None or around.type not in {"attribute", "keyword_argument"}:
        return False
    return node in around.children_by_field_name("attribute" if around.type == "attribute" else "name")


def _bound_names(node: Node) -> Iterator[str]:
    """Names that a part of a function binds in it; those of functions inside are their own."""
    queue = [node]
    while queue:
        each = queue.pop()
        if each.type in _BINDING:
            yield from _targets(each)
        if each.type not in DEFINITIONS:
            queue += each.named_children


def _targets(node: Node) -> Iterator[str]:
    """Names that a statement or expression binds."""
    if node.type in {"import_statement", "import_from_statement", "global_statement", "nonlocal_statement"}:
        heads = node.named_children
    elif node.type == "as_pattern":
        heads = node.named_children[-1:]
    else:
        field = "name" if node.type in {"named_expression", *DEFINITIONS} else "left"
        heads = [child for child in (node.child_by_field_name(field),) if child is not None]
    for head in heads:
        inner = (each for each in descendants(head) if each.type == "identifier" and not _is_attribute(each))
        yield from (text_of(each) for each in inner if each.parent is None or each.parent.type != "attribute")
