"""The report of a graded run: one line on standard output, signed with a key that no code of the project has seen."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from excise.extractors.test_reports.report import to_result, worse
from excise.protocols import Completed
from excise.types import Status, TestResult, TestRun

MAX_REPORT = 256 << 20
"""Maximum number of bytes of a report."""


def signed_report(stdout: bytes, key: str) -> dict[str, Any] | None:
    """The report in the line with a valid signature; ``None`` if there is none. Other lines are ignored."""
    for line in stdout.split(b"\n"):
        code, _, body = line.partition(b" ")
        if hmac.compare_digest(code, hmac.new(key.encode(), body, hashlib.sha256).hexdigest().encode()):
            try:
                found = json.loads(zlib.decompressobj().decompress(base64.b64decode(body), MAX_REPORT))
            except (ValueError, zlib.error, RecursionError):
                continue
            return found if isinstance(found, dict) else None
    return None


def graded_results(
    done: Completed, report: Mapping[str, Any] | None, tests: Iterable[str], *, is_complete: bool = True
) -> TestRun:
    """The results that a signed report has; of ``tests`` without one, ``MISSING``. The worse of two results counts.

    ``is_complete``: whether the run may count as finished if the report says so.
    """
    results: dict[str, TestResult] = {}
    for entry in (report or {}).get("results", ()):
        if isinstance(entry, dict):
            result = to_result(entry)
            results[result.test_id] = worse(results.get(result.test_id), result)
    for test in tests:
        results.setdefault(test, TestResult(test_id=test, status=Status.MISSING))
    return TestRun(
        worker=done.worker,
        results=tuple(results.values()),
        finished=bool(report and report.get("finished") and is_complete),
        wall_s=done.wall_s,
        cpu_s=done.cpu_s,
        detail=str(report.get("why", ""))[:300] if report else "The report is missing, or is not the grader's.",
    )
