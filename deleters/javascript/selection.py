"""The symbols that a deleter of JavaScript takes."""

from __future__ import annotations

from excise.errors import DeletionRefused
from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.types import Feature, Symbol, SymbolKind, is_inside


def require_javascript(codebase: object) -> JavaScriptCodebase:
    """The codebase as one of JavaScript. Raises :class:`DeletionRefused` for other languages."""
    if not isinstance(codebase, JavaScriptCodebase):
        raise DeletionRefused("this deleter understands JavaScript codebases only", reason="unsupported_language")
    return codebase


def symbols_to_delete(codebase: JavaScriptCodebase, feature: Feature, only: frozenset[str] | None) -> list[Symbol]:
    """The symbols to delete (of a feature, or ``only`` these), without those inside others.

    Raises :class:`DeletionRefused`.
    """
    ids = [s for s in feature.symbols if only is None or s in only]
    unknown = [s for s in ids if s not in codebase.symbols()]
    if unknown or not ids:
        what = f"no such symbol: {unknown[0]}" if unknown else "nothing to delete"
        raise DeletionRefused(what, reason="unknown_symbol" if unknown else "empty")
    symbols = [codebase.symbols()[s] for s in dict.fromkeys(ids)]
    for symbol in symbols:
        _check(codebase, symbol)
    return [s for s in symbols if not any(o is not s and is_inside(s.symbol_id, o.symbol_id) for o in symbols)]


def _check(codebase: JavaScriptCodebase, symbol: Symbol) -> None:
    if codebase.is_test(symbol.path):
        raise DeletionRefused(f"{symbol.symbol_id} belongs to the tests", reason="symbol_in_tests")
    if codebase.modules[symbol.path].has_error:
        raise DeletionRefused(f"{symbol.path}: has syntax errors, nothing is deleted there", reason="syntax_error")
    if symbol.kind is SymbolKind.MODULE:
        raise DeletionRefused(f"{symbol.path}: files are not deleted as a whole", reason="whole_module")
    if not codebase.is_removable(symbol.symbol_id):
        raise DeletionRefused(f"{symbol.symbol_id}: JavaScript itself calls it", reason="constructor")


def body_text(codebase: JavaScriptCodebase, symbol: Symbol) -> str:
    """Source text of a function's body."""
    span = codebase.modules[symbol.path].functions[symbol.qualname]
    return codebase.modules[symbol.path].source[span.body_start : span.body_end].decode("utf-8", "replace").strip()
