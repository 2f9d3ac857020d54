"""The error boundary of stages: every exception becomes a row."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from excise.config import load
from excise.errors import EnvironmentFailure, SandboxError
from excise.extractors.license_texts import license_of_text
from excise.pipeline.services import examine_source as environment
from excise.pipeline.stages.error_boundary import is_conclusive, stage
from excise.system.commands import run_command
from excise.system.deadline import deadline
from excise.types import Rejection, SourceSpec, WorkerOutcome


@pytest.mark.parametrize(
    ("error", "reason", "kept", "detail"),
    [
        (EnvironmentFailure("No tests.", reason="no_tests"), "no_tests", True, "No tests."),
        (SandboxError("Gone."), "infra_error", False, "Gone."),
        (OSError(28, "No space left"), "infra_error", False, "No space left. Is the disk"),
        (SandboxError("no snapshot: [Errno 28] No space left"), "disk_full", False, "The disk is full; free some "),
        (IndexError("tuple index out of range"), "internal_error", False, "IndexError at "),
    ],
)
def test_every_error_is_a_row(error: Exception, reason: str, kept: bool, detail: str) -> None:
    @stage("fetch")
    def fail(settings: object) -> None:
        raise error

    row = fail(load(), "a-source")
    assert isinstance(row, Rejection)
    assert (row.repo, row.stage, row.reason, is_conclusive(row)) == ("a-source", "fetch", reason, kept)
    assert row.detail.startswith(detail)


def test_a_bug_is_reported_with_its_place_in_our_code() -> None:
    @stage("fetch")
    def fail(settings: object) -> None:
        license_of_text(3)  # type: ignore[arg-type]

    row = fail(load(), "a-source")
    assert isinstance(row, Rejection)
    assert row.detail.startswith("TypeError at extractors/license_texts.py:")


def test_env_ends_without_a_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "fetch", lambda *_, **__: json.loads("no JSON"))
    examined = environment.examine_source(load(cache=tmp_path), SourceSpec(spec="dir:x"))
    assert (examined.verified, examined.stage, examined.reason) == (False, "fetch", "internal_error")
    assert "JSONDecodeError" in examined.detail


def test_a_stage_whose_work_hangs_in_a_command_is_ended() -> None:
    @stage("baseline")
    def hang(settings: object) -> None:
        with deadline(0.5, "The baseline of a project"):
            run_command([sys.executable, "-c", "import time; time.sleep(60)"], timeout_s=60)

    began = time.monotonic()
    row = hang(load(), "a-source")
    assert time.monotonic() - began < 30
    assert isinstance(row, Rejection)
    assert (row.stage, row.reason, row.worker_outcome) == ("baseline", "stage_timeout", WorkerOutcome.TIMEOUT)
    assert row.detail == "The baseline of a project took longer than 0 s."
