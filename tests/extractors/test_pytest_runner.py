"""Any report can be read, and tests that hang or kill their process fail alone."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from excise.extractors.python.execution.pytest_runner import internal_error
from excise.extractors.test_reports.report import read_report, to_test_run
from excise.protocols import Completed
from excise.types import Status, TestRun, WorkerOutcome
from excise.verifiers.workbench import Workbench

REPOS = Path(__file__).resolve().parents[1] / "repos"


def completed(rc: int = 0, worker: WorkerOutcome = WorkerOutcome.OK) -> Completed:
    return Completed(worker=worker, rc=rc, stdout=b"the tail", stderr=b"", wall_s=1.0, cpu_s=0.5)


def line(test: str, status: str, **fields: object) -> dict[str, object]:
    return {"t": "test", "id": test, "status": status, **fields}


# --------------------------------------------------------------------------------------- reports
def test_a_missing_test_is_missing_not_passed() -> None:
    run = to_test_run(completed(), iter([line("a", "PASSED"), {"t": "end", "exit": 0}]), ["a", "b"])
    assert run.statuses() == {"a": Status.PASSED, "b": Status.MISSING}
    assert run.finished


@pytest.mark.parametrize(("code", "finished"), [(0, True), (1, True), (5, True), (2, False), (3, False), (4, False)])
def test_a_run_that_pytest_aborted_is_not_finished(code: int, finished: bool) -> None:
    assert to_test_run(completed(), iter([line("a", "PASSED"), {"t": "end", "exit": code}]), None).finished is finished


def test_a_test_that_reports_twice_counts_by_its_worse_status() -> None:
    entries = [line("a", "PASSED"), line("a", "FAILED"), line("a", "PASSED"), line("b", "nonsense")]
    run = to_test_run(completed(), iter(entries), None)
    assert run.statuses() == {"a": Status.FAILED, "b": Status.ERROR}
    assert not run.finished
    assert run.detail == "the tail"


@pytest.mark.parametrize(
    ("rc", "worker", "expected"),
    [
        (0, WorkerOutcome.OK, WorkerOutcome.OK),
        (-9, WorkerOutcome.OK, WorkerOutcome.KILLED),
        (-9, WorkerOutcome.TIMEOUT, WorkerOutcome.TIMEOUT),
    ],
)
def test_worker_outcomes(rc: int, worker: WorkerOutcome, expected: WorkerOutcome) -> None:
    assert to_test_run(completed(rc, worker), iter([]), None).worker is expected


def test_a_forged_report_is_no_crash() -> None:
    odd: list[dict[str, object]] = [
        {"t": "test"}, {"t": "test", "id": 7, "status": ["PASSED"], "dur": "long", "msg": None}, {"t": "nonsense"},
        {"t": "collect_error"}, {"t": "imported"}, {"t": "end", "exit": "0", "cpu": "x"},
        {"t": "test", "id": "a", "dur": -1},
    ]  # fmt: skip
    run = to_test_run(completed(), iter(odd), None)
    assert set(run.statuses().values()) == {Status.ERROR}
    assert {r.duration_s for r in run.results} == {0.0}
    assert (run.finished, run.cpu_s) == (False, 0.5)


def test_reading_stops_at_a_broken_line(tmp_path: Path) -> None:
    report = tmp_path / "report"
    good = b'{"t": "test", "id": "a"}\n'
    for rest in (b'{"t": "te', b"not json\n", b"\xff\xfe\n", b'"' + b"x" * (17 << 20) + b'"\n'):
        report.write_bytes(good + rest + good)
        assert [entry["id"] for entry in read_report(report)] == ["a"]
    report.write_bytes(b'[1]\n{}\n{"t": 1}\n' + good)
    assert len(list(read_report(report))) == 1


def test_a_report_that_is_no_file_is_empty(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text('{"t": "end"}\n')
    (tmp_path / "link").symlink_to(secret)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("link", "pipe", "folder", "missing"):
        assert list(read_report(tmp_path / name)) == []


# -------------------------------------------------------------------------------------- real runs
def hostile(vary, name: str, **limits: object) -> Workbench:
    files = {
        path.relative_to(REPOS / name).as_posix(): path.read_text()
        for path in (REPOS / name).rglob("*.py")
        if path.name != "setup.py"
    }
    return vary(files, only=True, **{"test_timeout_s": 1.0, "suite_timeout_s": 120.0} | limits)


def failures(run: TestRun) -> dict[str, str]:
    assert run.worker is WorkerOutcome.OK
    assert run.finished, run.detail
    return {r.test_id.rpartition("::")[2]: r.message for r in run.results if r.status is Status.FAILED}


def passing(run: TestRun) -> set[str]:
    return {r.test_id.rpartition("::")[2] for r in run.results if r.status is Status.PASSED}


@pytest.mark.slow
def test_tests_that_hang_or_die_fail_alone(vary) -> None:
    run = hostile(vary, "hangs").run({}, shuffle_seed=3)
    assert failures(run) == {
        "test_sleeps_for_ever": "ran for more than 1 s",
        "test_catches_everything": "did not end when told to",
        "test_takes_the_alarm_away": "did not end when told to",
        "test_hangs_in_c": "did not end when told to",
        "test_ends_the_process": "ended the test process (exit code 0)",
        "test_crashes": "ended the test process (signal 11)",
    }
    assert len(passing(run)) == 14


def test_a_repeated_timeout_loses_no_result(vary) -> None:
    files = {
        "tests/conftest.py": "import time\n\ndef pytest_runtest_logreport(report): time.sleep(1.2 * report.failed)\n",
        "tests/test_slow.py": "import time\n\ndef test_hangs():\n    time.sleep(60)\n\ndef test_goes_on():\n    pass\n",
    }
    run = vary(files, only=True, test_timeout_s=1.0, suite_timeout_s=60.0).run({})
    assert failures(run) == {"test_hangs": "ran for more than 1 s"}
    assert passing(run) == {"test_goes_on"}


def test_forks_are_contained(vary) -> None:
    run = hostile(vary, "forks", pids=48, test_timeout_s=4.0).run({})  # a dying bomb slows down whoever comes next
    failed = failures(run)
    # Its own alarm ends it, or the guard does where the bomb leaves the process no time to hear the alarm.
    assert failed.pop("test_bomb") in {"ran for more than 4 s", "did not end when told to"}
    assert not failed
    assert passing(run) >= {"test_comes_back_twice", "test_daemons", "test_z_goes_on", "test_odd"}
    assert len(run.results) == 17


@pytest.mark.parametrize("seed", [None, 3])
def test_nothing_escapes(vary, seed: int | None) -> None:
    run = hostile(vary, "escapes", memory_mb=256, disk_mb=64).run({}, shuffle_seed=seed)
    failed = failures(run)
    assert failed.pop("test_eat_memory") == "ended the test process (signal 9)"
    assert {name: message.partition(":")[0] for name, message in failed.items()} == {
        "test_write_outside": "OSError",
        "test_write_the_environment": "OSError",
        "test_read_shadow": "FileNotFoundError",
        "test_read_root": "FileNotFoundError",
        "test_reach_the_network": "OSError",
        "test_resolve_names": "socket.gaierror",
        "test_configure_the_kernel": "OSError",
        "test_kill_others": "AssertionError",
        "test_kill_init": "AssertionError",
        "test_fill_the_disk": "OSError",
        "test_fill_the_results": "OSError",
        "test_link_out": "FileNotFoundError",
    }
    assert len(passing(run)) == 14


def test_exactly_the_requested_tests_run(bench: Workbench) -> None:
    ids = ["tests/test_walk.py::test_start", "tests/test_round.py::test_ring[1-1-0]", "tests/gone.py::test_x"]
    run = bench.run({}, ids=ids)
    assert {t: str(s) for t, s in run.statuses().items()} == dict(
        zip(ids, ["PASSED", "PASSED", "MISSING"], strict=True)
    )
    assert dict(run.imported) == {"shapes": "/testbed/src/shapes/__init__.py"}
    nothing = bench.run({}, ids=["tests/gone.py::test_x"])
    assert (nothing.finished, set(nothing.statuses().values())) == (True, {Status.MISSING})


OTHER_MAKERS = {
    "nobody": "",
    "a hook of a conftest": """
import pytest
def pytest_pycollect_makeitem(collector, name, obj):
    if name == "table":
        return [pytest.Function.from_parent(collector, name="test_" + row, callobj=lambda: None) for row in obj]
""",
    "a hook that gives parameters": "def pytest_generate_tests(metafunc): metafunc.fixturenames",
}


@pytest.mark.parametrize("maker", OTHER_MAKERS)
def test_nothing_is_made_of_names_that_no_requested_test_has_if_pytest_alone_makes_tests(vary, maker: str) -> None:
    file = """
import pytest
table = ["row"]
class TestIt:
    @pytest.mark.parametrize("value", ["a::b", "[c]"])
    def test_method(self, value): pass
    def test_other(self): pass
@pytest.mark.parametrize("missing", [1])
def test_cannot_be_collected(): pass
"""
    bench = vary({"tests/conftest.py": OTHER_MAKERS[maker], "tests/test_it.py": file}, only=True)
    ids = [f"tests/test_it.py::TestIt::test_method[{value}]" for value in ("a::b", "[c]")]
    run = bench.run({}, ids=ids if maker == "nobody" else [*ids, "tests/test_it.py::test_row"])
    passed = {result.test_id for result in run.results if result.status is Status.PASSED}
    assert (passed, bool(run.collect_errors)) == ((set(ids), False) if maker == "nobody" else (set(), True))


def test_a_hypothesis_profile_that_nothing_registers_ends_no_run(bench: Workbench) -> None:
    environment = bench.prepared.environment
    recipe = replace(environment.recipe, test_args=("--hypothesis-profile=ci", "--hypothesis-profile", "less", "-q"))
    asking = replace(bench.prepared, environment=replace(environment, recipe=recipe))
    run = Workbench(asking, bench.settings, bench.sandbox).run({}, ids=["tests/test_walk.py::test_start"])
    assert [str(result.status) for result in run.results] == ["PASSED"], run.detail


def test_hypothesis_does_not_simplify_what_fails(bench: Workbench) -> None:
    stand_in = """
import enum
Phase = enum.Enum("Phase", "explicit generate target shrink explain")
class settings:
    def __init__(self, **given): self.__dict__.update(given)
    def register_profile(name, parent, **given): profiles[name] = settings(**{**vars(parent), **given})
    def load_profile(name): settings.default = profiles[name]
settings.default = settings(phases=tuple(Phase))
profiles = {"default": settings.default}
"""
    test = """
import hypothesis
def test_start():
    assert [phase.name for phase in hypothesis.settings.default.phases] == ["explicit", "generate", "target"]
    assert hypothesis.settings.default.derandomize
"""
    edits = {"conftest.py": b"", "hypothesis.py": stand_in.encode(), "tests/test_walk.py": test.encode()}
    run = bench.run(edits, ids=["tests/test_walk.py::test_start"])
    assert [str(result.status) for result in run.results] == ["PASSED"], run.results


def test_tests_that_hang_untouched_are_left_out_of_later_runs(bench: Workbench) -> None:
    hung, slow = "tests/test_walk.py::test_start", "tests/test_round.py::test_ring[1-1-0]"
    statuses = {test: status for test, status in bench.baseline.statuses.items() if test != hung}
    durations = bench.baseline.durations | {hung: 60.0, slow: 60.0}
    baseline = replace(bench.baseline, statuses=statuses, durations=durations, wall_s=bench.baseline.wall_s + 120)
    later = Workbench(replace(bench.prepared, baseline=baseline), bench.settings, bench.sandbox)
    assert (later.left_out, slow in baseline.passing()) == ((hung,), True)
    assert baseline.suite_s() == pytest.approx(bench.baseline.wall_s + 60)
    assert later.run({}).statuses().keys() == bench.baseline.durations.keys() - {hung}


def test_a_file_that_does_not_import_is_a_collection_error_and_the_others_run(bench: Workbench) -> None:
    run = bench.run({"tests/test_walk.py": b"import nowhere\n"})
    assert run.collect_errors == (("tests/test_walk.py", "ModuleNotFoundError: No module named 'nowhere'"),)
    assert len(run.results) == 40


def test_the_garbage_collector_is_on_for_the_projects_code(bench: Workbench) -> None:
    """While modules of tests are imported, and while tests run."""
    code = b"import gc\nassert gc.isenabled()\ndef test_start(): assert gc.isenabled()\n"
    run = bench.run({"tests/test_walk.py": code}, ids=["tests/test_walk.py::test_start"])
    assert run.statuses() == {"tests/test_walk.py::test_start": Status.PASSED}


def test_the_order_is_shuffled_by_seed(bench: Workbench) -> None:
    orders = [[r.test_id for r in bench.run({}, shuffle_seed=seed).results] for seed in (1, 1, 2, None)]
    assert orders[0] == orders[1]
    assert len({tuple(order) for order in orders}) == 3
    assert len({frozenset(order) for order in orders}) == 1


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (
            'INTERNALERROR>     hook(items)\nINTERNALERROR>   File "/testbed/conftest.py", line 2, in hook\n'
            "INTERNALERROR>   ~~~~^^^\nINTERNALERROR> SystemExit: no commands\n\nno tests ran\n",
            "pytest ended with an error before it ran the tests: SystemExit: no commands (conftest.py, line 2)",
        ),
        ("INTERNALERROR> a.b.Error\n", "pytest ended with an error before it ran the tests: a.b.Error"),
        ("SystemExit: no commands\n", ""),
        ('INTERNALERROR>   File "/testbed/conftest.py", line 2, in hook\n', ""),
    ],
)
def test_what_ended_pytest_itself_is_told(output: str, expected: str) -> None:
    assert internal_error(output) == expected
