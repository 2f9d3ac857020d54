"""The baseline: agreement of several runs, and each reason to refuse a project."""

from __future__ import annotations

import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest

import excise.verifiers.load_stress as module
from excise.config import VerdictSettings
from excise.errors import EnvironmentFailure
from excise.protocols import TestRunRequest
from excise.types import Baseline, Status, TestResult, TestRun, WorkerOutcome
from excise.verifiers.baseline import (
    SHUFFLE_SEED,
    agree,
    max_baseline_s,
    missing_modules,
    run_baseline,
)
from excise.verifiers.baseline_acceptance import too_slow
from excise.verifiers.load_stress import load_stress_runs, num_load_stress_runs
from excise.verifiers.workbench import Workbench

CONFTEST = "tests/conftest.py"


@pytest.fixture(autouse=True)
def idle_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests run at the same time; load-stress runs would heed them."""
    monkeypatch.setattr(module, "load_per_core", lambda: 0.5)


def run_of(durations: float = 0.1, **statuses: str) -> TestRun:
    results = tuple(TestResult(test_id=t, status=Status(s), duration_s=durations) for t, s in statuses.items())
    return TestRun(worker=WorkerOutcome.OK, results=results, finished=True, cpu_s=durations, wall_s=2 * durations)


def test_only_statuses_on_which_all_runs_agree_are_used() -> None:
    found = agree(
        "env",
        [
            run_of(0.1, a="PASSED", b="PASSED", c="SKIPPED", d="PASSED"),
            run_of(0.3, a="PASSED", b="FAILED", c="SKIPPED", d="PASSED"),
            run_of(0.2, a="PASSED", b="PASSED", c="SKIPPED"),
        ],
    )
    assert found.statuses == {"a": Status.PASSED, "c": Status.SKIPPED}
    assert found.flaky == {"b": "PASSED then FAILED then PASSED", "d": "PASSED then PASSED then MISSING"}
    assert found.passing() == ("a",)
    assert (found.durations["a"], found.cpu_s, found.wall_s, found.num_runs) == (0.2, 0.1, 0.2, 3)


def test_the_baseline_of_shapes(bench: Workbench) -> None:
    baseline = bench.baseline
    assert baseline.flaky == {
        "tests/test_order.py::test_c_third": "PASSED then FAILED",
        "tests/test_order.py::test_d_fourth": "PASSED then FAILED",
    }
    assert len(baseline.passing()) == 41
    assert "src/shapes/base.py::shapes.base.registered" in baseline.passing(), "doctests count"
    assert "tests/test_squares.py::TestSquare::test_grow" in baseline.passing(), "so does unittest"
    assert set(baseline.passing()) - bench.trusted == {"tests/test_order.py::test_b_second"}, "it fails alone"


TWENTY = "import pytest\n@pytest.mark.parametrize('n', range(20))\ndef test_x(n):\n"
REFUSED = {
    "no test is left": ({}, {"min_passing": 1}, "no_tests", "No test was found"),
    "conftest does not import": ({CONFTEST: "import nowhere\n"}, {}, "collect_error", "nowhere"),
    "a file does not import": (
        {"tests/test_only.py": "import nowhere\n"}, {}, "collect_error", "test_only.py: ModuleNotFoundError"
    ),
    "too few pass": ({"tests/test_x.py": "def test_x(): pass\n"}, {}, "low_pass", "Only 1 tests pass; at least 5"),
    "too many fail": (
        {"tests/test_x.py": "import pytest\n@pytest.mark.parametrize('n', range(20))\ndef test_x(n): assert n % 2\n"},
        {}, "low_pass", "Only 10 of 20 tests that ran pass; 80% are needed. First failure: tests/test_x.py::test_x[0]",
    ),
    "all are skipped": (
        {"tests/test_x.py": "import pytest\ndef test_x(): pytest.skip()\n"}, {}, "no_tests", "Only 0 tests pass"
    ),
    "collecting hangs": (
        {CONFTEST: "import time\ntime.sleep(600)\n"}, {"suite_timeout_s": 3.0}, "timeout", "did not end within 3 s"
    ),
    "collecting eats all memory": (
        {CONFTEST: "held = [bytearray(1 << 20) for _ in range(4000)]\n"}, {"memory_mb": 128}, "oom", "more than 128 MB"
    ),
    "the runner is killed": (
        {CONFTEST: "import os\nos.kill(os.getppid(), 9)\nimport time\ntime.sleep(9)\n"}, {}, "infra", "was killed"
    ),
    "the runner ends early": (
        {CONFTEST: "import os\ndef pytest_sessionfinish():\n    os._exit(0)\n", "tests/test_x.py": "def test_x(): 1\n"},
        {"min_passing": 1}, "unreproducible", "ended after 1 tests, the last of them tests/test_x.py::test_x",
    ),
    "tests want a server": (
        {"tests/test_x.py": f"import socket\n{TWENTY}    socket.create_connection(('127.0.0.1', 6379))\n"},
        {}, "service_required", "20 of the failures have one cause:\ntests/test_x.py::test_x[0]: ConnectionRefused",
    ),
    "tests want the internet": (
        {"tests/test_x.py": f"import urllib.request\n{TWENTY}    urllib.request.urlopen('http://kit.invalid/x')\n"},
        {}, "network_required", "Temporary failure in name resolution",
    ),
    "tests want an address": (
        {"tests/test_x.py": f"import socket\n{TWENTY}    socket.create_connection(('192.0.2.1', 443))\n"},
        {}, "network_required", "Network is unreachable",
    ),
    "tests want a key": (
        {"tests/test_x.py": f"import os\n{TWENTY}    os.environ['KIT_API_TOKEN']\n"},
        {}, "credentials_required", "KeyError: 'KIT_API_TOKEN'",
    ),
    "tests want a program": (
        {"tests/test_x.py": f"import subprocess\n{TWENTY}    subprocess.run(['ffmpeg-of-nowhere', '-version'])\n"},
        {}, "missing_system_lib", "Missing on this machine: 'ffmpeg-of-nowhere'",
    ),
    "tests want a library": (
        {"tests/test_x.py": f"import ctypes\n{TWENTY}    ctypes.CDLL('libexcise-none.so.1')\n"},
        {}, "missing_system_lib", "libexcise-none.so.1: cannot open shared object file",
    ),
    "tests want a GPU": (
        {"tests/test_x.py": f"import ctypes\n{TWENTY}    ctypes.CDLL('libcuda.so.99')\n"},
        {}, "gpu_required", "libcuda.so.99",
    ),
    "waiting for a server takes too long": (
        {"tests/test_x.py": f"import socket, time\n{TWENTY}    time.sleep(n and 0.5)\n    "
                            "socket.create_connection(('127.0.0.1', 6379))\n"},
        {"suite_timeout_s": 6.0}, "service_required", "did not end within 6 s",
    ),
    "loading wants a server": (
        {"tests/test_x.py": "import socket\nsocket.create_connection(('127.0.0.1', 5432))\ndef test_x(): pass\n"},
        {}, "service_required", "Connection refused",
    ),
    "most files cannot be loaded": (
        {f"tests/test_{n}.py": "import nowhere\n" for n in range(3)} | {"tests/test_x.py": f"{TWENTY}    pass\n"},
        {}, "collect_error", "3 of 4 test files cannot be loaded",
    ),
    "most tests are flaky": (
        {"tests/test_x.py": f"import os\n{TWENTY}    assert n < 5 or os.urandom(1)[0] % 2\n"},
        {"baseline_runs": 4, "min_passing": 10}, "flaky", "more pass only sometimes",
    ),
    "another copy is imported": (
        {CONFTEST: "import sys, os\nos.makedirs('/tmp/o/shapes')\nopen('/tmp/o/shapes/__init__.py', 'w').close()\n"
                   "sys.path.insert(0, '/tmp/o')\nimport shapes\n", "tests/test_x.py": "def test_x(): 1\n"},
        {"min_passing": 1}, "import_error", "shapes from /tmp/o/shapes/__init__.py instead of the checkout",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_project_is_refused_with_a_reason(vary, name: str) -> None:
    files, limits, reason, words = REFUSED[name]
    bench = vary(files, only=True, **{"baseline_runs": 2, **limits})
    with pytest.raises(EnvironmentFailure) as caught:
        run_baseline(bench)
    assert caught.value.reason == reason, str(caught.value)
    assert words in str(caught.value)


def test_files_that_cannot_be_loaded_are_recorded(vary) -> None:
    files = {"tests/test_a.py": "import nowhere\n", "tests/test_x.py": f"{TWENTY}    pass\n"}
    baseline = run_baseline(vary(files, only=True, baseline_runs=2))
    assert list(baseline.uncollected) == ["tests/test_a.py"]
    assert "nowhere" in baseline.uncollected["tests/test_a.py"]
    assert len(baseline.passing()) == 20


def test_missing_modules_are_named_once(vary) -> None:
    texts = ["import yaml.nodes", "import yaml", "import attr", "x = 1"]
    bench = vary({f"tests/test_{n}.py": f"{text}\n" for n, text in enumerate(texts)}, only=True)
    assert missing_modules(bench) == ("yaml", "attr")
    assert missing_modules(vary({CONFTEST: "import nowhere\n", "tests/test_x.py": ""}, only=True)) == ("nowhere",)


def test_byte_code_of_the_first_run_is_kept_once(vary, tmp_path) -> None:
    bench = vary({"tests/test_x.py": "def test_x(): pass\n"}, only=True, baseline_runs=2, min_passing=1)
    warm = tmp_path / "warm"
    run_baseline(bench, warm)
    kept = sorted(warm.rglob("test_x*.pyc"))
    assert len(kept) == 1
    before = kept[0].stat().st_mtime_ns
    run_baseline(bench, warm)
    assert kept[0].stat().st_mtime_ns == before


@pytest.mark.parametrize(("seconds", "reason"), [(30.0, "service_required"), (0.2, "timeout")])
def test_a_run_past_its_timeout_is_refused_with_its_cause(seconds: float, reason: str) -> None:
    quick = [TestResult(test_id=f"t.py::quick{n}", status=Status.PASSED, duration_s=0.5) for n in range(9)]
    message = "redis.exceptions.ConnectionError: Error 111 connecting to localhost:6379. Connection refused."
    slow = TestResult(test_id="t.py::slow", status=Status.ERROR, duration_s=seconds, message=message)
    failure = too_slow(TestRun(worker=WorkerOutcome.TIMEOUT, results=(*quick, slow)), 60.0)
    assert failure.reason == reason
    assert ("Connection refused" in str(failure)) == (reason == "service_required")


LOADED = """
import os
import time
import warnings

def late():
    began = time.monotonic()
    time.sleep(0.001)
    return time.monotonic() - began > 0.015

def test_waits_are_short():
    end = time.monotonic() + 1
    assert sum(late() for _ in iter(lambda: time.monotonic() < end, False)) < 12

def test_computes():
    while time.process_time() < 1:
        pass

def test_forks():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        child = os.fork()
    if not child:
        os._exit(7)
    assert os.waitpid(child, 0)[1] == 7 << 8
"""


@pytest.mark.slow
def test_tests_that_pass_only_on_an_idle_machine_are_flaky(vary) -> None:
    bench = vary({"tests/test_load.py": LOADED}, only=True, min_passing=1, min_pass_rate=0.1, starved_runs=1)
    baseline = run_baseline(bench)
    assert set(baseline.passing()) == {"tests/test_load.py::test_computes", "tests/test_load.py::test_forks"}
    story = baseline.flaky["tests/test_load.py::test_waits_are_short"]
    assert story.startswith("PASSED")
    assert "FAILED" in story
    assert baseline.starved.startswith("1 runs with pauses")


@pytest.fixture
def idle(bench: Workbench) -> Baseline:
    """The baseline of ``shapes`` without load-stress runs."""
    return replace(bench.baseline, starved="")


def with_load_stress(bench: Workbench, idle: Baseline) -> Baseline:
    with load_stress_runs(bench, idle, SHUFFLE_SEED) as runs:
        pass
    return runs.judge(idle)


def test_a_load_stress_run_gets_more_time_and_less_cpu(vary, idle: Baseline, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = vary({}, starved_runs=2)
    test = idle.passing()[0]
    idle = replace(idle, durations=idle.durations | {test: 7.0}, wall_s=9.0)
    requests: list[TestRunRequest] = []
    cpus: list[float | None] = []
    opened = bench.open

    def run_tests(_session: object, _recipe: object, request: TestRunRequest) -> TestRun:
        requests.append(request)
        statuses = {t: "FAILED" if t == test and len(requests) == 2 else "PASSED" for t in idle.passing()}
        return run_of(**statuses)

    def opening(edits, policy):
        cpus.append(policy.cpus)
        return opened(edits)

    fake = SimpleNamespace(run_tests=run_tests, inside=bench.language.inside)
    monkeypatch.setattr(bench, "language", fake)
    monkeypatch.setattr(bench, "open", opening)
    seen = with_load_stress(bench, idle)
    limits = [(r.load_stress, r.timeout_s, r.test_timeout_s) for r in requests]
    assert limits == 2 * [(True, bench.settings.suite_timeout_s + 90, bench.settings.test_timeout_s + 70)]
    assert seen.flaky == idle.flaky | {test: "PASSED 2 times, then FAILED when starved"}
    assert set(idle.passing()) - set(seen.passing()) == {test}
    can = bench.sandbox.capabilities()
    if "cpus" in can.how:
        assert (seen.starved, cpus) == ("2 runs with pauses on 0.5 CPUs", [0.5, 0.5])
    without = replace(can, how={name: how for name, how in can.how.items() if name != "cpus"})
    monkeypatch.setattr(bench.sandbox, "capabilities", lambda: without)
    assert with_load_stress(bench, idle).starved == "2 runs with pauses"
    assert cpus[2:] == [bench.policy.cpus] * 2
    assert max_baseline_s(bench.settings) > 3 * bench.settings.suite_timeout_s + 90


def test_slow_suites_have_no_load_stress_runs(vary, idle: Baseline) -> None:
    bench = vary({}, starved_runs=2)
    for slow in (replace(idle, cpu_s=21.0), replace(idle, wall_s=21.0)):
        assert with_load_stress(bench, slow) == slow
    assert with_load_stress(vary({}, starved_runs=0), idle) == idle


@pytest.mark.parametrize(("suite_s", "runs"), [(0.01, 4), (4.9, 4), (6.0, 3), (13.0, 1), (21.0, 0)])
def test_longer_suites_have_fewer_load_stress_runs(idle: Baseline, suite_s: float, runs: int) -> None:
    settings = VerdictSettings(starved_runs=4)
    assert num_load_stress_runs(settings, replace(idle, cpu_s=suite_s, wall_s=0.01)) == runs
    assert num_load_stress_runs(settings, replace(idle, cpu_s=0.01, wall_s=suite_s)) == runs


@pytest.mark.parametrize(("load", "at_once"), [(0.5, 3), (2.0, 1)])
def test_load_stress_runs_heed_the_load_of_the_machine(
    vary, idle: Baseline, monkeypatch: pytest.MonkeyPatch, load: float, at_once: int
) -> None:
    running, most = set(), 0
    guard, all_there = threading.Lock(), threading.Barrier(at_once)

    def stressed_run(*_: object) -> TestRun:
        nonlocal most
        with guard:
            running.add(threading.get_ident())
            most = max(most, len(running))
        all_there.wait(60)
        with guard:
            running.discard(threading.get_ident())
        return run_of(**dict.fromkeys(idle.passing(), "PASSED"))

    monkeypatch.setattr(module, "_load_stress_run", stressed_run)
    monkeypatch.setattr(module, "load_per_core", lambda: load)
    assert with_load_stress(vary({}, starved_runs=3), idle).starved.startswith("3 runs with pauses")
    assert most == at_once


def test_an_overloaded_machine_gets_one_load_stress_run(vary, idle: Baseline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "load_per_core", lambda: 7.25)
    monkeypatch.setattr(module, "_load_stress_run", lambda *_: run_of(**dict.fromkeys(idle.passing(), "PASSED")))
    assert with_load_stress(vary({}, starved_runs=3), idle).starved.startswith("1 runs with pauses")


def test_load_stress_runs_that_do_not_finish_are_ignored(vary, idle: Baseline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_load_stress_run", lambda *_: TestRun(worker=WorkerOutcome.TIMEOUT))
    assert with_load_stress(vary({}, starved_runs=2), idle) == idle
