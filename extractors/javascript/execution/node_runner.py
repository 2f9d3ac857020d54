"""Run a JavaScript project's tests in a sandbox session and read their structured report.

The report is a file that ``inside/excise_node_run.py`` writes; printed output and exit codes are not read.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from excise.extractors.test_reports.report import read_report, to_test_run
from excise.protocols import Completed, PlainRun, Session, TestRunRequest
from excise.types import Recipe, TestRun, WorkerOutcome

INSIDE = Path(__file__).resolve().parents[1] / "inside"
"""Folder of the programs that run in the sandbox; mounted at ``/excise/inside``."""
PYTHON = "/opt/env/bin/python"
"""The interpreter of excise's own programs in the sandbox; the project's code runs in node."""
RUNNER, MOCHA = "runner=", "mocha:"
"""Beginnings of words of ``Recipe.test_args``."""
_REPO, _OUT = "/testbed", "/excise/out"
_PROGRAM = "excise_node_run.py"
_RUN = f"/excise/inside/{_PROGRAM}"
SETTINGS = (
    "package.json", ".mocharc*", "jest.config*", "vitest.*", "vite.config*", "babel.config*", ".babelrc*", "tsconfig*",
    ".swcrc*", "*.snap", "tap-snapshots/*", "*/tap-snapshots/*", "node_modules/*",
)  # fmt: skip
"""Patterns for names and paths of files that say how tests run."""


def request_run(session: Session, recipe: Recipe, *, timeout_s: float, **request: Any) -> tuple[Completed, Path]:
    """Run ``excise_node_run.py`` with a request; return the completed command and the report's path on the host."""
    name = f"report-{uuid.uuid4().hex}.jsonl"
    body = {
        "report": f"{_OUT}/{name}",
        "root": _REPO,
        **runner_options(recipe),
        "files": list(recipe.test_paths),
        "timeout_s": timeout_s,
        **request,
    }
    stdin = json.dumps(body).encode()
    command = (PYTHON, "-I", "-S", _RUN)
    done = session.exec(command, timeout_s=timeout_s + 10, stdin=stdin, env=dict(recipe.env))
    return done, session.out / name


def plain_run(recipe: Recipe, ids: Sequence[str], timeout_s: float, test_timeout_s: float) -> PlainRun:
    """See :meth:`excise.protocols.Language.plain_run`."""
    hooks = [*INSIDE.glob("*.cjs"), *INSIDE.glob("*.mjs")]
    return PlainRun(
        program=_PROGRAM,
        files={path.name: path.read_bytes() for path in [INSIDE / _PROGRAM, *sorted(hooks)]},
        shared=(),
        request={
            "root": _REPO,
            "ids": list(ids),
            **runner_options(recipe),
            "files": list(recipe.test_paths),
            "timeout_s": timeout_s,
            "test_timeout_s": test_timeout_s,
        },
        settings=SETTINGS,
    )


def runner_options(recipe: Recipe) -> dict[str, Any]:
    """How tests are run: in ``Recipe.test_args``, ``runner=NAME`` is the test runner, ``mocha:WORD`` is a word of its
    command line, and all others are options of node.
    """
    found: dict[str, Any] = {"runner": "node", "args": [], "mocha": []}
    for word in recipe.test_args:
        if word.startswith(RUNNER):
            found["runner"] = word.removeprefix(RUNNER)
        elif word.startswith(MOCHA):
            found["mocha"].append(word.removeprefix(MOCHA))
        else:
            found["args"].append(word)
    return found


def run_tests(session: Session, recipe: Recipe, request: TestRunRequest) -> TestRun:
    """See :meth:`excise.protocols.Language.run_tests`."""
    wanted = None if request.ids is None else list(request.ids)
    done, report = request_run(
        session,
        recipe,
        timeout_s=request.timeout_s,
        ids=wanted,
        without=list(request.excluded),
        shuffle_seed=request.shuffle_seed,
        load_stress=request.load_stress,
        test_timeout_s=request.test_timeout_s,
    )
    run = to_test_run(done, read_report(report), wanted)
    if run.worker is WorkerOutcome.OK and not run.finished and done.rc == 0:
        return replace(run, worker=WorkerOutcome.TIMEOUT)  # the supervisor itself ended in time, with tests left
    return run
