"""Run pytest in a sandbox session and read its structured report.

The report is a file that ``inside/excise_run.py`` writes; terminal output is not parsed.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from excise.extractors.test_reports.executed_code import Executed
from excise.extractors.test_reports.report import read_report, to_test_run
from excise.protocols import Completed, ForkServer, PlainRun, Session, Start, TestRunRequest
from excise.types import Recipe, TestRun

INSIDE = Path(__file__).resolve().parents[1] / "inside"
"""Folder of the programs that run in the sandbox; mounted at ``/excise/inside``."""
_PLAIN = "--assert=plain"
"""Argument of pytest that leaves the assertions of edited test files as they are; to rewrite them takes longest."""
_PROGRAM = "excise_run.py"
_REPO, _ENV, _OUT = "/testbed", "/opt/env", "/excise/out"


def run_command(recipe: Recipe, start: Start = Start.FRESH) -> ForkServer:
    """The command of a test run that begins like this."""
    env = {"PYTHONPYCACHEPREFIX": "/excise/outputs", **dict(recipe.env)}
    program: tuple[str, ...] = (f"/excise/inside/{_PROGRAM}",)
    if start is Start.COLLECTED:
        suite = {"root": _REPO, "args": list(recipe.test_args), "paths": list(recipe.test_paths)}
        program = ("/excise/inside/excise_collected.py", json.dumps(suite))
    return ForkServer(argv=(f"{_ENV}/bin/python", *program), env=env)


def request_run(
    session: Session,
    recipe: Recipe,
    *,
    timeout_s: float,
    start: Start = Start.FRESH,
    explained: bool = True,
    **request: Any,
) -> tuple[Completed, Path]:
    """Run ``excise_run.py`` with a request; return the completed command and the report's path on the host."""
    name = f"report-{uuid.uuid4().hex}.jsonl"
    body = {
        "report": f"{_OUT}/{name}",
        "root": _REPO,
        "args": [*recipe.test_args, *([] if explained else [_PLAIN])],
        "paths": list(recipe.test_paths),
        "packages": list(recipe.packages),
        "tools": "/excise/tools",
        **request,
    }
    command = run_command(recipe, start)
    done = session.exec(command.argv, timeout_s=timeout_s, stdin=json.dumps(body).encode(), env=command.env)
    return done, session.out / name


_MARK = "INTERNALERROR>"
"""What pytest writes before the lines of a traceback of its own."""
_RAISED = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:: .*)?$")
"""The line of a traceback with the exception."""
_PLACE = re.compile(rf'File "{re.escape(_REPO)}/([^"\n]+)", line (\d+)')


def plain_run(recipe: Recipe, ids: Sequence[str], test_timeout_s: float) -> PlainRun:
    """See :meth:`excise.protocols.Language.plain_run`."""
    return PlainRun(
        program=_PROGRAM,
        files={name: (INSIDE / name).read_bytes() for name in (_PROGRAM, "excise_guard.py")},
        shared=(),
        request={
            "root": _REPO,
            "args": list(recipe.test_args),
            "paths": list(recipe.test_paths),
            "packages": [],
            "ids": list(ids),
            "test_timeout_s": test_timeout_s,
        },
        settings=("conftest.py", "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg"),
    )


def run_tests(session: Session, recipe: Recipe, request: TestRunRequest) -> TestRun:
    """See :meth:`excise.protocols.Language.run_tests`."""
    wanted = None if request.ids is None else list(request.ids)
    done, report = request_run(
        session,
        recipe,
        timeout_s=request.timeout_s,
        start=request.start,
        ids=wanted,
        without=list(request.excluded),
        shuffle_seed=request.shuffle_seed,
        load_stress=request.load_stress,
        test_timeout_s=request.test_timeout_s,
        explained=request.explained,
        program_timeout_s=request.program_timeout_s,
        executed=request.executed,
        until_failure=request.until_failure,
    )
    tests = wanted if request.program_timeout_s is None else None
    run = to_test_run(done, read_report(report), tests, Executed() if request.executed else None)
    return replace(run, detail=internal_error(run.detail) or run.detail)


def internal_error(output: str) -> str:
    """What ended pytest itself, where its output ends with the traceback: the exception, and the last place of the
    project in it; else empty."""
    lines = [line.removeprefix(_MARK).strip() for line in output.splitlines() if line.startswith(_MARK)]
    raised = [line for line in lines if _RAISED.match(line)]
    places = [match for line in lines if (match := _PLACE.search(line))]
    if not raised:
        return ""
    where = f" ({places[-1][1]}, line {places[-1][2]})" if places else ""
    return f"pytest ended with an error before it ran the tests: {raised[-1]}{where}"
