"""The log of a run: JSON lines in its folder, quiet without one, and on stderr when asked for."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from excise.system.run_log import run_log

logger = logging.getLogger("excise.somewhere")


def test_events_are_lines_of_json_in_the_runs_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with run_log(tmp_path) as path:
        logger.info("stage ended", extra={"source": "pypi:x", "stage": "find", "seconds": 1.5, "path": Path("/a")})
        try:
            raise ValueError("odd")
        except ValueError:
            logger.exception("bug")
    logger.warning("after the run")
    assert path.parent == tmp_path / "logs"
    first, second = map(json.loads, path.read_text().splitlines())
    assert first.pop("time").endswith("+00:00")
    assert first == {
        "level": "info",
        "logger": "excise.somewhere",
        "event": "stage ended",
        "source": "pypi:x",
        "stage": "find",
        "seconds": 1.5,
        "path": "/a",
    }
    assert (second["level"], second["event"]) == ("error", "bug")
    assert "ValueError: odd" in second["traceback"]
    assert capsys.readouterr().err == ""


def test_they_are_on_stderr_too_when_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with run_log(tmp_path, verbose=True):
        logger.info("run begun")
    assert json.loads(capsys.readouterr().err)["event"] == "run begun"


def test_worker_processes_log_to_files_of_their_own(tmp_path: Path) -> None:
    code = (
        "import logging; from excise.system.run_log import join_run_log; join_run_log()\n"
        "logging.getLogger('excise.y').info('request retried', extra={'attempt': 2})"
    )
    with run_log(tmp_path) as path:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    (worker,) = (file for file in path.parent.iterdir() if file != path)
    assert worker.name.startswith(f"{path.stem}-worker-")
    line = json.loads(worker.read_text())
    assert (line["event"], line["attempt"], line["level"]) == ("request retried", 2, "info")
    assert done.stderr == path.read_text() == ""


def test_a_folder_that_cannot_be_written_costs_no_run(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file in the way")
    with run_log(tmp_path):
        logger.info("run begun")


def test_a_library_that_nobody_set_up_is_quiet() -> None:
    code = "import logging, excise; logging.getLogger('excise.x').error('loud')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
