"""Features that somebody proposes by an edited copy of the sources, such as a model: read from what is gone in it.

A definition is gone if the copy has none of its name in the same file, or one with an empty body. A function that is
still there with fewer lines of code has lost a part. Everything else in the copy is ignored: how code is removed, and
which tests are hidden, is the same for all features. So a proposal that forgot an import, or broke a file beside it, is
still of use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from excise.errors import DeletionRefused
from excise.extractors.features.feature_names import name_of, summary_of
from excise.extractors.features.find_features import feature_of, is_same, with_dependents
from excise.extractors.features.search_index import SearchIndex
from excise.protocols import Codebase, Module
from excise.types import Feature, FeatureKind, Symbol, SymbolKind, content_id, path_of

LEFT_OUT = frozenset({"syntax_error", "vendored", "example", "runs_at_import", "too_central", "used_by_others"})
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


def shortened_functions(
    before: Codebase, after: Codebase, changed: Iterable[str], removed: Sequence[Symbol]
) -> dict[str, str]:
    """Ids of the outermost functions that have fewer lines of code in ``after``, to their source texts there.

    Those inside ``removed`` definitions are left out, and changes that add as much as they take: they remove nothing.
    """
    gone = {symbol.symbol_id for symbol in removed}
    found: dict[str, str] = {}
    for path in sorted(changed):
        if path not in before.modules or before.is_test(path) or before.is_vendored(path) or path not in after.modules:
            continue
        old, new = before.modules[path], after.modules[path]
        left = {symbol.qualname: symbol for symbol in new.symbols}
        spans: list[Symbol] = [s for s in old.symbols if s.symbol_id in gone]
        for symbol in old.symbols:
            other = left.get(symbol.qualname)
            if not symbol.is_callable or other is None or any(s.start <= symbol.start < s.end for s in spans):
                continue
            spans.append(symbol)
            if other.loc < symbol.loc:
                found[symbol.symbol_id] = new.source[other.start : other.end].decode("utf-8", "replace")
    return found


def _emptied(old: Module, symbol: Symbol, new: Module, left: dict[str, Symbol]) -> bool:
    other = left[symbol.qualname]
    if not symbol.is_callable or not other.is_callable:
        return False
    return bool(_EMPTY.fullmatch(_code(new, other))) and not _EMPTY.fullmatch(_code(old, symbol))


def _code(module: Module, symbol: Symbol) -> str:
    return module.source[symbol.code_start : symbol.end].decode(errors="replace").strip()


def proposed_feature(
    index: SearchIndex, tree: str, removed: Sequence[Symbol], shortened: Mapping[str, str], known: Iterable[Feature]
) -> Feature:
    """The feature of these definitions, without those that cannot go, and with what cannot work without them.

    ``shortened`` are functions that lose a part, with the texts that they keep. The tests of a feature that has any are
    those that coverage predicts, far too many: only a run tells. ``tree`` becomes part of the id. Raises
    :class:`DeletionRefused` if nothing of it can be tried, or if one of the ``known`` features is nearly the same.
    """
    if not removed and not shortened:
        raise DeletionRefused("no function, method, class or file of the sources is gone", reason="no_change")
    feature: Feature | None = None
    try:
        feature = _whole(index, tree, removed) if removed else None
    except DeletionRefused:
        if not shortened:
            raise
    if shortened:
        feature = _with_parts(index, tree, feature, shortened)
    assert feature is not None
    mine = _contents(feature)
    if (same := next((f for f in known if is_same(mine, _contents(f))), None)) is not None:
        raise DeletionRefused(f"this feature is known already: {same.name or same.symbols[0]}", reason="already_found")
    return replace(feature, parent_feature_id=_parent(feature, known))


def _whole(index: SearchIndex, tree: str, removed: Sequence[Symbol]) -> Feature:
    """The feature of whole definitions. Raises :class:`DeletionRefused`."""
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
    return feature


def _with_parts(index: SearchIndex, tree: str, whole: Feature | None, shortened: Mapping[str, str]) -> Feature:
    """The feature with functions that lose a part, unless they are gone."""
    symbols = whole.symbols if whole is not None else ()
    gone = {inner for symbol in symbols for inner in index.with_nested(symbol)}
    changed = tuple(sorted((name, text) for name, text in shortened.items() if name not in gone))
    if whole is not None and not changed:
        return whole
    names = tuple(sorted({*symbols, *(name for name, _ in changed)}))
    records = [index.symbols[name] for name in names]
    outside = frozenset().union(*(index.codebase.callers(name) for name in names)) - set(names) - gone
    kind = FeatureKind.CROSS_FILE if len({s.path for s in records}) > 1 else FeatureKind.MULTI
    if len(records) == 1:
        kind = FeatureKind.METHOD if records[0].kind is SymbolKind.METHOD else FeatureKind.FUNCTION
    return Feature(
        feature_id=content_id("feature", tree, kind, list(names), list(changed)),
        kind=kind,
        tier=whole.tier if whole is not None else 0,
        entry=tuple(s.symbol_id for s in records if s.is_public) or names,
        symbols=names,
        tests=tuple(sorted(index.tests_of(names))),
        fan_in=sum(1 for caller in outside if not index.codebase.is_test(path_of(caller))),
        loc=(whole.loc if whole is not None else 0) + sum(_lost_lines(index, *pair) for pair in changed),
        complexity=sum(s.complexity for s in records),
        name=name_of(records),
        summary=summary_of(records),
        changed=changed,
    )


def _lost_lines(index: SearchIndex, symbol_id: str, text: str) -> int:
    """How many more lines that are not blank a function has than the text that it keeps."""
    symbol = index.symbols[symbol_id]
    before = index.codebase.modules[symbol.path].source[symbol.start : symbol.end].decode("utf-8", "replace")
    return sum(bool(line.strip()) for line in before.splitlines()) - sum(bool(x.strip()) for x in text.splitlines())


def _contents(feature: Feature) -> frozenset[str]:
    """What is gone: symbols, and those that lose a part apart from those that go as a whole."""
    parts = {name for name, _ in feature.changed}
    return frozenset(f"{name}#part" if name in parts else name for name in feature.symbols)


_SAID = {
    "no_code": "it has no code of its own",
    "not_covered": "no test executes it that passes every time",
    "too_central": "too many tests execute it",
    "runs_at_import": "it runs when modules are imported",
    "used_by_others": "too much other code uses it",
    "vendored": "it belongs to a copy of another project",
    "example": "it belongs to an example of how to use the project",
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
    around = [other for other in known if mine < frozenset(other.symbols) and not other.changed]
    smallest = min(around, key=lambda other: (len(other.symbols), other.loc, other.feature_id), default=None)
    return smallest.feature_id if smallest is not None else ""
