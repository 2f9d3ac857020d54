"""Projects that are broken or hostile: each ends with a row and a reason, and does not affect the others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from excise.datasets.taskset import TaskSet
from excise.types import RepoReport

REPOS = Path(__file__).resolve().parents[1] / "repos"
CONFIG = """
limit = 1
workers = 2
[verdict]
baseline_runs = 2
gold_runs = 1
starved_runs = 0
test_timeout_s = 1.0
suite_timeout_s = 120.0
memory_mb = 384
disk_mb = 64
pids = 48
min_pass_rate = 0.4
"""
SOURCES = ("hangs", "forks", "escapes", "notests", "nowhere")
OUTSIDE = ("/etc", "/usr/lib", "/root", "/var/lib", "/opt", "/tmp", "/")


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory, shapes, excise) -> tuple[Path, dict, int]:
    """One run over all of these projects: its set, result and exit code."""
    folder = tmp_path_factory.mktemp("hostile")
    sources = ", ".join(f'"{REPOS / name}"' for name in SOURCES)
    (folder / "excise.toml").write_text(f"sources = [{sources}]\n{CONFIG}")
    done = excise("generate", "-c", folder / "excise.toml", "-o", folder / "out", "--cache", shapes.cache, "--json")
    assert "Traceback" not in done.stderr
    return folder / "out", json.loads(done.stdout), done.returncode


@pytest.fixture(scope="module")
def reports(ended) -> dict[str, RepoReport]:
    return {Path(report.repo).name: report for report in TaskSet.open(ended[0]).reports()}


def test_the_run_ends_with_the_exit_code_of_a_partial_success(ended) -> None:
    _, result, code = ended
    assert code == 3
    assert [Path(source["spec"]).name for source in result["sources"]] == list(SOURCES)
    assert result["tasks"] == 3


@pytest.mark.parametrize(("name", "passing", "tests"), [("hangs", 14, 20), ("forks", 16, 17), ("escapes", 14, 27)])
def test_the_good_tests_of_hostile_projects_make_tasks(ended, reports, name: str, passing: int, tests: int) -> None:
    report = reports[name]
    assert (report.status, report.num_valid) == ("ok", 1), report
    assert (report.num_passing, report.num_tests) == (passing, tests)
    assert report.num_flaky <= 1, "a fork bomb fails in more than one way"
    (task,) = TaskSet.open(ended[0]).tasks(name)
    assert all(test.startswith("tests/test_good.py::") for test in task.fail_to_pass)


def test_a_project_without_tests_has_a_row_with_the_reason(reports) -> None:
    assert reports["notests"].status == "no_tests"
    assert "try its git URL" in reports["notests"].detail


def test_a_missing_source_has_a_row_with_the_reason(reports, ended) -> None:
    assert reports["nowhere"].status == "unknown_source"
    assert "no such file or folder" in reports["nowhere"].detail
    rows = TaskSet.open(ended[0]).rejections()
    assert {(row.stage, row.reason) for row in rows if row.stage in {"fetch", "environment"}} == {
        ("fetch", "unknown_source"), ("environment", "no_tests")
    }  # fmt: skip


def test_installing_and_testing_left_no_trace_on_the_host(ended) -> None:
    for folder in OUTSIDE:
        assert not (Path(folder) / "excise-was-here").exists()
    assert not Path("/tmp/left").exists(), "setup.py makes it in a /tmp of its own"
    for name in SOURCES[:4]:
        assert not list((REPOS / name).rglob("*.egg-info"))
        assert not list((REPOS / name).rglob("__pycache__"))
    assert "planted" not in (REPOS / "escapes" / "tests" / "test_good.py").read_text()


def test_changes_of_set_up_code_in_the_checkout_are_dropped(ended) -> None:
    environment, baseline = TaskSet.open(ended[0]).environment(TaskSet.open(ended[0]).tasks("escapes")[0].env_id)
    assert not any("test_planted_while_installing" in test for test in baseline.durations)
    assert all(".egg-info/" in path for path in environment.built_files)


HANGING_SETUP = "import time\ntime.sleep(600)\n"
DAEMON_SETUP = """
import subprocess
from setuptools import setup
subprocess.Popen(["sleep", "600"], start_new_session=True)
setup()
"""


def test_set_up_code_that_hangs_is_a_row(tmp_path: Path, shapes, excise) -> None:
    for name, text in (("sleeps", HANGING_SETUP), ("stays", DAEMON_SETUP)):
        project = tmp_path / name
        (project / "tests").mkdir(parents=True)
        (project / "setup.py").write_text(text)
        (project / "pyproject.toml").write_text(
            f'[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
            f'[project]\nname = "{name}"\nversion = "1"\n'
        )
        (project / f"{name}.py").write_text("x = 1\n")
        (project / "tests" / "test_x.py").write_text(f"import {name}\ndef test_x():\n    assert {name}.x\n")
    done = excise(
        "generate", tmp_path / "sleeps", tmp_path / "stays", "-o", tmp_path / "out", "--cache", shapes.cache,
        "--set", "verdict.install_timeout_s=20", "--json",
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    sources = json.loads(done.stdout)["sources"]
    assert {source["status"] for source in sources} == {"timeout"}
    assert all("ran out of time" in source["detail"] for source in sources)
