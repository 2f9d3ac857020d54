"""The deleters ``line`` and ``expression`` of compiled languages, which make the easiest tasks.

``line`` replaces the body of functions that consist of one statement. ``expression`` keeps the body except one result,
which becomes something that raises.
"""

from __future__ import annotations

from typing import Generic

from excise.deleters.compiled_edits import C, CompiledEdits, chosen_symbols, functions_of
from excise.deleters.deletion_record import EditedFiles, build_deletion
from excise.deleters.edits.removed_parts import EXPRESSION_SUFFIX
from excise.deleters.parts_of_functions import ReturnGrammar, require_one_statement, returned
from excise.deleters.stub_bodies import StubDeleter
from excise.deleters.test_mentions import NOTHING
from excise.errors import DeletionRefused
from excise.protocols import Codebase
from excise.types import Deletion, Feature, Symbol


class LineDeleter(StubDeleter[C]):
    """Replaces the one statement of short functions."""

    name = "line"
    version = 1

    def __init__(self, edits: CompiledEdits[C], returns: ReturnGrammar) -> None:
        super().__init__(edits)
        self._returns = returns

    def delete(
        self,
        codebase: Codebase,
        feature: Feature,
        *,
        only: frozenset[str] | None = None,
        hide: frozenset[str] = frozenset(),
    ) -> Deletion:
        """See :class:`excise.protocols.Deleter`; refuses functions with more than one statement."""
        own = self._edits.own(codebase)
        for function in _functions(own, feature, only):
            require_one_statement(own.modules[function.path].source, function, self._returns)
        return super().delete(codebase, feature, only=only, hide=hide)


class ExpressionDeleter(Generic[C]):
    """Replaces the longest result of a function."""

    name = "expression"
    version = 1

    def __init__(self, edits: CompiledEdits[C], returns: ReturnGrammar) -> None:
        self._edits, self._returns = edits, returns

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
        own = self._edits.own(codebase)
        functions = _functions(own, feature, only)
        if len(functions) != 1:
            raise DeletionRefused("more than one function", reason="not_one_function")
        (function,) = functions
        found = returned(own.modules[function.path].source, function, self._returns)
        tests, hidden = self._edits.hide(own, hide or feature.tests, NOTHING)
        files = EditedFiles(
            changed={**self._edits.edited(own, {function.path: [found.edit]}), **tests},
            removed=[function.symbol_id],
            hidden=hidden,
            text=[(f"{function.symbol_id}{EXPRESSION_SUFFIX}", found.text)],
            stubs_of=[function.symbol_id],
        )
        return build_deletion(
            own,
            feature,
            files,
            name=self.name,
            version=self.version,
            stand_ins=lambda each: self._edits.stand_ins(own, each),
        )


def _functions(codebase: C, feature: Feature, only: frozenset[str] | None) -> list[Symbol]:
    """The functions of a feature that have a body. Raises :class:`DeletionRefused` if there are none."""
    chosen = [symbol.symbol_id for symbol in chosen_symbols(codebase, feature, only)]
    functions = [each for each in functions_of(codebase, chosen) if codebase.is_removable(each.symbol_id)]
    if not functions:
        raise DeletionRefused("no function with a body", reason="nothing_to_stub")
    return functions
