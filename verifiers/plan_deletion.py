"""Planning a deletion: hide more tests or delete less code until every visible test passes.

Coverage predicts which tests need the feature: those that execute it. Tests among them that pass without it stay in
sight. Running the shipped tree shows what coverage missed: tests that fail join the hidden ones (they need the feature
in a way that no executed line shows). If they become too many, the deletion is shrunk by delta debugging to its largest
part that breaks no visible test.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from excise.deleters.all_deleters import get as get_deleter
from excise.deleters.deletion_record import REMOVALS, USED_ELSEWHERE
from excise.deleters.delta_debugging import largest_clean
from excise.errors import DeletionRefused
from excise.extractors.test_reports.runner_program import REPO
from excise.protocols import CompiledDeleter, Deleter, HiddenRows, ShorteningDeleter
from excise.types import (
    Feature,
    Status,
    TestRun,
    Visibility,
    holders_of_test,
    is_inside,
    without_parameter,
)
from excise.verifiers.candidate import MAX_MESSAGE, DeletionTrees, PlannedDeletion, Rejected, not_passing
from excise.verifiers.documented_examples import require_examples_hold
from excise.verifiers.gates.no_leaks import leaks_before_tests, problem_of, reason_of
from excise.verifiers.orphans import require_no_orphan
from excise.verifiers.parts_of_tests import leaving_parts
from excise.verifiers.shipped_runs import Check, needing_it, require_ended, require_no_test_lost, run_shipped
from excise.verifiers.tests_in_sight import kept_hidden
from excise.verifiers.workbench import Workbench

MAX_WIDENINGS = 3
"""How often failing tests are added to the hidden ones before the deletion is shrunk instead."""
MAX_REFUSALS = 12
"""How many parts of a feature that cannot be deleted as a whole are planned, without running a test."""
MAX_LEAVINGS = 3
"""How often code of which there is a copy elsewhere is left out of a deletion."""
MAX_CORRECTIONS = 4
"""How often definitions that the compiler misses become stubs, and tests that it names are hidden."""
MAX_SHRINK_RUNS = 8
"""How many parts of a feature delta debugging may try."""
MAX_SHOWN = 100
"""Number of characters of an error that are shown."""
_BROKEN = re.compile(
    r"AttributeError: .*has no attribute|NameError: |UnboundLocalError: |RecursionError: |KeyError: "
    r"|ImportError: cannot |ModuleNotFoundError: "
    r"|TypeError: (?:'.*' object (?:is not|does not support)|Can't instantiate|unsupported operand|argument of type"
    r"|cannot unpack|object of type|.*\b(?:argument\b|not supported between\b|must be an? |expected\b.*\bgot\b))"
)
"""Errors that no program raises on purpose, as messages of failures begin."""


def require_needed(plan: PlannedDeletion) -> None:
    """Raise :class:`Rejected` if every test that may need the feature passes without it."""
    dependent = require_gradable(plan)
    if not not_passing(plan.run("deleted", ids=dependent), dependent):
        raise Rejected("No trusted test needs this code.", reason="no_fail_to_pass")


def plan_deletion(
    bench: Workbench, feature: Feature, deleter_name: str, check: Check = require_needed
) -> PlannedDeletion:
    """Plan the deletion of a feature so that every trusted test that stays visible passes without it.

    ``check`` is called before the suite is run, and raises :class:`Rejected` if that would be in vain. Raises
    :class:`Rejected` or :class:`DeletionRefused` if no part of the feature can be deleted like that. Tests that fail
    once and pass once on the same tree are not trusted any more (:meth:`Workbench.distrust`).
    """
    plan = _planned(bench, feature, deleter_name, check)
    require_examples_hold(plan)
    return replace(plan, trusted=bench.trusted)


def _planned(bench: Workbench, feature: Feature, deleter_name: str, check: Check) -> PlannedDeletion:
    deleter = get_deleter(deleter_name, bench.repo.language)
    if deleter_name == "path":
        feature = _with_failing_tests(bench, deleter, feature)
    feature, plan = _plan_without_copies(bench, deleter, feature)
    deleter, plan = _plan_that_builds(bench, deleter, feature, plan, check)
    deleter, plan = _with_parts_of_tests(_hiding_less(plan, deleter, check), deleter)
    require_no_orphan(plan)
    max_hidden = int(len(bench.trusted) * bench.settings.max_f2p_share)
    check_once = _once(check)  # more hidden tests do not change what it finds
    for _ in range(MAX_WIDENINGS):
        run, failing = run_shipped(plan, check_once)
        if not failing:
            return plan
        if isinstance(deleter, ShorteningDeleter) and not plan.shortened.isdisjoint(failing):
            deleter = deleter.hiding_whole(plan.shortened.intersection(failing))
        require_no_test_lost(plan, [test for test in failing if test not in plan.shortened])
        failing = needing_it(plan, failing)
        if not failing:
            return plan
        wider = _hidden_along(bench, [*(plan.hidden - plan.renamed), *plan.exposed, *failing])
        if len(wider) > max_hidden or len(failing) > 2 * len(feature.tests) + 10:
            return _shrink(plan, deleter, feature, failing, run, check)
        plan = _plan(bench, deleter, feature, wider, only=_deleted_of(plan, feature))
    run, failing = run_shipped(plan, check_once)
    return _shrink(plan, deleter, feature, failing, run, check) if failing else plan


def feature_of_checked(bench: Workbench, feature: Feature, checked: frozenset[str]) -> Feature:
    """A feature reduced to the definitions ``checked`` among it and in it."""
    return _part_of(replace(feature, symbols=tuple(sorted(checked))), bench, checked)


def _deleted_of(plan: PlannedDeletion, feature: Feature) -> frozenset[str]:
    """The symbols of a feature that a plan deletes, or in which it does: a class is emptied by its methods."""
    removed = plan.deletion.removed
    return frozenset(s for s in feature.symbols if any(is_inside(each, s) for each in removed))


def tests_needing_feature(plan: PlannedDeletion, tests: Sequence[str]) -> list[str]:
    """Those of the tests that fail without the code, and with a stub that raises in its place.

    The second condition drops tests that fail only because their file no longer imports. Where tests without the code
    do not compile, and stubs panic, a test that expects a panic has to fail with a stub that returns something.
    """
    fail_deleted = not_passing(plan.run("deleted", ids=tests), tests)
    if not fail_deleted or not plan.deletion.stub_patches:
        return list(fail_deleted)
    failing = set(fail_deleted) & set(not_passing(plan.run("raise", ids=tests), tests))
    panicking = sorted(set(fail_deleted) - failing)
    if failing and panicking and plan.bench.language.grading.needs_mirrors:
        statuses = plan.run("none", ids=panicking).statuses()
        failing |= {test for test in panicking if statuses.get(test) is Status.FAILED}
    return sorted(failing)


def _hiding_less(plan: PlannedDeletion, deleter: Deleter, check: Check) -> PlannedDeletion:
    """The plan that hides the tests in need of the feature alone; the plan itself if it does, or if no other one can be
    made that compiles."""
    bench, dependent = plan.bench, plan.dependent_tests
    if not any(map(plan.is_gradable, dependent)) or any(not patch for _, patch in plan.deletion.stub_patches):
        return plan  # it will be refused
    needed = _hidden_along(bench, tests_needing_feature(plan, dependent)) | (plan.hidden - bench.trusted)
    _require_no_broken_use(plan, dependent, needed)
    if not needed & bench.trusted or needed.issuperset(dependent):
        return plan
    feature = plan.deletion.feature
    try:
        less = _plan(bench, deleter, feature, needed, only=_deleted_of(plan, feature))
    except DeletionRefused:
        return plan
    less.trees.reuse_runs(plan.trees, dependent, less.dependent_tests)
    if isinstance(deleter, CompiledDeleter) and run_shipped(less, check)[0].collect_errors:
        return plan
    return less


def _with_parts_of_tests(plan: PlannedDeletion, deleter: Deleter) -> tuple[Deleter, PlannedDeletion]:
    """A plan that leaves the statements of hidden tests which pass without the code, and its deleter."""
    shorter, feature = leaving_parts(plan, deleter), plan.deletion.feature
    if shorter is None:
        return deleter, plan
    try:
        hide = plan.hidden - plan.renamed
        less = _plan(plan.bench, shorter, feature, hide, only=_deleted_of(plan, feature))
    except DeletionRefused:
        return deleter, plan
    less.trees.reuse_runs(plan.trees, plan.dependent_tests, less.dependent_tests)
    return (shorter, less) if less.shortened > plan.shortened else (deleter, plan)


def _require_no_broken_use(plan: PlannedDeletion, tests: Sequence[str], needed: frozenset[str]) -> None:
    """Raise :class:`DeletionRefused` if a test fails in code that stays, by an error of a program for want of what the
    removal took, or one of those that need it cannot be hidden: a developer would have changed these, too."""
    if plan.deletion.deleter not in REMOVALS:
        return
    for test in sorted(needed & plan.exposed):
        raise DeletionRefused(f"{test} needs it, and cannot be hidden", reason=USED_ELSEWHERE)
    codebase = plan.bench.codebase
    for result in plan.run("deleted", ids=tests).results:
        path = result.place.removeprefix(f"{REPO}/")
        if path in codebase.modules and not codebase.is_test(path) and _BROKEN.match(result.message):
            raise DeletionRefused(
                f"{path} needs it: {result.test_id} fails there, {result.message[:MAX_SHOWN]}", reason=USED_ELSEWHERE
            )


def _once(check: Check) -> Check:
    """The check without its later calls; a call that raises does not count."""
    passed = False

    def check_once(plan: PlannedDeletion) -> None:
        nonlocal passed
        if not passed:
            check(plan)
        passed = True

    return check_once


def _plan_that_builds(
    bench: Workbench, deleter: Deleter, feature: Feature, plan: PlannedDeletion, check: Check
) -> tuple[Deleter, PlannedDeletion]:
    """A plan whose shipped tree compiles, and the deleter that made it: it leaves what the compiler misses.

    Raises :class:`DeletionRefused` where none does, and where too many tests mention what is gone: a stub breaks none.
    """
    if not isinstance(deleter, CompiledDeleter):
        return deleter, plan
    for _ in range(MAX_CORRECTIONS):
        if len(plan.hidden & bench.trusted) > len(bench.trusted) * bench.settings.max_f2p_share:
            raise DeletionRefused(f"{len(plan.hidden)} tests mention it", reason=USED_ELSEWHERE)
        run, _ = run_shipped(plan, check)
        if not run.collect_errors:
            return deleter, plan
        messages = [message for _, message in run.collect_errors]
        deleter = deleter.corrected(bench.codebase, plan.deletion, messages)
        plan = _plan(bench, deleter, feature, plan.hidden, only=frozenset(feature.symbols))
    raise DeletionRefused("what is left does not compile", reason=USED_ELSEWHERE)


def _with_failing_tests(bench: Workbench, deleter: Deleter, feature: Feature) -> Feature:
    """A path through a function with those of its tests that fail without it.

    Raises :class:`Rejected` unless some do, and not too many, and :class:`DeletionRefused`.
    """
    executing = sorted(bench.trusted & set(feature.tests))
    deletion = deleter.delete(bench.codebase, feature)
    run = require_ended(bench.run(bench.edits_of(deletion.source_patch), ids=executing, forked=True))
    failing = not_passing(run, executing)
    if not failing:
        raise Rejected("No trusted test needs this code.", reason="no_fail_to_pass")
    if len(failing) > len(bench.trusted) * bench.settings.max_f2p_share:
        raise Rejected(f"{len(failing)} tests fail without this code.", reason="too_central")
    return replace(feature, tests=tuple(sorted(failing)))


def _plan_without_copies(bench: Workbench, deleter: Deleter, feature: Feature) -> tuple[Feature, PlannedDeletion]:
    """A first plan, and the part of the feature that it deletes: code that stands elsewhere, too, stays.

    Raises :class:`Rejected` if that is all of it, and :class:`DeletionRefused` if no part can be deleted.
    """
    feature, plan = _deletable_part(bench, deleter, feature)
    for _ in range(MAX_LEAVINGS):
        copies = leaks_before_tests(plan)
        if not copies:
            return feature, plan
        kept = _without(bench, feature, {leak.symbol for leak in copies})
        part = _part_of(feature, bench, kept)
        if kept == set(feature.symbols) or not part.tests:
            break
        feature = part
        plan = _first_plan(bench, deleter, feature)
    raise Rejected(problem_of(copies), reason=reason_of(copies))


def _deletable_part(bench: Workbench, deleter: Deleter, feature: Feature) -> tuple[Feature, PlannedDeletion]:
    """A plan for the largest part of the feature that the deleter takes. Raises :class:`DeletionRefused`."""
    try:
        return feature, _first_plan(bench, deleter, feature)
    except DeletionRefused as refusal:
        if len(feature.symbols) < 2 or refusal.reason == USED_ELSEWHERE:  # a stub of all of it is the larger task
            raise
        found, reasons = dict[frozenset[str], tuple[Feature, PlannedDeletion]](), dict[frozenset[str], str]()

        def can_be_deleted(symbols: frozenset[str]) -> bool:
            part = _part_of(feature, bench, symbols)
            if not part.tests:
                return False
            try:
                found[symbols] = part, _first_plan(bench, deleter, part)
            except DeletionRefused as refusal:
                reasons[symbols] = str(refusal)
                return False
            return True

        best = largest_clean(feature.symbols, can_be_deleted, MAX_REFUSALS, partial(_named_in, bench, reasons))
        if best not in found:
            raise
        return found[best]


def _without(bench: Workbench, feature: Feature, copied: set[str]) -> frozenset[str]:
    """The symbols of a feature without those in ``copied``, what holds them, and what they need."""
    if not copied <= bench.codebase.symbols().keys():
        return frozenset()
    left = {s for s in feature.symbols if any(is_inside(c, s) for c in copied)}
    return _deletable_beside(bench, feature, left | copied)


def _deletable_beside(bench: Workbench, feature: Feature, left: set[str]) -> frozenset[str]:
    """The symbols of a feature that can go if those in ``left`` stay: none that these need, directly or not."""
    staying = set(left)
    queue = sorted(left)
    while queue:
        for callee in bench.codebase.callees(queue.pop()):
            if callee in feature.symbols and callee not in staying:
                staying.add(callee)
                queue.append(callee)
    return frozenset(feature.symbols) - staying


def require_gradable(plan: PlannedDeletion) -> list[str]:
    """The trusted tests that may need the feature. Raises :class:`Rejected` unless at least one can be graded."""
    dependent = plan.dependent_tests
    if not dependent:
        raise Rejected("No trusted test needs this code.", reason="no_fail_to_pass")
    if not any(map(plan.is_gradable, dependent)):
        raise Rejected(
            f"Only tests in files that a solution may change need this code, first {dependent[0]}.",
            reason="only_uncounted_tests",
        )
    return dependent


def _first_plan(bench: Workbench, deleter: Deleter, feature: Feature) -> PlannedDeletion:
    """Delete all symbols of the feature and hide the tests that execute it, those that do not count among them.

    Raises :class:`DeletionRefused`.
    """
    hide = _hidden_along(bench, [*feature.tests, *_uncounted(bench, feature)])
    return _plan(bench, deleter, feature, hide, only=frozenset(feature.symbols))


def _uncounted(bench: Workbench, feature: Feature) -> list[str]:
    """Tests that do not count, that execute the feature, and whose functions have no test that need not be hidden."""
    coverage = bench.prepared.coverage
    found = {t for s in feature.symbols for t in coverage.uncounted.get(s, ())} if coverage is not None else set()
    staying = set(map(without_parameter, bench.trusted.difference(feature.tests))) if found else set()
    return [test for test in sorted(found) if without_parameter(test) not in staying]


def _plan(
    bench: Workbench, deleter: Deleter, feature: Feature, hide: frozenset[str], *, only: frozenset[str]
) -> PlannedDeletion:
    """Delete of the feature's symbols ``only`` these, and hide the tests with the ids ``hide``.

    Raises :class:`DeletionRefused`, also for a removal that leaves uses of the code, or what a linter would tell of it:
    a stub has none.
    """
    deletion = deleter.delete(bench.codebase, feature, only=only, hide=hide)
    seen = bench.settings.visibility in {Visibility.TESTS, Visibility.SAMPLE_TESTS}
    if seen and isinstance(deleter, CompiledDeleter):
        raise DeletionRefused("tests in sight need it to compile", reason=USED_ELSEWHERE)
    if deleter.name in {"remove", "path"} and deletion.uses_left:
        path, text = deletion.uses_left[0]
        raise DeletionRefused(f"{path}: {text}", reason=USED_ELSEWHERE)
    is_removal = deleter.name in REMOVALS
    for owner, name in deletion.uses_likely if is_removal else ():
        if (tests := _executing(bench, owner)) and tests <= hide:
            raise DeletionRefused(f"{owner} uses {name}: no test runs it without that", reason=USED_ELSEWHERE)
    for owner, name in deletion.uses_distinctive if is_removal else ():
        if not (tests := _executing(bench, owner)) or not tests.isdisjoint(hide):
            who = "a test that needs it" if tests else "no test"
            raise DeletionRefused(f"{owner} uses {name}, and {who} runs that", reason=USED_ELSEWHERE)
    if bench.settings.visibility is Visibility.TESTS:
        deletion = bench.editor.hiding_only(bench.codebase, deletion, frozenset())
    elif bench.settings.visibility is Visibility.SAMPLE_TESTS:
        deletion = bench.editor.hiding_only(bench.codebase, deletion, kept_hidden(bench, deletion))
    rows = bench.editor.hidden_rows(bench.codebase, frozenset(deletion.hidden))
    hidden = _with_functions(bench, deletion.hidden, rows) | (rows.renamed & bench.baseline.durations.keys())
    deletion = replace(deletion, hidden=tuple(sorted(hidden)))
    return PlannedDeletion(
        trees=DeletionTrees(bench=bench, deletion=deletion),
        trusted=bench.trusted,
        exposed=(hide & bench.trusted) - hidden,
        renamed=rows.renamed,
    )


def _executing(bench: Workbench, symbol: str) -> frozenset[str]:
    """The trusted tests that execute a function."""
    coverage = bench.prepared.coverage
    return bench.trusted & coverage.executing([symbol]) if coverage is not None else frozenset()


def _hidden_along(bench: Workbench, tests: Iterable[str]) -> frozenset[str]:
    """The ids of all tests that are hidden if ``tests`` are: those of the same functions, but for rows that go alone.

    The id of a class stands for all tests of the class.
    """
    wanted = frozenset(tests)
    return _with_functions(bench, wanted, bench.editor.hidden_rows(bench.codebase, wanted))


def _with_functions(bench: Workbench, tests: Iterable[str], rows: HiddenRows) -> frozenset[str]:
    """See :func:`_hidden_along`; ``rows`` are those of the tests that go alone."""
    stems = {without_parameter(test) for test in tests if test not in rows.rows}

    def is_selected(test: str) -> bool:
        return without_parameter(test) in stems or not stems.isdisjoint(holders_of_test(test)[1:])

    return frozenset(filter(is_selected, bench.baseline.durations)) | (rows.rows & bench.baseline.durations.keys())


def _shrink(
    plan: PlannedDeletion, deleter: Deleter, feature: Feature, failing: list[str], run: TestRun, check: Check
) -> PlannedDeletion:
    """Plan the deletion of the largest part that breaks no visible test. Raises :class:`Rejected` if there is none."""
    broken = f"{len(failing)} other tests fail without it, first {failing[0]}"
    if run.collect_errors:
        broken += f"; {run.collect_errors[0][0]} cannot be collected: {run.collect_errors[0][1][:MAX_MESSAGE]}"
    elif not run.finished:
        broken += f"; the runner gave up: {run.detail.strip()[-300:]}"
    if len(feature.symbols) < 2:
        raise Rejected(f"{broken}.", reason="breaks_other_tests")
    bench, reasons = plan.bench, dict[frozenset[str], str]()
    tried: dict[frozenset[str], PlannedDeletion] = {}

    def is_clean(symbols: frozenset[str]) -> bool:
        """Whether no visible test fails if only ``symbols`` are deleted."""
        part = _part_of(feature, bench, symbols)
        if not part.tests:
            return False
        try:
            _, tried[symbols] = _plan_that_builds(bench, deleter, part, _first_plan(bench, deleter, part), check)
            shipped, failing = run_shipped(tried[symbols], check)
        except (DeletionRefused, Rejected) as refusal:
            reasons[symbols] = str(refusal)
            return False
        reasons[symbols] = " ".join(r.message for r in shipped.results if r.test_id in failing)
        return not failing

    best = largest_clean(feature.symbols, is_clean, MAX_SHRINK_RUNS, partial(_named_in, bench, reasons))
    if not best or best not in tried:
        raise Rejected(f"{broken}; no part of it can go alone.", reason="breaks_other_tests")
    return tried[best]


def _named_in(bench: Workbench, reasons: Mapping[frozenset[str], str], symbols: frozenset[str]) -> frozenset[str]:
    """Those of the symbols that are named by the reason why they cannot all go; ``'sum'`` names ``do_sum``, too."""
    reason, known = reasons.get(symbols, ""), bench.codebase.symbols()
    names = {symbol: known[symbol].name.partition("#")[0] for symbol in symbols}
    words, quoted = set(re.findall(r"\w+", reason)), set(re.findall(r"'(\w+)'", reason))
    named = {symbol for symbol, name in names.items() if name in words}
    return frozenset(named or {symbol for symbol, name in names.items() if name.rpartition("_")[2] in quoted})


def _part_of(feature: Feature, bench: Workbench, symbols: frozenset[str]) -> Feature:
    """The feature reduced to those of ``symbols`` that can go alone, and the trusted tests that execute them."""
    symbols, coverage = _deletable_beside(bench, feature, set(feature.symbols) - symbols), bench.prepared.coverage
    assert coverage is not None, "features are found in a coverage map"
    trusted = bench.trusted.intersection(feature.tests) if feature.changed else bench.trusted
    tests = tuple(sorted(trusted & coverage.executing(symbols)))
    records = [bench.codebase.symbols()[s] for s in symbols]
    return replace(
        feature,
        symbols=tuple(sorted(symbols)),
        entry=tuple(s for s in feature.entry if s in symbols) or tuple(sorted(symbols)),
        tests=tests,
        changed=tuple(pair for pair in feature.changed if pair[0] in symbols),
        loc=sum(s.loc for s in records),
        complexity=sum(s.complexity for s in records),
    )
