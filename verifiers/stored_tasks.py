"""Candidates restored from the files of a task set, for verifying, grading and attacking stored tasks.

Tasks of other tools' sets become candidates here, too (:mod:`verifiers.imported_task`).
"""

from __future__ import annotations

import re

from excise.deleters.patches.git_patches import touched
from excise.types import IMPORTED, Deletion, Feature, Task
from excise.verifiers.candidate import Candidate, DeletionTrees
from excise.verifiers.workbench import Workbench


def candidate_of(bench: Workbench, task: Task) -> Candidate:
    """Restore the candidate of a stored task from the set's files alone. Raises :class:`ExciseError`."""
    removed = task.removed
    feature = Feature(
        feature_id=task.feature_id,
        kind=task.difficulty.kind,
        tier=task.difficulty.tier,
        entry=removed,
        symbols=removed,
        tests=task.fail_to_pass,
    )
    source_patch, hide_patch = split_patch(task)
    symbols = bench.codebase.symbols()
    edits = bench.edits_of(source_patch)
    if task.deleter == IMPORTED:
        text = bench.editor.changed_code(bench.codebase, bench.read(list(edits)), edits).texts
    else:
        text = bench.editor.deleted_texts(bench.codebase, task.deleter, removed, edits)
    emptied = [symbol_id for symbol_id in removed if symbol_id in symbols]
    deletion = Deletion(
        deletion_id=task.instance_id,
        feature=feature,
        deleter=task.deleter,
        deleter_version=0,
        source_patch=source_patch,
        hide_patch=hide_patch,
        removed=removed,
        hidden=task.hidden,
        text=tuple(text),
        stub_patches=bench.editor.stand_ins(bench.codebase, emptied) if emptied else (),
    )
    return Candidate(
        trees=DeletionTrees(bench=bench, deletion=deletion),
        trusted=frozenset(task.fail_to_pass) | frozenset(task.pass_to_pass),
        fail_to_pass=task.fail_to_pass,
        pass_to_pass=task.pass_to_pass,
        task=task,
    )


def split_patch(task: Task) -> tuple[str, str]:
    """The part of a deletion patch that changes sources, and the part that changes hidden tests."""
    parts = [part for part in re.split(r"(?m)^(?=diff --git )", task.deletion_patch) if part]  # no content begins so
    hidden = frozenset(touched(task.test_patch))
    tests = [hidden.issuperset(touched(part)) for part in parts]
    return (
        "".join(part for part, test in zip(parts, tests, strict=True) if not test),
        "".join(part for part, test in zip(parts, tests, strict=True) if test),
    )
