"""Examples of documents that pass before a removal and stay in the tree, but fail there."""

from __future__ import annotations

from collections.abc import Iterable

from excise.deleters.all_deleters import get as get_deleter
from excise.deleters.deletion_record import USED_ELSEWHERE
from excise.errors import DeletionRefused
from excise.protocols import DocumentingDeleter
from excise.types import Status, path_of
from excise.verifiers.candidate import PlannedDeletion
from excise.verifiers.workbench import Edits, Workbench

_WHOLE = frozenset({"remove", "path"})
"""Deleters after which nothing in the tree says that something is missing."""
_ENDED = frozenset({Status.PASSED, Status.FAILED})


def require_examples_hold(plan: PlannedDeletion) -> None:
    """Raise :class:`DeletionRefused` if an example of a document that stays passes before a removal and fails after."""
    bench = plan.bench
    if plan.deletion.deleter not in _WHOLE:
        return
    deleter = get_deleter(plan.deletion.deleter, bench.repo.language)
    if not isinstance(deleter, DocumentingDeleter):
        return
    if bench.passing_examples is None:
        bench.passing_examples = _passing(bench, deleter, {})
    if not bench.passing_examples:
        return
    edits = plan.edits("shipped")
    lost = _failing(bench, deleter, edits, bench.passing_examples)
    lost &= _failing(bench, deleter, edits, lost) & _passing(bench, deleter, {}) if lost else lost
    for example in sorted(lost):
        raise DeletionRefused(f"an example would fail: {example.splitlines()[0]}", reason=USED_ELSEWHERE)


def _passing(bench: Workbench, deleter: DocumentingDeleter, edits: Edits) -> frozenset[str]:
    """The examples of documents that pass wherever they stand."""
    found = _run(bench, deleter, edits)
    failing = {example for example, status in found if status is not Status.PASSED}
    return frozenset(example for example, _ in found if example not in failing)


def _failing(bench: Workbench, deleter: DocumentingDeleter, edits: Edits, known: Iterable[str]) -> frozenset[str]:
    """Those of the examples that fail somewhere; none if the run did not end."""
    found = _run(bench, deleter, edits)
    if not all(status in _ENDED for _, status in found):
        return frozenset()
    return frozenset(known) & {example for example, status in found if status is Status.FAILED}


def _run(bench: Workbench, deleter: DocumentingDeleter, edits: Edits) -> list[tuple[str, Status]]:
    """The examples of the documents in a tree, and how each did; those of documents that are tests are left out."""
    tests = {path_of(test) for test in bench.baseline.durations}
    documents: dict[str, str] = {}
    for path, text in bench.documents.items():
        data = edits.get(path, b"")
        if path not in tests and data is not None:
            documents[path] = data.decode(errors="replace") if path in edits else text
    files, named = deleter.example_tests(bench.codebase, documents)
    if not named:
        return []
    statuses = bench.run({**edits, **files}, ids=list(named), forked=True).statuses()
    return [(example, statuses.get(test, Status.MISSING)) for test, example in named.items()]
