"""Features that somebody proposes by an edited copy of the sources, such as a model: read from what is gone in it.

A definition is gone if the copy has none of its name in the same file, or one with an empty body. Everything else in
the copy is ignored: how code is removed, and which tests are hidden, is the same for all features. So a proposal that
forgot an import, or broke a file beside it, is still of use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from excise.errors import DeletionRefused
from excise.extractors.features.find_features import feature_of, is_same, with_dependents
from excise.extractors.features.search_index import SearchIndex
from excise.protocols import Codebase, Module
from excise.types import Feature, Symbol, SymbolKind

LEFT_OUT = frozenset({"syntax_error", "vendored", "runs_at_import", "too_central", "used_by_others"})
"""Reasons for which a definition is left out of a proposal; the rest of it is tried."""
_EMPTY = re.compile(r"(pass|\.\.\.|return( None)?|raise NotImplementedError(\([^\n]*\))?)?;?")
"""Bodies, after the docstring, of functions from which everything was taken."""


def removed_symbols(before: Codebase, after: Codebase, changed: Iterable[str]) -> list[Symbol]:
    """The outermost definitions of the ``changed`` files that ``after`` lacks or has with an empty body.

    A file that is not in ``after`` is gone as a whole. Raises :class:`DeletionRefused` for files with syntax errors.
    """
    found: list[Symbol] = []
    for path in sorted(changed):
        if path not in before.modules or before.is_test(path):
            continue
        old, new = before.modules[path], after.modules.get(path)
        if new is None:
            found.append(old.symbols[0])
            continue
        if new.has_error and not old.has_error:
            raise DeletionRefused(f"{path}: the file no longer parses", reason="would_not_parse")
        left = {symbol.qualname: symbol for symbol in new.symbols}
        gone = [s for s in old.symbols if s.qualname and (s.qualname not in left or _emptied(old, s, new, left))]
        found += [s for s in gone if not any(o.start <= s.start and s.end <= o.end and o is not s for o in gone)]
    return found


def _emptied(old: Module, symbol: Symbol, new: Module, left: dict[str, Symbol]) -> bool:
    other = left[symbol.qualname]
    if not symbol.is_callable or not other.is_callable:
        return False
    return bool(_EMPTY.fullmatch(_code(new, other))) and not _EMPTY.fullmatch(_code(old, symbol))


def _code(module: Module, symbol: Symbol) -> str:
    return module.source[symbol.code_start : symbol.end].decode(errors="replace").strip()


def proposed_feature(index: SearchIndex, tree: str, removed: Sequence[Symbol], known: Iterable[Feature]) -> Feature:
    """The feature of these definitions, without those that cannot go, and with what cannot work without them.

    ``tree`` becomes part of its id. Raises :class:`DeletionRefused` if nothing of it can be tried, or if one of the
    ``known`` features has nearly the same symbols.
    """
    if not removed:
        raise DeletionRefused("no function, method, class or file of the sources is gone", reason="no_change")
    reasons = {symbol.symbol_id: index.part_reason(symbol) for symbol in _parts(index, removed)}
    can_go = {name for name, reason in reasons.items() if reason not in LEFT_OUT and index.codebase.is_removable(name)}
    chosen = _within(index, can_go)
    if not index.tests_of(chosen):
        name, reason = next(((n, r) for n, r in reasons.items() if r), (removed[0].symbol_id, "not_covered"))
        raise DeletionRefused(f"{name}: {_SAID.get(reason, reason)}", reason=reason)
    feature = feature_of(index, tree, tuple(sorted(with_dependents(index, frozenset(chosen)))))
    feature = feature or feature_of(index, tree, tuple(sorted(chosen)))
    if feature is None:
        raise DeletionRefused("this is too much code for one task", reason="too_large")
    mine = frozenset(feature.symbols)
    if (same := next((f for f in known if is_same(mine, frozenset(f.symbols))), None)) is not None:
        raise DeletionRefused(f"this feature is known already: {same.name or same.symbols[0]}", reason="already_found")
    return replace(feature, parent_feature_id=_parent(feature, known))


_SAID = {
    "not_covered": "no test executes it that passes every time",
    "too_central": "too many tests execute it",
    "runs_at_import": "it runs when modules are imported",
    "used_by_others": "too much other code uses it",
    "vendored": "it belongs to a copy of another project",
    "syntax_error": "its file has a syntax error",
}


def _parts(index: SearchIndex, removed: Sequence[Symbol]) -> list[Symbol]:
    """The definitions, with those of a file in place of a file that cannot go as a whole."""
    found: list[Symbol] = []
    for symbol in removed:
        if symbol.kind is SymbolKind.MODULE and index.part_reason(symbol) in LEFT_OUT:
            inside = index.codebase.modules[symbol.path].symbols
            found += [s for s in inside if s.qualname and "." not in s.qualname]
        else:
            found.append(symbol)
    return found


def _within(index: SearchIndex, chosen: set[str]) -> set[str]:
    """The symbols without those with most tests, until not too many tests execute the rest."""
    while len(index.tests_of(chosen)) > index.max_tests:
        chosen = chosen - {max(sorted(chosen), key=lambda symbol: len(index.tests.get(symbol, ())))}
    return chosen


def _parent(feature: Feature, known: Iterable[Feature]) -> str:
    """The id of the smallest known feature with all symbols of this one; empty if there is none."""
    mine = frozenset(feature.symbols)
    around = [other for other in known if mine < frozenset(other.symbols)]
    smallest = min(around, key=lambda other: (len(other.symbols), other.loc, other.feature_id), default=None)
    return smallest.feature_id if smallest is not None else ""
