"""Map coverage: from lines of the code that each test executes to the symbols that it executes."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from excise.errors import EnvironmentFailure
from excise.extractors.python.execution.executed_code import Executed
from excise.extractors.python.execution.pytest_runner import COMPLETE, read_report, request_run, to_result, worse
from excise.protocols import CoveragePass, CoverageRequest, Module, Session
from excise.types import CoverageMap, ExecutedCode, Recipe, Status, TestResult, WorkerOutcome

MAX_PATTERNS = 1000
"""Maximum number of regular expressions that are compiled before tests are forked."""


class LineLookup(Protocol):
    """The methods of a codebase that map lines to symbols."""

    @property
    def modules(self) -> Mapping[str, Module]:
        """Path to parsed file."""
        ...

    def symbols_of_lines(self, path: str, lines: Iterable[int]) -> frozenset[str]:
        """Ids of the symbols that one of the lines belongs to."""
        ...

    def is_one_liner(self, symbol_id: str) -> bool:
        """Whether the function's body begins on the line of its ``def``, which importing the module executes."""
        ...

    def is_test(self, path: str) -> bool:
        """Whether the file belongs to the tests."""
        ...


class _Pass:
    """What the report says of one pass over the tests."""

    def __init__(self, other: _Pass | None = None) -> None:
        self.executed: Executed = Executed(other.executed if other else None)
        self.results: dict[str, TestResult] = {}


def _to_map(
    codebase: LineLookup, env_id: str, executed: ExecutedCode, tests: Iterable[str], cpu_s: float
) -> CoverageMap:
    """The map of one pass over ``tests``."""
    ordered = tuple(sorted(tests))
    symbols = [_symbols(codebase, path, line) for path, line in executed.places]
    by_symbol: dict[str, list[int]] = defaultdict(list)
    for number, test in enumerate(ordered):
        places = (symbols[place] for place in executed.by_test.get(test, ()))
        for symbol in frozenset().union(*places):
            by_symbol[symbol].append(number)
    at_import = frozenset().union(*(symbols[place] for place in executed.at_import))
    return CoverageMap(
        env_id=env_id,
        tests=ordered,
        by_symbol={symbol: tuple(numbers) for symbol, numbers in sorted(by_symbol.items())},
        at_import=tuple(sorted(symbol for symbol in at_import if not codebase.is_one_liner(symbol))),
        cpu_s=cpu_s,
    )


def map_executed(codebase: LineLookup, env_id: str, executed: ExecutedCode, tests: Iterable[str]) -> CoveragePass:
    """See :meth:`excise.protocols.Language.map_executed`."""
    made = _to_map(codebase, env_id, executed, tests, 0.0)
    return CoveragePass(made, dict.fromkeys(made.tests, Status.PASSED))


def map_coverage(
    session: Session, recipe: Recipe, codebase: LineLookup, request: CoverageRequest
) -> tuple[CoveragePass, ...]:
    """See :meth:`excise.protocols.Language.map_coverage`.

    Raises :class:`EnvironmentFailure` (``timeout``, ``collect_error``) when the run does not reach its end.
    """
    done, report = request_run(
        session,
        recipe,
        timeout_s=request.timeout_s,
        ids=None if request.ids is None else list(request.ids),
        map=True,
        omit=[path for path in codebase.modules if codebase.is_test(path)],
        fork=request.fork,
        both_orders=request.both_orders,
        reverse=request.reverse,
        patterns=_patterns(request.warm_up),
        test_timeout_s=request.test_timeout_s,
    )
    first = made = _Pass()
    passes = (first, _Pass(first)) if request.both_orders else (first,)
    finished, warm_up = False, ""
    for entry in read_report(report):
        if entry["t"] == "lines":
            made.executed.add(entry)
        elif entry["t"] == "test":
            result = to_result(entry)
            made.results[result.test_id] = worse(made.results.get(result.test_id), result)
        elif entry["t"] == "reversed":
            made = passes[-1] if entry.get("on") else first
        elif entry["t"] == "patterns":
            warm_up = json.dumps(entry.get("patterns"))
        elif entry["t"] == "end":
            finished = entry.get("exit") in COMPLETE
    if not finished:
        reason = "timeout" if done.worker is WorkerOutcome.TIMEOUT else "collect_error"
        tail = (done.stdout[-1000:] + done.stderr[-1000:]).decode(errors="replace")
        raise EnvironmentFailure(f"The coverage run did not end ({done.worker}): {tail}", reason=reason)
    cpu_s = done.cpu_s / len(passes)
    found = []
    for each in passes:
        code = replace(each.executed.code(), at_import=tuple(first.executed.at_import))
        statuses = {test: result.status for test, result in each.results.items()}
        found.append(CoveragePass(_to_map(codebase, request.env_id, code, each.results, cpu_s), statuses, warm_up))
    return tuple(found)


def _patterns(warm_up: str) -> list[list[object]]:
    """The regular expressions and their flags that an earlier pass reported; it is data from an untrusted process."""
    found = json.loads(warm_up) if warm_up else []
    if not isinstance(found, list):
        return []
    sound = (each for each in found if isinstance(each, list) and list(map(type, each)) == [str, int])
    return list(sound)[:MAX_PATTERNS]


def _symbols(codebase: LineLookup, path: str, line: int) -> frozenset[str]:
    """The symbols of a place, unless it is in a file of tests."""
    return frozenset() if codebase.is_test(path) else codebase.symbols_of_lines(path, [line])
