"""Run a Java project's tests in a sandbox session and read the report of ``inside/excise_java_run.py``."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from excise.errors import EnvironmentFailure
from excise.extractors.test_reports.executed_code import Executed
from excise.extractors.test_reports.executed_symbols import LineLookup, to_map
from excise.extractors.test_reports.report import COMPLETE, read_report, to_result, to_test_run
from excise.protocols import Completed, CoveragePass, CoverageRequest, Session, TestRunRequest
from excise.types import Recipe, TestResult, TestRun, WorkerOutcome

INSIDE = Path(__file__).resolve().parents[1] / "inside"
"""Folder of the programs that run in the sandbox; mounted at ``/excise/inside``."""
PYTHON = "/opt/env/bin/python"
"""The interpreter of these programs."""
REPO = "/testbed"
"""The checkout in the sandbox."""
_OUT = "/excise/out"


def run_tests(session: Session, recipe: Recipe, request: TestRunRequest) -> TestRun:
    """See :meth:`excise.protocols.Language.run_tests`."""
    done, report = _request_run(
        session,
        recipe,
        request.timeout_s,
        ids=None if request.ids is None else list(request.ids),
        without=list(request.excluded),
        shuffle_seed=request.shuffle_seed,
        load_stress=request.load_stress,
        test_timeout_s=request.test_timeout_s,
    )
    return to_test_run(done, read_report(report), request.ids)


def map_coverage(
    session: Session, recipe: Recipe, codebase: LineLookup, request: CoverageRequest
) -> Sequence[CoveragePass]:
    """See :meth:`excise.protocols.Language.map_coverage`. All tests of a pass share one virtual machine.

    Raises :class:`EnvironmentFailure` (``timeout``, ``collect_error``) when the run does not reach its end.
    """
    orders = (False, True) if request.both_orders else (request.reverse,)
    return tuple(_one_pass(session, recipe, codebase, request, reverse=reverse) for reverse in orders)


def _one_pass(
    session: Session, recipe: Recipe, codebase: LineLookup, request: CoverageRequest, *, reverse: bool
) -> CoveragePass:
    done, report = _request_run(
        session,
        recipe,
        request.timeout_s,
        ids=None if request.ids is None else list(request.ids),
        map=True,
        reverse=reverse,
        test_timeout_s=request.test_timeout_s,
    )
    executed, results, finished = Executed(), dict[str, TestResult](), False
    for entry in read_report(report):
        if entry["t"] == "lines":
            executed.add(entry)
        elif entry["t"] == "test":
            result = to_result(entry)
            results[result.test_id] = result
        elif entry["t"] == "end":
            finished = entry.get("exit") in COMPLETE
    if not finished or not results:
        reason = "timeout" if done.worker is WorkerOutcome.TIMEOUT else "collect_error"
        tail = (done.stdout[-1000:] + done.stderr[-1000:]).decode(errors="replace")
        raise EnvironmentFailure(f"The coverage run did not end ({done.worker}): {tail}", reason=reason)
    coverage = to_map(codebase, request.env_id, executed.code(), results, done.cpu_s)
    return CoveragePass(coverage, {test: result.status for test, result in results.items()})


def _request_run(session: Session, recipe: Recipe, timeout_s: float, **request: Any) -> tuple[Completed, Path]:
    """Run ``excise_java_run.py`` with a request; return the completed command and the report's path on the host."""
    name = f"report-{uuid.uuid4().hex}.jsonl"
    body = {"report": f"{_OUT}/{name}", "root": REPO, **request}
    command = [PYTHON, "/excise/inside/excise_java_run.py"]
    done = session.exec(command, timeout_s=timeout_s, stdin=json.dumps(body).encode(), env=dict(recipe.env))
    return done, session.out / name
