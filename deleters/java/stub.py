"""The deleter ``stub`` for Java: bodies throw, signatures and comments stay."""

from __future__ import annotations

from collections.abc import Iterable

from excise.deleters.deletion_record import EditedFiles, build_deletion, patch_of
from excise.deleters.java.bodies import functions_of, merged, with_bodies
from excise.deleters.java.hide_tests import hide as hide_tests
from excise.errors import DeletionRefused
from excise.extractors.java.analysis.codebase import JavaCodebase
from excise.protocols import EMPTY, Codebase
from excise.types import Deletion, Feature, Symbol


def require_java(codebase: object) -> JavaCodebase:
    """The codebase as one of Java. Raises :class:`DeletionRefused` for other languages."""
    if not isinstance(codebase, JavaCodebase):
        raise DeletionRefused("this deleter understands Java codebases only", reason="unsupported_language")
    return codebase


def stand_ins(codebase: JavaCodebase, symbol_ids: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """(kind, patch) for each kind of stand-in; see :meth:`excise.protocols.CodeEditor.stand_ins`."""
    functions = functions_of(codebase, symbol_ids)
    return tuple((kind, patch_of(codebase, with_bodies(codebase, functions, kind))) for kind in EMPTY)


def text_of(codebase: JavaCodebase, symbol: Symbol) -> str:
    """Source text of a definition."""
    return codebase.modules[symbol.path].source[symbol.start : symbol.end].decode("utf-8", "replace")


class Stub:
    """Replaces the bodies of methods and constructors by a ``throw``."""

    name = "stub"
    version = 1

    def delete(
        self,
        codebase: Codebase,
        feature: Feature,
        *,
        only: frozenset[str] | None = None,
        hide: frozenset[str] = frozenset(),
    ) -> Deletion:
        """See :class:`excise.protocols.Deleter`."""
        java = require_java(codebase)
        functions = self._functions(java, feature, only)
        tests, hidden = hide_tests(java, hide or feature.tests)
        ids = [symbol.symbol_id for symbol in functions]
        files = EditedFiles(
            changed=merged(with_bodies(java, functions, "raise"), tests),
            removed=ids,
            hidden=hidden,
            text=[(symbol.symbol_id, text_of(java, symbol)) for symbol in functions],
            stubs_of=ids,
        )
        return build_deletion(
            java, feature, files, name=self.name, version=self.version, stand_ins=lambda each: stand_ins(java, each)
        )

    def _functions(self, codebase: JavaCodebase, feature: Feature, only: frozenset[str] | None) -> list[Symbol]:
        """The methods to empty. Raises :class:`DeletionRefused` if there are none, or one cannot be emptied."""
        symbols = codebase.symbols()
        ids = [s for s in feature.symbols if only is None or s in only]
        if unknown := [s for s in ids if s not in symbols]:
            raise DeletionRefused(f"no such symbol: {unknown[0]}", reason="unknown_symbol")
        functions = [f for f in functions_of(codebase, ids) if codebase.is_removable(f.symbol_id)]
        if not functions:
            raise DeletionRefused("no method with a body", reason="nothing_to_stub")
        for function in functions:
            if codebase.is_test(function.path):
                raise DeletionRefused(f"{function.symbol_id} belongs to the tests", reason="symbol_in_tests")
            if codebase.modules[function.path].has_error:
                raise DeletionRefused(f"{function.path}: has syntax errors", reason="syntax_error")
        return functions
