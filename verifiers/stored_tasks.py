"""Candidates restored from the files of a task set, for verifying, grading and attacking stored tasks.

Tasks of other tools' sets become candidates here, too (:mod:`verifiers.imported_task`).
"""

from __future__ import annotations

import re
from typing import cast

from excise.deleters.changed_code import changed_code
from excise.deleters.deletion_builder import stub_patches
from excise.deleters.part_deleters import EXPRESSION_SUFFIX, returned_expression
from excise.deleters.patches.git_patches import touched
from excise.deleters.proposed import Proposed, deleted_texts
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.types import IMPORTED, Deletion, Feature, Symbol, Task
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
    text = [(symbol_id, _text_of(bench, task, symbols[symbol_id])) for symbol_id in removed if symbol_id in symbols]
    if task.deleter == Proposed.name:
        text = deleted_texts(cast(PythonCodebase, bench.codebase), removed, bench.edits_of(source_patch))
    elif task.deleter == IMPORTED:
        edits = bench.edits_of(source_patch)
        text = changed_code(cast(PythonCodebase, bench.codebase), bench.read(list(edits)), edits).texts
    elif task.deleter == "expression":
        text = [(f"{symbol_id}{EXPRESSION_SUFFIX}", expression) for symbol_id, expression in text]
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
        stub_patches=stub_patches(cast(PythonCodebase, bench.codebase), emptied) if emptied else (),
    )
    return Candidate(
        trees=DeletionTrees(bench=bench, deletion=deletion),
        trusted=frozenset(task.fail_to_pass) | frozenset(task.pass_to_pass),
        fail_to_pass=task.fail_to_pass,
        pass_to_pass=task.pass_to_pass,
        task=task,
    )


def _text_of(bench: Workbench, task: Task, symbol: Symbol) -> str:
    """The deleted text of a definition; for the deleter ``expression``, only the returned expression."""
    source = bench.codebase.modules[symbol.path].source
    if task.deleter == "expression":
        found = returned_expression(cast(PythonCodebase, bench.codebase), symbol)
        return source[found.start_byte : found.end_byte].decode() if found is not None else ""
    return source[symbol.start : symbol.end].decode()


def split_patch(task: Task) -> tuple[str, str]:
    """The part of a deletion patch that changes sources, and the part that changes hidden tests."""
    parts = [part for part in re.split(r"(?m)^(?=diff --git )", task.deletion_patch) if part]  # no content begins so
    hidden = frozenset(touched(task.test_patch))
    tests = [hidden.issuperset(touched(part)) for part in parts]
    return (
        "".join(part for part, test in zip(parts, tests, strict=True) if not test),
        "".join(part for part, test in zip(parts, tests, strict=True) if test),
    )
