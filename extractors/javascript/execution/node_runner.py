"""Run a JavaScript project's tests in a sandbox session and read their structured report.

The report is a file that ``inside/excise_node_run.py`` writes; printed output and exit codes are not read. Programs in
the sandbox are not trusted: the file is opened without following links, and a bounded part of it is read.
"""

from __future__ import annotations

import json
import os
import stat
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from excise.protocols import Completed, Session, TestRunRequest
from excise.types import Recipe, Status, TestResult, TestRun, WorkerOutcome

INSIDE = Path(__file__).resolve().parents[1] / "inside"
"""Folder of the programs that run in the sandbox; mounted at ``/excise/inside``."""
PYTHON = "/opt/env/bin/python"
"""The interpreter of excise's own programs in the sandbox; the project's code runs in node."""
MAX_REPORT_BYTES = 1 << 30
"""Bytes of a report that are read."""
MAX_LINE_BYTES = 16 << 20
"""Bytes of a report's longest line."""
TAIL = 2000
"""Bytes of the end of stdout and of stderr that are kept for error messages."""
_REPO, _OUT = "/testbed", "/excise/out"
_RUN = "/excise/inside/excise_node_run.py"
_ORDER = (Status.MISSING, Status.PASSED, Status.XFAIL, Status.SKIPPED, Status.FAILED, Status.ERROR)


def request_run(session: Session, recipe: Recipe, *, timeout_s: float, **request: Any) -> tuple[Completed, Path]:
    """Run ``excise_node_run.py`` with a request; return the completed command and the report's path on the host."""
    name = f"report-{uuid.uuid4().hex}.jsonl"
    body = {
        "report": f"{_OUT}/{name}",
        "root": _REPO,
        "args": list(recipe.test_args),
        "files": list(recipe.test_paths),
        "timeout_s": timeout_s,
        **request,
    }
    stdin = json.dumps(body).encode()
    command = (PYTHON, "-I", "-S", _RUN)
    done = session.exec(command, timeout_s=timeout_s + 10, stdin=stdin, env=dict(recipe.env))
    return done, session.out / name


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
    return to_test_run(done, read_report(report), wanted)


def read_report(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a report, up to the first that is incomplete (from a killed run) or to the size limit."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        return
    total = 0
    with os.fdopen(fd, "rb") as file:
        while line := file.readline(MAX_LINE_BYTES):
            total += len(line)
            if total > MAX_REPORT_BYTES or not line.endswith(b"\n"):
                return
            try:
                entry = json.loads(line)
            except ValueError:
                return
            if isinstance(entry, dict) and isinstance(entry.get("t"), str):
                yield entry


def to_test_run(done: Completed, entries: Iterator[dict[str, Any]], wanted: Sequence[str] | None) -> TestRun:
    """The result of a run from its report; tests of ``wanted`` that are not in it are ``MISSING``."""
    results: dict[str, TestResult] = {}
    errors: list[tuple[str, str]] = []
    finished, cpu_s = False, done.cpu_s
    for entry in entries:
        kind = entry.get("t")
        if kind == "test":
            result = to_result(entry)
            results[result.test_id] = worse(results.get(result.test_id), result)
        elif kind == "collect_error":
            errors.append((str(entry.get("path")), str(entry.get("message"))))
        elif kind == "end":
            finished = entry.get("exit") == 0
            cpu_s = max(cpu_s, seconds(entry.get("cpu")))
    for test_id in wanted or ():
        if test_id not in results:
            results[test_id] = TestResult(test_id=test_id, status=Status.MISSING)
    worker = done.worker
    if worker is WorkerOutcome.OK and not finished:
        worker = WorkerOutcome.KILLED if done.rc < 0 else WorkerOutcome.TIMEOUT if done.rc == 0 else worker
    tail = (done.stdout[-TAIL:] + done.stderr[-TAIL:]).decode(errors="replace")
    return TestRun(
        worker=worker,
        results=tuple(results.values()),
        collect_errors=tuple(dict.fromkeys(errors)),
        finished=finished,
        wall_s=done.wall_s,
        cpu_s=cpu_s,
        detail="" if finished and results else tail,
    )


def to_result(entry: dict[str, Any]) -> TestResult:
    """The result in a ``test`` line of the report."""
    status = str(entry.get("status"))
    return TestResult(
        test_id=str(entry.get("id")),
        status=Status(status) if status in Status.__members__ else Status.ERROR,
        duration_s=round(seconds(entry.get("dur")), 4),
        message=str(entry.get("msg", ""))[:300],
    )


def seconds(value: object) -> float:
    """A duration in a report; 0 for a value that is no valid duration."""
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e9 else 0.0


def worse(first: TestResult | None, second: TestResult) -> TestResult:
    """The worse of two results of one test."""
    if first is None or _ORDER.index(second.status) >= _ORDER.index(first.status):
        return second
    return first
