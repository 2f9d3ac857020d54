"""Map coverage: from lines of the code that each test executes to the symbols that it executes."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Protocol

from excise.errors import EnvironmentFailure
from excise.extractors.python.execution.pytest_runner import COMPLETE, read_report, request_run, to_result, worse
from excise.protocols import CoveragePass, CoverageRequest, Module, Session
from excise.types import CoverageMap, Recipe, TestResult, WorkerOutcome

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

    def __init__(self) -> None:
        self.hits: dict[str, set[str]] = defaultdict(set)
        self.results: dict[str, TestResult] = {}

    def coverage(self, env_id: str, at_import: Iterable[str], cpu_s: float) -> CoverageMap:
        """The map of this pass."""
        tests = tuple(sorted(self.results))
        index = {test: number for number, test in enumerate(tests)}
        by_symbol = {
            symbol: tuple(sorted(index[test] for test in found if test in index))
            for symbol, found in sorted(self.hits.items())
        }
        return CoverageMap(env_id=env_id, tests=tests, by_symbol=by_symbol, at_import=tuple(at_import), cpu_s=cpu_s)


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
        patterns=_patterns(request.warm_up),
        test_timeout_s=request.test_timeout_s,
    )
    passes = (_Pass(), _Pass()) if request.both_orders else (_Pass(),)
    made = passes[0]
    at_import: set[str] = set()
    finished, warm_up = False, ""
    for entry in read_report(report):
        if entry["t"] == "lines":
            symbols = _symbols(codebase, entry.get("lines"))
            if entry.get("id"):
                for symbol in symbols:
                    made.hits[symbol].add(str(entry["id"]))
            else:
                at_import |= {s for s in symbols if not codebase.is_one_liner(s)}
        elif entry["t"] == "test":
            result = to_result(entry)
            made.results[result.test_id] = worse(made.results.get(result.test_id), result)
        elif entry["t"] == "reversed":
            made = passes[-1] if entry.get("on") else passes[0]
        elif entry["t"] == "patterns":
            warm_up = json.dumps(entry.get("patterns"))
        elif entry["t"] == "end":
            finished = entry.get("exit") in COMPLETE
    if not finished:
        reason = "timeout" if done.worker is WorkerOutcome.TIMEOUT else "collect_error"
        tail = (done.stdout[-1000:] + done.stderr[-1000:]).decode(errors="replace")
        raise EnvironmentFailure(f"The coverage run did not end ({done.worker}): {tail}", reason=reason)
    cpu_s = done.cpu_s / len(passes)
    return tuple(
        CoveragePass(
            each.coverage(request.env_id, sorted(at_import), cpu_s),
            {test: result.status for test, result in each.results.items()},
            warm_up,
        )
        for each in passes
    )


def _patterns(warm_up: str) -> list[list[object]]:
    """The regular expressions and their flags that an earlier pass reported; it is data from an untrusted process."""
    found = json.loads(warm_up) if warm_up else []
    if not isinstance(found, list):
        return []
    sound = (each for each in found if isinstance(each, list) and list(map(type, each)) == [str, int])
    return list(sound)[:MAX_PATTERNS]


def _symbols(codebase: LineLookup, lines: object) -> set[str]:
    found: set[str] = set()
    for path, numbers in lines.items() if isinstance(lines, dict) else ():
        if isinstance(numbers, list) and not codebase.is_test(path):
            found |= codebase.symbols_of_lines(path, [n for n in numbers if isinstance(n, int)])
    return found
