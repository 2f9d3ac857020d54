"""The costs of runs, read from their logs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from excise.datasets.queries.catalogue import query
from excise.datasets.queries.costs import profile

from ..conftest import Run


def event(stage: str, pid: int, process_cpu_s: float, *costs: tuple[str, str, int, float, float]) -> str:
    rows = [dict(zip(("step", "program", "runs", "cpu_s", "wall_s"), row, strict=True)) for row in costs]
    facts = {"source": "pypi:it's", "stage": stage, "pid": pid, "wall_s": 3.0, "written_bytes": 2_000_000}
    facts |= {"process_cpu_s": process_cpu_s, "costs": rows}
    return json.dumps({"time": "2026-11-23T10:00:00", "level": "info", "event": "job measured"} | facts) + "\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run with two workers, one of them killed while it wrote, and an earlier run."""
    logs = tmp_path / "it's here" / "logs"
    logs.mkdir(parents=True)
    (logs / "run-2-7.jsonl").write_text('{"time": "x", "event": "run begun", "sources": 1}\n')
    (logs / "run-2-7-worker-8.jsonl").write_text(
        event("fetch", 8, 4.0, ("", "excise", 1, 0.5, 1.0), ("", "host commands", 1, 1.0, 0.0))
        + event("prove", 8, 5.0, ("plan", "excise", 2, 0.5, 0.5), ("g9", "list.py", 3, 6.0, 9.0))
    )
    whole = event("prove", 9, 6.0, ("g9", "list.py", 1, 2.0, 3.0))
    (logs / "run-2-7-worker-9.jsonl").write_text(whole + whole[:80])
    (logs / "run-1-3.jsonl").write_text(event("baseline", 3, 6.0, ("", "excise", 1, 100.0, 3.0)))
    return logs.parent


def test_the_latest_run_is_profiled(folder: Path) -> None:
    found = profile(folder)
    stages = {row["stage"]: row for row in found["stage"]}
    assert list(stages) == ["prove", "fetch"]
    assert (stages["prove"]["jobs"], stages["prove"]["cpu_s"], stages["prove"]["wall_s"]) == (2, 8.5, 6.0)
    assert (stages["fetch"]["cpu_s"], stages["fetch"]["written_mb"]) == (1.5, 2.0)
    assert [(row["step"], row["cpu_s"]) for row in found["step"]] == [("g9", 8.0), ("plan", 0.5)]
    [listing, host, own] = found["program"]
    assert (listing["program"], listing["runs"], listing["cpu_s"], listing["cpu_s_per_run"]) == ("list.py", 4, 8.0, 2.0)
    assert {host["program"], own["program"]} == {"host commands", "excise"}
    processes = {row["pid"]: row for row in found["process"]}
    assert (processes[8]["jobs"], processes[8]["process_cpu_s"], processes[8]["in_jobs_s"]) == (2, 5.0, 1.0)


def test_a_run_is_chosen_by_the_beginning_of_its_name(folder: Path) -> None:
    assert [row["stage"] for row in profile(folder, "run-1")["stage"]] == ["baseline"]
    assert profile(folder, "run-3")["stage"] == []


def test_without_logs_there_is_nothing(tmp_path: Path) -> None:
    assert profile(tmp_path) == {"stage": [], "step": [], "program": [], "process": []}


def test_every_run_keeps_its_costs(shapes: Run) -> None:
    found = json.loads(query(shapes.out, "SELECT stage, step, sum(cpu_s) c FROM costs GROUP BY ALL", "json"))
    spent = {(row["stage"], row["step"]): row["c"] for row in found}
    assert {stage for stage, _ in spent} >= {"fetch", "environment", "baseline", "coverage", "find", "prove"}
    gates = {step for stage, step in spent if stage == "prove"}
    assert gates >= {"plan", "split", "build", "g6_p2p_pass", "g9_leaks", "g10_calls", "g11_recovery"}
    tests = "program IN ('excise_run.py', 'excise_collected.py')"
    runs = json.loads(query(shapes.out, f"SELECT sum(runs) n FROM costs WHERE {tests}", "json"))
    assert runs[0]["n"] > 40
    for row in profile(shapes.out)["process"]:
        assert 0 < row["in_jobs_s"] <= row["process_cpu_s"]


def test_the_command_prints_a_profile(shapes: Run, folder: Path, tmp_path: Path, excise) -> None:
    done = excise("profile", "--out", shapes.out)
    assert done.returncode == 0, done.stderr
    assert "by stage" in done.stdout
    assert "excise_run.py" in done.stdout
    tables = json.loads(excise("profile", "--out", folder, "--json").stdout)
    assert tables == profile(folder)
    missing = excise("profile", "--out", tmp_path)
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "No run" in missing.stderr
