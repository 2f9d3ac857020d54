"""Graded runs and replays of the original code that are forked give the same results as those of graders."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from excise.protocols import CallRecording, ForkServer, GradedRun, GradedRunRequest, GradingMode, LiftedRun, Session
from excise.types import Status
from excise.verifiers.grading.graded_runs import graded_run, mode_of, open_grading, run_forked
from excise.verifiers.grading.kit import LATER, record_calls, replay
from excise.verifiers.workbench import RepeatedRuns, Workbench

from ...conftest import Vary

TESTS = """
import gc, json, logging, os, random, sys, time, warnings

see = __excise_see__


def test_about_itself():
    with open("/dev/null") as null:
        lowest = null.fileno()
    found = {
        "path": sys.path, "argv": sys.argv, "environ": dict(os.environ), "cwd": os.getcwd(), "lowest": lowest,
        "gc": [gc.isenabled(), gc.get_threshold()], "filters": len(warnings.filters), "stdin": len(os.read(0, 1)),
        "handlers": len(logging.getLogger().handlers), "hooks": len(sys.path_hooks), "bytes": sys.dont_write_bytecode,
        "finders": [repr(f if isinstance(f, type) else type(f)) for f in sys.meta_path],
        "recursion": sys.getrecursionlimit(), "leader": os.getsid(0) == os.getpid(), "shapes": "shapes" in sys.modules,
        "streams": [os.readlink("/proc/self/fd/%d" % number)[:9] for number in range(3)],
    }
    see(1, json.dumps(found, sort_keys=True))


def test_modules():
    see(2, " ".join(sorted(sys.modules)))


def test_random():
    see(3, random.random())


def test_that_ends_its_process():
    os._exit(3)


def test_that_comes_after_it():
    see(4, 1)


def test_that_hangs():
    time.sleep(60)
"""
FILE = "tests/test_itself.py"
NAMES = ("about_itself", "modules", "random", "that_ends_its_process", "that_comes_after_it", "that_hangs")
IDS = [f"{FILE}::test_{name}" for name in NAMES]
SUPERVISING = {
    "excise_fork_server", "excise_grade_supervisor", "excise_grade_worker", "array", "base64", "ctypes",
    "ctypes._endian", "hmac", "resource", "select", "socket", "subprocess", "selectors", "signal", "zlib",
}  # fmt: skip
"""Modules that only a server or a supervisor needs, and that in a fork are there from the beginning."""


def graded(bench: Workbench, mode: GradingMode, *, forked: bool) -> GradedRun:
    grading = bench.language.grading
    asked = LiftedRun(functions=(), removed=())
    request = GradedRunRequest(mode=mode, ids=IDS, lifted=asked, timeout_s=60.0, test_timeout_s=2.0)
    server = grading.run_server(bench.recipe, request) if forked else None
    with open_grading(bench, {}, trusted=True, fork_server=server) as session:
        assert session.forks is forked
        return grading.run_graded(session, bench.recipe, request)


@pytest.mark.parametrize("strict", [True, False])
def test_a_forked_graded_run_is_like_that_of_a_grader(vary: Vary, strict: bool) -> None:
    bench = vary({FILE: TESTS})
    mode = replace(mode_of(bench), strict=strict)
    fresh, forked = (graded(bench, mode, forked=forked) for forked in (False, True))
    expected = dict.fromkeys(IDS, Status.PASSED) | dict.fromkeys((IDS[3], IDS[5]), Status.FAILED)
    assert fresh.run.statuses() == expected
    assert forked.run.statuses() == expected
    assert forked.run.finished == fresh.run.finished
    assert forked.seen.keys() == fresh.seen.keys() == {IDS[0], IDS[1], IDS[2], IDS[4]}
    assert json.loads(forked.seen[IDS[0]]) == json.loads(fresh.seen[IDS[0]])
    modules = [set(json.loads(found.seen[IDS[1]])[0][1][1].split()) for found in (fresh, forked)]
    assert {name for name in modules[0] ^ modules[1] if not name.startswith("_")} <= SUPERVISING
    assert forked.seen[IDS[2]] != fresh.seen[IDS[2]], "random numbers are random"


@pytest.mark.parametrize("name", ["iniconfig.py", "resource.py", "src/array.py"])
def test_a_checkout_with_modules_of_the_server_is_run_afresh(vary: Vary, name: str) -> None:
    bench = vary({name: "NAMES = 'its own'", "tests/test_own.py": "from shapes import spiral\ndef test_it(): pass\n"})
    ids = ["tests/test_own.py::test_it"]
    fresh, forked = (
        graded_run(bench, {}, ids, mode_of(bench), trusted=True, forked=forked) for forked in (False, True)
    )
    assert forked.run.statuses() == fresh.run.statuses()


def test_forked_replays_have_equal_outcomes(bench: Workbench) -> None:
    tests = ["tests/test_walk.py::test_start", "tests/test_walk.py::test_first_turn"]
    recording = record_calls(bench, ["src/shapes/walk.py::spiral"], tests)
    assert recording.calls
    for condition in ((0, 0.0), LATER):
        fresh = replay(bench, recording, {}, *condition)
        assert all(fresh)
        assert replay(bench, recording, {}, *condition, trusted=True) == fresh


ASKS_AROUND = """
import os, sys
from datetime import date


def spiral(steps):
    with open("/dev/null") as null:
        lowest = null.fileno()
    found = [sys.argv, sys.path, sorted(os.environ.items()), os.getcwd(), lowest, date.today().year]
    return [steps, found, list({"a", "b", "c"}), sys.stdin.read()]
"""
OWN = "import resource\n\n\ndef spiral(steps):\n    return [steps, resource.OWN]\n"


@pytest.mark.parametrize(
    "files", [{"src/shapes/walk.py": ASKS_AROUND}, {"src/shapes/walk.py": OWN, "src/resource.py": "OWN = 1\n"}]
)
def test_a_replay_cannot_tell_that_it_is_forked(vary: Vary, files: dict[str, str | None]) -> None:
    bench = vary(files)
    call = {"name": "shapes.walk:spiral", "kind": "function", "args": [["i", "3"]], "kwargs": []}
    modules = ("shapes.walk",)
    recording = CallRecording(calls=(json.dumps(call),), modules=modules, removed=(), watched=1, refused={})
    for condition in ((0, 0.0), LATER):
        (fresh,) = replay(bench, recording, {}, *condition)
        assert "result" in json.loads(fresh)
        assert replay(bench, recording, {}, *condition, trusted=True) == [fresh]


def test_what_was_forked_is_repeated_where_that_is_wanted(bench: Workbench) -> None:
    bench.repeats = RepeatedRuns()
    answers = iter(["forked", "fresh"])

    def work(session: Session) -> str:
        return next(answers) if session.forks or bench.repeats else ""

    try:
        server: ForkServer = bench.language.grading.replay_server(bench.recipe, 0)
        assert run_forked(bench, {}, server, work) == "fresh"
        assert bench.repeats == RepeatedRuns(repeated=1, disagreeing=1)
    finally:
        bench.repeats = None
