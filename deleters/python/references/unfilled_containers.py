"""Containers and flags that only removed code gave content, while code that stays looks into them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tree_sitter import Node

from excise.deleters.python.references.dependent_removal import DependentRemover
from excise.deleters.python.references.loop_ends import is_bound
from excise.deleters.python.references.name_uses import LostBinding
from excise.extractors.python.analysis.grammar import of_types, text_of
from excise.extractors.python.analysis.parsed_file import SELF, Reference
from excise.types import Symbol

FILLING = frozenset({"append", "appendleft", "add", "extend", "insert", "set", "setdefault", "update"})
_READING = frozenset(
    {"clear", "copy", "count", "discard", "get", "index", "items", "keys", "pop", "remove", "reset", "values"}
)
_VARIABLE = re.compile(r"(?:\w+\.)*(?:ContextVar|RunVar|TreeVar)\(")
"""A call that makes a variable of a context, which ``set`` gives a value."""
_READERS = frozenset(
    {"all", "any", "bool", "dict", "enumerate", "iter", "len", "list", "reversed", "set", "sorted", "tuple"}
)
"""Builtins that look into their argument and do not keep it."""
_EMPTY = frozenset(
    {"()", "[]", "{}", "OrderedDict()", "collections.OrderedDict()", "deque()", "dict()", "list()", "set()"}
)
CONSTANTS = frozenset({"true", "false", "none", "integer", "float", "string"})
"""Types of the nodes of constants."""
_CONDITIONS = frozenset({"if_statement", "elif_clause", "while_statement", "not_operator", "boolean_operator"})


class _Use(NamedTuple):
    """A mention of a container, or of a variable of a module."""

    path: str
    node: Node
    """The name, with the object that has it: ``self._known``."""
    method: str
    """The attribute of the container that follows; empty without one."""


def unfilled_containers(remover: DependentRemover, removed: Symbol, *, of_object: bool) -> Iterator[str]:
    """The containers that only a removed definition filled, and that code that stays looks into.

    Those with a use that could fill them, as giving them to a function, are left out. ``of_object``: attributes of
    ``self`` are looked for, too.
    """
    owner = removed.qualname.rpartition(".")[0]
    for attribute in sorted(_filled_attributes(remover, removed)) if of_object else ():
        if _is_only_read(remover, list(_attribute_uses(remover, attribute))):
            yield f"{owner}.{attribute}"
    for name in sorted(_filled_names(remover, removed) - _global_names(remover, removed)[1]):
        if _is_only_read(remover, list(_name_uses(remover, removed.path, name))):
            yield name


def unset_flags(remover: DependentRemover, removed: Symbol) -> Iterator[str]:
    """The variables of the module that only a removed function gave another value than one constant (``global``).

    What tests do with them does not matter.
    """
    inside, left = _global_names(remover, removed)
    for name in sorted(inside - left):
        uses = [use for use in _name_uses(remover, removed.path, name) if not remover.codebase.is_test(use.path)]
        bound = [use for use in uses if is_bound(use.node)]
        value = _given_value(bound[0].node) if len(bound) == 1 else None
        if value is not None and value.type in CONSTANTS and len(uses) > 1:
            yield name


def filled_attributes(root: Node, start: int, end: int) -> set[str]:
    """The attributes of ``self`` that statements between two places of a file fill."""
    inside = (node for node in of_types(root, "attribute") if start <= node.start_byte and node.end_byte <= end)
    owned = (node for node in inside if text_of(node.child_by_field_name("object") or node) == "self")
    return {_attribute(node) for node in owned if _fills(_use_of("", node))}


def stays_empty(root: Node, name: str) -> bool:
    """Whether code of a file only looks into attributes of a name, which begin empty."""
    return _stay_empty([_use_of("", node) for node in of_types(root, "attribute") if _attribute(node) == name])


def _attribute(node: Node) -> str:
    """The last name of ``a.b``."""
    return text_of(node.child_by_field_name("attribute") or node)


def _use_of(path: str, node: Node) -> _Use:
    """An attribute as a use, with the attribute that follows it."""
    parent = node.parent
    has_more = parent is not None and parent.type == "attribute" and parent.child_by_field_name("object") == node
    return _Use(path, node, _attribute(parent) if parent is not None and has_more else "")


def _global_names(remover: DependentRemover, removed: Symbol) -> tuple[set[str], set[str]]:
    """The names in ``global`` statements of a removed definition, and those in the statements of its file that stay."""
    inside, left = set[str](), set[str]()
    plan = remover.plan(removed.path)
    for node in of_types(plan.root, "global_statement") if b"global" in plan.source else ():
        if removed.start <= node.start_byte < removed.end:
            inside.update(map(text_of, node.named_children))
        elif not remover.is_removed(removed.path, node.start_byte, node.end_byte):
            left.update(map(text_of, node.named_children))
    return inside, left


# ---------------------------------------------------------------------------------------- what removed code fills
def _filled_attributes(remover: DependentRemover, removed: Symbol) -> set[str]:
    """Attributes of ``self`` that a removed method fills."""
    parts = [(use, ref.chain.split(".")) for use, ref in _uses_inside(remover, removed)]
    return {chain[1] for use, chain in parts if chain[0] == SELF and len(chain) > 1 and _fills(use)}


def _filled_names(remover: DependentRemover, removed: Symbol) -> set[str]:
    """Variables of its module that removed code fills."""
    bound = {each.name for each in remover.codebase.modules[removed.path].bindings if not each.klass}
    return {ref.chain.partition(".")[0] for use, ref in _uses_inside(remover, removed) if _fills(use)} & bound


def _uses_inside(remover: DependentRemover, removed: Symbol) -> Iterator[tuple[_Use, Reference]]:
    for ref in remover.codebase.modules[removed.path].references:
        if removed.start <= ref.start < removed.end:
            length = 2 if ref.chain.startswith(SELF) else 1
            yield _use(remover, removed.path, ref, length), ref


def _use(remover: DependentRemover, path: str, ref: Reference, length: int) -> _Use:
    """The first ``length`` parts of a reference as a use, with the attribute that follows them."""
    node = remover.plan(path).root.descendant_for_byte_range(ref.start, ref.end) or remover.plan(path).root
    method = ""
    for _ in range(len(ref.chain.split(".")) - length):
        method = text_of(node.child_by_field_name("attribute") or node)
        node = node.child_by_field_name("object") or node
    return _Use(path, node, method)


# ------------------------------------------------------------------------------------------------- what stays of it
def _attribute_uses(remover: DependentRemover, name: str) -> Iterator[_Use]:
    """Uses of all attributes of this name that stay."""
    for path, ref in remover.uses.attributes_with(name):
        if not remover.is_removed(path, ref.start, ref.end):
            yield _use(remover, path, ref, ref.chain.split(".").index(name, 1) + 1)


def _name_uses(remover: DependentRemover, path: str, name: str) -> Iterator[_Use]:
    """Uses of a variable of a module that stay, also by other names of it, with the assignments that bind it."""
    refs: dict[tuple[str, Reference], int] = {}
    for lost in _names_of(remover, path, name):
        for other, ref in _references_to(remover, lost, is_alias=lost != (path, name)):
            if not remover.is_removed(other, ref.start, ref.end):
                refs.setdefault((other, ref), ref.chain.split(".").index(lost.name) + 1)
    yield from (_use(remover, other, ref, length) for (other, ref), length in refs.items())
    for binding in remover.codebase.modules[path].bindings:
        if binding.name == name and not binding.klass and not remover.plan(path).is_removed(binding.start, binding.end):
            node = remover.plan(path).node_at(binding.start, binding.end)
            targets = (n for n in of_types(node, "identifier") if text_of(n) == name and is_bound(n))
            yield _Use(path, next(targets, node), "")


def _references_to(remover: DependentRemover, lost: LostBinding, *, is_alias: bool) -> Iterator[tuple[str, Reference]]:
    """References to a variable of a module; to an alias only those in its file, and those that name the file."""
    if is_alias:
        own = remover.codebase.modules[lost.path].references
        yield from ((lost.path, ref) for ref in own if ref.chain.partition(".")[0] == lost.name)
        yield from remover.uses.attribute_reads(lost.path, lost.name)
    else:
        yield from remover.uses.references_to(lost)
        yield from remover.uses.later_references_to(lost)


def _names_of(remover: DependentRemover, path: str, name: str) -> Iterator[LostBinding]:
    """A variable of a module, and the other names that imports give it: ``from m import NAME as OTHER``."""
    first = LostBinding(path, name)
    queue, seen = [first], {first}
    while queue:
        lost = queue.pop()
        if lost == first or lost.name != name:  # references by its own name are found through all imports
            yield lost
        for other, record in remover.uses.named_from(lost.path, lost.name):
            found = LostBinding(other, record.bound)
            if found not in seen and not remover.is_removed(other, record.start, record.end):
                seen.add(found)
                queue.append(found)


def _is_only_read(remover: DependentRemover, uses: list[_Use]) -> bool:
    """Whether a container begins empty, is looked into by sources, and never filled."""
    rest = [use for use in uses if _given_value(use.node) is None]
    return any(not remover.codebase.is_test(use.path) for use in rest) and _stay_empty(uses)


def _stay_empty(uses: list[_Use]) -> bool:
    """Whether containers begin empty, are looked into, and never filled."""
    given = [value for use in uses if (value := _given_value(use.node)) is not None]
    rest = [use for use in uses if _given_value(use.node) is None]
    is_empty = bool(given) and all(text_of(v) in _EMPTY or _VARIABLE.match(text_of(v)) for v in given)
    return is_empty and bool(rest) and all(map(_reads, rest))


def _given_value(node: Node) -> Node | None:
    """What is assigned to a name or an attribute as a whole."""
    parent = node.parent
    if parent is None or parent.type != "assignment" or parent.child_by_field_name("left") != node:
        return None
    return parent.child_by_field_name("right")


def _fills(use: _Use) -> bool:
    if use.method:
        return use.method in FILLING
    item = use.node.parent
    if item is None or item.type != "subscript" or item.child_by_field_name("value") != use.node:
        return False
    target = item.parent
    return (
        target is not None
        and target.type in {"assignment", "augmented_assignment"}
        and target.child_by_field_name("left") == item
    )


def _reads(use: _Use) -> bool:
    """Whether a use can only look into a container, or take something out of it."""
    if use.method:
        return use.method in _READING
    parent = use.node.parent
    if parent is None:
        return False
    if parent.type == "subscript":
        return not _fills(use) and parent.child_by_field_name("value") == use.node
    if parent.type in {"for_statement", "for_in_clause"}:
        return parent.child_by_field_name("right") == use.node
    if parent.type == "argument_list" and parent.parent is not None:
        function = parent.parent.child_by_field_name("function")
        return function is not None and text_of(function) in _READERS
    return parent.type in {"comparison_operator", "delete_statement", *_CONDITIONS}
