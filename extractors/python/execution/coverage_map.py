"""Map coverage: from lines of the code that each test executes to the symbols that it executes."""

from __future__ import annotations

import json
from dataclasses import replace

from excise.extractors.python.execution.pytest_runner import request_run
from excise.extractors.test_reports.executed_code import Executed
from excise.extractors.test_reports.executed_symbols import LineLookup, to_map
from excise.extractors.test_reports.report import COMPLETE, read_report, require_coverage_end, to_result, worse
from excise.protocols import CoveragePass, CoverageRequest, Session
from excise.types import Recipe, TestResult

MAX_PATTERNS = 1000
"""Maximum number of regular expressions that are compiled before tests are forked."""


class _Pass:
    """What the report says of one pass over the tests."""

    def __init__(self, other: _Pass | None = None) -> None:
        self.executed: Executed = Executed(other.executed if other else None)
        self.results: dict[str, TestResult] = {}


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
        elif entry["t"] == "warm_up":
            warm_up = json.dumps(entry.get("data"))
        elif entry["t"] == "end":
            finished = entry.get("exit") in COMPLETE
    require_coverage_end(done, finished=finished)
    cpu_s = done.cpu_s / len(passes)
    found = []
    for each in passes:
        code = replace(each.executed.code(), at_import=tuple(first.executed.at_import))
        statuses = {test: result.status for test, result in each.results.items()}
        found.append(CoveragePass(to_map(codebase, request.env_id, code, each.results, cpu_s), statuses, warm_up))
    return tuple(found)


def _patterns(warm_up: str) -> list[list[object]]:
    """The regular expressions and their flags that an earlier pass reported; it is data from an untrusted process."""
    found = json.loads(warm_up) if warm_up else []
    if not isinstance(found, list):
        return []
    sound = (each for each in found if isinstance(each, list) and list(map(type, each)) == [str, int])
    return list(sound)[:MAX_PATTERNS]
