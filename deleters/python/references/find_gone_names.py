"""The names that a removal takes away altogether."""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache

from excise.deleters.documents.gone_names import GoneNames, with_owner
from excise.deleters.python.references.dependent_removal import DependentRemover
from excise.deleters.python.references.remaining_words import paths_of_words, source_left
from excise.extractors.python.analysis.codebase import BUILTIN_ATTRIBUTES
from excise.extractors.python.analysis.grammar import of_types, parse_tree, text_of
from excise.extractors.python.analysis.name_resolution import Entity
from excise.extractors.python.analysis.parsed_file import SELF, Import
from excise.extractors.python.analysis.parser import parse_text
from excise.types import Symbol, SymbolKind

_CASE = re.compile(r"[\w.%+-]{2,40}")
"""A text that stands for one of several ways, and is no sentence."""
_KEY = re.compile(r"(?=\w*[A-Z_\d])[^\W\d]\w{3,40}")
"""A text of a table that is no ordinary word."""


def gone_names(remover: DependentRemover, gone: Iterable[Symbol]) -> GoneNames:
    """The names of removed definitions, and of those in them, that nothing else has."""
    names: dict[str, set[str]] = {}
    methods: set[str] = set()
    for symbol in gone:
        module = remover.codebase.names.name_of(symbol.path)
        for inner in remover.codebase.modules[symbol.path].symbols:
            is_inside = symbol.start <= inner.start and inner.end <= symbol.end and bool(inner.qualname)
            if is_inside and not (inner.name.startswith("__") and inner.name.endswith("__")):
                dotted = f"{module}.{inner.qualname.partition('#')[0]}"
                name = inner.name.partition("#")[0]
                names.setdefault(name, set()).add(dotted)
                methods.update({name} if inner.kind is SymbolKind.METHOD else ())
    listed = {name for name in methods if name.isalpha() and _is_text(remover, name)}  # in a list of methods to make
    others = methods & BUILTIN_ATTRIBUTES | _module_names(remover) | listed
    is_gone = {name: len(name) > 2 and name not in others and not _is_left(remover, name) for name in names}
    found = {name: dotted for name, dotted in names.items() if is_gone[name]}
    dotted_names = frozenset(dotted for each in found.values() for dotted in each)
    behind = {with_owner(dotted) for name, own in names.items() if name not in found for dotted in own}
    qualified = behind - _owned_names(remover) if behind else behind
    texts = frozenset(name for name in found if _is_text(remover, name))
    joined = {_in_camel_case(name): name for name in found if "_" in name.strip("_")}
    joined = {alias: name for alias, name in joined.items() if not _is_left(remover, alias)}
    aliases = {alias for alias, name in joined.items() if name in methods}
    return GoneNames(
        tuple(sorted(found.keys() | joined.keys())),
        dotted_names,
        frozenset(methods & found.keys() | aliases),
        tuple(sorted(qualified)),
        texts=texts,
    )


def _in_camel_case(name: str) -> str:
    """``outerHtml`` for ``outer_html``: a decorator may give a function a second name."""
    first, *others = name.strip("_").split("_")
    return first + "".join(map(str.capitalize, others))


def _module_names(remover: DependentRemover) -> set[str]:
    """The plain names of modules and packages that stay: text means them."""
    plans, found = remover.plans, set[str]()
    for path in remover.codebase.modules:
        if not (path in plans and plans[path].deleted) and not remover.codebase.is_test(path):
            found.update(remover.codebase.names.name_of(path).split("."))
    return found


def publicly_gone(remover: DependentRemover, gone: Iterable[Symbol]) -> frozenset[str]:
    """The names of public functions and classes among removed ones that only private definitions still have.

    Documents that name one mean what is gone.
    """
    names = {symbol.name.partition("#")[0] for symbol in gone if symbol.qualname and _is_public(symbol.qualname)}
    names -= _module_names(remover)
    return frozenset(name for name in names if len(name) > 2 and _is_only_private(remover, name))


def gone_keys(remover: DependentRemover) -> frozenset[str]:
    """The texts under which tables had removed code, and that no other code that stays has: documents list them."""
    found: set[str] = set()
    for path, plan in remover.plans.items():
        if plan.deleted or remover.codebase.is_test(path):
            continue
        for start, end in sorted(span for spans in plan.elements.values() for span in spans):
            pair = plan.node_at(start, end)
            key = pair.child_by_field_name("key") if pair.type == "pair" else None
            text = text_of(key).strip("'\"") if key is not None and key.type == "string" else ""
            found.update({text} if _KEY.fullmatch(text) else ())
    return frozenset(key for key in found if not _is_text(remover, key))


def gone_cases(remover: DependentRemover, before: str, after: str) -> frozenset[str]:
    """The texts with which a function that lost a part compared something, and that no code that stays has."""
    lost = _compared_texts(before) - _compared_texts(after)
    return frozenset(text for text in lost if _CASE.fullmatch(text) and not _is_text(remover, text))


def _compared_texts(code: str) -> set[str]:
    """The texts that code compares something with: ``x == "a"``, ``x in ("a", "b")``, ``case "a"``."""
    try:
        tree = ast.parse(textwrap.dedent(code))
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return set()
    found: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.MatchValue):
            found.append(node.value)
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq):
            found.append(node.comparators[0])
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In):
            listed = node.comparators[0]
            found += listed.elts if isinstance(listed, ast.Tuple | ast.List | ast.Set) else []
    return {each.value for each in found if isinstance(each, ast.Constant) and isinstance(each.value, str)}


def _is_public(qualname: str) -> bool:
    return not any(part.startswith("_") for part in qualname.split("."))


def _is_only_private(remover: DependentRemover, name: str) -> bool:
    """Whether members of private classes that stay have a name, and nothing else binds it: no parameter either."""
    has_private = False
    for after in _left_with(remover, name):
        module = parse_text(after)
        named = [symbol for symbol in module.symbols if symbol.name.partition("#")[0] == name]
        bound = [f"{binding.klass}.{binding.name}" for binding in module.bindings if binding.name == name]
        set_by = (ref for ref in module.references if ref.is_assigned and ref.chain == f"{SELF}.{name}")
        set_in = [ref.owner.partition(".")[0] for ref in set_by]
        in_heads = any(re.search(rf"\b{name}\b", symbol.signature.partition("(")[2]) for symbol in module.symbols)
        owners = [*(symbol.qualname for symbol in named), *bound, *set_in]
        if in_heads or any(map(_is_public, owners)) or any(each.bound == name for each in module.imports):
            return False
        has_private |= bool(named)
    return has_private


def _owned_names(remover: DependentRemover) -> set[str]:
    """What stays, as names behind those of their classes or modules; also what classes inherit."""
    resolver, found = remover.uses.resolver, set[str]()
    for path, module in remover.codebase.modules.items():
        dotted = remover.codebase.names.name_of(path)
        own = {symbol.qualname.partition("#")[0] for symbol in module.symbols if not _is_gone(remover, path, symbol)}
        own |= {f"{b.klass}.{b.name}" if b.klass else b.name for b in module.bindings}
        found.update(with_owner(f"{dotted}.{each}") for each in own if each)
        for symbol in module.symbols:
            if symbol.kind is SymbolKind.CLASS and (bases := resolver.bases(Entity(path, symbol.qualname))):
                found.update(f"{symbol.name}.{name}" for name in _members(remover, bases))
    return found


def _members(remover: DependentRemover, classes: Iterable[Entity]) -> Iterator[str]:
    """The names of the methods of classes that stay, and of their bases."""
    for klass in remover.uses.resolver.with_bases(classes):
        module = remover.codebase.modules.get(klass.path)
        for symbol in module.symbols if module is not None else ():
            if symbol.qualname.rpartition(".")[0] == klass.qualname and not _is_gone(remover, klass.path, symbol):
                yield symbol.name


def _is_gone(remover: DependentRemover, path: str, symbol: Symbol) -> bool:
    return remover.is_removed(path, symbol.start, symbol.end)


def _is_left(remover: DependentRemover, name: str) -> bool:
    """Whether code that stays and is no test binds or uses a name, of whatever it is: a parameter, too."""
    return any(name.encode() in after and name in _identifiers(after) for after in _left_with(remover, name))


def _is_text(remover: DependentRemover, name: str) -> bool:
    """Whether a text of code that stays, and is no test, is the name."""
    text = re.compile(rb"(['\"])%s\1" % re.escape(name.encode()))
    return any(text.search(after) for after in _left_with(remover, name))


def _left_with(remover: DependentRemover, name: str) -> Iterator[bytes]:
    """What the removal leaves of the files that have a word, without tests."""
    for path in paths_of_words(remover.codebase).get(name, ()):
        if not remover.codebase.is_test(path):
            yield source_left(remover.codebase, remover.plans, path)


@lru_cache(maxsize=256)
def _identifiers(source: bytes) -> frozenset[str]:
    """The names in the code of a file, but for attributes of modules of the standard library: ``re.findall``."""
    counts = Counter(map(text_of, of_types(parse_tree(source).root_node, "identifier")))
    module = parse_text(source)
    foreign = {record.bound for record in module.imports if not record.name and _is_foreign(record)}
    counts.subtract(r.name for r in module.imports if r.alias not in {"", r.name} and _is_foreign(r))
    for ref in module.references:
        root, *rest = ref.chain.split(".")
        if root in foreign:
            counts.subtract(rest)
    return frozenset(name for name, count in counts.items() if count > 0)


def _is_foreign(record: Import) -> bool:
    """Whether an import is one of the standard library."""
    return not record.level and record.module.partition(".")[0] in sys.stdlib_module_names
