"""A program in the sandbox that runs tests and reports what they do; for languages that compile.

It gets a request as JSON on standard input, and writes a report with the entries ``test``, ``lines`` and ``end``.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from excise.extractors.test_reports.executed_code import Executed
from excise.extractors.test_reports.executed_symbols import LineLookup, to_map
from excise.extractors.test_reports.report import COMPLETE, read_report, require_coverage_end, to_result, to_test_run
from excise.protocols import Completed, CoveragePass, CoverageRequest, PlainRun, Session, TestRunRequest
from excise.types import Recipe, TestResult, TestRun

PYTHON = "/opt/env/bin/python"
"""The interpreter of excise's own programs in a sandbox."""
REPO = "/testbed"
"""The checkout in the sandbox."""
_OUT = "/excise/out"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerProgram:
    """Runs the tests of one language."""

    file: str
    """Name of the program's file at ``/excise/inside``."""
    folder: Path
    """The folder that is ``/excise/inside``."""
    modules: tuple[str, ...]
    """Names of the files there that the program imports."""
    shared: tuple[str, ...]
    """Names of the files that it imports from ``/excise/shared``."""
    settings: tuple[str, ...]
    """See :attr:`excise.protocols.PlainRun.settings`."""
    root: Callable[[Recipe], str] = lambda _: REPO
    """The checkout in the sandbox, as tests see it."""

    def run_tests(self, session: Session, recipe: Recipe, request: TestRunRequest) -> TestRun:
        """See :meth:`excise.protocols.Language.run_tests`."""
        done, report = self._run(
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

    def plain_run(self, recipe: Recipe, ids: Sequence[str], *, test_timeout_s: float) -> PlainRun:
        """See :meth:`excise.protocols.Language.plain_run`."""
        return PlainRun(
            program=self.file,
            files={name: (self.folder / name).read_bytes() for name in (self.file, *self.modules)},
            shared=self.shared,
            request={"root": self.root(recipe), "ids": list(ids), "test_timeout_s": test_timeout_s},
            settings=self.settings,
        )

    def coverage_pass(
        self, session: Session, recipe: Recipe, codebase: LineLookup, request: CoverageRequest, *, reverse: bool = False
    ) -> CoveragePass:
        """Map the tests to what they execute in one pass, in the reverse order if ``reverse``.

        Raises :class:`EnvironmentFailure` (``timeout``, ``collect_error``) when the run does not reach its end.
        """
        done, report = self._run(
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
        require_coverage_end(done, finished=finished)
        coverage = to_map(codebase, request.env_id, executed.code(), results, done.cpu_s)
        return CoveragePass(coverage, {test: result.status for test, result in results.items()})

    def _run(self, session: Session, recipe: Recipe, timeout_s: float, **request: Any) -> tuple[Completed, Path]:
        """Run the program with a request; return the completed command and the report's path on the host."""
        name = f"report-{uuid.uuid4().hex}.jsonl"
        body = {"report": f"{_OUT}/{name}", "root": self.root(recipe), **request}
        command = [PYTHON, f"/excise/inside/{self.file}"]
        done = session.exec(command, timeout_s=timeout_s, stdin=json.dumps(body).encode(), env=dict(recipe.env))
        return done, session.out / name
