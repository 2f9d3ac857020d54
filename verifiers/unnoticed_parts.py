"""Whether tests check most of what a feature does: without a part of it, one of them fails."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from excise.deleters.deletion_record import REMOVALS
from excise.deleters.patches.patch_reader import changes_of, parse_patch
from excise.protocols import LackingPart
from excise.types import Status, WorkerOutcome, name_in_file
from excise.verifiers.candidate import Candidate, not_passing

MAX_PARTS, MIN_PARTS = 12, 1
"""Number of parts that are tried; with fewer, nothing is said."""
FEW_COMPILED, MAX_COMPILED = 6, 9
"""Number of parts that are tried where each needs a compiler: half of them, but so many at least and at most."""
MOST_UNNOTICED, MOST_IDLE = 3, 2
"""One of so many parts may go unnoticed; and of those that may be idle, or where there are two parts, unless an error
stands in the place of one."""
WHOLE = REMOVALS | {"stub"}
"""Deleters that take whole definitions, or bodies; a patch may have equal lines of the next one in place of theirs."""
MAX_SHORTCUTS = 6
"""Number of lesser bodies of functions that are tried."""
SUITE_SHARE, LEAST_S = 0.5, 2.0
"""What trying them may take if tests notice none: a share of the suite's time, or these seconds if it is less."""


class TriedParts(NamedTuple):
    """The parts that were tried, one at a time."""

    num_tried: int
    """Number of parts."""
    unnoticed: tuple[str, ...]
    """Those without which every test passes."""
    allowed: int = 0
    """How many of them may go unnoticed."""
    lacks_essential: bool = False
    """Whether one of them is what no test may leave unnoticed."""

    @property
    def is_thin(self) -> bool:
        """Whether too many parts were not noticed, or one that has to be."""
        return self.lacks_essential or len(self.unnoticed) > self.allowed


def try_parts(candidate: Candidate) -> TriedParts:
    """Run FAIL_TO_PASS tests on the original sources without a part, until one fails, for some parts of the feature.

    Lesser bodies of whole functions come first, which may pass for few of the removed functions, if they are not
    essential. Ends when it is clear whether enough are noticed. Their order depends on nothing but their names, their
    number also on what the tests took in the baseline.
    """
    bench = candidate.bench
    coverage = bench.prepared.coverage
    if coverage is None:
        return TriedParts(0, ())
    durations, failing = bench.baseline.durations, set(candidate.fail_to_pass)
    tests: dict[str, list[str]] = {}

    def tests_of(symbol: str) -> list[str]:
        if symbol not in tests:
            executing = failing & coverage.executing([symbol]) or failing
            tests[symbol] = sorted(executing, key=lambda test: (durations.get(test, 0.0), test))
        return tests[symbol]

    passing: dict[str, str] = {}
    executed = (part for part in _shortcuts_of(candidate) if failing & coverage.executing([part.symbol]))
    for part in islice((part for part in executed if part.symbol not in passing), MAX_SHORTCUTS):
        if _is_noticed(candidate, part, tests_of(part.symbol)) is False:
            passing[part.symbol] = f"{part.symbol}, {part.what}"
            if part.is_essential or MOST_UNNOTICED * len(passing) > len(candidate.deletion.removed):
                return TriedParts(len(passing), tuple(passing.values())[::-1], lacks_essential=True)
    chosen: list[LackingPart] = []
    left_s = max(LEAST_S, SUITE_SHARE * bench.expected_s(None))
    num_parts, parts = 0, _parts_of(candidate)
    for num_parts, part in enumerate(parts, start=1):  # noqa: B007
        left_s -= bench.expected_s(tests_of(part.symbol))
        if len(chosen) == MAX_PARTS or left_s < 0:
            break
        chosen.append(part)
    if any(part.is_compiled for part in chosen):
        half = (num_parts + sum(1 for _ in islice(parts, 2 * MAX_COMPILED))) // 2  # each is parsed to be found
        chosen = chosen[: min(MAX_COMPILED, max(FEW_COMPILED, half))]
    if len(chosen) < MIN_PARTS:
        return TriedParts(0, ())
    num_tried, num_lost, unnoticed, lacks_essential = 0, 0, list[str](), False
    essential = {part for part in chosen if _is_essential(candidate, part)}
    allowed, tried = _allowed(chosen), list[LackingPart]()
    for part in chosen:
        is_noticed = _is_noticed(candidate, part, tests_of(part.symbol))
        if is_noticed is None:
            num_lost += 1
            continue
        tried.append(part)
        num_tried = len(tried)
        unnoticed += [] if is_noticed else [f"{part.symbol}, {part.what}"]
        lacks_essential = part in essential and not is_noticed
        essential.discard(part)
        is_few = len(unnoticed) + len(chosen) - num_tried <= allowed and not essential
        if lacks_essential or len(unnoticed) > allowed or is_few:
            break  # more cannot change the answer
    shown = unnoticed[::-1] if lacks_essential else unnoticed  # the last one tells why
    found = TriedParts(num_tried, tuple(shown), _allowed(tried), lacks_essential)  # some may be lost
    return found if 2 * num_lost < len(chosen) else TriedParts(0, ())


def _is_essential(candidate: Candidate, part: LackingPart) -> bool:
    """Whether tests have to notice a part: it says so, or the statement shows a call that gives the parameter."""
    if part.is_essential or not part.parameter:
        return part.is_essential
    given = rf"\b{re.escape(part.parameter)}="
    if part.is_required:
        given += rf"|\b{re.escape(name_in_file(part.symbol).rpartition('.')[2])}\((?!\))"
    shown = re.compile(rf"(?m)^- `[^`\n]*::[^`\n]*`: `[^`\n]*(?:{given})")
    return shown.search(candidate.task.problem_statement) is not None


def _allowed(parts: Sequence[LackingPart]) -> int:
    """How many of the parts may go unnoticed; of two, none if one ends in an error."""
    is_few = len(parts) < MOST_UNNOTICED and not any(part.fails for part in parts)
    num_idle = len(parts) if is_few else sum(part.may_be_idle for part in parts)
    return (num_idle * MOST_UNNOTICED + (len(parts) - num_idle) * MOST_IDLE) // (MOST_IDLE * MOST_UNNOTICED)


def _is_noticed(candidate: Candidate, part: LackingPart, ids: list[str]) -> bool | None:
    """Whether one of the tests fails without a part; ``None`` if the run itself failed, or nothing was compiled."""
    source = candidate.bench.codebase.modules[part.path].source
    edits = {part.path: source[: part.start] + part.replacement + source[part.end :]}
    run = candidate.bench.run(edits, ids=ids, forked=True, until_failure=True)
    is_lost = run.worker in {WorkerOutcome.INFRA_ERROR, WorkerOutcome.KILLED}
    if part.is_compiled:
        statuses = run.statuses()
        is_lost = is_lost or all(statuses.get(test, Status.MISSING) is Status.MISSING for test in ids)
    return None if is_lost else bool(not_passing(run, ids))


def _parts_of(candidate: Candidate) -> Iterator[LackingPart]:
    return candidate.bench.editor.lacking_parts(candidate.bench.codebase, _lines_gone(candidate))


def _shortcuts_of(candidate: Candidate) -> Iterator[LackingPart]:
    return candidate.bench.editor.shortcuts(candidate.bench.codebase, _lines_gone(candidate))


def _lines_gone(candidate: Candidate) -> dict[str, frozenset[int]]:
    """Path to the lines of the removed definitions; of parts of functions, those that the patch takes."""
    deletion, symbols = candidate.deletion, candidate.bench.codebase.symbols()
    lost = (symbols.get(symbol) for symbol in candidate.trees.lost_symbols())
    own: dict[str, frozenset[int]] = defaultdict(frozenset)
    for symbol in (each for each in lost if each is not None):
        own[symbol.path] |= frozenset(range(symbol.start_line, symbol.end_line + 1))
    if deletion.deleter in WHOLE:
        return own
    removed: dict[str, frozenset[int]] = defaultdict(frozenset)
    for file in parse_patch(deletion.source_patch):
        for change in changes_of(file):
            removed[file.path] |= frozenset(range(change.first + 1, change.first + 1 + len(change.before)))
    return {path: lines & own[path] for path, lines in removed.items()}
