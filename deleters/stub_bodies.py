"""The deleter ``stub`` of compiled languages."""

from __future__ import annotations

from typing import Generic

from excise.deleters.compiled_edits import C, CompiledEdits, chosen_symbols, functions_of
from excise.deleters.deletion_record import EditedFiles, build_deletion
from excise.deleters.source_texts import source_text
from excise.deleters.test_mentions import NOTHING
from excise.errors import DeletionRefused
from excise.protocols import Codebase
from excise.types import Deletion, Feature


class StubDeleter(Generic[C]):
    """The deleter ``stub``: replaces bodies by what raises, and keeps signatures and comments."""

    name = "stub"
    version = 1

    def __init__(self, edits: CompiledEdits[C]) -> None:
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
        chosen = [symbol.symbol_id for symbol in chosen_symbols(own, feature, only)]
        functions = [f for f in functions_of(own, chosen) if own.is_removable(f.symbol_id)]
        if not functions:
            raise DeletionRefused("no function with a body", reason="nothing_to_stub")
        tests, hidden = self._edits.hide(own, hide or feature.tests, NOTHING)
        ids = [symbol.symbol_id for symbol in functions]
        files = EditedFiles(
            changed={**self._edits.with_bodies(own, functions, "raise"), **tests},
            removed=ids,
            hidden=hidden,
            text=[(symbol.symbol_id, source_text(own, symbol)) for symbol in functions],
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
