"""Removal of what only removed code used: definitions, private attributes, enum members, constants of any file.

Left behind, they would be dead code that tells how the removed code worked. A name counts as used wherever it stands in
code that stays, tests and strings included.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from tree_sitter import Node

from excise.deleters.python.edits.file_plan import FilePlan
from excise.deleters.python.references.attribute_values import is_write_only
from excise.deleters.python.references.dependent_removal import DependentRemover
from excise.deleters.python.references.documents import is_documented
from excise.deleters.python.references.made_data import is_constant
from excise.deleters.python.references.remaining_words import (
    RemainingWords,
    count_words,
    paths_of_words,
    text_left,
    words_in,
)
from excise.deleters.python.references.unused_code import is_reached_from_elsewhere, statement_of_module
from excise.extractors.python.analysis.grammar import DEFINITIONS, descendants, field, of_types
from excise.extractors.python.analysis.name_resolution import Entity
from excise.extractors.python.analysis.parsed_file import Binding
from excise.types import Symbol, SymbolKind, path_of

_WHOLE = re.compile(rb"\b__dict__\b|\bvars\(|\bgetattr\(\s*\w+\s*,\s*[^\s'\"]|\basdict\(|\b__slots__\b|\bdir\(")
"""How a file takes attributes without their names."""
_ENUMS = frozenset({"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"})
"""Base classes of enums."""


def drop_unused_members(remover: DependentRemover) -> list[tuple[str, str]]:
    """Remove functions, classes, private attributes, constants, and members of enums, that only removed code used.

    Returns (path, text) of statements that are gone from functions that stay. Definitions and assignments are in
    ``remover.removed``.
    """
    words = RemainingWords(remover.codebase, remover.plans)
    names = words.removed_from_sources()
    by_name: dict[str, list[Symbol]] = defaultdict(list)
    for symbol in _definitions(remover, names):
        by_name[symbol.name].append(symbol)
    for name, symbols in by_name.items():
        is_used = words.is_used(
            name, sum(count_words(text_left(remover.codebase, remover.plans, s)).get(name, 0) for s in symbols)
        )
        if is_used and _is_private(name):
            unused = [symbol for symbol in symbols if _is_unused_in_own_file(remover, words, symbol)]
        else:
            unused = symbols if not is_used and (_is_private(name) or _is_internal(remover, symbols)) else []
        for symbol in unused:
            users = _files_that_bind(remover, symbol) if is_used else paths_of_words(remover.codebase)[name]
            is_tested = any(map(remover.codebase.is_test, users))
            (remover.removed.symbols if is_tested else remover.removed.helpers).append(symbol)
            remover.remove_symbol(symbol)
    remover.run()
    for path, binding in (*_members(remover, names), *_constants(remover, words, names)):
        plan = remover.plan(path)
        if not words.is_used(binding.name) and not plan.is_removed(binding.start, binding.end):
            text = plan.source[binding.start : binding.end].decode("utf-8", "replace")
            plan.remove_span(binding.start, binding.end)
            name = f"{binding.klass}.{binding.name}" if binding.klass else binding.name
            remover.removed.aliases.append((f"{path}::{name}", text))
    return [found for plan in _kept_sources(remover) for found in _drop_attributes(remover, plan, words, names)]


def _definitions(remover: DependentRemover, names: frozenset[str]) -> Iterator[Symbol]:
    """Undecorated functions, methods and classes that stay and whose names stand in removed code."""
    for symbol in remover.codebase.symbols().values():
        if symbol.name not in names or symbol.name.endswith("_") or symbol.decorators or "#" in symbol.qualname:
            continue
        path = symbol.path
        if remover.codebase.is_test(path) or remover.codebase.is_vendored(path) or remover.is_script(path):
            continue
        module = remover.codebase.modules[path]
        is_in_function = symbol.kind is SymbolKind.FUNCTION and "." in symbol.qualname
        owner = symbol.qualname.rpartition(".")[0] if symbol.kind is SymbolKind.METHOD else ""
        if owner and not remover.uses.has_known_bases(path, owner):
            continue
        if module.has_error or is_in_function or remover.is_removed(path, symbol.start, symbol.end):
            continue
        yield symbol


def _is_unused_in_own_file(remover: DependentRemover, words: RemainingWords, function: Symbol) -> bool:
    """Whether a file no longer uses the name of its function, which it did or another one imported, and the other files
    that have the name define or import another one, and take it from no object."""
    name, path = function.name, function.path
    own = count_words(text_left(remover.codebase, remover.plans, function)).get(name, 0)
    if "." in function.qualname or words.count_in(name, path) > own:
        return False
    before = count_words(remover.codebase.modules[path].source).get(name, 0)
    if words.count_in(name, path) == before and not _files_that_bind(remover, function):
        return False
    paths, taken = paths_of_words(remover.codebase)[name], re.compile(rf"[.'\"]{re.escape(name)}\b".encode())
    others = [remover.codebase.modules[each] for each in paths if each != path and words.count_in(name, each)]
    is_bound = all(name in {*(s.qualname for s in m.symbols), *(r.bound for r in m.imports)} for m in others)
    is_bound = is_bound and not any(taken.search(each.source) for each in others)
    return is_bound and not is_reached_from_elsewhere(path, name, remover.uses, remover.plans)


def _files_that_bind(remover: DependentRemover, symbol: Symbol) -> set[str]:
    """Other files that import a definition of a module, or use it as an attribute of the module."""
    place = symbol.path, symbol.name
    return {path for path, _ in (*remover.uses.named_from(*place), *remover.uses.attribute_reads(*place))}


def _is_internal(remover: DependentRemover, symbols: Sequence[Symbol]) -> bool:
    """Whether public definitions serve removed code alone: sources use them, in bodies, and no other file names them.

    What stands in the head of a definition, as a base class or in an annotation, is a part of what a statement shows.
    Methods of public classes with a docstring are for users, whoever else calls them.
    """
    codebase = remover.codebase
    for symbol in symbols:
        is_public = not any(part.startswith("_") for part in symbol.qualname.split("."))
        if symbol.kind is SymbolKind.METHOD and symbol.docstring and is_public:
            return False
        callers = [each for each in codebase.callers(symbol.symbol_id) if not codebase.is_test(path_of(each))]
        heads = (codebase.symbols()[each] for each in callers if each in codebase.symbols())
        is_in_head = any(symbol.name in words_in(f"{s.signature} {s.decorators}".encode()) for s in heads)
        if not callers or is_in_head or symbol.name in codebase.others.words:
            return False
    return True


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("_")


def _members(remover: DependentRemover, names: frozenset[str]) -> Iterator[tuple[str, Binding]]:
    """(path, binding) of members of enums and of private attributes of classes whose names stand in removed code."""
    for path, module in remover.codebase.modules.items():
        chosen = [b for b in module.bindings if b.klass and b.name in names and not b.name.endswith("_")]
        if not chosen or module.has_error or remover.codebase.is_test(path) or remover.codebase.is_vendored(path):
            continue
        for binding in chosen:
            node = remover.plan(path).node_at(binding.start, binding.end)
            if not is_constant(node) or node.child_by_field_name("type") is not None:
                continue
            is_private = _is_private(binding.name) and remover.uses.has_known_bases(path, binding.klass)
            if is_private or _can_lose(remover, path, binding, node):
                yield path, binding


def _constants(
    remover: DependentRemover, words: RemainingWords, names: frozenset[str]
) -> Iterator[tuple[str, Binding]]:
    """(path, binding) of constants in capitals whose names stand in removed code only: of modules without ``__all__``,
    in no document, and replaced by no test."""
    codebase = remover.codebase
    for path, module in codebase.modules.items():
        chosen = [b for b in module.bindings if not b.klass and b.name in names and b.name.isupper()]
        chosen = [b for b in chosen if not words.is_used(b.name)]
        if not chosen or module.has_error or module.has_all or codebase.is_vendored(path):
            continue
        if codebase.is_test(path) or remover.is_script(path):
            continue
        for binding in chosen:
            node = remover.plan(path).node_at(binding.start, binding.end)
            is_top = statement_of_module(node) is not None
            is_replaced = any(True for _ in remover.uses.replacements_of(path, binding.name))
            if is_top and is_constant(node) and not is_replaced and not is_documented(codebase, binding.name):
                yield path, binding


def _can_lose(remover: DependentRemover, path: str, member: Binding, node: Node) -> bool:
    """Whether a class is an enum whose members are only used by their names, and that stays as it is without one."""
    entity = Entity(path, member.klass)
    bases = remover.uses.resolver.scope(path).bases.get(member.klass, ())
    if not any(base.rpartition(".")[2] in _ENUMS for base in bases):
        return False
    module = remover.codebase.modules[path]
    later = [b for b in module.bindings if b.klass == member.klass and b.start > member.start]
    if any(b"auto()" in module.source[b.start : b.end] for b in (member, *later)) and later:
        return False
    name = member.klass.rpartition(".")[2]
    for other, each in remover.codebase.modules.items():
        for ref in each.references:
            if ref.chain.rpartition(".")[2] != name or remover.is_removed(other, ref.start, ref.end):
                continue
            prefixes = remover.uses.resolver.prefixes(other, ref)
            if entity in prefixes and not _only_names_the_type(remover.plan(other), ref.start, ref.end):
                return False
    return node.parent is not None


def _only_names_the_type(plan: FilePlan, start: int, end: int) -> bool:
    """Whether a use of a class is an annotation, or the second argument of ``isinstance``."""
    node: Node | None = plan.root.descendant_for_byte_range(start, end)
    while node is not None and not node.type.endswith(("_statement", "_definition", "block", "module")):
        function = node.child_by_field_name("function") if node.type == "call" else None
        if node.type == "type" or (function is not None and function.text == b"isinstance"):
            return True
        node = node.parent
    return False


# -------------------------------------------------------------------------------- attributes of objects
def _kept_sources(remover: DependentRemover) -> Iterator[FilePlan]:
    """The plans of files of sources that keep something."""
    for path, plan in sorted(remover.plans.items()):
        if plan.is_changed and not plan.deleted and not remover.codebase.is_test(path):
            yield plan


def _drop_attributes(
    remover: DependentRemover, plan: FilePlan, words: RemainingWords, names: frozenset[str]
) -> Iterator[tuple[str, str]]:
    """Remove ``self._name = data`` where no code that stays reads it, ``self.name = data`` where nothing else in the
    project has the name; only beside other statements."""
    for symbol in plan.module.symbols:
        if symbol.kind is not SymbolKind.METHOD or plan.is_removed(symbol.start, symbol.end):
            continue
        if not remover.uses.has_known_bases(plan.path, symbol.qualname.rpartition(".")[0]):
            continue
        node = plan.root.descendant_for_byte_range(symbol.body_start, symbol.body_start)
        while node is not None and not (node.type in DEFINITIONS and node.end_byte == symbol.end):
            node = node.parent
        if node is None:
            continue
        parameters = {each.text for each in of_types(field(node, "parameters"), "identifier")}
        body = field(node, "body").named_children
        found = [each for each in body if _is_dead(remover, plan, each, words, names, parameters)]
        for statement in found if len(found) + 1 < len(body) else ():
            plan.remove_statement(statement)
            text = plan.source[statement.start_byte : statement.end_byte].decode(errors="replace")
            yield plan.path, f"in {symbol.qualname}: {text}"


def _is_dead(
    remover: DependentRemover,
    plan: FilePlan,
    statement: Node,
    words: RemainingWords,
    names: frozenset[str],
    parameters: set[bytes | None],
) -> bool:
    """Whether a statement gives an object an attribute that only removed code used."""
    inner = statement.named_children[0] if statement.type == "expression_statement" else statement
    left, right = field(inner, "left"), field(inner, "right")
    if inner.type != "assignment" or left.type != "attribute" or field(left, "object").text != b"self":
        return False
    name = (field(left, "attribute").text or b"").decode(errors="replace")
    if name not in names or plan.is_removed(statement.start_byte, statement.end_byte):
        return False
    is_taken_whole = _WHOLE.search(plan.source) is not None
    if not _is_private(name) and (is_taken_whole or words.is_used(name) or name in remover.codebase.others.words):
        return False
    uses_parameter = any(each.type == "identifier" and each.text in parameters for each in descendants(right))
    is_unread = not words.is_used(name) or is_write_only(remover, name)
    return is_unread and not uses_parameter and is_constant(inner, target="attribute")
