"""Lifted tests: what a hidden test does runs beside the solution, what it expects is compared with the original code.

An observing run reports values from a sandbox that contains nothing of what is expected. Values other than the
original's are given to a judging run: the same tests, with their expectations, on the original code. In some languages
there is no such form of a test; then values must be the original's, which two runs of it must report.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from excise.deleters.patches.git_patches import touched
from excise.protocols import GradedRun, GradingMode, LiftedRun, ReportedValues
from excise.types import (
    LiftedTest,
    Status,
    SymbolKind,
    Task,
    TestId,
    has_parameter,
    joined,
    name_in_file,
    path_of,
    without_parameter,
)
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
    whole: dict[str, str] = field(default_factory=dict)
    """Path to text of the whole files; see :attr:`excise.protocols.LiftedTests.whole`."""


class Lifting(NamedTuple):
    """The lifted tests of a task."""

    tests: tuple[LiftedTest, ...]
    """Those that pass in both forms on the original code."""
    refused: dict[str, int]
    """Reason why test functions are not lifted, to their number."""
    depending: tuple[str, ...] = ()
    """Names in their files of the removed code and of what calls it."""


class Judged(NamedTuple):
    """What lifted tests found out about a solution."""

    runs: tuple[GradedRun, ...]
    """The runs that were made."""
    failed: tuple[str, ...]
    """Tests that report values which the original's expectations refuse."""


def lifted_files(bench: Workbench, tests: Iterable[str], depending: Collection[str]) -> LiftedFiles:
    """Divide the files of tests; ``depending``: names in them of the code under test and of what calls it."""
    by_file, inherited = _by_definition(bench, map(without_parameter, tests))
    inheriting: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    observing, judging, whole, functions = {}, {}, {}, []
    refused: Counter[str] = Counter()
    files = bench.read(sorted({*by_file, *inherited}))
    for path in sorted(files, key=lambda path: (path not in inherited, path)):  # what classes inherit comes first
        own, others = by_file[path], inherited[path]
        found = bench.language.grading.lifted(
            files[path], sorted({*own, *others}), depending, partial(_beside, bench, path), inheriting=inheriting[path]
        )
        if found is None:
            refused["file that cannot be parsed"] += len(own) + sum(map(len, others.values()))
            continue
        refused.update(reason for name, reason in found.refused.items() for _ in [*own & {name}, *others.get(name, ())])
        done = [joined(path, name) for name in found.functions if name in own]
        for name in found.functions:
            for test in others.get(name, ()):
                done.append(test)
                inheriting[path_of(test)][TestId.parse(test).names[0]].update(_names_in(found.observing))
        if done or inheriting[path]:
            observing[path], judging[path] = found.observing.decode(), found.judging.decode()
            if found.whole:
                whole[path] = found.whole.decode()
            functions += done
    return LiftedFiles(observing, judging, tuple(functions), dict(refused), whole)


def _names_in(source: bytes) -> set[str]:
    """The words of a source that may be names."""
    return {word.decode() for word in re.findall(rb"[^\W\d]\w*", source)}


def _by_definition(
    bench: Workbench, tests: Iterable[str]
) -> tuple[dict[str, set[str]], dict[str, dict[str, set[str]]]]:
    """The names of tests by file; and those that other files define: file to the name there to the ids of the tests."""
    own: dict[str, set[str]] = defaultdict(set)
    inherited: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for test in tests:
        defined = bench.codebase.definition_of_test(test)
        if defined is None or defined.path == path_of(test) or not bench.codebase.is_test(defined.path):
            own[path_of(test)].add(name_in_file(test))
        else:
            definition = name_in_file(joined(defined.path, *defined.qualname.split(".")))
            inherited[defined.path][definition].add(test)
            own[path_of(test)]  # its class stands there
    return own, inherited


def _beside(bench: Workbench, path: str) -> list[bytes]:
    """The other test files in the folder of a test file."""
    folder = (bench.root / path).parent
    names = (other.relative_to(bench.root).as_posix() for other in sorted(folder.iterdir()) if other.is_file())
    others = [name for name in names if name != path and bench.codebase.is_test(name)]
    return [data for _, data in sorted(bench.read(others).items())]


def observe(
    bench: Workbench,
    edits: Edits,
    files: LiftedFiles,
    ids: Sequence[str],
    mode: GradingMode,
    *,
    removed: Sequence[str],
    trusted: bool = False,
    is_repeated: bool = False,
) -> GradedRun:
    """Run the observing forms of tests on the base tree with ``edits``; the answer has the reported values.

    ``removed``: ids of the removed symbols. ``trusted``: the edits add nothing to the original code. ``is_repeated``:
    see :attr:`LiftedRun.is_repeated`.
    """
    asked = LiftedRun(functions=files.functions, removed=removed, is_repeated=is_repeated)
    return _run(bench, edits, files.observing, ids, mode, asked, trusted=trusted, forked=trusted)


def judge(
    bench: Workbench,
    files: LiftedFiles,
    mode: GradingMode,
    seen: Mapping[str, str],
    originals: Mapping[str, ReportedValues],
    *,
    trusted: bool = False,
) -> GradedRun:
    """Run the judging forms of the tests of ``seen``, their reported values, on the original code.

    ``originals``: what to know of the values that the original code reported in each test. ``trusted``: the values are
    reported by the original code, too, or by a part of it.
    """
    asked = LiftedRun(functions=files.functions, seen=seen, originals=originals, forms=files.judging)
    return _run(bench, {}, files.judging, sorted(seen), mode, asked, trusted=True, forked=trusted)


def _run(
    bench: Workbench,
    edits: Edits,
    files: Mapping[str, str],
    ids: Sequence[str],
    mode: GradingMode,
    asked: LiftedRun,
    *,
    trusted: bool,
    forked: bool,
) -> GradedRun:
    """Run one form of test files. They are written as files, for neither form shows a solution what is expected."""
    lifted = set(asked.functions)
    timed = [test for test in bench.baseline.durations if without_parameter(test) in lifted]
    written = {path: text.encode() for path, text in files.items()}
    return graded_run(bench, {**edits, **written}, ids, mode, lifted=asked, timed=timed, trusted=trusted, forked=forked)


def find_lifted(bench: Workbench, task: Task, tree: Edits) -> Lifting:
    """The FAIL_TO_PASS tests of a task that can be lifted.

    Their observing form, on the original code without hidden tests (``tree``), reports values that satisfy their
    judging form; what it reports on the code without the feature does not. At least one test reports something that
    is not told by chance.
    """
    depending = _depending(bench, task)
    files = lifted_files(bench, task.fail_to_pass, depending)
    mode = mode_of(bench)
    known = _known(bench, task, files, tree, mode)
    if not known and mode.strict:
        mode = replace(mode, strict=False)
        known = _known(bench, task, files, tree, mode)
    deleted = bench.edits_of(task.deletion_patch)
    failed = set(judge_solution(bench, task, deleted, known, mode, depending, trusted=True).failed) if known else set()
    found = [each for each in known if each.test in failed]
    if not any(each.telling for each in found):
        found = []
    reasons = {
        "values that cannot be compared": len(_wanted(files, task.fail_to_pass)) - len(known),
        "values that the code without the feature reports, too": len(known) - len(failed),
    }
    refused = {**files.refused, **{reason: number for reason, number in reasons.items() if number}}
    return Lifting(tuple(found), refused, depending)


def _depending(bench: Workbench, task: Task) -> tuple[str, ...]:
    """Names in a task's hidden tests of the removed code and of all that calls it, directly or not."""
    symbols = bench.codebase.symbols()
    left = [name for name in symbols if name in task.removed or path_of(name) in task.removed]
    found = set(left)
    while left:
        more = bench.codebase.callers(left.pop()) - found
        found |= more
        left += more
    named = (symbols[name] for name in found if name in symbols and symbols[name].kind is not SymbolKind.MODULE)
    names = {symbol.name.partition("#")[0] for symbol in named if not bench.codebase.is_test(symbol.path)}
    texts = bench.read(sorted({path_of(test) for test in task.fail_to_pass})).values()
    return tuple(sorted(names.intersection(word for text in texts for word in _names_in(text))))


def _known(bench: Workbench, task: Task, files: LiftedFiles, tree: Edits, mode: GradingMode) -> list[LiftedTest]:
    """Those FAIL_TO_PASS tests whose two forms fit each other on the original code."""
    ids = _numbered_ids(bench, files, task.fail_to_pass)
    if not ids:
        return []
    edits = with_fixtures(bench, task, tree)
    seen = observe(bench, edits, files, ids, mode, removed=task.removed, trusted=True, is_repeated=True).seen
    if seen and files.whole:
        whole = replace(files, observing=files.whole)
        every = [*ids, *(test for test in bench.baseline.statuses if path_of(test) in files.whole and test not in ids)]
        beside = observe(bench, edits, whole, every, mode, removed=task.removed, trusted=True).seen
        seen = {test: values for test, values in seen.items() if _is_whole(bench, files, test, values, beside)}
    if not seen:
        return []
    originals = {test: bench.language.grading.reported(values) for test, values in seen.items()}
    judged = judge(bench, files, mode, seen, originals, trusted=True)
    statuses = judged.run.statuses()
    found = [
        LiftedTest(
            test=judged.numbered.get(test, test),
            numbered=test,
            digest=_digest(values),
            names=originals[test].names,
            nested=originals[test].nested,
            telling=originals[test].telling,
        )
        for test, values in sorted(seen.items())
        if statuses.get(test) is Status.PASSED
    ]
    return [each for each in found if each.test in set(task.fail_to_pass)]


def _is_whole(bench: Workbench, files: LiftedFiles, test: str, values: str, beside: Mapping[str, str]) -> bool:
    """Whether a test reports the same in the whole file, if there is one: nothing is left out that it needs."""
    reported = bench.language.grading.reported
    if path_of(test) not in files.whole:
        return True
    return test in beside and reported(beside[test]) == reported(values)


def _wanted(files: LiftedFiles, tests: Iterable[str]) -> set[str]:
    """Those of the tests whose functions are lifted."""
    return {test for test in tests if without_parameter(test) in files.functions}


def _numbered_ids(bench: Workbench, files: LiftedFiles, tests: Iterable[str]) -> list[str]:
    """The ids that lifted tests have in their runs: parametrised ones are numbered."""
    known = Counter(map(without_parameter, {*bench.baseline.statuses, *bench.baseline.flaky}))
    wanted = _wanted(files, tests)
    ids = [test for test in sorted(wanted) if not has_parameter(test)]
    for function in sorted({without_parameter(test) for test in wanted if has_parameter(test)}):
        ids += [f"{function}[{number}]" for number in range(known[function])]
    return ids


def with_fixtures(bench: Workbench, task: Task, edits: Edits) -> Edits:
    """The edits without those to files of fixtures that the hidden tests took with them: lifted tests need these."""
    tested = {path_of(test) for test in bench.baseline.statuses}
    fixtures = {
        path
        for path in touched(task.test_patch)
        if path.rpartition("/")[2] in {"conftest.py", "__init__.py"} and path not in tested
    }
    return {path: data for path, data in edits.items() if path not in fixtures}


def judge_solution(
    bench: Workbench,
    task: Task,
    solution: Edits,
    tests: Sequence[LiftedTest],
    mode: GradingMode,
    depending: Collection[str],
    *,
    trusted: bool = False,
) -> Judged:
    """Run lifted tests of a task for a solution, which are edits of the base tree.

    ``trusted``: the solution is no more than a part of the original code, so that runs may be forked.
    ``depending``: see :attr:`GradingKit.depending`. Only values that differ from the original's need a judging run.
    """
    files = lifted_files(bench, [each.test for each in tests], depending)
    ids = [each.numbered for each in tests]
    edits = with_fixtures(bench, task, solution)
    observed = observe(bench, edits, files, ids, mode, removed=task.removed, trusted=trusted)
    differing = [each for each in tests if _digest(observed.seen.get(each.numbered, "")) != each.digest]
    reported = {each.numbered: observed.seen[each.numbered] for each in differing if each.numbered in observed.seen}
    if not reported:
        return Judged((observed,), tuple(each.test for each in differing))
    originals = {each.numbered: ReportedValues(names=each.names, nested=each.nested) for each in tests}
    judged = judge(bench, files, mode, reported, originals, trusted=trusted)
    statuses = judged.run.statuses()
    failed = [each.test for each in differing if statuses.get(each.numbered) is not Status.PASSED]
    return Judged((observed, judged), tuple(failed))


def _digest(values: str) -> str:
    return hashlib.sha256(values.encode()).hexdigest()[:32]
