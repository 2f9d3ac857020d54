"""Reads the report of a test run, a file that a program in the sandbox writes; the same format in every language.

Each line is a JSON object whose ``t`` says what it is:

=================  ==============================================================================================
``t``              other fields
=================  ==============================================================================================
``test``           ``id``, ``status`` (a :class:`Status`), ``dur`` (seconds), ``msg``
``collect_error``  ``path``, ``message``: a file whose tests cannot be found
``imported``       ``name``, ``file``: where a package of the project was loaded from
``lines``          what a test executed, see :class:`~excise.extractors.test_reports.executed_code.Executed`
``warm_up``        ``data``: what the tests left in caches of the language's own library
``refused``        ``reason``: the run needs a process of its own
``end``            ``exit`` (0 all passed, 1 some failed, 5 no tests; others: not complete), ``cpu`` (seconds)
=================  ==============================================================================================

Programs in the sandbox are not trusted: the file is opened without following links, and at most
:data:`MAX_REPORT_BYTES` of it are read.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from excise.errors import EnvironmentFailure
from excise.extractors.test_reports.executed_code import Executed
from excise.protocols import Completed
from excise.types import Status, TestResult, TestRun, WorkerOutcome

MAX_REPORT_BYTES = 2 << 30
"""Bytes of a report that are read."""
MAX_LINE_BYTES = 16 << 20
"""Bytes of a report's longest line."""
TAIL = 2000
"""Bytes of the end of stdout and of stderr that are kept for error messages."""
COMPLETE = frozenset({0, 1, 5})
"""Values of ``exit`` after a complete run: all passed, some failed, no tests. Others: interrupted, error."""


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
        elif kind == "warm_up" and executed is not None:
            executed.warm_up = json.dumps(entry.get("data"))
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
        place=str(entry.get("place", ""))[:300],
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


def require_coverage_end(done: Completed, *, finished: bool) -> None:
    """Raise :class:`EnvironmentFailure` if the report of a coverage run has no end."""
    if not finished:
        reason = "timeout" if done.worker is WorkerOutcome.TIMEOUT else "collect_error"
        tail = (done.stdout[-1000:] + done.stderr[-1000:]).decode(errors="replace")
        raise EnvironmentFailure(f"The coverage run did not end ({done.worker}): {tail}", reason=reason)
