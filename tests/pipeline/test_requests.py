"""Requests for tasks: which features fit, the process that answers them, and recovery after failures."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from excise.config import load
from excise.datasets.difficulty.pass_rate_model import COEFFICIENTS, Predictor
from excise.datasets.difficulty.rungs import Level, level_of, rung_of
from excise.datasets.rows import RepoRows
from excise.datasets.storage.store import Store
from excise.datasets.taskset import TaskSet
from excise.errors import ConfigError
from excise.pipeline.cli.train_command import options_of
from excise.pipeline.run.selection import REQUEST_MARK, CandidateSelection
from excise.pipeline.services import request_runner
from excise.pipeline.services.request_runner import PublishedTasks, RequestRunner
from excise.pipeline.services.request_selection import RequestSelection, prepare_request, read_request
from excise.system.locks import exclusive
from excise.trainer.curriculum.task_request import TaskRequest
from excise.types import Feature, FeatureKind, Repo, SourceSpec, Task, Visibility, to_json

EASY = TaskRequest(lowest=Level.LINE, highest=Level.STUB, visibility=Visibility.TESTS, count=3)


def _is_idle(runner: RequestRunner) -> bool:
    """Whether all requests that were added have ended."""
    return not runner._thread.is_alive() or all(runner._is_over(request_id) for request_id in runner._known)


def feature(number: int, kind: FeatureKind = FeatureKind.FUNCTION, loc: int = 9) -> Feature:
    name = f"m.py::f{number}"
    return Feature(feature_id=f"{number:016x}", kind=kind, tier=1, entry=(name,), symbols=(name,), tests=(), loc=loc)


# ----------------------------------------------------------------------------------------- selections
def test_the_usual_selection_removes_everything_and_stubs_some() -> None:
    attempts = CandidateSelection().candidates([feature(n) for n in range(8)])
    assert [deleter for _, deleter in attempts].count("remove") == 8
    assert [deleter for _, deleter in attempts].count("stub") == 2
    assert [each.feature_id for each, _ in attempts[8:]] == [feature(1).feature_id, feature(5).feature_id], "at the end"


def test_every_feature_is_on_one_requested_rung() -> None:
    features = [feature(n, loc=2 if n % 3 == 0 else 9) for n in range(30)]
    features += [feature(n, FeatureKind.CLASS) for n in range(30, 40)]
    attempts = RequestSelection(EASY, None).candidates(features)
    assert len({feature.feature_id for feature, _ in attempts}) == len(attempts) == 30
    ways = [deleter for _, deleter in attempts]
    assert {"expression", "line", "stub"} == set(ways[:3]), "levels take turns"
    assert {way for feature, way in attempts if feature.loc < 3} == {"line"}
    assert {way for feature, way in attempts if feature.loc > 3} == {"expression", "stub"}
    assert attempts == RequestSelection(EASY, None).candidates(features), "equal requests are answered alike"
    other = TaskRequest(lowest=Level.LINE, highest=Level.STUB, visibility=Visibility.TESTS, count=3, number=1)
    assert attempts != RequestSelection(other, None).candidates(features)


def test_one_feature_is_taken_at_every_rung_that_fits() -> None:
    features = [feature(n) for n in range(4)]
    by_id = features[1].feature_id
    wanted = TaskRequest(lowest=Level.LINE, highest=Level.CROSS_FILE, features=(by_id, "m.py::f3"))
    found = RequestSelection(wanted, None).candidates([*features, feature(9, FeatureKind.CLASS)])
    assert {f.entry for f, _ in found} == {("m.py::f1",), ("m.py::f3",)}
    assert {deleter for _, deleter in found} == {"remove", "stub", "expression"}


def test_the_predicted_pass_rate_decides_about_size() -> None:
    predictor = Predictor(**dict.fromkeys(COEFFICIENTS, 0.0) | {"bias": 0.0, "size": -1.0})
    wanted = TaskRequest(lowest=Level.CLASS, highest=Level.CLASS, pass_rate=(0.2, 0.6), predictor=predictor)
    features = [feature(n, FeatureKind.CLASS, loc=10 * 2**n) for n in range(6)]
    chosen = [feature.loc for feature, _ in RequestSelection(wanted, None).candidates(features)]
    assert chosen == [40, 80], "40 lines are passed by half, 80 by 27 %, 160 by 12 %"


# -------------------------------------------------------------------------------------------- files
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "no request can be read"),
        ("[]", "valid dictionary|object"),
        ('{"lowest": "stub"}', "highest"),
        ('{"lowest": "stub", "highest": "roof"}', "highest"),
        ('{"lowest": "class", "highest": "stub"}', "lowest is above highest"),
        ('{"lowest": "line", "highest": "stub", "many": 3}', "has no many"),
        ('{"lowest": "line", "highest": "stub", "count": 0}', "count"),
        ('{"lowest": "line", "highest": "stub", "pass_rate": [0.9, 0.1]}', "pass_rate"),
        ('{"lowest": "line", "highest": "stub", "visibility": "half"}', "visibility"),
        ('{"lowest": "line", "highest": "stub", "language": "cobol"}', "cobol"),
    ],
)
def test_an_unusable_request_has_a_reason(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "request.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=said):
        read_request(path)


def test_a_request_needs_sources(tmp_path: Path, shapes: Any) -> None:
    settings = shapes.settings.model_copy(update={"out": tmp_path / "none"})
    with pytest.raises(ConfigError, match="no sources"):
        prepare_request(settings, EASY)


def put(out: Path, name: str, source: str, spec: SourceSpec | None) -> None:
    with Store(out).writer() as writer:
        repo = Repo(repo="kit", base_commit="0" * 40, tree="1" * 40, source=source)
        writer.put_repo(name, RepoRows(repo=repo, spec=spec))
        writer.publish()


def test_the_sources_of_a_set_are_used_as_originally_specified(tmp_path: Path, shapes: Any) -> None:
    spec = SourceSpec(spec="pypi:kit", subdir="a", python="3.11", extras=("test",), requirements=("mock",), limit=3)
    put(tmp_path, spec.name, "pypi:kit==1.0#subdirectory=a", replace(spec, test_args=("-k", "x")))
    put(tmp_path, "git+https://example.invalid/old", "git+https://example.invalid/old@1", None)
    settings, plan = prepare_request(shapes.settings.model_copy(update={"out": tmp_path, "sources": ()}), EASY)
    assert settings.sources == (
        SourceSpec(spec="git+https://example.invalid/old@1"),
        SourceSpec(
            spec="pypi:kit==1.0#subdirectory=a", python="3.11", extras=("test",), requirements=("mock",),
            test_args=("-k", "x"),
        ),
    )  # fmt: skip
    assert plan.entry_name(settings.sources[1]).startswith(f"{spec.name}{REQUEST_MARK}")


# ----------------------------------------------------------------------------------------- real runs
@pytest.fixture(scope="module")
def own(shapes: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the set of ``shapes``, to be added to."""
    out = tmp_path_factory.mktemp("requests") / "out"
    shutil.copytree(shapes.out, out, symlinks=True)
    return out


def options(shapes: Any) -> list[str]:
    return ["--cache", str(shapes.cache), "--config", str(shapes.config), "--workers", "1"]


def generate(excise: Any, shapes: Any, out: Path, request: TaskRequest, folder: Path) -> dict[str, Any]:
    path = folder / "request.json"
    path.write_bytes(to_json(request))
    done = excise("generate", "--request", path, "--out", out, "--json", *options(shapes))
    assert done.returncode in {0, 3}, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.slow
def test_a_request_is_answered_and_appended(excise: Any, shapes: Any, own: Path, tmp_path: Path) -> None:
    before = {task.instance_id: task for task in TaskSet.open(own).tasks()}
    generate(excise, shapes, own, EASY, tmp_path)
    after = {task.instance_id: task for task in TaskSet.open(own).tasks()}
    assert before.items() <= after.items()
    new = [task for name, task in after.items() if name not in before]
    assert len(new) == 3
    assert {rung_of(task).visibility for task in new} == {Visibility.TESTS}
    assert {rung_of(task).level for task in new} <= {Level.EXPRESSION, Level.LINE, Level.STUB}
    assert len({rung_of(task).level for task in new}) > 1
    assert {task.tree for task in new} == {task.tree for task in before.values()}

    number = TaskSet.open(own).manifest.number
    generate(excise, shapes, own, EASY, tmp_path)
    assert TaskSet.open(own).manifest.number == number, "the same request again changes nothing"

    more = TaskRequest(lowest=Level.LINE, highest=Level.STUB, visibility=Visibility.TESTS, count=1, number=1)
    generate(excise, shapes, own, more, tmp_path)
    third = {task.instance_id for task in TaskSet.open(own).tasks()}
    assert after.keys() < third, "another number brings others"

    done = excise("generate", *_sources(shapes), "--out", own, "--json", *options(shapes))
    assert done.returncode == 0, done.stderr
    assert {task.instance_id for task in TaskSet.open(own).tasks()} == third, "an ordinary run leaves them alone"


def _sources(shapes: Any) -> list[str]:
    return [source["spec"] for source in shapes.result["sources"]]


@pytest.mark.slow
def test_the_runner_answers_in_a_process_of_its_own(shapes: Any, own: Path, tmp_path: Path) -> None:
    runner = RequestRunner(tmp_path / "requests", own, options(shapes))
    wanted = TaskRequest(lowest=Level.STUB, highest=Level.STUB, visibility=Visibility.SIGNATURE, count=1)
    began = time.monotonic()
    runner(wanted)
    runner(wanted)
    assert time.monotonic() - began < 1, "asking does not wait"
    _wait(lambda: _is_idle(runner), 400)
    runner.close()
    assert runner.codes() == {wanted.request_id: 0}, (tmp_path / "requests" / f"{wanted.request_id}.log").read_text()
    found = [task for task in TaskSet.open(own).tasks() if task.visibility is Visibility.SIGNATURE]
    assert [level_of(task.deleter, task.difficulty.kind) for task in found] == [Level.STUB]

    assert runner.made(wanted) == [task.instance_id for task in found]

    resumed = RequestRunner(tmp_path / "requests", own, options(shapes))
    resumed(wanted)
    assert _is_idle(resumed), "what is finished is not made again"
    resumed.close()


def _wait(condition: Any, seconds: float) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it took too long"
        time.sleep(0.1)


def test_newly_published_tasks_are_loaded(tmp_path: Path) -> None:
    known: dict[str, Task] = {}
    refreshed: list[int] = []
    (tmp_path / "current").symlink_to("snapshots/1")
    tasks = PublishedTasks(tmp_path, lambda: known, lambda: refreshed.append(1))
    assert tasks() is known
    assert not refreshed
    (tmp_path / "current").unlink()
    (tmp_path / "current").symlink_to("snapshots/2")
    assert tasks() is tasks()
    assert refreshed == [1]


def test_a_pool_may_leave_tasks_out(tmp_path: Path) -> None:
    known: dict[str, Any] = {"one": object(), "two": object()}
    asked: list[int] = []

    def left_out() -> set[str]:
        asked.append(1)
        return {"two"}

    tasks = PublishedTasks(tmp_path, lambda: known, lambda: None, left_out)
    assert list(tasks()) == ["one"]
    assert tasks() is tasks()
    known = {**known, "three": object()}
    assert list(tasks()) == ["one", "three"]
    assert asked == [1, 1]


def test_a_trainers_settings_are_the_generators() -> None:
    given = {"out": "set", "cache": "/some where", "sandbox": "docker", "verdict": {"cpus": 1.5, "gold_runs": 3}}
    options = options_of(given)
    assert options[::2] == ["--set"] * 4
    settings = load([], options[1::2])
    assert (str(settings.cache), settings.sandbox, settings.verdict.gold_runs) == ("/some where", "docker", 3)
    assert settings.verdict.cpus == 1.5
    assert str(settings.out) != "set"


# ---------------------------------------------------------------------------- processes that go wrong
def test_a_program_that_cannot_be_started_is_a_failure(tmp_path: Path) -> None:
    said: list[str] = []
    runner = RequestRunner(tmp_path / "requests", tmp_path / "out", program=["/nothing"], report=said.append)
    runner(EASY)
    _wait(lambda: _is_idle(runner), 20)
    runner.close()
    assert runner.codes() == {EASY.request_id: 1}
    assert "exit code 1" in said[0]
    assert "/nothing" in (tmp_path / "requests" / f"{EASY.request_id}.log").read_text()


def program(folder: Path, script: str) -> list[str]:
    """A program in place of excise, of which only the exit code matters."""
    path = folder / "excise"
    path.write_text(f"#!/bin/sh\necho $$ >> {folder}/started\n{script}\n")
    path.chmod(0o755)
    return [str(path)]


def test_a_process_that_is_killed_is_started_once_more(tmp_path: Path) -> None:
    runner = RequestRunner(tmp_path / "requests", tmp_path / "out", program=program(tmp_path, "kill -9 $$"))
    runner(EASY)
    _wait(lambda: _is_idle(runner), 20)
    runner.close()
    assert runner.codes() == {EASY.request_id: -signal.SIGKILL}
    assert len((tmp_path / "started").read_text().split()) == 2


def test_a_request_whose_result_cannot_be_written_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    write = request_runner.replace_file

    def full(path: Path, data: bytes) -> None:
        if path.name == f"{EASY.request_id}.code":
            raise OSError(errno.ENOSPC, "No space left on device")
        write(path, data)

    monkeypatch.setattr(request_runner, "replace_file", full)
    runner = RequestRunner(
        tmp_path / "requests", tmp_path / "out", program=program(tmp_path, "exit 0"), report=said.append
    )
    second = replace(EASY, number=EASY.number + 1)
    runner(EASY)
    runner(second)
    _wait(lambda: _is_idle(runner), 20)
    assert "No space left on device" in said[0]
    assert runner.made(EASY) is not None, "nobody waits for it"
    assert runner.codes() == {second.request_id: 0}, "the next one is made"
    runner.close()
    resumed = RequestRunner(tmp_path / "requests", tmp_path / "out", program=program(tmp_path, "exec sleep 300"))
    assert resumed.made(EASY) is None
    assert resumed.made(second) == ()
    assert resumed.asked(EASY.number - 1) == [EASY, second]
    assert resumed.asked(EASY.number) == [second]
    resumed.close()


def test_a_process_that_hangs_is_ended_at_its_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hangs = program(tmp_path, "trap '' TERM\nsleep 300 & wait; sleep 300")
    monkeypatch.setattr(request_runner, "STOP_GRACE_S", 0.5)
    runner = RequestRunner(tmp_path / "requests", tmp_path / "out", timeout_s=1.0, program=hangs)
    runner(EASY)
    _wait(lambda: _is_idle(runner), 20)
    runner.close()
    assert runner.codes() == {EASY.request_id: request_runner.TIMED_OUT}
    assert not _alive(int((tmp_path / "started").read_text()))


def test_closing_ends_a_running_request_and_a_resume_restarts_it(tmp_path: Path) -> None:
    runner = RequestRunner(tmp_path / "requests", tmp_path / "out", program=program(tmp_path, "exec sleep 300"))
    runner(EASY)
    _wait((tmp_path / "started").exists, 20)
    began = time.monotonic()
    runner.close()
    assert time.monotonic() - began < 20
    assert runner.codes() == {}
    assert not _alive(int((tmp_path / "started").read_text()))
    resumed = RequestRunner(tmp_path / "requests", tmp_path / "out", program=program(tmp_path, "exit 0"))
    resumed(EASY)
    _wait(lambda: _is_idle(resumed), 20)
    resumed.close()
    assert resumed.codes() == {EASY.request_id: 0}


def test_a_running_request_ends_with_a_killed_trainer(tmp_path: Path) -> None:
    asks = (
        "import sys, time; from pathlib import Path\n"
        "from excise.pipeline.services.request_runner import RequestRunner\n"
        "from excise.trainer.curriculum.task_request import TaskRequest\n"
        "from excise.datasets.difficulty.rungs import Level\n"
        "folder = Path(sys.argv[1])\n"
        "runner = RequestRunner(folder / 'requests', folder / 'out', program=sys.argv[2:])\n"
        "runner(TaskRequest(lowest=Level.LINE, highest=Level.STUB)); time.sleep(300)\n"
    )
    publishes = f"trap 'echo published > {tmp_path}/said; exit 0' TERM\ntouch {tmp_path}/ready\nsleep 300 & wait"
    trainer = subprocess.Popen([sys.executable, "-c", asks, str(tmp_path), *program(tmp_path, publishes)])
    _wait((tmp_path / "ready").exists, 60)
    pid = int((tmp_path / "started").read_text())
    trainer.kill()
    trainer.wait()
    _wait(lambda: not _alive(pid), 20)
    assert (tmp_path / "said").read_text() == "published\n"


def test_a_request_waits_for_a_set_that_another_process_writes(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    runner = RequestRunner(tmp_path / "requests", tmp_path / "out", program=program(tmp_path, "exit 0"))
    with exclusive(tmp_path / "out" / ".lock"):
        runner(EASY)
        time.sleep(1)
        assert not (tmp_path / "started").exists()
    _wait(lambda: _is_idle(runner), 20)
    runner.close()
    assert runner.codes() == {EASY.request_id: 0}


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
