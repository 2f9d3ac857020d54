"""The code editor for Java; see :class:`excise.protocols.CodeEditor`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from excise.deleters.deletion_record import patch_of
from excise.deleters.java.hide_tests import hide
from excise.deleters.java.statement_words import JavaWords
from excise.deleters.java.stub import Stub, require_java, stand_ins, text_of
from excise.errors import DeletionRefused
from excise.protocols import Codebase, Deleter, MissingCode
from excise.types import Deletion, content_id


class JavaEditor:
    """Takes features and tests out of Java code; features only as stubs, since what is missing does not compile."""

    words = JavaWords()
    deleters: Mapping[str, Callable[[], Deleter]] = MappingProxyType({Stub.name: Stub})

    def hiding_only(self, codebase: Codebase, deletion: Deletion, tests: frozenset[str]) -> Deletion:
        """See :meth:`excise.protocols.CodeEditor.hiding_only`."""
        changed, hidden = hide(require_java(codebase), tests)
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
        return stand_ins(require_java(codebase), symbols)

    def deleted_texts(
        self,
        codebase: Codebase,
        deleter: str,  # noqa: ARG002
        removed: Sequence[str],
        edits: Mapping[str, bytes | None],  # noqa: ARG002
    ) -> list[tuple[str, str]]:
        """See :meth:`excise.protocols.CodeEditor.deleted_texts`."""
        java, symbols = require_java(codebase), codebase.symbols()
        return [(symbol_id, text_of(java, symbols[symbol_id])) for symbol_id in removed if symbol_id in symbols]

    def changed_code(
        self,
        codebase: Codebase,  # noqa: ARG002
        solved: Mapping[str, bytes],  # noqa: ARG002
        shipped: Mapping[str, bytes | None],  # noqa: ARG002
    ) -> MissingCode:
        """Tasks of other tools' sets are not read. Raises :class:`DeletionRefused`."""
        raise DeletionRefused("tasks of other tools' sets in Java cannot be imported", reason="unsupported_language")


EDITOR = JavaEditor()
