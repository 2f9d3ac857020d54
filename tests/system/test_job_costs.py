"""What a job costs: own time by step, commands by program, and one event at the end."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from excise.system import job_costs
from excise.system.deadline import with_context_of_caller
from excise.system.job_costs import EXCISE, HOST, count_command, measure_job, program_of, step


def compute(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


class Events(logging.Handler):
    """Keeps the events of jobs."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        assert record.getMessage() == "job measured"
        self.found.append(record)


@pytest.fixture
def measured() -> Iterator[list[logging.LogRecord]]:
    """The events of the jobs of a test."""
    events = Events()
    job_costs.logger.addHandler(events)
    job_costs.logger.setLevel(logging.INFO)
    yield events.found
    job_costs.logger.removeHandler(events)
    job_costs.logger.setLevel(logging.NOTSET)


def costs(record: logging.LogRecord) -> dict[tuple[str, str], dict]:
    rows = record.costs  # type: ignore[attr-defined]
    return {(row["step"], row["program"]): row for row in rows}


def test_time_belongs_to_the_innermost_step(measured: list[logging.LogRecord]) -> None:
    with measure_job("pypi:a", "prove"):
        compute(0.02)
        with step("outer"):
            compute(0.05)
            with step("inner"):
                compute(0.2)
        with step("outer"):
            compute(0.05)
    [record] = measured
    assert (record.source, record.stage) == ("pypi:a", "prove")  # type: ignore[attr-defined]
    found = costs(record)
    assert found["inner", EXCISE]["cpu_s"] >= 0.2
    assert 0.1 <= found["outer", EXCISE]["cpu_s"] < 0.2
    assert found["outer", EXCISE]["runs"] == 2
    total = sum(row["cpu_s"] for row in found.values())
    assert 0.32 <= total <= record.process_cpu_s  # type: ignore[attr-defined]


def test_commands_are_counted_in_the_step_that_runs_them(measured: list[logging.LogRecord]) -> None:
    with measure_job("a", "baseline"):
        with step("runs"), ThreadPoolExecutor(2) as pool:
            run = with_context_of_caller(lambda _: count_command(["/env/bin/python", "/x/run.py"], 1.5, 2.0))
            list(pool.map(run, range(4)))
        count_command(["/bin/sh", "-c", "true"], 0.25, 0.5)
    [record] = measured
    found = costs(record)
    assert found["runs", "run.py"] == {"step": "runs", "program": "run.py", "runs": 4, "cpu_s": 6.0, "wall_s": 8.0}
    assert found["", "sh -c"]["cpu_s"] == 0.25


def test_commands_of_the_host_are_counted(measured: list[logging.LogRecord]) -> None:
    script = "import time\nwhile time.process_time() < 0.3: pass"
    with measure_job("a", "fetch"):
        subprocess.run([sys.executable, "-S", "-c", script], check=True)
    assert costs(measured[0])["", HOST]["cpu_s"] >= 0.25


def test_a_job_that_raises_is_measured_and_a_job_within_it_is_part_of_it(measured: list[logging.LogRecord]) -> None:
    def fail() -> None:
        with measure_job("a", "outer"), measure_job("b", "inner"):
            count_command(["/bin/true"], 1.0, 1.0)
            raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        fail()
    [record] = measured
    assert record.stage == "outer"  # type: ignore[attr-defined]
    assert costs(record)["", "true"]["runs"] == 1


def test_nothing_is_counted_outside_a_job(measured: list[logging.LogRecord]) -> None:
    count_command(["/bin/true"], 1.0, 1.0)
    with step("alone"):
        pass
    assert measured == []


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (["/opt/env/bin/python", "-I", "-S", "/excise/inside/excise_run.py"], "excise_run.py"),
        (["/opt/env/bin/python", "-I", "-c", "print()", "list"], "python -c"),
        (["/opt/env/bin/python", "-I", "-S", "-B", "-"], "python -"),
        (["/usr/bin/uv", "pip", "install"], "uv"),
    ],
)
def test_programs_have_short_names(argv: list[str], name: str) -> None:
    assert program_of(argv) == name
