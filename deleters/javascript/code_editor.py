"""The code editor for JavaScript; see :class:`excise.protocols.CodeEditor`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

from excise.deleters.function_shortcuts import function_shortcuts
from excise.deleters.javascript.hidden_tests import hiding_only
from excise.deleters.javascript.part_deleters import RESULTS, Line
from excise.deleters.javascript.parts import PARTS, RETURNS
from excise.deleters.javascript.remove import Remove
from excise.deleters.javascript.selection import body_text, require_javascript
from excise.deleters.javascript.stand_ins import stand_ins
from excise.deleters.javascript.statement_words import JavaScriptWords
from excise.deleters.javascript.stub import Stub
from excise.deleters.part_deleters import ExpressionDeleter
from excise.deleters.parts_of_functions import returned_texts
from excise.deleters.source_texts import source_text
from excise.deleters.syntax_parts import syntax_parts
from excise.errors import DeletionRefused
from excise.protocols import Codebase, CodePath, Deleter, HiddenRows, LackingPart, MissingCode
from excise.types import Deletion, Symbol


class JavaScriptEditor:
    """Takes features and tests out of JavaScript code."""

    words = JavaScriptWords()
    deleters: Mapping[str, Callable[[], Deleter]] = MappingProxyType(
        {
            ExpressionDeleter.name: lambda: ExpressionDeleter(RESULTS),
            **{each.name: each for each in (Line, Stub, Remove)},
        }
    )

    def path(self, codebase: Codebase, symbol: Symbol) -> CodePath | None:
        """None goes alone."""
        return None

    def hiding_only(self, codebase: Codebase, deletion: Deletion, tests: frozenset[str]) -> Deletion:
        """See :meth:`excise.protocols.CodeEditor.hiding_only`."""
        return hiding_only(require_javascript(codebase), deletion, tests)

    def hidden_rows(self, codebase: Codebase, tests: frozenset[str]) -> HiddenRows:
        """None: tests go with their functions."""
        return HiddenRows()

    def stand_ins(self, codebase: Codebase, symbols: Collection[str]) -> tuple[tuple[str, str], ...]:
        """See :meth:`excise.protocols.CodeEditor.stand_ins`; no trivial programs are tried."""
        return stand_ins(require_javascript(codebase), symbols)

    def deleted_texts(
        self, codebase: Codebase, deleter: str, removed: Sequence[str], edits: Mapping[str, bytes | None]
    ) -> list[tuple[str, str]]:
        """See :meth:`excise.protocols.CodeEditor.deleted_texts`."""
        javascript = require_javascript(codebase)
        symbols = [javascript.symbols()[each] for each in removed if each in javascript.symbols()]
        if deleter == ExpressionDeleter.name:
            return returned_texts(javascript, symbols, RETURNS)
        if deleter in {Stub.name, Line.name}:
            return [(s.symbol_id, body_text(javascript, s)) for s in symbols]
        outer = [
            s
            for s in symbols
            if not any(o is not s and o.path == s.path and o.start <= s.start <= s.end <= o.end for o in symbols)
        ]
        return [(s.symbol_id, source_text(javascript, s)) for s in outer]

    def lacking_parts(self, codebase: Codebase, removed: Mapping[str, frozenset[int]]) -> Iterator[LackingPart]:
        """See :meth:`excise.protocols.CodeEditor.lacking_parts`."""
        return syntax_parts(codebase, removed, PARTS)

    def shortcuts(self, codebase: Codebase, removed: Mapping[str, frozenset[int]]) -> Iterator[LackingPart]:
        """See :meth:`excise.protocols.CodeEditor.shortcuts`."""
        return function_shortcuts(codebase, removed, PARTS)

    def changed_code(
        self, codebase: Codebase, solved: Mapping[str, bytes], shipped: Mapping[str, bytes | None]
    ) -> MissingCode:
        """Tasks of other tools' sets are not imported for JavaScript. Raises :class:`DeletionRefused`."""
        raise DeletionRefused("tasks in JavaScript cannot be imported", reason="unsupported_language")


EDITOR = JavaScriptEditor()
"""The editor of the language."""
