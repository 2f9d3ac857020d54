"""What a removal would leave that no developer would: empty tables, foreign methods in the place of removed ones."""

from __future__ import annotations

import builtins
import importlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from excise.deleters.python.edits.empty_bodies import is_abstract
from excise.deleters.python.references.annotated_uses import annotated_uses
from excise.deleters.python.references.attribute_values import constant_attributes, unread_attributes
from excise.deleters.python.references.dependent_removal import DependentRemover, without_numbers
from excise.deleters.python.references.entry_points import SETUP
from excise.deleters.python.references.implicit_uses import helpers_of_tests, keys_left, special_methods
from excise.deleters.python.references.lost_halves import lost_halves
from excise.deleters.python.references.name_positions import is_keyword_table
from excise.deleters.python.references.unfilled_containers import unfilled_containers, unset_flags
from excise.deleters.python.references.uninstantiated_classes import uninstantiated_classes
from excise.deleters.python.references.unread_names import unread_names
from excise.deleters.python.references.uses_by_name import (
    collected_names,
    comments_naming,
    dispatch_keys,
    fixture_users,
    getattr_lookups,
    is_fixture,
    looked_up_methods,
    named_objects,
    passed_names,
    strings_naming,
    texts_with_name,
    visitors_of,
)
from excise.extractors.python.analysis.grammar import of_types, statements
from excise.extractors.python.analysis.name_resolution import Entity
from excise.types import Symbol, SymbolKind

MAX_TEXT = 100
"""Number of characters that a message shows of a text."""
_STANDARD = frozenset(
    {
        "abc", "argparse", "ast", "asyncio", "cmd", "code", "codecs", "collections", "collections.abc", "configparser",
        "contextlib", "csv", "datetime", "decimal", "email.message", "enum", "fractions", "html.parser", "http.server",
        "io", "json", "json.decoder", "json.encoder", "logging", "logging.handlers", "pickle", "pprint", "queue",
        "random", "socketserver", "string", "threading", "types", "typing", "unittest", "urllib.request", "zipfile",
        "xml.sax.handler",
    }
)  # fmt: skip
"""Modules of the standard library with classes that projects derive from; to import one does nothing else."""
_DISPLAYS = frozenset({"dictionary", "set", "list", "tuple"})


class Leftover(NamedTuple):
    """What a removal would leave."""

    path: str
    """The file."""
    text: str
    """What would be left."""
    symbol: str
    """Id of the removed method that should stay as a stub; empty if no single one should."""


def leftovers(remover: DependentRemover, removed: Sequence[Symbol]) -> Iterator[Leftover]:
    """What would be left in sources, after all edits are planned."""
    yield from _emptied_tables(remover)
    methods = [s for s in removed if s.kind is SymbolKind.METHOD and _stays_around(remover, s)]
    yield from _inherited_instead(remover, methods)
    yield from _inherited_values(remover)
    for symbol in methods:
        for name in constant_attributes(remover, symbol):
            yield Leftover(symbol.path, f"nothing would change the attribute {name} any more", symbol.symbol_id)
        for name in unread_attributes(remover, symbol):
            yield Leftover(symbol.path, f"nothing would read the attribute {name} any more", symbol.symbol_id)
    yield from (Leftover(*each) for each in lost_halves(remover, removed, methods))
    yield from (Leftover(*each) for each in special_methods(remover, methods))
    yield from (Leftover(*each, "") for each in (*keys_left(remover), *helpers_of_tests(remover)))
    yield from _without_content(remover, removed, methods)
    for path, text in unread_names(remover):
        yield Leftover(path, text, "")
    for symbol in methods:
        for where in annotated_uses(remover, symbol):
            yield Leftover(symbol.path, f"{where} uses {symbol.qualname} of an object by its type", symbol.symbol_id)
    for symbol in removed:
        if not remover.codebase.is_test(symbol.path):
            for name in uninstantiated_classes(remover, symbol):
                yield Leftover(symbol.path, f"nothing would make {name} any more", symbol.symbol_id)
            by_name = _named_elsewhere(remover, symbol, is_method=symbol in methods)
            for what in (*by_name, *_bound_again(remover, symbol)):
                yield Leftover(symbol.path, what, symbol.symbol_id)
    yield from _used_by_scripts(remover, removed)
    yield from _imported_later(remover, removed)
    yield from _emptied_handlers(remover)
    yield from _idle_programs(remover)
    yield from _imported_otherwise(remover)
    for symbol in methods:
        yield from _used_at_import(remover, symbol)


def _used_by_scripts(remover: DependentRemover, removed: Iterable[Symbol]) -> Iterator[Leftover]:
    """Uses in scripts, which are not changed: examples, benchmarks, files for type checkers."""
    by_name = _ids_by_name(removed)
    for lost in sorted(remover.lost):
        whole = remover.imported_from(lost)
        used = (*remover.uses.references_to(lost), *remover.uses.later_references_to(lost))
        paths = {path for path, _ in (*used, *remover.uses.importers_of(lost)) if path not in {SETUP, lost.path}}
        for path in sorted(filter(remover.is_script, paths)):
            yield Leftover(path, f"the script uses {lost.qualname or lost.path}", by_name.get(whole, ""))


def _imported_later(remover: DependentRemover, removed: Iterable[Symbol]) -> Iterator[Leftover]:
    """Imports of what is gone in functions of sources that stay."""
    by_name = _ids_by_name(removed)
    for lost in sorted(remover.lost):
        for path, record in remover.uses.later_importers_of(lost):
            plan = remover.plans.get(path)
            is_gone = plan is not None and plan.drops(record)
            if not (is_gone or remover.codebase.is_test(path) or remover.is_script(path)):
                stub = by_name.get(remover.imported_from(lost), "")
                yield Leftover(path, f"{record.owner} imports {record.name or record.module}", stub)


def _emptied_handlers(remover: DependentRemover) -> Iterator[Leftover]:
    """Handlers of failed imports that do nothing any more, since what they imported instead is gone."""
    for path, plan in sorted(remover.plans.items()):
        clauses = [record for record in plan.clauses if record.in_try]
        if not clauses or plan.deleted or remover.codebase.is_test(path):
            continue
        for node in of_types(plan.root, "except_clause"):
            body = node.named_children[-1] if node.named_children else None
            inside = [r for r in clauses if body is not None and body.start_byte <= r.start and r.end <= body.end_byte]
            if body is None or not inside or node.parent is None:
                continue
            is_emptied = all(plan.is_removed(s.start_byte, s.end_byte) for s in statements(body))
            tried = node.parent.child_by_field_name("body")
            is_tried = any(not plan.is_removed(s.start_byte, s.end_byte) for s in statements(tried)) if tried else False
            if is_emptied and is_tried:
                yield Leftover(path, f"nothing would be imported instead of {inside[0].bound}", "")


def _idle_programs(remover: DependentRemover) -> Iterator[Leftover]:
    """Files that ``python -m`` runs, stay, and lose what they do then."""
    for path, plan in sorted(remover.plans.items()):
        if not path.endswith("__main__.py") or plan.deleted or remover.codebase.is_test(path):
            continue
        for node in of_types(plan.root, "if_statement"):
            condition = node.child_by_field_name("condition")
            is_main = condition is not None and b"__name__" in (condition.text or b"")
            if is_main and plan.is_removed(node.start_byte, node.end_byte):
                yield Leftover(path, "the program would do nothing", "")


def _imported_otherwise(remover: DependentRemover) -> Iterator[Leftover]:
    """Names of which one import is gone and another one stays, as in the other branch of a condition."""
    for path, plan in sorted(remover.plans.items()):
        gone = {record.bound for record in plan.clauses if record.name not in {"", "*"}}
        if not gone or plan.deleted or remover.codebase.is_test(path):
            continue
        for record in plan.module.imports:
            is_same = record.bound in gone and bool(record.name) and remover.uses.at_import(path, record)
            if is_same and not plan.drops(record):
                yield Leftover(path, f"another import still binds {record.bound}", "")


def _ids_by_name(removed: Iterable[Symbol]) -> dict[tuple[str, str], str]:
    """File and dotted name of removed definitions to their ids."""
    return {(symbol.path, without_numbers(symbol.qualname)): symbol.symbol_id for symbol in removed}


def _used_at_import(remover: DependentRemover, method: Symbol) -> Iterator[Leftover]:
    """Attributes of unknown objects, where a module is imported, with the name of a removed method that nothing else
    has; not of what other packages offer."""
    name = without_numbers(method.name)
    for path, ref in remover.uses.attributes_at_import(name) if remover.uses.is_distinctive(name) else ():
        imports = remover.codebase.modules[path].imports
        foreign = {r.bound for r in imports if remover.uses.resolver.module_of(path, r) is None}
        is_own = ref.chain.partition(".")[0] not in foreign and not remover.codebase.is_test(path)
        if is_own and not remover.is_removed(path, ref.start, ref.end):
            yield Leftover(path, f"the module uses {ref.chain} of an object", method.symbol_id)


def _named_elsewhere(remover: DependentRemover, symbol: Symbol, *, is_method: bool) -> Iterator[str]:
    """Uses of a removed definition by its name alone; ``is_method``: of a class that stays."""
    for user in fixture_users(remover, symbol) if is_fixture(symbol) else ():
        if not remover.codebase.is_test(user.path):
            yield f"{user.qualname} asks for the fixture {symbol.name}"
    for text in (*strings_naming(remover, symbol), *texts_with_name(remover, symbol)):
        yield f"a text names {symbol.qualname}: {text[:MAX_TEXT]}"
    for comment in comments_naming(remover, symbol):
        yield f"a comment names {symbol.qualname}: {comment}"
    for klass in looked_up_methods(remover, symbol) if is_method else ():
        yield f"{klass} looks for methods by names, and nothing else calls {symbol.qualname}"
    for visitor in visitors_of(remover, symbol):
        yield f"{visitor} is found by the name of {symbol.qualname}"
    for call in getattr_lookups(remover, symbol) if is_method else ():
        yield f"{call} looks for {symbol.qualname}"
    for argument in passed_names(remover, symbol) if is_method else ():
        yield f"{symbol.qualname} is looked for by its name: {argument}"
    for text in collected_names(remover, symbol) if is_method else ():
        yield f"{symbol.qualname} is collected by its name, which {text} is"
    for use in named_objects(remover, symbol) if is_method else ():
        yield f"{use} uses {symbol.qualname} of an object that is named like its class"
    for word in dispatch_keys(remover, symbol) if is_method else ():
        yield f"{symbol.qualname} is looked for by {word}"


def _bound_again(remover: DependentRemover, symbol: Symbol) -> Iterator[str]:
    """Assignments in the class or module of a removed definition that bind its name, too: ``else`` of a condition."""
    owner, _, name = without_numbers(symbol.qualname).rpartition(".")
    for binding in remover.codebase.modules[symbol.path].bindings:
        is_same = binding.name == name and binding.klass == owner
        if is_same and name and not remover.is_removed(symbol.path, binding.start, binding.end):
            yield f"an assignment binds {symbol.qualname}, too"


def _stays_around(remover: DependentRemover, method: Symbol) -> bool:
    """Whether the class of a method of the sources stays."""
    klass = remover.codebase.symbols().get(method.holder_id)
    is_gone = klass is None or remover.is_removed(method.path, klass.start, klass.end)
    return not is_gone and not remover.codebase.is_test(method.path)


def _without_content(
    remover: DependentRemover, removed: Iterable[Symbol], methods: Sequence[Symbol]
) -> Iterator[Leftover]:
    """Containers that only removed code filled, variables that it alone set, while code that stays reads them."""
    for symbol in removed:
        if symbol.qualname and not remover.codebase.is_test(symbol.path):
            names = [f"fill {name}" for name in unfilled_containers(remover, symbol, of_object=symbol in methods)]
            for what in (*names, *(f"set {name}" for name in unset_flags(remover, symbol))):
                yield Leftover(symbol.path, f"nothing would {what} any more", symbol.symbol_id)


def _emptied_tables(remover: DependentRemover) -> Iterator[Leftover]:
    """Tables with a name that lose all their entries, while the names stay; a plain list of handlers may be empty."""
    for path, plan in sorted(remover.plans.items()):
        if not plan.elements or plan.deleted or path == SETUP or remover.codebase.is_test(path):
            continue
        for node in of_types(plan.root, *sorted(_DISPLAYS), "argument_list"):
            span, assignment = (node.start_byte, node.end_byte), node.parent
            value, is_table = node, node.type in {"dictionary", "set"}
            is_display = node.type in _DISPLAYS or is_keyword_table(node)
            if not is_display or span not in plan.elements or not plan.is_emptied(node):
                continue
            while assignment is not None and assignment.type in {"argument_list", "call"}:
                value, assignment, is_table = assignment, assignment.parent, True
            if assignment is None or assignment.type != "assignment" or plan.is_removed(*span) or not is_table:
                continue
            name = assignment.child_by_field_name("left")
            if name is not None and name.text != b"__all__" and assignment.child_by_field_name("right") == value:
                text = f"{(name.text or b'').decode(errors='replace')} would be left without entries"
                yield Leftover(path, text, "")


def _inherited_instead(remover: DependentRemover, methods: Iterable[Symbol]) -> Iterator[Leftover]:
    """Removed methods for which those of a base would be called, which do something else without a word; of the
    project's own, one that calls that of its base may go."""
    for symbol in methods:
        klass = Entity(symbol.path, symbol.qualname.rpartition(".")[0])
        found = _foreign_method(remover, klass, symbol) or _any_attribute(remover, klass, symbol)
        if found:
            yield Leftover(symbol.path, f"{symbol.qualname} would be {found}", symbol.symbol_id)


def _inherited_values(remover: DependentRemover) -> Iterator[Leftover]:
    """Values of classes that stay which go with removed code, and for which those of a base would be taken."""
    symbols, resolver = remover.codebase.symbols(), remover.uses.resolver
    for path, qualname in sorted(remover.lost):
        owner, _, name = qualname.rpartition(".")
        klass = symbols.get(f"{path}::{owner}") if owner and not remover.codebase.is_test(path) else None
        is_value = klass is not None and (owner, name) in resolver.scope(path).bindings
        if klass is None or not is_value or remover.is_removed(path, klass.start, klass.end):
            continue
        if any(resolver.attribute(base, name) is not None for base in resolver.bases(Entity(path, owner))):
            yield Leftover(path, f"{qualname} would be that of a base", "")


def _any_attribute(remover: DependentRemover, klass: Entity, method: Symbol) -> str:
    """The ``__getattr__`` that answers for a method that is gone, as it may pass calls on; empty if there is none."""
    name = without_numbers(method.name)
    found = remover.uses.resolver.attribute(klass, "__getattr__") if not name.startswith("__") else None
    fallback = remover.codebase.symbols().get(found.id) if found is not None else None
    is_left = fallback is not None and not remover.is_removed(fallback.path, fallback.start, fallback.end)
    return f"what {fallback.qualname} gives" if fallback is not None and is_left else ""


def _foreign_method(remover: DependentRemover, klass: Entity, own_method: Symbol) -> str:
    """The method that objects of a class would have without their own, and what is wrong with it; empty if there is
    none."""
    name = without_numbers(own_method.name)
    resolver, pending, seen = remover.uses.resolver, [klass], set[Entity]()
    while pending:
        entity = pending.pop(0)
        if entity in seen:
            continue
        seen.add(entity)
        inherited = resolver.attribute(entity, name) if entity != klass else None
        if inherited is not None:
            source = remover.codebase.modules[own_method.path].source[own_method.start : own_method.end]
            return _inherited_method(remover, inherited, is_extended=b"super(" in source)
        own = resolver.bases(entity)
        pending += own
        for base in resolver.scope(entity.path).bases.get(entity.qualname, ()):
            last = base.rpartition(".")[2]
            kind = getattr(builtins, last, None) or _of_standard_library(remover, entity.path, base)
            is_own = any(each.qualname.rpartition(".")[2] == last for each in own)
            if isinstance(kind, type) and not is_own and hasattr(kind, name) and name not in vars(object):
                return f"{last}.{name}, which does something else"
    return ""


def _of_standard_library(remover: DependentRemover, path: str, name: str) -> object:
    """What a dotted name of a file stands for, if it was imported from one of the modules that classes inherit from."""
    first, _, rest = name.partition(".")
    for record in remover.uses.resolver.scope(path).imports.get(first, ()):
        known = ".".join(filter(None, [record.module, record.name] if record.name or record.alias else [first]))
        module, _, attribute = ".".join(filter(None, [known, rest])).rpartition(".")
        if not record.level and module in _STANDARD:
            return getattr(importlib.import_module(module), attribute, None)
    return None


def _inherited_method(remover: DependentRemover, inherited: Entity, *, is_extended: bool) -> str:
    """A method of a base, and what is wrong with it; empty if it is gone, too, is no method, or was only extended."""
    method = remover.codebase.symbols().get(inherited.id)
    if method is None or method.kind is not SymbolKind.METHOD:
        return ""
    if remover.is_removed(method.path, method.start, method.end):
        return ""
    if is_abstract(method):
        return f"{method.qualname}, which is abstract"
    source = remover.codebase.modules[method.path].source
    raises = source.startswith(b"raise NotImplementedError", method.code_start)
    if raises:
        return f"{method.qualname}, which raises NotImplementedError"
    return "" if is_extended else f"{method.qualname}, which does something else"
