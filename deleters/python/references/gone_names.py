"""The names that a removal takes away altogether, and how text mentions them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from excise.deleters.python.references.dependent_removal import DependentRemover
from excise.deleters.python.references.remaining_words import paths_of_words, words_of
from excise.extractors.python.analysis.grammar import descendants, parse_tree
from excise.types import Symbol, SymbolKind

_DISTINCT = re.compile(r"[^_]_+[^_]|[a-z][A-Z]|[A-Z]{2}[a-z]")
"""What tells a name from an ordinary word."""
_ITEM = r"^\s*(?:[-*+•]\s+|\.\.\s+\w+::\s*)(?:"
_ITEM_NAME = r"(?::\w+(?::\w+)?:)?[`*]{{0,2}}[~.]?(?:[\w.]+\.)?(?:{names})\b"
_ITEM_WORD = (
    r"(?:(?::\w+(?::\w+)?:)?[`*]{{1,2}}[~.]?(?:[\w.]+\.)?(?:{names})\b|(?:[\w.]+\.)?(?:{names})(?=\(|\s*:|\s*$))"
)


@dataclass(frozen=True, slots=True)
class GoneNames:
    """Names that nothing in the code that stays binds or uses."""

    names: tuple[str, ...]
    """The names, without classes and modules."""
    dotted: frozenset[str]
    """The same with their modules and classes."""
    methods: frozenset[str] = frozenset()
    """Those of methods and other members of classes."""

    def pattern(self) -> re.Pattern[str]:
        """What finds a mention: a name that is no ordinary word, one in a role or a call, or behind its owner's."""
        distinct, plain = _divided(self.names)
        parts = [rf"(?<![\w./-])(?:[\w.]+\.)?(?:{_any(distinct)})(?![\w/-])"] if distinct else []
        if plain:
            parts += [rf":`[~.!]?(?:[\w.]+\.)?(?:{_any(plain)})(?:\(\))?`", rf"(?<![\w.])(?:{_any(plain)})\(\)"]
            dotted = [".".join(each.split(".")[-2:]) for each in self.dotted]
            parts.append(rf"(?<![\w./-])(?:[\w.]+\.)?(?:{_any(dotted)})(?![\w/-])")
        return re.compile("|".join(parts))


def item_pattern(names: Iterable[str]) -> re.Pattern[str]:
    """What finds an item of a list that begins with one of the names; an ordinary word must look like one."""
    distinct, plain = _divided(names)
    forms = [form.format(names=_any(own)) for form, own in ((_ITEM_NAME, distinct), (_ITEM_WORD, plain)) if own]
    return re.compile(rf"{_ITEM}{'|'.join(forms) or '(?!)'})")


def _divided(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """The names that are no ordinary words, and the others."""
    distinct = [name for name in names if _DISTINCT.search(name)]
    return distinct, [name for name in names if name not in distinct]


def _any(names: Iterable[str]) -> str:
    return "|".join(map(re.escape, names))


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
    found = {name: dotted for name, dotted in names.items() if len(name) > 2 and not _is_left(remover, name)}
    dotted_names = frozenset(dotted for each in found.values() for dotted in each)
    return GoneNames(tuple(sorted(found)), dotted_names, frozenset(methods & found.keys()))


def _is_left(remover: DependentRemover, name: str) -> bool:
    """Whether code that stays binds or uses a name, of whatever it is: a parameter, too."""
    for path in paths_of_words(remover.codebase).get(name, ()):
        plan = remover.plans.get(path)
        after = remover.codebase.modules[path].source if plan is None else words_of(plan).after
        if name.encode() in after and name in _identifiers(after):
            return True
    return False


@lru_cache(maxsize=256)
def _identifiers(source: bytes) -> frozenset[str]:
    nodes = (node for node in descendants(parse_tree(source).root_node) if node.type == "identifier")
    return frozenset((node.text or b"").decode(errors="replace") for node in nodes)
