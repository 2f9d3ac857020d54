"""Functions that all deleters of Python use: selection of symbols, patches of stand-ins, records of deletions."""

from __future__ import annotations

from collections.abc import Iterable

from excise.deleters.deletion_record import EditedFiles, build_deletion, patch_of
from excise.deleters.edits.byte_edits import Edit, apply_edits
from excise.deleters.python.edits.empty_bodies import (
    bare_classes,
    empty_body,
    functions_of,
    is_abstract,
    stub_edit,
)
from excise.deleters.python.edits.file_plan import check_parses
from excise.deleters.python.references.dependent_removal import DependentRemover
from excise.errors import DeletionRefused
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.protocols import EMPTY, TRIVIAL
from excise.types import Deletion, Feature, Symbol, SymbolKind


def require_python(codebase: object) -> PythonCodebase:
    """The codebase as a Python codebase. Raises :class:`DeletionRefused` for other languages."""
    if not isinstance(codebase, PythonCodebase):
        raise DeletionRefused("this deleter understands Python codebases only", reason="unsupported_language")
    return codebase


def symbols_to_delete(codebase: PythonCodebase, feature: Feature, only: frozenset[str] | None) -> list[Symbol]:
    """The symbols to delete (of a feature, or ``only`` these), without those inside others. Raises
    :class:`DeletionRefused`."""
    ids = [s for s in feature.symbols if only is None or s in only]
    unknown = [s for s in ids if s not in codebase.symbols()]
    if unknown or not ids:
        what = f"no such symbol: {unknown[0]}" if unknown else "nothing to delete"
        raise DeletionRefused(what, reason="unknown_symbol" if unknown else "empty")
    symbols = [codebase.symbols()[s] for s in dict.fromkeys(ids)]
    for symbol in symbols:
        _check(codebase, symbol)
    return [s for s in symbols if not any(_contains(o, s) for o in symbols)]


def _contains(outer: Symbol, inner: Symbol) -> bool:
    if outer.symbol_id == inner.symbol_id or outer.path != inner.path:
        return False
    return not outer.qualname or (outer.start <= inner.start and inner.end <= outer.end)


def _check(codebase: PythonCodebase, symbol: Symbol) -> None:
    if codebase.is_test(symbol.path):
        raise DeletionRefused(f"{symbol.symbol_id} belongs to the tests", reason="symbol_in_tests")
    if codebase.modules[symbol.path].has_error:
        raise DeletionRefused(f"{symbol.path}: has syntax errors, nothing is deleted there", reason="syntax_error")
    if not codebase.is_removable(symbol.symbol_id):
        raise DeletionRefused(f"{symbol.symbol_id}: Python itself calls this method", reason="dunder_method")
    if is_abstract(symbol):
        raise DeletionRefused(f"{symbol.symbol_id}: an abstract method has nothing to delete", reason="abstract_method")


def build_python_deletion(
    codebase: PythonCodebase, feature: Feature, files: EditedFiles, *, name: str, version: int
) -> Deletion:
    """See :func:`excise.deleters.deletion_record.build_deletion`."""
    return build_deletion(
        codebase, feature, files, name=name, version=version, stand_ins=lambda ids: stub_patches(codebase, ids)
    )


# ------------------------------------------------------------------------------------------ patches
def changed_files(remover: DependentRemover) -> dict[str, tuple[bytes, bytes | None]]:
    """Path to (content before, content after) of the files that planned edits change."""
    changed: dict[str, tuple[bytes, bytes | None]] = {path: (data, None) for path, data in remover.other_files.items()}
    for plan in remover.plans.values():
        after = plan.result() if plan.is_changed else plan.source
        if after != plan.source:
            changed[plan.path] = (plan.source, after)
    return changed


def stub_patches(codebase: PythonCodebase, symbol_ids: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """(kind, patch) for each kind of stub (:data:`EMPTY`, :data:`TRIVIAL`); the patch puts stubs into the base tree.

    A class without methods keeps only its header. A patch is empty if there is no body to replace.
    """
    ids = list(symbol_ids)
    symbols = [f for f in functions_of(codebase, ids) if not f.is_overload] + bare_classes(codebase, ids)
    return tuple(
        (kind, patch_of(codebase, with_empty_bodies(codebase, symbols, kind, keep_docstring=False)))
        for kind in (*EMPTY, TRIVIAL)
    )


def with_empty_bodies(
    codebase: PythonCodebase, symbols: Iterable[Symbol], kind: str, *, keep_docstring: bool
) -> dict[str, tuple[bytes, bytes | None]]:
    """Path to (content before, content after) for emptying the bodies of functions and of classes without methods."""
    changed: dict[str, tuple[bytes, bytes | None]] = {}
    for path, edits in empty_body_edits(codebase, symbols, kind, keep_docstring=keep_docstring).items():
        source = codebase.modules[path].source
        after = apply_edits(source, edits)
        check_parses(path, source, after)
        changed[path] = (source, after)
    return changed


def empty_body_edits(
    codebase: PythonCodebase, symbols: Iterable[Symbol], kind: str, *, keep_docstring: bool
) -> dict[str, list[Edit]]:
    """Path to the edits that empty the bodies of functions and of classes without methods."""
    edits: dict[str, list[Edit]] = {}
    for symbol in symbols:
        edit = stub_edit(codebase.modules[symbol.path], symbol, empty_body(symbol, kind), keep_docstring=keep_docstring)
        edits.setdefault(symbol.path, []).append(edit)
    return edits


def emptied_text(codebase: PythonCodebase, symbol: Symbol) -> str:
    """Source text of a function with an empty body, which raises, and its docstring."""
    module = codebase.modules[symbol.path]
    edit = stub_edit(module, symbol, empty_body(symbol, "raise"), keep_docstring=True)
    within = Edit(edit.start - symbol.start, edit.end - symbol.start, edit.replacement)
    return apply_edits(module.source[symbol.start : symbol.end], [within]).decode("utf-8", "replace")


def ids_with_members(codebase: PythonCodebase, symbols: Iterable[Symbol], wanted: Iterable[str]) -> set[str]:
    """Ids of ``symbols``, of all definitions with their names, and of those ``wanted`` symbols that are inside them."""
    found: set[str] = set()
    for symbol in symbols:
        found.update(codebase.group(symbol.symbol_id) if symbol.kind is not SymbolKind.MODULE else [symbol.symbol_id])
    known = codebase.symbols()
    inside = {w for w in wanted if w in known and any(_contains(known[f], known[w]) for f in found)}
    return found | inside
