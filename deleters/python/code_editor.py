"""The code editor for Python; see :class:`excise.protocols.CodeEditor`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType

from excise.deleters.deletion_record import PARTLY_KEPT
from excise.deleters.edits.removed_parts import EXPRESSION_SUFFIX
from excise.deleters.python.changed_code import changed_code
from excise.deleters.python.deletion_builder import require_python, source_text, stub_patches
from excise.deleters.python.hidden_tests import hiding_only
from excise.deleters.python.part_deleters import Expression, Line, returned_expression
from excise.deleters.python.paths import Path, longest_path
from excise.deleters.python.proposed import Proposed, deleted_texts
from excise.deleters.python.remove import Remove
from excise.deleters.python.remove_and_stub import RemoveAndStub
from excise.deleters.python.statement_words import PythonWords
from excise.deleters.python.stub import Stub
from excise.protocols import Codebase, CodePath, Deleter, MissingCode
from excise.types import Deletion, Symbol


class PythonEditor:
    """Takes features and tests out of Python code."""

    words = PythonWords()
    deleters: Mapping[str, Callable[[], Deleter]] = MappingProxyType(
        {each.name: each for each in (Line, Expression, Path, Stub, Proposed, RemoveAndStub, Remove)}
    )

    def path(self, codebase: Codebase, symbol: Symbol) -> CodePath | None:
        """See :meth:`excise.protocols.CodeEditor.path`."""
        return longest_path(require_python(codebase), symbol)

    def hiding_only(self, codebase: Codebase, deletion: Deletion, tests: frozenset[str]) -> Deletion:
        """See :meth:`excise.protocols.CodeEditor.hiding_only`."""
        return hiding_only(codebase, deletion, tests)

    def stand_ins(self, codebase: Codebase, symbols: Collection[str]) -> tuple[tuple[str, str], ...]:
        """See :meth:`excise.protocols.CodeEditor.stand_ins`; of all kinds."""
        return stub_patches(require_python(codebase), symbols)

    def deleted_texts(
        self, codebase: Codebase, deleter: str, removed: Sequence[str], edits: Mapping[str, bytes | None]
    ) -> list[tuple[str, str]]:
        """See :meth:`excise.protocols.CodeEditor.deleted_texts`."""
        python = require_python(codebase)
        if deleter in PARTLY_KEPT:
            return deleted_texts(python, tuple(removed), edits)
        texts = []
        for symbol in (python.symbols()[symbol_id] for symbol_id in removed if symbol_id in python.symbols()):
            if deleter == Expression.name:
                node = returned_expression(python, symbol)
                source = python.modules[symbol.path].source
                text = source[node.start_byte : node.end_byte].decode() if node is not None else ""
                texts.append((f"{symbol.symbol_id}{EXPRESSION_SUFFIX}", text))
            else:
                texts.append((symbol.symbol_id, source_text(python, symbol)))
        return texts

    def changed_code(
        self, codebase: Codebase, solved: Mapping[str, bytes], shipped: Mapping[str, bytes | None]
    ) -> MissingCode:
        """See :meth:`excise.protocols.CodeEditor.changed_code`."""
        found = changed_code(require_python(codebase), solved, shipped)
        return MissingCode(tuple(found.removed), tuple(found.texts))


EDITOR = PythonEditor()
