"""Attributes of objects to which removed code alone gave values, or which it alone read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from excise.deleters.python.references.dependent_removal import DependentRemover
from excise.deleters.python.references.remaining_words import paths_of_words
from excise.deleters.python.references.unfilled_containers import CONSTANTS, FILLING
from excise.extractors.python.analysis.parsed_file import SELF, Reference
from excise.types import Symbol

_SLOTS = re.compile(rb"\b__slots__\s*=\s*(?:\([^()]*\)|\[[^\[\]]*\]|\"[^\"\n]*\"|'[^'\n]*')")
"""The names of attributes that objects may have."""


def constant_attributes(remover: DependentRemover, method: Symbol) -> Iterator[str]:
    """The attributes that a removed method alone gave other values than one constant, while code that stays reads
    them; also such that it alone gave any."""
    for name in sorted(_own_attributes(remover, method, is_assigned=True)):
        left = list(_uses_left(remover, name, exact=True, of_tests=False))
        values = {_constant(remover, path, ref) for path, ref in left if ref.is_assigned}
        is_read = not all(ref.is_assigned for _, ref in left)
        is_unknown = (
            not values and any(ref.chain == f"{SELF}.{name}" for _, ref in left) and not _is_bound(remover, name)
        )
        if is_read and ((len(values) == 1 and None not in values) or is_unknown):
            yield name


def unread_attributes(remover: DependentRemover, method: Symbol) -> Iterator[str]:
    """The attributes that a removed method read, and that code which stays only sets; also values of its class.

    Users may read a public attribute that an object has from its beginning: that is none of them.
    """
    for name in sorted(_own_attributes(remover, method, is_assigned=False)):
        is_own = not name.endswith("_") and _is_read_in(remover, method, name)
        is_unread = is_own and is_write_only(remover, name) and (name.startswith("_") or _is_changed(remover, name))
        if is_unread or (is_own and _is_unused_value(remover, method, name)):
            yield name


def _is_read_in(remover: DependentRemover, method: Symbol, name: str) -> bool:
    """Whether a method does more with an attribute than to set or fill it."""
    inside = (
        ref
        for ref in remover.codebase.modules[method.path].references
        if method.start <= ref.start < method.end and ref.chain.split(".")[:2] == [SELF, name]
    )
    return not all(_only_sets(remover, method.path, ref, name) for ref in inside)


def _is_changed(remover: DependentRemover, name: str) -> bool:
    """Whether code that stays sets or fills an attribute where no object is made."""
    left = _uses_left(remover, name, exact=False, of_tests=False)
    return any(ref.owner.rpartition(".")[2] != "__init__" for _, ref in left)


def _is_unused_value(remover: DependentRemover, method: Symbol, name: str) -> bool:
    """Whether a class gives a name a value, which no code that stays asks of an object or has as a text."""
    klass = method.qualname.rpartition(".")[0]
    bindings = remover.codebase.modules[method.path].bindings
    is_value = any(
        each.name == name and each.klass == klass and not remover.is_removed(method.path, each.start, each.end)
        for each in bindings
    )
    symbol = remover.codebase.symbols().get(f"{method.path}::{klass}")
    is_decorated = symbol is not None and bool(symbol.decorators)
    is_read_by_others = is_decorated or not remover.uses.has_known_bases(method.path, klass)
    if not is_value or is_read_by_others or _is_quoted(remover, name):
        return False
    return not any(True for _ in _uses_left(remover, name, exact=False, of_tests=True))


def is_write_only(remover: DependentRemover, name: str) -> bool:
    """Whether code that stays, tests included, gives an attribute values, or fills it, and does no more with it."""
    left = list(_uses_left(remover, name, exact=False, of_tests=True))
    return (
        bool(left) and not _is_quoted(remover, name) and all(_only_sets(remover, path, ref, name) for path, ref in left)
    )


def _only_sets(remover: DependentRemover, path: str, ref: Reference, name: str) -> bool:
    """Whether a use is an assignment, or a statement such as ``self._seen.append(x)``."""
    before, _, last = ref.chain.rpartition(".")
    if ref.is_assigned:
        return last == name
    if last not in FILLING or before.rpartition(".")[2] != name or remover.codebase.modules[path].has_error:
        return False
    node: Node | None = remover.plan(path).root.descendant_for_byte_range(ref.start, ref.end)
    while node is not None and node.type in {"identifier", "attribute"}:
        node = node.parent
    statement = node.parent if node is not None and node.type == "call" else None
    return statement is not None and statement.type == "expression_statement"


def _own_attributes(remover: DependentRemover, method: Symbol, *, is_assigned: bool) -> set[str]:
    """The attributes of ``self`` that a method sets, or those that it reads."""
    found: set[str] = set()
    for ref in remover.codebase.modules[method.path].references:
        parts = ref.chain.split(".")
        is_inside = method.start <= ref.start < method.end and parts[0] == SELF and len(parts) > 1
        if is_inside and (ref.is_assigned and len(parts) == 2) is is_assigned:
            found.add(parts[1])
    return found


def _uses_left(remover: DependentRemover, name: str, *, exact: bool, of_tests: bool) -> Iterator[tuple[str, Reference]]:
    """The uses of attributes of a name that stay; with ``exact`` only those of which no attribute is used."""
    uses = remover.uses.attributes_named(name) if exact else remover.uses.attributes_with(name)
    for path, ref in uses:
        is_chosen = of_tests or not remover.codebase.is_test(path)
        if is_chosen and not remover.is_removed(path, ref.start, ref.end):
            yield path, ref


def _is_bound(remover: DependentRemover, name: str) -> bool:
    """Whether a class that stays has a method, or a value, of the name, or a text may name it."""
    for path in paths_of_words(remover.codebase).get(name, ()):
        module = remover.codebase.modules[path]
        places = [(s.start, s.end) for s in module.symbols if s.name.partition("#")[0] == name]
        places += [(b.start, b.end) for b in module.bindings if b.name == name]
        if any(not remover.is_removed(path, *place) for place in places):
            return True
    return _is_quoted(remover, name)


def _is_quoted(remover: DependentRemover, name: str) -> bool:
    """Whether a text of the repository is the name, but for ``__slots__``: the attribute may be looked up by it."""
    paths = paths_of_words(remover.codebase).get(name, ())
    sources = (_SLOTS.sub(b"", remover.codebase.modules[path].source) for path in paths)
    quoted = [quote + name.encode() + quote for quote in (b"'", b'"')]
    return any(text in source for source in sources for text in quoted)


def _constant(remover: DependentRemover, path: str, ref: Reference) -> bytes | None:
    """The constant that an assignment gives an attribute; ``None`` for any other value."""
    if remover.codebase.modules[path].has_error:
        return None
    node = remover.plan(path).node_at(ref.start, ref.end)
    while node.parent is not None and node.parent.start_byte == node.start_byte and node.type != "assignment":
        node = node.parent
    value = node.child_by_field_name("right") if node.type == "assignment" else None
    is_empty = value is not None and value.type in {"dictionary", "list"} and not value.named_children
    return value.text if value is not None and (value.type in CONSTANTS or is_empty) else None
