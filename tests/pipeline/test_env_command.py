"""``excise env``: its output, files and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from excise.pipeline.services.examine_source import ExaminedSource, report_as_record, report_as_text
from excise.types import Baseline, Status

REPOS = Path(__file__).resolve().parents[1] / "repos"


def test_a_verified_source(shapes, excise, tmp_path: Path) -> None:
    arguments = ["--cache", shapes.cache, "--config", shapes.config]
    done = excise("env", REPOS / "shapes", *arguments, "--dockerfile", tmp_path / "image/Dockerfile")
    assert done.returncode == 0, done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    for part in ("interpreter", "requirements  pytest", "41 passed, 2 flaky: 100.0%", "verified", "docker build"):
        assert [line for line in lines if part in line], done.stdout
    assert (tmp_path / "image/Dockerfile").read_text().startswith("# ")
    told = json.loads(excise("env", REPOS / "shapes", *arguments, "--json").stdout)
    assert (told["verified"], told["stage"], told["reason"]) == (True, "baseline", "")
    assert told["tests"] == {"passed": 41, "flaky": 2}
    assert told["environment"]["recipe"]["packages"] == ["shapes"]
    assert not (tmp_path / "excise-out").exists()


def test_a_failure_has_a_class_evidence_and_advice(excise, tmp_path: Path) -> None:
    done = excise("env", REPOS / "notests", "--cache", tmp_path)
    assert done.returncode == 1
    assert "no_tests (environment)" in done.stdout
    assert "What to do: Give the project's git URL" in done.stdout
    told = json.loads(excise("env", tmp_path / "nothing", "--cache", tmp_path, "--json").stdout)
    assert (told["verified"], told["stage"], told["reason"]) == (False, "fetch", "unknown_source")


def test_a_missing_interpreter_is_reported(excise, tmp_path: Path) -> None:
    done = excise("env", REPOS / "shapes", "--cache", tmp_path, "--python", "3.5")
    assert done.returncode == 1
    assert "python_unavailable" in done.stdout


@pytest.mark.parametrize(
    ("statuses", "rate"),
    [({}, 0.0), ({"a": Status.PASSED, "b": Status.FAILED, "c": Status.SKIPPED, "d": Status.XFAIL}, 0.5)],
)
def test_only_tests_that_ran_count(statuses: dict[str, Status], rate: float) -> None:
    said = Baseline(env_id="", statuses=statuses, durations={}, flaky={}, num_runs=3, cpu_s=0, wall_s=0)
    found = ExaminedSource(source="x", verified=True, stage="baseline", baseline=said)
    assert found.pass_rate() == rate
    assert report_as_record(found)["pass_rate"] == rate
    assert (
        report_as_text(ExaminedSource(source="x", verified=False, stage="fetch", reason="r"))
        .splitlines()[1]
        .startswith("r (")
    )
