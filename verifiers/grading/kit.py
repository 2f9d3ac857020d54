"""Making the grading kit of a task from the original code: recorded calls, lifted tests, and tests with wrong
expectations."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from excise.deleters.patches.git_patches import touched
from excise.protocols import CallRecording, Session, Start
from excise.types import (
    GradingKit,
    RecordedCall,
    Status,
    Task,
    Watched,
    content_id,
    name_in_file,
    path_of,
    without_parameter,
)
from excise.verifiers.grading.failing_copies import usable_files
from excise.verifiers.grading.graded_runs import open_grading, run_forked
from excise.verifiers.grading.lifting import find_lifted
from excise.verifiers.workbench import Edits, Workbench

CALLS_TIMEOUT_S = 120.0
"""Timeout in seconds of one replay of all recorded calls."""
MAX_TESTS = 200
"""Maximum number of FAIL_TO_PASS tests whose calls are recorded and which are tried with wrong expectations; of more,
some are drawn."""
MAX_GIVEN_TEXTS = 500
"""Maximum number of texts in what recorded calls give that are looked for in the code."""
KIT_FORMAT = 12
"""Version of the kit's format; incremented when calls or outcomes are written differently."""
OTHER_SEEDS = (1, 2, 3)
"""Hash seeds of further replays of calls whose outcomes may have the order of hashes."""
_SET = re.compile(rb"\b(?:frozen)?set\b")
LATER = (4711, 500 * 86400.0)
"""(hash seed, seconds that the clock is ahead) of the second replay. Calls whose outcomes differ are not used."""
OTHER_ZONE = "EST5EDT"
"""Time zone of the second replay, which also has other arguments of the process, home folder and user. Calls whose
outcomes differ for these reasons alone are no examples."""


def make_kit(
    bench: Workbench,
    task: Task,
    empty: Edits,
    behaviour: RecordedBehaviour | None = None,
    *,
    is_enough: Callable[[Sequence[str]], bool] = lambda _: False,
) -> GradingKit:
    """Record calls, replay them, and lift or mirror the tests, all on the original code. Raises :class:`ExciseError`.

    ``empty`` are the edits that replace the feature by stubs in the base tree, ``behaviour`` is what was recorded
    before. New calls of which the statement tells all are graded, those that it does not show held out. ``is_enough``
    tells of some of the FAIL_TO_PASS tests whether they refute empty solutions by themselves; only then some others
    need not count.
    """
    grading = bench.language.grading
    tree = without_hidden_tests(bench, task)
    if behaviour is None or behaviour.tests != task.fail_to_pass:
        behaviour = record_behaviour(bench, task.removed, task.fail_to_pass)
    recording = behaviour.recording
    replayed = behaviour.replayed or replay_twice(bench, recording, task.removed, tree)
    shown = set(task.problem_statement.splitlines()) - {""}
    calls: list[RecordedCall] = []
    refused = dict(recording.refused)
    for call, first, second in replayed.recorded:
        if not first or not second:
            refused["no_answer"] = refused.get("no_answer", 0) + 1
        elif not grading.same_outcome(first, second):
            refused["not_deterministic"] = refused.get("not_deterministic", 0) + 1
        else:
            calls.append(RecordedCall(call=call, outcome=first))
    told = [c for c in (*replayed.varied, *replayed.raising) if grading.example(c.call, c.outcome) in shown]
    compared = (replace(each, outcome=grading.told_outcome(each.call, each.outcome)) for each in told)
    calls += answered_alike(bench, recording, tree, [each for each in compared if each.outcome])
    kept = replace(recording, calls=tuple(call.call for call in calls))
    stub = replay(bench, kept, {**tree, **empty}, trusted=True, alone=0) if calls else []
    telling = grading.distinguish_from_stub(calls, stub)
    lifting = find_lifted(bench, task, tree)
    by_calls = _decided_by_calls(bench, recording, calls, stub) if telling else ()
    outside = {*by_calls, *(each.test for each in lifting.tests)}
    uncounted = uncounted_tests(task.fail_to_pass, outside, recording.uses.lines)
    if uncounted and not is_enough([test for test in task.fail_to_pass if test in outside]):
        uncounted = ()
    left = set(_drawn(task.fail_to_pass)).difference(each.test for each in lifting.tests).difference(uncounted)
    mirrored = _failing_mirror(bench, sorted(left))
    return GradingKit(
        instance_id=task.instance_id,
        format=KIT_FORMAT,
        calls=tuple(calls),
        held_out=tuple(call for call in replayed.varied if call not in told),
        modules=recording.modules,
        folders=recording.folders,
        telling=telling,
        removed=recording.removed,
        mirrored=mirrored,
        copied=usable_files(bench, task.fail_to_pass),
        lifted=lifting.tests,
        by_calls=by_calls,
        uncounted=uncounted,
        depending=lifting.depending,
        not_lifted=lifting.refused,
        num_watched=recording.watched,
        num_recorded=len(recording.calls),
        refused=refused,
    )


def answered_alike(
    bench: Workbench, recording: CallRecording, tree: Edits, calls: Sequence[RecordedCall]
) -> list[RecordedCall]:
    """Those of the calls that have their outcomes also when no other ones are made: one may change files."""
    alone = replace(recording, calls=tuple(call.call for call in calls))
    answers = replay(bench, alone, tree, trusted=True) if calls else []
    same = bench.language.grading.same_outcome
    return [call for call, answer in zip(calls, answers, strict=True) if same(call.outcome, answer)]


def _decided_by_calls(
    bench: Workbench, recording: CallRecording, calls: Sequence[RecordedCall], stub: Sequence[str]
) -> tuple[str, ...]:
    """Tests all of whose calls are compared as a whole, and at least one of whose calls a stub answers otherwise."""
    grading = bench.language.grading
    compared = {call.call for call in calls if grading.is_compared_whole(call.outcome)}
    others = {
        call.call for call, answer in zip(calls, stub, strict=True) if not grading.same_outcome(call.outcome, answer)
    }
    return tuple(
        sorted(
            test
            for test, made in recording.by_test.items()
            if compared.issuperset(made) and not others.isdisjoint(made)
        )
    )


def uncounted_tests(
    tests: Sequence[str], outside: Collection[str], lines: Mapping[str, Collection[tuple[str, int]]]
) -> tuple[str, ...]:
    """Those of the FAIL_TO_PASS tests that need not count, so that every test that counts is decided outside.

    ``outside``: tests that are decided outside the solution's sandbox. ``lines``: what each test executes of the
    removed code, see :attr:`Watched.lines`. The others need not count if they are at most half of all and execute no
    line that those outside do not; else all tests count.
    """
    inside = tuple(test for test in tests if test not in outside)
    executed = {line for test in tests if test in outside for line in lines.get(test, ())}
    covered = all(lines.get(test) and executed.issuperset(lines[test]) for test in inside)
    return inside if covered and 2 * len(inside) <= len(tests) else ()


class Replayed(NamedTuple):
    """Outcomes of calls on the original code."""

    recorded: list[tuple[str, str, str]]
    """Each recorded call with its outcomes in two replays; empty for one that has none."""
    varied: tuple[RecordedCall, ...]
    """New calls with equal results in three replays."""
    raising: tuple[RecordedCall, ...] = ()
    """New calls with equal exceptions in three replays."""
    reached: Mapping[str, frozenset[str]] = {}
    """Call to what of the removed code it reaches."""
    local: frozenset[str] = frozenset()
    """Recorded calls whose outcomes depend on the time zone, the arguments of the process, home folder or user."""


class RecordedBehaviour(NamedTuple):
    """What tests call of the removed code, and what the original code answers."""

    tests: tuple[str, ...]
    """The tests whose calls were recorded."""
    recording: CallRecording
    """Their calls, and what they did with the results."""
    replayed: Replayed | None = None
    """The outcomes of these calls, and of new ones; ``None`` as long as they have not been replayed."""


def record_behaviour(bench: Workbench, removed: Sequence[str], tests: Sequence[str]) -> RecordedBehaviour:
    """Record the calls that tests make to the symbols ``removed``, and watch what they do with the results.

    If a test fails in the run that does both, they are watched in a run of their own, and the calls recorded in
    another.
    """
    recording = record_calls(bench, removed, tests, is_watched=True)
    if recording.uses.problem:
        uses = _watched_alone(bench, removed, tests)
        recording = replace(record_calls(bench, removed, tests), uses=uses)
    return RecordedBehaviour(tuple(tests), recording)


def _watched_alone(bench: Workbench, removed: Sequence[str], tests: Sequence[str]) -> Watched:
    """What the tests do, seen in a run that records no calls."""
    ids = _drawn(tests)
    start = _recording_start(bench)
    with bench.open({}, start=start) as session:
        if start is Start.COLLECTED and not session.forks:
            return Watched(problem="The suite cannot be collected.")
        return bench.language.grading.watch_tests(
            session,
            bench.recipe,
            bench.codebase,
            removed,
            ids=ids,
            timeout_s=bench.suite_timeout_s(ids),
            start=start,
            executed=_executed(bench, ids),
        )


def with_replays(
    bench: Workbench, behaviour: RecordedBehaviour, removed: Sequence[str], tree: Edits
) -> RecordedBehaviour:
    """The recorded calls to the symbols ``removed``, replayed on ``tree``."""
    if behaviour.replayed is not None:
        return behaviour
    recording, texts_in = behaviour.recording, bench.language.grading.texts_in
    replayed = replay_twice(bench, recording, removed, tree)
    given = frozenset(text for _, outcome, _ in replayed.recorded if outcome for text in texts_in(outcome))
    told = frozenset(sorted(given)[:MAX_GIVEN_TEXTS])
    recording = replace(recording, uses=replace(recording.uses, given=told))
    return behaviour._replace(recording=recording, replayed=replayed)


def replay_twice(bench: Workbench, recording: CallRecording, removed: Sequence[str], tree: Edits) -> Replayed:
    """Replay the calls of a recording, and new ones made from them, on the original code under two conditions.

    The first replay also tells what of the symbols ``removed`` each call reaches; new calls without an outcome, such
    as loops with a large number, are made only once. Calls share processes in the first one. Their outcomes count if
    they are those of the second one, where each call has a process of its own; the others are made alone again.
    """
    if not recording.calls:
        return Replayed([], ())
    grading, calls = bench.language.grading, recording.calls
    varied = tuple(grading.vary_calls(calls, bench.codebase, removed))

    def traced(chosen: Sequence[str], new: int = 0, alone: int = 0) -> list[tuple[str, frozenset[str]]]:
        some, symbols, timeout_s = replace(recording, calls=tuple(chosen)), removed, CALLS_TIMEOUT_S
        return run_forked(
            bench,
            tree,
            grading.replay_server(bench.recipe, 0),
            lambda session: grading.trace_calls(
                session, bench.recipe, some, bench.codebase, symbols, new=new, timeout_s=timeout_s, alone=alone
            ),
        )

    answers = dict(zip((*calls, *varied), traced((*calls, *varied), new=len(varied)), strict=True))
    ended = {call: answers[call][0] for call in varied if answers[call][0]}
    again = replace(recording, calls=(*calls, *ended, *ended))
    at, end = len(calls), len(calls) + len(ended)
    second = replay(bench, again, tree, *LATER, zone=OTHER_ZONE, trusted=True, alone=end)
    odd = [
        call
        for call, found in zip(calls, second, strict=False)
        if found and not (answers[call][0] and grading.same_outcome(answers[call][0], found))
    ]
    answers.update(zip(odd, traced(odd, alone=len(odd)) if odd else (), strict=True))
    outcomes = {call: found for call, (found, _) in answers.items()}
    differing = [
        call
        for call, found in zip(calls, second, strict=False)
        if outcomes[call] and not (found and grading.same_outcome(outcomes[call], found))
    ]
    in_zone = replace(recording, calls=tuple(differing))
    plain = dict(zip(differing, replay(bench, in_zone, tree, *LATER, trusted=True) if differing else (), strict=True))

    def ends_alike(call: str) -> bool:
        """Whether a call returns, or raises, as it did in the tests: they may have made a folder that is missing."""
        returned = recording.returned.get(call)
        return returned is None or grading.is_result(outcomes[call]) == returned

    unordered = _unordered(bench, recording, removed, tree, outcomes)
    others = zip(ended.items(), second[at:end], second[end:], strict=True)
    steady = [
        RecordedCall(call=call, outcome=one)
        for (call, one), *more in others
        if call not in unordered and all(grading.same_outcome(one, other) for other in more)
    ]
    return Replayed(
        recorded=[
            (call, outcomes[call] if ends_alike(call) else "", unordered.get(call, plain.get(call, found)))
            for call, found in zip(calls, second, strict=False)
        ],
        varied=tuple(call for call in steady if grading.is_result(call.outcome)),
        raising=tuple(call for call in steady if not grading.is_result(call.outcome)),
        reached={call: reached for call, (_, reached) in answers.items()},
        local=frozenset(c for c, found in plain.items() if found and grading.same_outcome(outcomes[c], found)),
    )


def _unordered(
    bench: Workbench, recording: CallRecording, removed: Sequence[str], tree: Edits, outcomes: Mapping[str, str]
) -> dict[str, str]:
    """The calls whose outcomes have few texts in an order that comes of hashes, to another outcome.

    Two replays miss half of those with two texts. Looked for where removed code has sets.
    """
    grading, codebase = bench.language.grading, bench.codebase
    known = codebase.symbols()
    symbols = [known[name] for name in removed if name in known]
    texts = (codebase.modules[each.path].source[each.start : each.end] for each in symbols)
    if not any(map(_SET.search, texts)):
        return {}
    few = [call for call, outcome in outcomes.items() if outcome and grading.has_few_in_order(outcome)]
    found: dict[str, str] = {}
    for seed in OTHER_SEEDS if few else ():
        again = replay(bench, replace(recording, calls=tuple(few)), tree, seed, trusted=True, forked=False)
        found |= {
            call: other
            for call, other in zip(few, again, strict=True)
            if other and not grading.same_outcome(outcomes[call], other)
        }
    return found


def call_recording(kit: GradingKit) -> CallRecording:
    """The calls of a kit, held-out ones last, without their outcomes, to be replayed in a sandbox."""
    return CallRecording(
        calls=tuple(call.call for call in (*kit.calls, *kit.held_out)),
        modules=kit.modules,
        folders=kit.folders,
        removed=kit.removed,
        watched=kit.num_watched,
        refused=kit.refused,
    )


def record_calls(
    bench: Workbench, removed: Sequence[str], tests: Sequence[str], *, is_watched: bool = False
) -> CallRecording:
    """The calls that tests make to the symbols ``removed``, recorded in the cheapest way that works.

    ``is_watched``: note what the tests do with the results, too.
    """
    start = _recording_start(bench)
    with bench.open({}, start=start) as session:
        recording = _record(bench, removed, tests, session, start, is_watched) if session.forks else None
    if recording is not None and (recording.watched or (is_watched and not recording.uses.problem)):
        return recording
    with open_grading(bench, {}, trusted=True) as session:
        return _record(bench, removed, tests, session, Start.FRESH, is_watched)


def _recording_start(bench: Workbench) -> Start:
    """How a run that records calls begins, if it can: from the collected suite where that is there already."""
    start = bench.starts.choose({}) if bench.starts.is_checked else Start.FORKED
    return start if bench.language.fork_server(bench.recipe, start) is not None else Start.FRESH


def _record(
    bench: Workbench,
    removed: Sequence[str],
    tests: Sequence[str],
    session: Session,
    start: Start,
    is_watched: bool,
) -> CallRecording:
    ids = _drawn(tests)
    return bench.language.grading.record_calls(
        session,
        bench.recipe,
        bench.codebase,
        removed,
        ids=ids,
        timeout_s=bench.suite_timeout_s(ids),
        start=start,
        executed=_executed(bench, ids) if is_watched else None,
    )


def _executed(bench: Workbench, tests: Sequence[str]) -> frozenset[str]:
    """The symbols that some of the tests execute, as far as coverage tells."""
    coverage = bench.prepared.coverage
    if coverage is None:
        return frozenset()
    wanted = set(tests)
    numbers = {number for number, test in enumerate(coverage.tests) if test in wanted}
    return frozenset(symbol for symbol, own in coverage.by_symbol.items() if not numbers.isdisjoint(own))


def _drawn(tests: Sequence[str]) -> list[str]:
    """At most :data:`MAX_TESTS` of the tests, sorted; which ones depends only on their ids."""
    return sorted(sorted(tests, key=lambda test: content_id("drawn", test))[:MAX_TESTS])


def without_hidden_tests(bench: Workbench, task: Task) -> Edits:
    """Edits that make the shipped tree with the gold patch applied: sources restored, hidden tests absent."""
    restored = set(touched(task.patch))
    return {path: data for path, data in bench.edits_of(task.deletion_patch).items() if path not in restored}


def replay(
    bench: Workbench,
    recording: CallRecording,
    edits: Edits,
    hash_seed: int = 0,
    later_s: float = 0.0,
    *,
    zone: str = "",
    trusted: bool = False,
    forked: bool = True,
    alone: int | None = None,
) -> list[str]:
    """Replay the calls of a recording on the base tree with ``edits``, in a fresh sandbox without tests; return the
    outcomes.

    The clock in the sandbox is ``later_s`` seconds ahead, and in the time zone ``zone``. ``trusted``: the edits add no
    more than stubs to the original code, so that its byte code may be there, and the replay be forked, if ``forked``: a
    server for each seed that is seldom used would take the place of others. ``alone``: see
    :meth:`excise.protocols.Grading.replay_calls`.
    """
    grading = bench.language.grading

    def work(session: Session) -> list[str]:
        limit_s, seed = CALLS_TIMEOUT_S, hash_seed
        return grading.replay_calls(
            session, bench.recipe, recording, timeout_s=limit_s, hash_seed=seed, later_s=later_s, zone=zone, alone=alone
        )

    if trusted and forked:
        return run_forked(bench, edits, grading.replay_server(bench.recipe, hash_seed), work)
    with open_grading(bench, edits, trusted=trusted) as session:
        return work(session)


def mirrored_files(bench: Workbench, ids: Sequence[str], seed: str) -> dict[str, bytes]:
    """Path to content of the test files, with the tests ``ids`` changed to expect wrong results.

    ``seed``: one of the language's :attr:`excise.protocols.Grading.mirror_seeds`.
    """
    by_file: dict[str, set[str]] = {}
    for test in ids:
        by_file.setdefault(path_of(test), set()).add(name_in_file(without_parameter(test)))
    found: dict[str, bytes] = {}
    for path, data in bench.read(sorted(by_file)).items():
        changed = bench.language.grading.mirrored(data, sorted(by_file[path]), seed)
        if changed is not None:
            found[path] = changed
    return found


def _failing_mirror(bench: Workbench, chosen: Sequence[str]) -> tuple[str, ...]:
    """Those of the tests that fail on the original code when they expect wrong results; only these can be used."""
    ids = list(chosen)
    for seed in bench.language.grading.mirror_seeds:
        files = mirrored_files(bench, ids, seed)
        ids = [test for test in ids if path_of(test) in files]
        if not ids:
            return ()
        statuses = bench.run(dict(files), ids=ids, forked=True, explained=False).statuses()
        ids = [test for test in ids if statuses.get(test) in {Status.FAILED, Status.ERROR}]
    return tuple(ids)


def kit_hash(data: bytes) -> str:
    """The sha256 of a stored kit, which is its name in the set."""
    return hashlib.sha256(data).hexdigest()
