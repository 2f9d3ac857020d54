"""Host side of a graded pytest run: starts ``inside/excise_grade_supervisor.py`` and accepts only its signed report."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from typing import Any

from excise.extractors.python.execution.pytest_runner import COMPLETE, to_result, worse
from excise.protocols import GradedRun, GradedRunRequest, Session
from excise.types import Recipe, Status, TestResult, TestRun

_PYTHON = "/opt/env/bin/python"
_SUPERVISOR = "/excise/inside/excise_grade_supervisor.py"


def run_graded(session: Session, recipe: Recipe, request: GradedRunRequest) -> GradedRun:
    """See :meth:`excise.protocols.Grading.run_graded`."""
    key = secrets.token_hex(32)
    body = {
        "key": key,
        "python": _PYTHON,
        "root": "/testbed",
        "args": list(recipe.test_args),
        "ids": list(request.ids),
        "canaries": dict(request.canaries),
        "sealed": dict(request.sealed),
        "ini": request.mode.ini,
        "plugins": list(request.mode.plugins),
        "safe_path": request.mode.safe_path,
        "timeout_s": request.timeout_s,
        "test_timeout_s": request.test_timeout_s,
    }
    variables = {"PYTHONPYCACHEPREFIX": "/excise/pyc", "PYTHONDONTWRITEBYTECODE": "1", **dict(recipe.env)}
    command = [_PYTHON, "-I", "-S", _SUPERVISOR]
    done = session.exec(command, timeout_s=request.timeout_s + 60, stdin=json.dumps(body).encode(), env=variables)
    report = _signed_report(done.stdout, key)
    entries = report.get("results", ()) if report else ()
    results: dict[str, TestResult] = {}
    for entry in entries:
        if isinstance(entry, dict):
            result = to_result(entry)
            results[result.test_id] = worse(results.get(result.test_id), result)
    for test in (*request.ids, *request.canaries):
        results.setdefault(test, TestResult(test_id=test, status=Status.MISSING))
    run = TestRun(
        worker=done.worker,
        results=tuple(results.values()),
        finished=bool(report and report.get("finished") and report.get("code") in COMPLETE),
        wall_s=done.wall_s,
        cpu_s=done.cpu_s,
        detail=str(report.get("why", ""))[:300] if report else "The report is missing, or is not the grader's.",
    )
    return GradedRun(run=run, changed=tuple(str(name)[:200] for name in (report or {}).get("changed", ())[:100]))


def _signed_report(stdout: bytes, key: str) -> dict[str, Any] | None:
    """The report in the line with a valid signature; ``None`` if there is none. Other lines are ignored."""
    for line in stdout.split(b"\n"):
        code, _, body = line.partition(b" ")
        if hmac.compare_digest(code, hmac.new(key.encode(), body, hashlib.sha256).hexdigest().encode()):
            try:
                found = json.loads(body)
            except ValueError:
                continue
            return found if isinstance(found, dict) else None
    return None
