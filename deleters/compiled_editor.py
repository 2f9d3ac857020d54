"""The code editor of compiled languages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Generic

from excise.deleters.compiled_edits import C, CompiledEdits
from excise.deleters.deletion_record import PARTLY_KEPT, hiding, patch_of
from excise.deleters.edits.removed_parts import texts_of_parts
from excise.deleters.function_shortcuts import function_shortcuts
from excise.deleters.part_deleters import ExpressionDeleter, LineDeleter, edits_of_results
from excise.deleters.parts_of_functions import returned_texts
from excise.deleters.remove_definitions import RemoveDeleter
from excise.deleters.source_texts import source_text
from excise.deleters.statement.spelling import unnumbered
from excise.deleters.stub_bodies import StubDeleter
from excise.deleters.syntax_parts import syntax_parts
from excise.deleters.test_mentions import NOTHING
from excise.errors import DeletionRefused
from excise.protocols import Codebase, CodePath, Deleter, HiddenRows, LackingPart, MissingCode, StatementWords
from excise.types import Deletion, Symbol


class CompiledEditor(Generic[C]):
    """Implements :class:`excise.protocols.CodeEditor` with the edits of one language."""

    def __init__(self, edits: CompiledEdits[C], words: StatementWords) -> None:
        self._edits = edits
        self.words = words

    @property
    def deleters(self) -> Mapping[str, Callable[[], Deleter]]:
        """The deleters ``stub`` and ``remove``, which leaves stubs where it has to, and those of parts of functions."""
        found: dict[str, Callable[[], Deleter]] = {
            StubDeleter.name: lambda: StubDeleter(self._edits),
            RemoveDeleter.name: lambda: RemoveDeleter(self._edits),
        }
        if (returns := self._edits.returns) is not None:
            found[LineDeleter.name] = lambda: LineDeleter(self._edits, returns)
            found[ExpressionDeleter.name] = lambda: ExpressionDeleter(edits_of_results(self._edits, returns))
        return found

    def path(self, codebase: Codebase, symbol: Symbol) -> CodePath | None:  # noqa: ARG002
        """None goes alone."""
        return None

    def hiding_only(self, codebase: Codebase, deletion: Deletion, tests: frozenset[str]) -> Deletion:
        """See :meth:`excise.protocols.CodeEditor.hiding_only`."""
        changed, hidden = self._edits.hide(self._edits.own(codebase), tests, NOTHING)
        return hiding(deletion, patch_of(codebase, changed), hidden)

    def hidden_rows(self, codebase: Codebase, tests: frozenset[str]) -> HiddenRows:  # noqa: ARG002
        """None: tests go with their functions."""
        return HiddenRows()

    def stand_ins(self, codebase: Codebase, symbols: Collection[str]) -> tuple[tuple[str, str], ...]:
        """See :meth:`excise.protocols.CodeEditor.stand_ins`; of the kinds ``none``, ``raise`` and ``any``."""
        return self._edits.stand_ins(codebase, symbols)

    def deleted_texts(
        self, codebase: Codebase, deleter: str, removed: Sequence[str], edits: Mapping[str, bytes | None]
    ) -> list[tuple[str, str]]:
        """See :meth:`excise.protocols.CodeEditor.deleted_texts`."""
        known = codebase.symbols()
        symbols = [known[symbol_id] for symbol_id in removed if symbol_id in known]
        if deleter == ExpressionDeleter.name and (returns := self._edits.returns) is not None:
            return returned_texts(codebase, symbols, returns)
        if deleter not in PARTLY_KEPT:
            return [(symbol.symbol_id, source_text(codebase, symbol)) for symbol in symbols]
        left = {path: self._functions_left(path, data) for path, data in edits.items() if data is not None}
        texts: list[tuple[str, str]] = []
        for symbol in symbols:
            before, after = source_text(codebase, symbol), left.get(symbol.path, {}).get(_identity(symbol))
            texts += [(symbol.symbol_id, before)] if after is None else texts_of_parts(symbol.symbol_id, before, after)
        return texts

    def _functions_left(self, path: str, data: bytes) -> dict[tuple[str, str], str]:
        """The functions of a file of the tree without the feature, to their texts."""
        functions = (each for each in self._edits.parse_file(path, data).symbols if each.is_callable)
        return {_identity(each): data[each.start : each.end].decode("utf-8", "replace") for each in functions}

    def lacking_parts(self, codebase: Codebase, removed: Mapping[str, frozenset[int]]) -> Iterator[LackingPart]:
        """See :meth:`excise.protocols.CodeEditor.lacking_parts`."""
        return syntax_parts(codebase, removed, self._edits.parts) if self._edits.parts else iter(())

    def shortcuts(self, codebase: Codebase, removed: Mapping[str, frozenset[int]]) -> Iterator[LackingPart]:
        """See :meth:`excise.protocols.CodeEditor.shortcuts`."""
        return function_shortcuts(codebase, removed, self._edits.parts) if self._edits.parts else iter(())

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


def _identity(symbol: Symbol) -> tuple[str, str]:
    """What tells a function from others in its file, also where some of these are gone: no number."""
    return unnumbered(symbol.qualname), symbol.signature
