"""The deleters ``line`` and ``expression`` of JavaScript, which make the easiest tasks."""

from __future__ import annotations

from excise.deleters.deletion_record import Changed
from excise.deleters.edits.byte_edits import Edit, apply_edits
from excise.deleters.javascript.hidden_tests import hide_tests
from excise.deleters.javascript.parts import RETURNS
from excise.deleters.javascript.selection import require_javascript, symbols_to_delete
from excise.deleters.javascript.stand_ins import functions_of, require_parses, stand_ins
from excise.deleters.javascript.stub import Stub
from excise.deleters.javascript.unused_code import without_unused
from excise.deleters.part_deleters import ResultEdits
from excise.deleters.parts_of_functions import require_one_statement
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


def _functions(codebase: JavaScriptCodebase, feature: Feature, only: frozenset[str] | None) -> list[Symbol]:
    """The functions of a feature. Raises :class:`DeletionRefused` if there are none."""
    wanted = [symbol.symbol_id for symbol in symbols_to_delete(codebase, feature, only)]
    functions = functions_of(codebase, wanted)
    if not functions:
        raise DeletionRefused("no function with a body to empty", reason="nothing_to_stub")
    return functions


def _edited(codebase: Codebase, path: str, edit: Edit) -> Changed:
    source = codebase.modules[path].source
    after = without_unused(source, apply_edits(source, [edit]))
    require_parses(path, after)
    return {path: (source, after)}


RESULTS = ResultEdits(
    functions=lambda codebase, feature, only: _functions(require_javascript(codebase), feature, only),
    edited=_edited,
    hide=lambda codebase, tests: hide_tests(require_javascript(codebase), frozenset(tests)),
    stand_ins=lambda codebase, symbols: stand_ins(require_javascript(codebase), symbols),
    returns=RETURNS,
)
"""What the deleter ``expression`` needs of JavaScript."""
