"""Deleter and code editor of languages that take features out as stubs only, since what is missing does not compile."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from excise.deleters.deletion_record import Changed, EditedFiles, build_deletion, patch_of
from excise.errors import DeletionRefused
from excise.protocols import EMPTY, Codebase, CodePath, Deleter, MissingCode, StatementWords
from excise.types import Deletion, Feature, Symbol, content_id

C = TypeVar("C", bound=Codebase)


@dataclass(frozen=True, slots=True, kw_only=True)
class StubEdits(Generic[C]):
    """The edits of one language."""

    language: str
    """Name of the language in messages."""
    codebase: type[C]
    """Class of its codebases."""
    functions_of: Callable[[C, Iterable[str]], list[Symbol]]
    """The functions with a body among symbols, and in types and files among them."""
    with_bodies: Callable[[C, Iterable[Symbol], str], Changed]
    """The files whose functions get bodies of a kind of :data:`EMPTY`; ``raise`` is also the stub of a task."""
    hide: Callable[[C, Iterable[str]], tuple[Changed, set[str]]]
    """(test files before and after, ids of the hidden tests) without some tests."""

    def own(self, codebase: object) -> C:
        """The codebase as one of this language. Raises :class:`DeletionRefused` for others."""
        if not isinstance(codebase, self.codebase):
            raise DeletionRefused(
                f"this deleter understands {self.language} codebases only", reason="unsupported_language"
            )
        return codebase

    def stand_ins(self, codebase: Codebase, symbol_ids: Iterable[str]) -> tuple[tuple[str, str], ...]:
        """(kind, patch) for each kind of stand-in; see :meth:`excise.protocols.CodeEditor.stand_ins`."""
        own = self.own(codebase)
        functions = self.functions_of(own, symbol_ids)
        return tuple((kind, patch_of(own, self.with_bodies(own, functions, kind))) for kind in EMPTY)


def text_of(codebase: Codebase, symbol: Symbol) -> str:
    """Source text of a definition."""
    return codebase.modules[symbol.path].source[symbol.start : symbol.end].decode("utf-8", "replace")


class StubDeleter(Generic[C]):
    """The deleter ``stub``: replaces bodies by what raises, and keeps signatures and comments."""

    name = "stub"
    version = 1

    def __init__(self, edits: StubEdits[C]) -> None:
        self._edits = edits

    def delete(
        self,
        codebase: Codebase,
        feature: Feature,
        *,
        only: frozenset[str] | None = None,
        hide: frozenset[str] = frozenset(),
    ) -> Deletion:
        """See :class:`excise.protocols.Deleter`."""
        own = self._edits.own(codebase)
        functions = self._functions(own, feature, only)
        tests, hidden = self._edits.hide(own, hide or feature.tests)
        ids = [symbol.symbol_id for symbol in functions]
        files = EditedFiles(
            changed={**self._edits.with_bodies(own, functions, "raise"), **tests},
            removed=ids,
            hidden=hidden,
            text=[(symbol.symbol_id, text_of(own, symbol)) for symbol in functions],
            stubs_of=ids,
        )
        return build_deletion(
            own,
            feature,
            files,
            name=self.name,
            version=self.version,
            stand_ins=lambda each: self._edits.stand_ins(own, each),
        )

    def _functions(self, codebase: C, feature: Feature, only: frozenset[str] | None) -> list[Symbol]:
        """The functions to empty. Raises :class:`DeletionRefused` if there are none, or one cannot be emptied."""
        symbols = codebase.symbols()
        ids = [s for s in feature.symbols if only is None or s in only]
        if unknown := [s for s in ids if s not in symbols]:
            raise DeletionRefused(f"no such symbol: {unknown[0]}", reason="unknown_symbol")
        functions = [f for f in self._edits.functions_of(codebase, ids) if codebase.is_removable(f.symbol_id)]
        if not functions:
            raise DeletionRefused("no function with a body", reason="nothing_to_stub")
        for function in functions:
            if codebase.is_test(function.path):
                raise DeletionRefused(f"{function.symbol_id} belongs to the tests", reason="symbol_in_tests")
            if codebase.modules[function.path].has_error:
                raise DeletionRefused(f"{function.path}: has syntax errors", reason="syntax_error")
        return functions


class StubEditor(Generic[C]):
    """Implements :class:`excise.protocols.CodeEditor` with stubs only."""

    def __init__(self, edits: StubEdits[C], words: StatementWords) -> None:
        self._edits = edits
        self.words = words

    @property
    def deleters(self) -> Mapping[str, Callable[[], Deleter]]:
        """The deleter ``stub``."""
        return {StubDeleter.name: lambda: StubDeleter(self._edits)}

    def path(self, codebase: Codebase, symbol: Symbol) -> CodePath | None:  # noqa: ARG002
        """None goes alone."""
        return None

    def hiding_only(self, codebase: Codebase, deletion: Deletion, tests: frozenset[str]) -> Deletion:
        """See :meth:`excise.protocols.CodeEditor.hiding_only`."""
        changed, hidden = self._edits.hide(self._edits.own(codebase), tests)
        hide_patch = patch_of(codebase, changed)
        parts = deletion.deleter, deletion.deleter_version, deletion.source_patch
        return replace(
            deletion,
            deletion_id=content_id("deletion", *parts, hide_patch),
            hide_patch=hide_patch,
            hidden=tuple(sorted(hidden)),
        )

    def stand_ins(self, codebase: Codebase, symbols: Collection[str]) -> tuple[tuple[str, str], ...]:
        """See :meth:`excise.protocols.CodeEditor.stand_ins`; of the kinds ``none``, ``raise`` and ``any``."""
        return self._edits.stand_ins(codebase, symbols)

    def deleted_texts(
        self,
        codebase: Codebase,
        deleter: str,  # noqa: ARG002
        removed: Sequence[str],
        edits: Mapping[str, bytes | None],  # noqa: ARG002
    ) -> list[tuple[str, str]]:
        """See :meth:`excise.protocols.CodeEditor.deleted_texts`."""
        symbols = codebase.symbols()
        return [(symbol_id, text_of(codebase, symbols[symbol_id])) for symbol_id in removed if symbol_id in symbols]

    def changed_code(
        self,
        codebase: Codebase,  # noqa: ARG002
        solved: Mapping[str, bytes],  # noqa: ARG002
        shipped: Mapping[str, bytes | None],  # noqa: ARG002
    ) -> MissingCode:
        """Tasks of other tools' sets are not read. Raises :class:`DeletionRefused`."""
        raise DeletionRefused(
            f"tasks of other tools' sets in {self._edits.language} cannot be imported", reason="unsupported_language"
        )
