"""Candidates restored from the files of a task set, for verifying, grading and attacking stored tasks."""

from __future__ import annotations

import re
from typing import cast

from excise.deleters.deletion_builder import stub_patches
from excise.deleters.part_deleters import EXPRESSION_SUFFIX, returned_expression
from excise.deleters.proposed import Proposed, deleted_texts
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.types import Deletion, Feature, Symbol, Task
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
    source_patch, hide_patch = _split_patch(bench, task.deletion_patch)
    symbols = bench.codebase.symbols()
    text = [(symbol_id, _text_of(bench, task, symbols[symbol_id])) for symbol_id in removed if symbol_id in symbols]
    if task.deleter == Proposed.name:
        text = deleted_texts(cast(PythonCodebase, bench.codebase), removed, bench.edits_of(source_patch))
    elif task.deleter == "expression":
        text = [(f"{symbol_id}{EXPRESSION_SUFFIX}", expression) for symbol_id, expression in text]
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
        stub_patches=stub_patches(cast(PythonCodebase, bench.codebase), [s for s in removed if s in symbols]),
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


def _split_patch(bench: Workbench, patch: str) -> tuple[str, str]:
    """The part of a deletion patch that changes sources, and the part that changes tests."""
    parts = [part for part in re.split(r"(?m)^(?=diff --git )", patch) if part]  # no line of content begins like this
    tests = [bench.codebase.is_test(next(iter(bench.edits_of(part)))) for part in parts]
    return (
        "".join(part for part, test in zip(parts, tests, strict=True) if not test),
        "".join(part for part, test in zip(parts, tests, strict=True) if test),
    )
