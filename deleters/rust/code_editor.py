"""The code editor for Rust; see :class:`excise.protocols.CodeEditor`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from excise.deleters.deletion_record import patch_of
from excise.deleters.rust.hide_tests import hide
from excise.deleters.rust.statement_words import RustWords
from excise.deleters.rust.stub import Stub, require_rust, stand_ins, text_of
from excise.errors import DeletionRefused
from excise.protocols import Codebase, CodePath, Deleter, MissingCode
from excise.types import Deletion, Symbol, content_id


class RustEditor:
    """Takes features and tests out of Rust code; features only as stubs, since a missing item does not compile."""

    words = RustWords()
    deleters: Mapping[str, Callable[[], Deleter]] = MappingProxyType({Stub.name: Stub})

    def path(self, codebase: Codebase, symbol: Symbol) -> CodePath | None:  # noqa: ARG002
        """None goes alone."""
        return None

    def hiding_only(self, codebase: Codebase, deletion: Deletion, tests: frozenset[str]) -> Deletion:
        """See :meth:`excise.protocols.CodeEditor.hiding_only`."""
        changed, hidden = hide(require_rust(codebase), tests)
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
        return stand_ins(require_rust(codebase), symbols)

    def deleted_texts(
        self,
        codebase: Codebase,
        deleter: str,  # noqa: ARG002
        removed: Sequence[str],
        edits: Mapping[str, bytes | None],  # noqa: ARG002
    ) -> list[tuple[str, str]]:
        """See :meth:`excise.protocols.CodeEditor.deleted_texts`."""
        rust, symbols = require_rust(codebase), codebase.symbols()
        return [(symbol_id, text_of(rust, symbols[symbol_id])) for symbol_id in removed if symbol_id in symbols]

    def changed_code(
        self,
        codebase: Codebase,  # noqa: ARG002
        solved: Mapping[str, bytes],  # noqa: ARG002
        shipped: Mapping[str, bytes | None],  # noqa: ARG002
    ) -> MissingCode:
        """Tasks of other tools' sets are not read. Raises :class:`DeletionRefused`."""
        raise DeletionRefused("tasks of other tools' sets in Rust cannot be imported", reason="unsupported_language")


EDITOR = RustEditor()
