"""The code editor for Python; see :class:`excise.protocols.CodeEditor`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

from excise.deleters.deletion_record import PARTLY_KEPT
from excise.deleters.edits.removed_parts import EXPRESSION_SUFFIX
from excise.deleters.python.changed_code import changed_code, gone_definitions
from excise.deleters.python.deletion_builder import require_python, stub_patches
from excise.deleters.python.function_shortcuts import function_shortcuts
from excise.deleters.python.hidden_tests import hidden_rows, hiding_only
from excise.deleters.python.lacking_parts import lacking_parts
from excise.deleters.python.part_deleters import Expression, Line, returned_expression
from excise.deleters.python.paths import Path, longest_path
from excise.deleters.python.proposed import Proposed, deleted_texts
from excise.deleters.python.remove import Remove
from excise.deleters.python.remove_and_stub import RemoveAndStub
from excise.deleters.python.statement_words import PythonWords
from excise.deleters.python.stub import Stub, body_of
from excise.deleters.source_texts import source_text
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.protocols import Codebase, CodePath, Deleter, HiddenRows, LackingPart, MissingCode
from excise.types import Deletion, Symbol, is_inside, joined, path_of

_WITH_HELPERS = frozenset({Remove.name, RemoveAndStub.name, Path.name})
"""Deleters that take private helpers along, which are not among the removed symbols."""


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

    def hidden_rows(self, codebase: Codebase, tests: frozenset[str]) -> HiddenRows:
        """See :meth:`excise.protocols.CodeEditor.hidden_rows`."""
        return hidden_rows(codebase, tests)

    def stand_ins(self, codebase: Codebase, symbols: Collection[str]) -> tuple[tuple[str, str], ...]:
        """See :meth:`excise.protocols.CodeEditor.stand_ins`; of all kinds."""
        return stub_patches(require_python(codebase), symbols)

    def deleted_texts(
        self, codebase: Codebase, deleter: str, removed: Sequence[str], edits: Mapping[str, bytes | None]
    ) -> list[tuple[str, str]]:
        """See :meth:`excise.protocols.CodeEditor.deleted_texts`."""
        python = require_python(codebase)
        along = [text for symbol_id in removed for text in _bound_texts(python, symbol_id)]
        if deleter in _WITH_HELPERS:
            along += _helper_texts(python, removed, edits)
        if deleter in PARTLY_KEPT:
            return [*deleted_texts(python, tuple(removed), edits), *along]
        texts = []
        for symbol in (python.symbols()[symbol_id] for symbol_id in removed if symbol_id in python.symbols()):
            if deleter == Expression.name:
                node = returned_expression(python, symbol)
                source = python.modules[symbol.path].source
                text = source[node.start_byte : node.end_byte].decode() if node is not None else ""
                texts.append((f"{symbol.symbol_id}{EXPRESSION_SUFFIX}", text))
            elif deleter in {Stub.name, Line.name}:
                texts.append((symbol.symbol_id, body_of(python, symbol)))
            else:
                texts.append((symbol.symbol_id, source_text(python, symbol)))
        return [*texts, *along]

    def lacking_parts(self, codebase: Codebase, removed: Mapping[str, frozenset[int]]) -> Iterator[LackingPart]:
        """See :meth:`excise.protocols.CodeEditor.lacking_parts`."""
        return lacking_parts(require_python(codebase), removed)

    def shortcuts(self, codebase: Codebase, removed: Mapping[str, frozenset[int]]) -> Iterator[LackingPart]:
        """See :meth:`excise.protocols.CodeEditor.shortcuts`; none that trivial programs try."""
        return function_shortcuts(require_python(codebase), removed)

    def changed_code(
        self, codebase: Codebase, solved: Mapping[str, bytes], shipped: Mapping[str, bytes | None]
    ) -> MissingCode:
        """See :meth:`excise.protocols.CodeEditor.changed_code`."""
        found = changed_code(require_python(codebase), solved, shipped)
        return MissingCode(tuple(found.removed), tuple(found.texts))


def _bound_texts(codebase: PythonCodebase, name_id: str) -> Iterator[tuple[str, str]]:
    """The id and the text of an assignment, for the id of a name that no definition has."""
    module = codebase.modules.get(path_of(name_id))
    if module is None or name_id in codebase.symbols():
        return
    for binding in module.bindings:
        if joined(module.path, f"{binding.klass}.{binding.name}".removeprefix(".")) == name_id:
            yield name_id, module.source[binding.start : binding.end].decode("utf-8", "replace")


def _helper_texts(
    codebase: PythonCodebase, removed: Sequence[str], edits: Mapping[str, bytes | None]
) -> Iterator[tuple[str, str]]:
    """The ids and texts of private helpers that went with the definitions ``removed``, which needed them alone."""
    for path, data in edits.items():
        module = codebase.modules.get(path)
        if module is None or codebase.is_test(path):
            continue
        for symbol in gone_definitions(module, data):
            if not any(is_inside(symbol.symbol_id, each) for each in removed):
                yield symbol.symbol_id, source_text(codebase, symbol)


EDITOR = PythonEditor()
