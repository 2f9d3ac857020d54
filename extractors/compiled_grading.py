"""What graders of compiled languages share: a supervisor in the sandbox builds and runs tests, and signs its report."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from excise.extractors.grading_without_calls import GradingWithoutCalls
from excise.extractors.test_reports.runner_program import PYTHON, REPO
from excise.extractors.test_reports.signed_report import graded_results, signed_report
from excise.protocols import ForkServer, GradedRun, GradedRunRequest, GradingMode, LiftedTests, Session
from excise.types import Recipe


@dataclass(frozen=True, slots=True)
class Supervisor:
    """The program that runs graded tests."""

    file: str
    """Name of its file at ``/excise/inside``."""
    root: Callable[[Recipe], str] = lambda _: REPO
    """The checkout in the sandbox, as tests see it."""


class CompiledGrading(GradingWithoutCalls):
    """A part of :class:`excise.protocols.Grading`: no test is divided, and none is forked."""

    supervisor: Supervisor

    def mode(self, root: Path, environment: Path) -> GradingMode:  # noqa: ARG002
        """The only mode: tests are compiled, and only their results are believed."""
        return GradingMode(strict=False, sealed=False)

    def lifted(self, source: bytes, functions: Collection[str], depending: Collection[str]) -> LiftedTests | None:  # noqa: ARG002
        """None is divided."""
        return LiftedTests(observing=b"", judging=b"", functions=(), refused=dict.fromkeys(functions, "compiled test"))

    def run_server(self, recipe: Recipe, request: GradedRunRequest) -> ForkServer:  # noqa: ARG002
        """The command of a graded run; it is never forked."""
        argv = (PYTHON, "-I", "-S", f"/excise/inside/{self.supervisor.file}")
        return ForkServer(argv=argv, env=dict(recipe.env))

    def run_graded(self, session: Session, recipe: Recipe, request: GradedRunRequest) -> GradedRun:
        """Start the supervisor in the sandbox and accept only its signed report."""
        key = secrets.token_hex(32)
        body = {
            "key": key,
            "root": self.supervisor.root(recipe),
            "ids": list(request.ids),
            "canaries": dict(request.canaries),
            "timeout_s": request.timeout_s,
            "test_timeout_s": request.test_timeout_s,
        }
        server = self.run_server(recipe, request)
        stdin = json.dumps(body).encode()
        done = session.exec(server.argv, timeout_s=request.timeout_s + 60, stdin=stdin, env=server.env)
        report = signed_report(done.stdout, key)
        return GradedRun(run=graded_results(done, report, (*request.ids, *request.canaries)))
