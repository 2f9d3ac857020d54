"""Hiding of tests apart from the removal of code: for deleters that keep names, and for tasks with tests in sight."""

from __future__ import annotations

from excise.deleters.deletion_record import hiding, patch_of
from excise.deleters.python.deletion_builder import changed_files, require_python
from excise.deleters.python.references.dependent_removal import DependentRemover
from excise.deleters.python.references.hide_tests import PartsOfTest, TestHider, by_functions, rows_of
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.protocols import Codebase, HiddenRows
from excise.types import Deletion, Feature


def without_tests(
    codebase: PythonCodebase, feature: Feature, hide: frozenset[str]
) -> tuple[dict[str, tuple[bytes, bytes | None]], set[str]]:
    """Hide tests for deleters that remove no names: (test file contents before and after, ids of hidden tests)."""
    remover, hider = hide_tests(codebase, feature, hide)
    return {p: v for p, v in changed_files(remover).items() if codebase.is_test(p)}, hider.hidden


def hide_tests(
    codebase: PythonCodebase, feature: Feature, hide: frozenset[str], parts_of: PartsOfTest = lambda _: ()
) -> tuple[DependentRemover, TestHider]:
    """Plan to hide the tests ``hide``, or those of the feature if it is empty; for ``parts_of``, see
    :meth:`TestHider.hide`."""
    remover = DependentRemover(codebase, on_test=lambda _: None)
    hider = TestHider(codebase, remover)
    hider.hide(hide or frozenset(feature.tests), parts_of)
    remover.run()
    hider.clean_up()
    return remover, hider


def hiding_only(codebase: Codebase, deletion: Deletion, tests: frozenset[str]) -> Deletion:
    """A copy of the deletion that hides ``tests`` and no others: these fail in sight, and keep all their imports."""
    hide_patch, hidden = "", set[str]()
    if tests:
        changed, hidden = without_tests(require_python(codebase), deletion.feature, tests)
        hide_patch = patch_of(require_python(codebase), changed)
    return hiding(deletion, hide_patch, hidden)


def hidden_rows(codebase: Codebase, tests: frozenset[str]) -> HiddenRows:
    """See :meth:`excise.protocols.CodeEditor.hidden_rows`."""
    by_function = by_functions(tests)
    found = list(rows_of(require_python(codebase), by_function))
    return HiddenRows(
        rows=frozenset(test for function, _ in found for test in by_function[function]),
        renamed=frozenset(f"{function}[{each}]" for function, apart in found for each in apart.renamed),
    )
