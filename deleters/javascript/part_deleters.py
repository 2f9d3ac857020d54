"""The deleters ``line`` and ``expression`` of JavaScript, which make the easiest tasks."""

from __future__ import annotations

from functools import partial

from excise.deleters.deletion_record import EditedFiles, build_deletion
from excise.deleters.edits.byte_edits import apply_edits
from excise.deleters.edits.removed_parts import EXPRESSION_SUFFIX
from excise.deleters.javascript.hidden_tests import hide_tests
from excise.deleters.javascript.parts import RETURNS
from excise.deleters.javascript.selection import require_javascript, symbols_to_delete
from excise.deleters.javascript.stand_ins import functions_of, require_parses, stand_ins
from excise.deleters.javascript.stub import Stub
from excise.deleters.javascript.unused_code import without_unused
from excise.deleters.parts_of_functions import require_one_statement, returned
from excise.errors import DeletionRefused
from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.protocols import Codebase
from excise.types import Deletion, Feature, Symbol


class Line(Stub):
    """Replaces the one statement of short functions by one that throws."""

    name = "line"
    version = 1

    def delete(
        self,
        codebase: Codebase,
        feature: Feature,
        *,
        only: frozenset[str] | None = None,
        hide: frozenset[str] = frozenset(),
    ) -> Deletion:
        """See :class:`excise.protocols.Deleter`; refuses functions with more than one statement."""
        javascript = require_javascript(codebase)
        for function in _functions(javascript, feature, only):
            require_one_statement(javascript.modules[function.path].source, function, RETURNS)
        return super().delete(codebase, feature, only=only, hide=hide)


class Expression:
    """Replaces the ``return`` with the longest expression of a function by a statement that throws."""

    name = "expression"
    version = 1

    def delete(
        self,
        codebase: Codebase,
        feature: Feature,
        *,
        only: frozenset[str] | None = None,
        hide: frozenset[str] = frozenset(),
    ) -> Deletion:
        """See :class:`excise.protocols.Deleter`; refuses functions that return no such expression or do nothing
        else."""
        javascript = require_javascript(codebase)
        functions = _functions(javascript, feature, only)
        if len(functions) != 1:
            raise DeletionRefused("more than one function", reason="not_one_function")
        (function,) = functions
        source = javascript.modules[function.path].source
        found = returned(source, function, RETURNS)
        after = without_unused(source, apply_edits(source, [found.edit]))
        require_parses(function.path, after)
        hiding, hidden = hide_tests(javascript, hide or frozenset(feature.tests))
        files = EditedFiles(
            changed={function.path: (source, after), **hiding},
            removed=[function.symbol_id],
            hidden=hidden,
            text=[(f"{function.symbol_id}{EXPRESSION_SUFFIX}", found.text)],
            stubs_of=[function.symbol_id],
        )
        made = partial(stand_ins, javascript)
        return build_deletion(
            javascript, feature, files, name=self.name, version=self.version, stand_ins=lambda ids: made(list(ids))
        )


def _functions(codebase: JavaScriptCodebase, feature: Feature, only: frozenset[str] | None) -> list[Symbol]:
    """The functions of a feature. Raises :class:`DeletionRefused` if there are none."""
    wanted = [symbol.symbol_id for symbol in symbols_to_delete(codebase, feature, only)]
    functions = functions_of(codebase, wanted)
    if not functions:
        raise DeletionRefused("no function with a body to empty", reason="nothing_to_stub")
    return functions
