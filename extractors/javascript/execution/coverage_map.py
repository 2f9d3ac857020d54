"""Map coverage: from the functions that V8 saw running in each test to the symbols that the test executes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from excise.errors import EnvironmentFailure
from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.extractors.javascript.execution.node_runner import request_run
from excise.extractors.test_reports.report import read_report, to_result, worse
from excise.protocols import CoveragePass, CoverageRequest, Session
from excise.types import CoverageMap, Recipe, TestResult, WorkerOutcome, holders_of_test


def map_coverage(
    session: Session, recipe: Recipe, codebase: JavaScriptCodebase, request: CoverageRequest
) -> tuple[CoveragePass, ...]:
    """See :meth:`excise.protocols.Language.map_coverage`: one process per test file, tests in their order.

    For both orders, the second pass runs the files in reverse order; within a file, tests keep theirs.
    Raises :class:`EnvironmentFailure` (``timeout``, ``collect_error``) when the run does not reach its end.
    """
    orders = (False, True) if request.both_orders else (request.reverse,)
    return tuple(_one_pass(session, recipe, codebase, request, reverse) for reverse in orders)


def _one_pass(
    session: Session, recipe: Recipe, codebase: JavaScriptCodebase, request: CoverageRequest, reverse: bool
) -> CoveragePass:
    done, report = request_run(
        session,
        recipe,
        timeout_s=request.timeout_s,
        ids=None if request.ids is None else list(request.ids),
        map=True,
        reverse=reverse,
        test_timeout_s=request.test_timeout_s,
    )
    executed = _Executed(codebase)
    if not executed.read(read_report(report)):
        reason = "timeout" if done.worker is WorkerOutcome.TIMEOUT or done.rc == 0 else "collect_error"
        tail = (done.stdout[-1000:] + done.stderr[-1000:]).decode(errors="replace")
        raise EnvironmentFailure(f"The coverage run did not end ({done.worker}): {tail}", reason=reason)
    statuses = {test: result.status for test, result in executed.results.items()}
    return CoveragePass(executed.to_map(request.env_id, done.cpu_s), statuses)


class _Executed:
    """What the report of one pass says."""

    def __init__(self, codebase: JavaScriptCodebase) -> None:
        self.codebase = codebase
        self.results: dict[str, TestResult] = {}
        self.places: dict[int, frozenset[str]] = {}
        self.by_test: dict[str, set[str]] = defaultdict(set)
        self.at_load: set[str] = set()

    def read(self, entries: Iterator[dict[str, Any]]) -> bool:
        """Read all lines; return whether the run reached its end."""
        finished = False
        for entry in entries:
            kind = entry["t"]
            if kind == "place":
                self.places[entry["n"]] = self._symbols(entry)
            elif kind == "cover":
                numbers = [n for n in entry.get("places", ()) if n in self.places]
                symbols = frozenset().union(*(self.places[n] for n in numbers))
                if entry.get("id") is None:
                    self.at_load |= symbols
                else:
                    self.by_test[str(entry["id"])] |= symbols
            elif kind == "test":
                result = to_result(entry)
                self.results[result.test_id] = worse(self.results.get(result.test_id), result)
            elif kind == "end":
                finished = entry.get("exit") == 0
        return finished

    def _symbols(self, place: dict[str, Any]) -> frozenset[str]:
        path, start, end = str(place.get("path")), place.get("start"), place.get("end")
        if self.codebase.is_test(path) or not isinstance(start, int) or not isinstance(end, int):
            return frozenset()
        return self.codebase.symbols_of_function(path, start, end)

    def to_map(self, env_id: str, cpu_s: float) -> CoverageMap:
        """The map of the tests that reported; code that a block around a test ran counts for the test, too."""
        ordered = tuple(sorted(self.results))
        by_symbol: dict[str, list[int]] = defaultdict(list)
        for number, test in enumerate(ordered):
            for symbol in self.by_test.get(test, set()).union(*self._around(test)):
                by_symbol[symbol].append(number)
        return CoverageMap(
            env_id=env_id,
            tests=ordered,
            by_symbol={symbol: tuple(numbers) for symbol, numbers in sorted(by_symbol.items())},
            at_import=tuple(sorted(self.at_load)),
            cpu_s=cpu_s,
        )

    def _around(self, test: str) -> Iterator[set[str]]:
        for holder in holders_of_test(test)[1:]:
            yield self.by_test.get(holder, set())
