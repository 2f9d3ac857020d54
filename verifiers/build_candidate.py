"""Building a task from a planned deletion: divide its tests, write the problem statement, make the record."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from excise.deleters.deletion_record import PARTLY_KEPT, PARTS_ALONE
from excise.deleters.edits.removed_parts import lines_of_parts, places_of_parts, returns_among
from excise.deleters.patches.git_patches import unified
from excise.deleters.statement.problem_statement import Statement, write_statement
from excise.deleters.statement.spelling import unnumbered
from excise.deleters.statement.title import definitions_along
from excise.extractors.features.tiers import tier_of
from excise.extractors.fetch.source_git import name_in_words
from excise.protocols import Codebase
from excise.types import (
    Difficulty,
    GivenBy,
    NeedKind,
    Status,
    Symbol,
    SymbolKind,
    Task,
    TestRun,
    Visibility,
    by_plain_name,
    content_id,
    is_inside,
    name_in_file,
    path_of,
)
from excise.verifiers.candidate import Candidate, PlannedDeletion, Rejected, SplitDeletion, Unchecked, not_passing
from excise.verifiers.grading.examples import MIN_EXAMPLES, examples_of, tells_something
from excise.verifiers.grading.kit import RecordedBehaviour
from excise.verifiers.leaks.deletion_scan import similar_share, subject_of
from excise.verifiers.plan_deletion import require_gradable, tests_needing_feature

MIN_DESCRIBED = 0.5
"""Share of the removed functions, by lines, below which a statement needs examples: nobody could know what they do."""
MAX_LINES = 24
"""Maximum number of examples in a statement."""
MORE_EXAMPLES = 3
"""Number of examples of a function that words describe; more where the tests take more paths through it. One that the
project's words show an example of gets at most as many, unless only a part of it is gone: what the words show works."""
MANY_TESTS, FEW_SHOWN = 12, 1
"""Number of tests of a function whose cases that many examples in its description, at most, do not tell."""
_EXCEPTION = re.compile(r"\b[A-Z]\w*(?:Error|Exception)\b")
"""The name of an exception in a docstring."""
HIDING = Visibility.DOCSTRING
"""The visibility of tasks which show some of their tests if words do not suffice."""
WITH_WORDS = frozenset({Visibility.SAMPLE_TESTS, Visibility.DOCSTRING, Visibility.BEHAVIOUR})
"""Visibilities of tasks that words describe. With ``signature``, users want none; with ``tests``, tests are seen."""
MAX_IDLE = 10
"""Number of hidden tests that pass without the code up to which these may outnumber the FAIL_TO_PASS tests."""
MIN_GRADED = 1 / 3
"""Share of the tests that fail without the code which must be left where those of undescribed functions go."""


def split_tests(plan: PlannedDeletion) -> SplitDeletion:
    """Divide the trusted tests of a planned deletion. Raises :class:`Rejected` if none can be in FAIL_TO_PASS.

    FAIL_TO_PASS: tests that fail without the code, and with a stub that raises in its place; the second condition
    drops tests that fail only because their file no longer imports. PASS_TO_PASS: tests that pass on the shipped tree.
    Hidden ones that pass without the code are in neither: a solver cannot see what they want, and nothing is said of
    it. Both hold only tests in files that graders restore: in others, a solution may leave a test out or write another
    in its place.
    """
    split = _with_failing_tests(plan)
    shipped = plan.run("shipped").statuses()
    visible = {t for t in plan.bench.trusted if shipped.get(t) is Status.PASSED}
    others = visible.difference(split.fail_to_pass, split.ungradable)
    return replace(split, pass_to_pass=tuple(sorted(t for t in others if plan.is_gradable(t))))


def require_statement(plan: PlannedDeletion) -> SplitDeletion:
    """The deletion with the tests that grade it, before its suite is run.

    Raises :class:`Rejected` if no test can be graded, or no statement can be written: spares the run of a suite.
    """
    split, *_ = _with_statement(_with_failing_tests(plan))
    return split


def require_checked(plan: PlannedDeletion) -> None:
    """Do as :func:`require_statement`; raise :class:`Unchecked` if nobody would notice some functions missing.

    These are executed by no FAIL_TO_PASS test, and called by no other one. A call does not count for a public function
    that a test executes which is no longer graded. What is in a class, or a file, that goes as a whole is not looked
    at; nor are constants, which go along with what uses them. Of definitions of one name, one may be executed for all,
    unless their signatures are equal: one may be for another platform.
    """
    split = require_statement(plan)
    coverage, codebase = plan.bench.prepared.coverage, plan.bench.codebase
    if coverage is None:
        return
    removed = plan.deletion.removed
    outer = [s for s in removed if not any(s != other and is_inside(s, other) for other in removed)]
    of_name: dict[str, list[str]] = defaultdict(list)
    for symbol in outer:
        of_name[unnumbered(symbol)].append(symbol)  # of accessors and overloads, one may be executed
    functions = {s for s in outer if _is_callable(codebase, s)}
    symbols = codebase.symbols()
    alike = {
        s: [o for o in of_name[unnumbered(s)] if o != s and _is_alike(symbols[s], symbols.get(o))] for s in functions
    }
    idle = {s for s in functions if not coverage.executing([s]) and coverage.executing(alike[s])}
    tests = {s: frozenset() if s in idle else coverage.executing(of_name[unnumbered(s)]) for s in functions}
    unchecked = {s for s in functions if tests[s].isdisjoint(split.fail_to_pass)}
    checked = set(removed) - unchecked
    by_call = {s for s in unchecked - idle if not symbols[s].is_public or tests[s].isdisjoint(split.untold)}
    while helpers := {s for s in unchecked & by_call if not checked.isdisjoint(codebase.callers(s))}:
        checked |= helpers
        unchecked -= helpers
    known = checked & symbols.keys()
    if known and unchecked:
        raise Unchecked(f"No FAIL_TO_PASS test executes {min(unchecked)}.", frozenset(known))


def _is_alike(symbol: Symbol, other: Symbol | None) -> bool:
    """Whether two definitions of one name are called alike: no overloads, and no accessors."""
    if other is None or symbol.is_overload or other.is_overload:
        return False
    return (symbol.signature, symbol.decorators) == (other.signature, other.decorators)


def _is_callable(codebase: Codebase, symbol_id: str) -> bool:
    symbol = codebase.symbols().get(symbol_id)
    return symbol is not None and symbol.is_callable


def _with_failing_tests(plan: PlannedDeletion) -> SplitDeletion:
    """The deletion with its FAIL_TO_PASS tests alone; the shipped tree need not have been run."""
    dependent = require_gradable(plan)
    if any(not patch for _, patch in plan.deletion.stub_patches):
        raise Rejected("The code is no more than an empty stand-in for itself.", reason="empty_solution_passes")
    failing = tests_needing_feature(plan, dependent)
    deleted_run = plan.run("deleted", ids=dependent)
    if not failing:
        raise Rejected("Every hidden test passes without the code.", reason="no_fail_to_pass", run=deleted_run)
    fail_to_pass = tuple(t for t in failing if plan.is_gradable(t))
    if fail_to_pass and not any(map(plan.is_guarded, fail_to_pass)):
        raise Rejected(
            f"No test that fails without this code has a check that can be turned round, first {fail_to_pass[0]}.",
            reason="only_unguarded_tests",
            run=deleted_run,
        )
    if not fail_to_pass:
        raise Rejected(
            f"Only tests in files that a solution may change fail without this code, first {failing[0]}.",
            reason="only_uncounted_tests",
            run=deleted_run,
        )
    require_few_lost(plan, fail_to_pass, deleted_run)
    return SplitDeletion(
        trees=plan.trees,
        trusted=plan.trusted,
        exposed=plan.exposed,
        fail_to_pass=fail_to_pass,
        pass_to_pass=(),
        ungradable=tuple(t for t in failing if t not in fail_to_pass),
    )


def require_few_lost(plan: PlannedDeletion, fail_to_pass: Sequence[str], run: TestRun) -> None:
    """Raise :class:`Rejected` if more tests that pass without the code are hidden than tests that fail, which ``run``,
    without the code, tells: cases of the same functions, whose parameters come from fixtures. A few always may be."""
    whole = sorted((plan.hidden - plan.shortened) & plan.trusted)
    failing = not_passing(run, whole)
    lost = [test for test in whole if test not in failing]
    if len(lost) > max(MAX_IDLE, len(fail_to_pass)):
        raise Rejected(
            f"{len(lost)} tests that pass without this code would be hidden with the {len(fail_to_pass)} that fail, as "
            f"cases of the same functions, first {lost[0]}.",
            reason="hides_other_tests",
            run=run,
        )


def build_candidate(split: SplitDeletion) -> Candidate:
    """The candidate with its task's record, which depends only on sources, deletion and test runs.

    Tests that need a detail which only the removed code could tell leave FAIL_TO_PASS. Code that nothing describes gets
    examples. Raises :class:`Rejected` if no test is left, or no examples can be made.
    """
    split, statement, behaviour = _with_statement(split)
    return Candidate(
        trees=split.trees,
        trusted=split.trusted,
        exposed=split.exposed,
        fail_to_pass=split.fail_to_pass,
        pass_to_pass=split.pass_to_pass,
        ungradable=split.ungradable,
        untold=split.untold,
        task=_task(split, statement),
        behaviour=behaviour,
    )


def _with_statement(split: SplitDeletion) -> tuple[SplitDeletion, Statement, RecordedBehaviour | None]:
    """The statement, the deletion with those tests that it lets solvers pass, and what was recorded for it."""
    behaviour = None
    if split.hidden.intersection(split.fail_to_pass):
        behaviour = split.trees.behaviour(split.fail_to_pass)
    statement = _statement(split, behaviour)
    if untold := statement.untold_tests:
        graded = tuple(test for test in split.fail_to_pass if test not in untold)
        if not graded:
            words = sorted(need.label for need in statement.needs if need.given is GivenBy.ANSWER)
            raise Rejected(f"Only the code itself could tell what every test needs: {words[0]}.", reason="untold_need")
        split = replace(split, fail_to_pass=graded, untold=tuple(sorted(untold)))
        statement = _statement(split, behaviour)
    if behaviour is None and split.bench.settings.visibility is Visibility.SAMPLE_TESTS:
        raise Rejected("No hidden test fails without this code, only tests in sight do.", reason="too_few_tests")
    if behaviour is not None and split.bench.settings.visibility in WITH_WORDS:
        return _described(split, statement, behaviour.tests)
    return split, statement, behaviour


def _described(
    split: SplitDeletion, statement: Statement, tests: tuple[str, ...]
) -> tuple[SplitDeletion, Statement, RecordedBehaviour]:
    """Show examples of functions whose description has none; do not grade tests of those that nothing describes.

    ``tests`` are those whose calls are the examples. Raises :class:`Rejected` if nothing is left to grade.
    """
    bench = split.bench
    name_of = partial(name_in_calls, bench.codebase)
    if name := _barely_shown(split, statement):
        raise Rejected(f"Words and at most {FEW_SHOWN} example say what {name} does.", reason="undescribed")
    few = statement.described_share < MIN_DESCRIBED
    behaviour = split.trees.behaviour(tests, is_replayed=True)
    raised: dict[str, set[str]] = {}
    for need in statement.needs:
        of_error = need.exception or (need.word if need.kind is NeedKind.EXCEPTION else "")
        if name := of_error.rpartition(" of ")[2]:
            raised.setdefault(name, set()).update(map(name_of, (need.owner, *need.others)))
    known = bench.codebase.symbols()
    for symbol in (known[each] for each in split.deletion.removed if each in known):
        for name in _EXCEPTION.findall(symbol.docstring):
            raised.setdefault(name, set()).add(name_of(symbol.symbol_id))
    parts = places_of_parts(split.deletion.text, bench.codebase)
    by_name = {name_of(symbol): lines for symbol, lines in parts.items()}
    returns = returns_among((line for lines in parts.values() for line in lines), bench.codebase)
    examples = examples_of(behaviour, bench.language.grading, raised, by_name, returns)
    enough = {name for name, shown in examples.items() if shown.num_results >= MIN_EXAMPLES}
    coverage, in_sight = bench.prepared.coverage, set[str]()
    if coverage is not None and bench.settings.visibility is Visibility.SAMPLE_TESTS:
        in_sight.update(test for test in split.fail_to_pass if test not in split.hidden)
        enough |= {name_of(s) for s in statement.undescribed if not in_sight.isdisjoint(coverage.executing([s]))}
    silent = [s for s in statement.undescribed if name_of(s) not in enough]
    untold = set(coverage.executing(silent)) if coverage is not None else set()
    graded = tuple(test for test in split.fail_to_pass if test not in untold)
    is_too_little = len(graded) < MIN_GRADED * len(split.fail_to_pass) or in_sight.issuperset(graded)
    if is_too_little or (few and not enough):
        raise Rejected(
            f"{statement.described_share:.0%} of the code has a docstring, comment, document or caller, and examples "
            f"{'and tests in sight ' if in_sight else ''}do not show what {silent[0] if silent else 'it'} does.",
            reason="undescribed",
        )
    untold |= set(split.untold)
    split = replace(split, fail_to_pass=graded, untold=tuple(sorted(untold & set(split.dependent_tests))))
    is_part = split.deletion.deleter in PARTS_ALONE  # words describe the function, and not what of it is gone
    undescribed = enough if few or is_part else {name_of(s) for s in statement.undescribed} & enough
    plain = {name_of(s) for s in statement.without_example} - undescribed
    chosen = {}
    for name, shown in examples.items():
        paths = min(MORE_EXAMPLES, shown.num_paths)
        is_plain = name in plain or split.deletion.deleter in PARTLY_KEPT
        most = None if name in undescribed else max(MORE_EXAMPLES, shown.num_paths) if is_plain else paths
        own = dict.fromkeys([*shown.shown[:most], *shown.parameters, *shown.beyond, *shown.raising])
        chosen[name] = without_known(own, statement.text)
    lines = _some_of_each(chosen)
    told = {name for name, own in chosen.items() if any(tells_something(line) for line in own if line in lines)}
    functions = [
        each
        for each in untold_by_words(statement.barely_described, parts, split.deletion.deleter)
        if name_of(each) not in told
    ]
    hidden = split.hidden.intersection(graded) if is_part else split.hidden
    tested = {each: hidden & coverage.executing([each]) for each in functions} if coverage is not None else {}
    return split, _statement(split, behaviour, lines, tested), behaviour


def untold_by_words(barely: Iterable[str], parts: Iterable[str], deleter: str) -> list[str]:
    """The functions of which words do not say what is missing: the ``barely`` described ones, and those with ``parts``
    that alone are gone."""
    return list(dict.fromkeys([*barely, *(sorted(parts) if deleter in PARTS_ALONE else ())]))


def name_in_calls(codebase: Codebase, symbol_id: str) -> str:
    """The name of a symbol in recorded calls: the implementation of overloads has no number there."""
    if "#" not in symbol_id:
        return name_in_file(symbol_id)
    module = codebase.modules.get(path_of(symbol_id))
    plain = by_plain_name(module.symbols) if module is not None else {}
    return next((name for name, symbol in plain.items() if symbol.symbol_id == symbol_id), name_in_file(symbol_id))


def _barely_shown(split: SplitDeletion, statement: Statement) -> str:
    """A public function that many hidden tests execute, and of which the statement shows next to no call.

    Empty if there is none, and where examples come from recorded calls.
    """
    bench, coverage = split.bench, split.bench.prepared.coverage
    if coverage is None or not bench.language.grading.needs_mirrors or bench.settings.visibility is not HIDING:
        return ""
    symbols, removed = bench.codebase.symbols(), set(split.deletion.removed)
    for symbol in (symbols[each] for each in sorted(removed) if each in symbols):
        is_function = symbol.kind is SymbolKind.FUNCTION and symbol.is_public
        if not is_function or not removed.isdisjoint(bench.codebase.callers(symbol.symbol_id)):
            continue  # methods are named in more ways than can be counted, helpers not at all
        tests = split.hidden & coverage.executing([symbol.symbol_id])
        is_tested = len(tests.intersection(split.fail_to_pass)) >= MANY_TESTS
        if is_tested and num_calls(statement.text, symbol.name.partition("#")[0]) <= 1 + FEW_SHOWN:
            return symbol.name
    return ""


def num_calls(text: str, name: str) -> int:
    """How many different calls of a function a text shows, its signature among them; equal ones count once, and a mere
    ``name()`` only where there are no others."""
    calls = re.findall(rf"(?<![\w$]){re.escape(name)}(?:::)?(?:[\[<][^\n()]{{0,60}}[\]>])?\s*\(([^\n]{{0,120}})", text)
    given = {"".join(call.split()) for call in calls if not call.lstrip().startswith(")")}
    return len(given) or len(calls)


def without_known(examples: Iterable[str], text: str) -> list[str]:
    """Those of the examples whose call is none in a docstring that a text shows."""
    calls = set(re.findall(r"(?m)^[> ]*>>> (.*\S)", text))
    return [line for line in examples if line.rpartition("  # ")[0] not in calls]


def _some_of_each(examples: Mapping[str, Sequence[str]]) -> list[str]:
    """At most :data:`MAX_LINES` examples, spread over the functions, sorted by these."""
    turns = max(map(len, examples.values()), default=0)
    places = [(turn, name) for turn in range(turns) for name in sorted(examples) if turn < len(examples[name])]
    return [examples[name][turn] for name, turn in sorted((name, turn) for turn, name in places[:MAX_LINES])]


def _statement(
    split: SplitDeletion,
    behaviour: RecordedBehaviour | None,
    examples: Sequence[str] = (),
    tested: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> Statement:
    bench, deletion = split.bench, split.deletion
    unseen = tuple(test for test in split.fail_to_pass if test in split.hidden)
    recording = behaviour.recording if behaviour is not None else None
    return write_statement(
        bench.codebase,
        deletion,
        replace(bench.repo, repo=name_in_words(bench.repo, bench.root)),
        split.fail_to_pass,
        bench.settings.visibility,
        documents=bench.documents,
        needs=split.trees.needs(unseen, recording.uses if recording is not None else None),
        examples=examples,
        tested=tested,
        compares_calls=recording is not None and bool(recording.calls),
        coverage=bench.prepared.coverage,
    )


def _task(split: SplitDeletion, statement: Statement) -> Task:
    bench, deletion, repo = split.bench, split.deletion, split.bench.repo
    shipped_tree = bench.tree_hash(split.edits("shipped"))
    short = repo.repo.rpartition("/")[2].lower()
    return Task(
        instance_id=f"{short}__{content_id('task', repo.tree, shipped_tree, bench.settings.visibility)[:12]}",
        repo=repo.repo,
        base_commit=repo.base_commit,
        tree=repo.tree,
        shipped_tree=shipped_tree,
        language=repo.language,
        version=repo.version,
        patch=_reversed_patch(split, deletion.source_patch),
        test_patch=_reversed_patch(split, deletion.hide_patch),
        deletion_patch=deletion.source_patch + deletion.hide_patch,
        problem_statement=statement.text,
        interface=statement.interface,
        fail_to_pass=split.fail_to_pass,
        pass_to_pass=split.pass_to_pass,
        hidden=tuple(sorted(split.hidden & bench.trusted)),
        env_id=bench.prepared.environment.env_id,
        visibility=bench.settings.visibility,
        difficulty=_difficulty(split),
        deleter=deletion.deleter,
        feature_id=deletion.feature.feature_id,
        removed=deletion.removed,
        needs={need.label: str(need.given) for need in statement.needs},
        created_at=repo.created_at,
    )


def _difficulty(split: SplitDeletion) -> Difficulty:
    deletion, symbols = split.deletion, split.bench.codebase.symbols()
    removed = [symbols[s] for s in deletion.removed if s in symbols]
    partly = lines_of_parts(deletion.text)
    along = definitions_along(split.bench.codebase, deletion)
    return Difficulty(
        kind=deletion.feature.kind,
        tier=_tier(deletion.deleter, [s for s in removed if s.symbol_id not in partly]),
        loc=sum(partly.get(s.symbol_id, s.loc) for s in (*removed, *along)),
        num_files=num_files(split),
        num_symbols=len(deletion.removed),
        fan_in=deletion.feature.fan_in,
        complexity=sum(s.complexity for s in (*removed, *along)),
        num_f2p=len(split.fail_to_pass),
        num_p2p=len(split.pass_to_pass),
        similar_share=similar_share(subject_of(split)),
    )


def num_files(split: SplitDeletion) -> int:
    """The number of files in which more changed than comments, docstrings and prose."""
    bench, edits = split.bench, split.edits("deleted")
    literals, before = re.compile(bench.language.scan_rules.literals), bench.read(list(edits))

    def has_changed(path: str, after: bytes | None) -> bool:
        if after is None or path not in bench.codebase.modules:
            return after is None or path not in bench.documents
        return code_alone(before.get(path, b""), literals) != code_alone(after, literals)

    return sum(has_changed(path, after) for path, after in edits.items())


def code_alone(source: bytes, literals: re.Pattern[bytes]) -> list[bytes]:
    """The words and marks of a file's code without comments, and with all strings equal."""
    return re.findall(rb"\w+|[^\w\s]", literals.sub(b" ", source))


def _tier(deleter: str, removed: Sequence[Symbol]) -> int:
    """The tier of a task: a stub is one below the removal of the same code, a part of a body is 0."""
    if deleter == "remove" or deleter in PARTLY_KEPT:
        return tier_of(removed) if removed else 0
    return tier_of(removed) - 1 if deleter == "stub" and removed else 0


def _reversed_patch(split: SplitDeletion, patch: str) -> str:
    """The patch that undoes ``patch``: the gold patch for the sources, the test patch for the tests."""
    bench = split.bench
    edits = bench.edits_of(patch)
    base: dict[str, bytes | None] = {**dict.fromkeys(edits), **bench.read(list(edits))}
    executable = {path for path in edits if (bench.root / path).stat().st_mode & 0o100}
    return unified(edits, base, dict.fromkeys(executable, 0o100755))
