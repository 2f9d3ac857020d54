"""Lifted tests: what a hidden test does runs beside the solution, what it expects is compared with the original code.

An observing run reports values from a sandbox that contains nothing of what is expected. Values other than the
original's are given to a judging run: the same tests, with their expectations, on the original code.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from excise.protocols import GradedRun, GradingMode, LiftedRun
from excise.types import LiftedTest, Status
from excise.verifiers.grading.graded_runs import graded_run, mode_of
from excise.verifiers.workbench import Edits, Workbench


@dataclass(frozen=True, slots=True)
class LiftedFiles:
    """The two forms of the files of some tests."""

    observing: dict[str, str]
    """Path to text of the files that run with a solution."""
    judging: dict[str, str]
    """Path to text of the files that run with the original code."""
    functions: tuple[str, ...]
    """Ids, without parameters, of the lifted functions."""
    refused: dict[str, int]
    """Reason why functions are not lifted, to their number."""


class Lifting(NamedTuple):
    """The lifted tests of a task."""

    tests: tuple[LiftedTest, ...]
    """Those that pass in both forms on the original code."""
    refused: dict[str, int]
    """Reason why test functions are not lifted, to their number."""


class Judged(NamedTuple):
    """What lifted tests found out about a solution."""

    runs: tuple[GradedRun, ...]
    """The runs that were made."""
    failed: tuple[str, ...]
    """Tests that report values which the original's expectations refuse."""


def without_parameters(test: str) -> str:
    """The id of a test without its parameters."""
    path, _, name = test.partition("::")
    return f"{path}::{name.partition('[')[0]}"


def lifted_files(bench: Workbench, tests: Iterable[str]) -> LiftedFiles:
    """Divide the files of tests."""
    by_file: dict[str, set[str]] = {}
    for test in map(without_parameters, tests):
        path, _, name = test.partition("::")
        by_file.setdefault(path, set()).add(name)
    observing, judging, functions = {}, {}, []
    refused: Counter[str] = Counter()
    for path, data in bench.read(sorted(by_file)).items():
        found = bench.language.grading.lifted(data, sorted(by_file[path]))
        if found is None:
            refused["file that cannot be parsed"] += len(by_file[path])
            continue
        refused.update(found.refused.values())
        if found.functions:
            observing[path], judging[path] = found.observing.decode(), found.judging.decode()
            functions += [f"{path}::{name}" for name in found.functions]
    return LiftedFiles(observing, judging, tuple(functions), dict(refused))


def observe(
    bench: Workbench, edits: Edits, files: LiftedFiles, ids: Sequence[str], mode: GradingMode, *, trusted: bool = False
) -> GradedRun:
    """Run the observing forms of tests on the base tree with ``edits``; the answer has the reported values."""
    return _run(bench, edits, files.observing, ids, mode, LiftedRun(functions=files.functions), trusted=trusted)


def judge(
    bench: Workbench, files: LiftedFiles, ids: Sequence[str], mode: GradingMode, seen: Mapping[str, str]
) -> GradedRun:
    """Run the judging forms of tests on the original code, with the reported values ``seen``."""
    asked = LiftedRun(functions=files.functions, seen={test: seen[test] for test in ids if test in seen})
    return _run(bench, {}, files.judging, ids, mode, asked, trusted=True)


def _run(
    bench: Workbench,
    edits: Edits,
    files: Mapping[str, str],
    ids: Sequence[str],
    mode: GradingMode,
    asked: LiftedRun,
    *,
    trusted: bool,
) -> GradedRun:
    """Run one form of test files, which are passed in memory if the mode says so."""
    lifted = set(asked.functions)
    timed = [test for test in bench.baseline.durations if without_parameters(test) in lifted]
    written = {path: b"" if mode.sealed else text.encode() for path, text in files.items()}
    sealed = dict(files) if mode.sealed else {}
    return graded_run(bench, {**edits, **written}, ids, mode, sealed=sealed, lifted=asked, timed=timed, trusted=trusted)


def find_lifted(bench: Workbench, tests: Sequence[str], tree: Edits) -> Lifting:
    """The tests that can be lifted: their observing form, on the original code without hidden tests (``tree``), reports
    values that satisfy their judging form."""
    files = lifted_files(bench, tests)
    if not files.functions:
        return Lifting((), files.refused)
    known = Counter(map(without_parameters, {*bench.baseline.statuses, *bench.baseline.flaky}))
    wanted = {test for test in tests if without_parameters(test) in files.functions}
    ids = [test for test in sorted(wanted) if "[" not in test]
    for function in sorted({without_parameters(test) for test in wanted if "[" in test}):
        ids += [f"{function}[{number}]" for number in range(known[function])]
    strict = mode_of(bench)
    for mode in (strict, replace(strict, safe_path=False)):
        seen = observe(bench, tree, files, ids, mode, trusted=True).seen
        if seen:
            judged = judge(bench, files, sorted(seen), mode, seen)
            break
    else:
        return Lifting((), {**files.refused, "no values are reported": len(files.functions)})
    statuses = judged.run.statuses()
    found = [
        LiftedTest(test=judged.numbered.get(test, test), numbered=test, digest=_digest(values))
        for test, values in sorted(seen.items())
        if statuses.get(test) is Status.PASSED and judged.numbered.get(test, test) in wanted
    ]
    lost = len(wanted) - len(found)
    refused = {**files.refused, "values that cannot be compared": lost} if lost else files.refused
    return Lifting(tuple(found), refused)


def judge_solution(bench: Workbench, solution: Edits, tests: Sequence[LiftedTest], mode: GradingMode) -> Judged:
    """Run lifted tests for a solution. Only values that differ from the original's need a judging run."""
    files = lifted_files(bench, [each.test for each in tests])
    observed = observe(bench, solution, files, [each.numbered for each in tests], mode)
    differing = [each for each in tests if _digest(observed.seen.get(each.numbered, "")) != each.digest]
    reported = [each.numbered for each in differing if each.numbered in observed.seen]
    if not reported:
        return Judged((observed,), tuple(each.test for each in differing))
    judged = judge(bench, files, reported, mode, observed.seen)
    statuses = judged.run.statuses()
    failed = [each.test for each in differing if statuses.get(each.numbered) is not Status.PASSED]
    return Judged((observed, judged), tuple(failed))


def _digest(values: str) -> str:
    return hashlib.sha256(values.encode()).hexdigest()[:32]
