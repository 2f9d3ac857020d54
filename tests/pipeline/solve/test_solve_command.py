"""``excise solve`` from the command line: killed and resumed, queried, compared, audited."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from excise.datasets.queries.catalogue import query

from ...agents.scripted_server import ScriptedServer, calls
from ...conftest import SETS
from .solving import git_apply

pytestmark = pytest.mark.slow


@pytest.fixture
def set_(tmp_path: Path) -> Path:
    shutil.copytree(SETS / "shapes", tmp_path / "set", symlinks=True)
    return tmp_path / "set"


Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def command(excise: Command, set_: Path, stored: Any, prepared: Any) -> Command:
    def run(name: str, *words: Any, **options: Any) -> subprocess.CompletedProcess[str]:
        return excise(name, *words, "--out", set_, "--cache", stored.cache, "--config", stored.config, **options)

    return run


def test_a_killed_run_goes_on(command: Command, set_: Path, stored: Any, tmp_path: Path) -> None:
    """The run is killed while two commands work; what they started ends, and finished attempts are not repeated."""
    body = """
import os, pathlib, sys, time
begun = pathlib.Path(sys.argv[1]) / f"{sys.argv[2]}-{os.getpid()}"
begun.write_text(str(os.getpid()))
if len(list(begun.parent.iterdir())) > 3 and not (begun.parent.parent / "go").exists():
    time.sleep(300)
"""
    program, begun = tmp_path / "agent.py", tmp_path / "begun"
    program.write_text(body)
    begun.mkdir()
    agent = shlex.join([sys.executable, str(program), str(begun), "{instance_id}", "{workdir}"])
    options = ["solve", "--agent", agent, "--at-once", "2", "--name", "mine", "--out", set_, "--cache", stored.cache]
    line = [sys.executable, "-m", "excise.pipeline.cli", *map(str, [*options, "--config", stored.config])]
    process = subprocess.Popen(line, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    until = time.monotonic() + 240
    while (
        len(list(begun.iterdir())) < 5 or len(list(set_.glob("attempts/mine/*.parquet"))) < 3
    ) and process.poll() is None:
        assert time.monotonic() < until
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = {path.stem for path in set_.glob("attempts/mine/*.parquet")}
    assert len(done) == 3
    started = [int(path.read_text()) for path in begun.iterdir()]
    while any(os.path.exists(f"/proc/{pid}") for pid in started) and time.monotonic() < until:
        time.sleep(0.1)
    assert not [pid for pid in started if os.path.exists(f"/proc/{pid}")]
    (tmp_path / "go").touch()
    resumed = command("solve", "--agent", agent, "--name", "mine", "--json")
    assert resumed.returncode == 0, resumed.stderr
    result = json.loads(resumed.stdout)
    assert (result["num_new"], result["num_kept"], result["lost"]) == (5, 3, [])
    counts = [sum(p.name.startswith(name.rpartition("-")[0]) for p in begun.iterdir()) for name in done]
    assert counts == [1, 1, 1]
    sql = "SELECT count(*) AS n, count(DISTINCT attempt_id) AS d FROM attempts"
    assert json.loads(query(set_, sql, "json")) == [{"n": 8, "d": 8}]


def test_attempts_are_queried_compared_and_audited(command: Command, set_: Path, stored: Any, tmp_path: Path) -> None:
    task = next(t for t in stored.taskset.tasks() if t.removed == ("src/shapes/text.py::parse",))
    gold = command("solve", task.instance_id, "--agent", "gold", "-k", "2")
    assert gold.returncode == 0, gold.stderr
    solve = [calls(("run", {"command": git_apply(task.patch)})), calls(("finish", {}))]
    fail = [calls(("finish", {}), tokens=(10, 5))]
    with ScriptedServer([*solve, *fail]) as server:
        model = ["--base-url", server.url, "--model", "scripted", "--price-in", "1", "--price-out", "4"]
        limits = ["--max-steps", "9", "--max-tokens", "5000", "--max-seconds", "100", "--max-cost", "1"]
        done = command(
            "solve", task.instance_id, *model, *limits, "-k", "2", "--at-once", "1", "--style", "terse",
            "--compare", "gold-specification", "--into", tmp_path / "found",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        told = server.requests[0]["messages"][1]["content"]
    assert told.startswith("Please")
    assert "0.500 ± 0.000" in done.stdout
    assert "gold-specification" in done.stdout
    found = json.loads((tmp_path / "found/solve.json").read_text())
    assert (found["name"], found["pass_at"]) == ("model-scripted-terse", {"1": 0.5, "2": 1.0})
    assert found["cost_effort"] == [[pytest.approx(30e-6), 0.0], [pytest.approx(360e-6), 0.5]]
    picture = (tmp_path / "found/solve.svg").read_text()
    assert "pass@k" in picture
    assert "cost" in picture
    sql = "SELECT run, k, round(pass_at_k, 2) AS p FROM pass_at_k ORDER BY ALL"
    assert json.loads(query(set_, sql, "json")) == [
        {"run": "gold-specification", "k": 1, "p": 1.0}, {"run": "gold-specification", "k": 2, "p": 1.0},
        {"run": "model-scripted-terse", "k": 1, "p": 0.5}, {"run": "model-scripted-terse", "k": 2, "p": 1.0},
    ]  # fmt: skip
    again = command("solve", task.instance_id, *model, "-k", "2", "--style", "terse")
    assert again.returncode == 2
    assert "was made with max_cost = 1" in again.stderr


def test_audit_reads_attempts(excise: Command, command: Command, set_: Path, stored: Any) -> None:
    assert command("solve", "--agent", "stub").returncode == 0
    line = ["audit", set_, "-t", set_ / "attempts", "--dry-run", "--cache", stored.cache, "--json"]
    done = excise(*line)
    assert done.returncode == 0, done.stderr
    audit = json.loads(done.stdout)
    assert (len(audit["reviews"]), audit["unknown"], audit["leaks"]) == (8, [], [])


def test_lost_attempts_have_their_exit_codes(command: Command, set_: Path, stored: Any) -> None:
    ids = sorted(task.instance_id for task in stored.taskset.tasks())[:2]
    with ScriptedServer([calls(("finish", {}))]) as server:  # then: the script is over
        model = ["--base-url", server.url, "--model", "scripted", "--at-once", "1"]
        partly = command("solve", *ids, *model)
        assert partly.returncode == 3, partly.stderr
        assert "1 attempts were lost to the infrastructure; the same command makes them again" in partly.stderr
        assert command("solve", *ids, *model, "--name", "all").returncode == 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "needs a model"),
        (("nothing__0", "--agent", "noop"), "No task 'nothing__0'"),
        (("--agent", "noop", "--name", "../x"), "is no name of a folder"),
        (("--agent", "noop", "--compare", "unknown"), "no attempts of a run 'unknown'"),
        (("--agent", "best"), "name {workdir}"),
        (("--agent", "noop", "--style", "rude"), "rude"),
    ],
)
def test_wrong_usage(command: Command, words: tuple[str, ...], message: str) -> None:
    done = command("solve", *words)
    assert done.returncode in (1, 2)
    assert message in done.stderr
