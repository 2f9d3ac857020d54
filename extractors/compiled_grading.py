"""What graders of compiled languages share: a supervisor in the sandbox builds and runs tests, and signs its report."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from excise.extractors.grading_without_calls import GradingWithoutCalls
from excise.extractors.reported_texts import as_json, judged, what_is_reported
from excise.extractors.test_reports.runner_program import PYTHON, REPO
from excise.extractors.test_reports.signed_report import graded_results, signed_report
from excise.protocols import GradedRun, GradedRunRequest, GradingMode, ReportedValues, Session
from excise.types import Recipe, TestRun, WorkerOutcome


@dataclass(frozen=True, slots=True)
class Supervisor:
    """The program that runs graded tests."""

    file: str
    """Name of its file at ``/excise/inside``."""
    root: Callable[[Recipe], str] = lambda _: REPO
    """The checkout in the sandbox, as tests see it."""


class CompiledGrading(GradingWithoutCalls):
    """A part of :class:`excise.protocols.Grading`: no run is forked, and reported values must be the original's.

    No test is divided, unless a language does it.
    """

    supervisor: Supervisor

    def mode(self, root: Path, environment: Path) -> GradingMode:  # noqa: ARG002
        """The only mode: tests are compiled, and only their results are believed."""
        return GradingMode(strict=False, sealed=False)

    def numbered(self, test: str) -> str:
        """The id in runs of the test that is numbered so in runs of lifted tests."""
        return test

    def reported(self, values: str) -> ReportedValues:
        """A digest of the values: they are compared as they are."""
        return what_is_reported(values)

    def run_graded(self, session: Session, recipe: Recipe, request: GradedRunRequest) -> GradedRun:
        """Start the supervisor in the sandbox and accept only its signed report; a judging run starts nothing."""
        lifted = request.lifted
        if lifted is not None and lifted.seen is not None:
            run = TestRun(worker=WorkerOutcome.OK, results=judged(lifted), finished=True)
            return GradedRun(run=run, numbered={test: self.numbered(test) for test in lifted.seen})
        ids = {test if lifted is None else self.numbered(test): test for test in request.ids}
        key = secrets.token_hex(32)
        body = {
            "key": key,
            "root": self.supervisor.root(recipe),
            "ids": list(ids),
            "canaries": dict(request.canaries),
            "timeout_s": request.timeout_s,
            "test_timeout_s": request.test_timeout_s,
            "times_observed": 0 if lifted is None else 2 if lifted.is_repeated else 1,
        }
        command = (PYTHON, "-I", "-S", f"/excise/inside/{self.supervisor.file}")
        stdin = json.dumps(body).encode()
        done = session.exec(command, timeout_s=request.timeout_s + 60, stdin=stdin, env=dict(recipe.env))
        report = signed_report(done.stdout, key)
        seen = {}
        for entry in (report or {}).get("results", ()):
            if lifted is not None and isinstance(entry.get("reported"), dict):
                test = str(entry["id"])
                seen[ids.get(test, test)] = as_json(entry["reported"])
        return GradedRun(run=graded_results(done, report, (*ids, *request.canaries)), seen=seen)
