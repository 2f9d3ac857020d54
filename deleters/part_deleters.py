"""The deleters ``line`` (of compiled languages) and ``expression``, which make the easiest tasks.

``line`` replaces the body of functions that consist of one statement. ``expression`` keeps the body except one result,
which becomes something that raises.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from excise.deleters.compiled_edits import C, CompiledEdits, chosen_symbols, functions_of
from excise.deleters.deletion_record import Changed, EditedFiles, build_deletion
from excise.deleters.edits.byte_edits import Edit
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


class ResultEdits(NamedTuple):
    """What the deleter ``expression`` needs of a language."""

    functions: Callable[[Codebase, Feature, frozenset[str] | None], list[Symbol]]
    """The functions of a feature, or of some of its symbols. Raises :class:`DeletionRefused` if there are none."""
    edited: Callable[[Codebase, str, Edit], Changed]
    """A file with an edit, without what only the old text needed. Raises :class:`DeletionRefused`."""
    hide: Callable[[Codebase, Collection[str]], tuple[Changed, Collection[str]]]
    """(test files before and after, ids of the hidden tests) without some tests."""
    stand_ins: Callable[[Codebase, Collection[str]], tuple[tuple[str, str], ...]]
    """See :meth:`excise.protocols.CodeEditor.stand_ins`."""
    returns: ReturnGrammar
    """How it writes results."""


class ExpressionDeleter:
    """Replaces the longest result of a function by something that raises."""

    name = "expression"
    version = 1

    def __init__(self, edits: ResultEdits) -> None:
        self._edits = edits

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
        functions = self._edits.functions(codebase, feature, only)
        if len(functions) != 1:
            raise DeletionRefused("more than one function", reason="not_one_function")
        (function,) = functions
        found = returned(codebase.modules[function.path].source, function, self._edits.returns)
        tests, hidden = self._edits.hide(codebase, hide or feature.tests)
        files = EditedFiles(
            changed={**self._edits.edited(codebase, function.path, found.edit), **tests},
            removed=[function.symbol_id],
            hidden=hidden,
            text=[(f"{function.symbol_id}{EXPRESSION_SUFFIX}", found.text)],
            stubs_of=[function.symbol_id],
        )
        return build_deletion(
            codebase,
            feature,
            files,
            name=self.name,
            version=self.version,
            stand_ins=lambda each: self._edits.stand_ins(codebase, list(each)),
        )


def edits_of_results(edits: CompiledEdits[C], returns: ReturnGrammar) -> ResultEdits:
    """What the deleter ``expression`` needs of a compiled language."""
    return ResultEdits(
        functions=lambda codebase, feature, only: _functions(edits.own(codebase), feature, only),
        edited=lambda codebase, path, edit: edits.edited(edits.own(codebase), {path: [edit]}),
        hide=lambda codebase, tests: edits.hide(edits.own(codebase), tests, NOTHING),
        stand_ins=edits.stand_ins,
        returns=returns,
    )


def _functions(codebase: C, feature: Feature, only: frozenset[str] | None) -> list[Symbol]:
    """The functions of a feature that have a body. Raises :class:`DeletionRefused` if there are none."""
    chosen = [symbol.symbol_id for symbol in chosen_symbols(codebase, feature, only)]
    functions = [each for each in functions_of(codebase, chosen) if codebase.is_removable(each.symbol_id)]
    if not functions:
        raise DeletionRefused("no function with a body", reason="nothing_to_stub")
    return functions
