"""Run pytest in a sandbox session and read its structured report.

The report is a file that ``inside/excise_run.py`` writes; terminal output is not parsed. Programs in the sandbox are
not trusted: the file is opened without following links, and at most :data:`MAX_REPORT_BYTES` of it are read.
"""

from __future__ import annotations

import json
import os
import stat
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from excise.extractors.python.execution.executed_code import Executed
from excise.protocols import Completed, ForkServer, Session, Start, TestRunRequest
from excise.types import Recipe, Status, TestResult, TestRun, WorkerOutcome

INSIDE = Path(__file__).resolve().parents[1] / "inside"
"""Folder of the programs that run in the sandbox; mounted at ``/excise/inside``."""
MAX_REPORT_BYTES = 2 << 30
"""Bytes of a report that are read."""
MAX_LINE_BYTES = 16 << 20
"""Bytes of a report's longest line."""
TAIL = 2000
"""Bytes of the end of stdout and of stderr that are kept for error messages."""
COMPLETE = frozenset({0, 1, 5})
"""Exit codes of pytest after a complete run: all passed, some failed, no tests. Others: interrupted, error."""
_PLAIN = "--assert=plain"
"""Argument of pytest that leaves the assertions of edited test files as they are; to rewrite them takes longest."""
_REPO, _ENV, _OUT = "/testbed", "/opt/env", "/excise/out"


def run_command(recipe: Recipe, start: Start = Start.FRESH) -> ForkServer:
    """The command of a test run that begins like this."""
    env = {"PYTHONPYCACHEPREFIX": "/excise/outputs", **dict(recipe.env)}
    program: tuple[str, ...] = ("/excise/inside/excise_run.py",)
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


def read_bounded(path: Path, limit: int) -> bytes:
    """The content of an untrusted file; empty if it is no regular file, or larger than ``limit`` bytes."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return b""
        data = file.read(limit + 1)
        return data if len(data) <= limit else b""


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
    )
    tests = wanted if request.program_timeout_s is None else None
    return to_test_run(done, read_report(report), tests, Executed() if request.executed else None)


def to_test_run(
    done: Completed, entries: Iterator[dict[str, Any]], wanted: Sequence[str] | None, executed: Executed | None = None
) -> TestRun:
    """The result of a run from its report; tests of ``wanted`` that are not in it are ``MISSING``. ``executed`` takes
    what they executed."""
    results: dict[str, TestResult] = {}
    errors: list[tuple[str, str]] = []
    imported: list[tuple[str, str]] = []
    finished = False
    cpu_s = done.cpu_s
    tail = (done.stdout[-TAIL:] + done.stderr[-TAIL:]).decode(errors="replace")
    for entry in entries:
        kind = entry.get("t")
        if kind == "test":
            result = to_result(entry)
            results[result.test_id] = worse(results.get(result.test_id), result)
        elif kind == "collect_error":
            errors.append((str(entry.get("path")), str(entry.get("message"))))
        elif kind == "imported":
            imported.append((str(entry.get("name")), str(entry.get("file"))))
        elif kind == "lines" and executed is not None:
            executed.add(entry)
        elif kind == "refused":
            tail = str(entry.get("reason"))
        elif kind == "end":
            finished = entry.get("exit") in COMPLETE
            cpu_s = max(cpu_s, _seconds(entry.get("cpu")))
    for test_id in wanted or ():
        if test_id not in results:
            results[test_id] = TestResult(test_id=test_id, status=Status.MISSING)
    worker = done.worker
    if worker is WorkerOutcome.OK and not finished and done.rc < 0:
        worker = WorkerOutcome.KILLED
    return TestRun(
        worker=worker,
        results=tuple(results.values()),
        collect_errors=tuple(dict.fromkeys(errors)),
        imported=tuple(imported),
        finished=finished,
        wall_s=done.wall_s,
        cpu_s=cpu_s,
        detail="" if finished and results else tail,
        executed=executed.code() if executed else None,
    )


def to_result(entry: dict[str, Any]) -> TestResult:
    """The result in a ``test`` line of the report."""
    status = str(entry.get("status"))
    return TestResult(
        test_id=str(entry.get("id")),
        status=Status(status) if status in Status.__members__ else Status.ERROR,
        duration_s=_seconds(entry.get("dur")),
        message=str(entry.get("msg", ""))[:300],
    )


def _seconds(value: object) -> float:
    """A duration in a report; 0 for a value that is no valid duration."""
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e9 else 0.0


_ORDER = (Status.MISSING, Status.PASSED, Status.XFAIL, Status.SKIPPED, Status.FAILED, Status.ERROR)


def worse(first: TestResult | None, second: TestResult) -> TestResult:
    """The worse of two results of one test."""
    if first is None or _ORDER.index(second.status) >= _ORDER.index(first.status):
        return second
    return first
