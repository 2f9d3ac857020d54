"""Runs that are forked from a process with a collected suite have the results of runs in processes of their own."""

from __future__ import annotations

import json

import pytest

from excise.deleters.all_deleters import get
from excise.errors import DeletionRefused
from excise.extractors.features.find_features import FoundFeatures
from excise.pipeline.stages.find_stage import find_stage
from excise.protocols import EMPTY, Start, TestRunRequest
from excise.types import Status, TestRun, WorkerOutcome
from excise.verifiers.candidate import DeletionTrees
from excise.verifiers.run_starts import RunStarts
from excise.verifiers.workbench import Workbench

from ..conftest import Run, Vary

SQUARES = "src/shapes/squares.py"


def collected(bench: Workbench, edits: dict[str, bytes | None] | None = None, **request: object) -> TestRun:
    """A run from the collected suite; it need not have been served."""
    asked = TestRunRequest(start=Start.COLLECTED, test_timeout_s=5, **request)  # type: ignore[arg-type]
    with bench.open(edits or {}, start=Start.COLLECTED) as session:
        assert session.forks
        return bench.language.run_tests(session, bench.recipe, asked)


def edited(bench: Workbench, path: str, old: str, new: str) -> dict[str, bytes | None]:
    text = (bench.root / path).read_bytes()
    assert text.count(old.encode()) == 1
    return {path: text.replace(old.encode(), new.encode())}


def test_results_of_the_whole_suite_are_equal(bench: Workbench) -> None:
    fresh, served = bench.run({}), collected(bench)
    assert served.finished
    assert served.statuses() == fresh.statuses()
    assert served.imported == fresh.imported
    assert [result.test_id for result in served.results] == [result.test_id for result in fresh.results]


def test_chosen_tests_and_orders_are_equal(bench: Workbench) -> None:
    tests = sorted(bench.trusted)[::3]
    for request in ({"ids": tests}, {"ids": tests, "shuffle_seed": 5}, {"excluded": tests}):
        served = collected(bench, **request)
        with bench.open({}) as session:
            fresh = bench.language.run_tests(session, bench.recipe, TestRunRequest(**request))  # type: ignore[arg-type]
        assert served.finished
        assert sorted(served.statuses().items()) == sorted(fresh.statuses().items())


@pytest.mark.parametrize("start", [Start.FRESH, Start.COLLECTED])
@pytest.mark.parametrize("last", ["fails", "hangs", "dies"])
def test_a_run_until_a_failure_ends_there(vary: Vary, start: Start, last: str) -> None:
    test = "import os\nimport pytest\n\n\n@pytest.mark.parametrize('what', ['passes', 'LAST', 'never'])\n"
    test += "def test_a(what):\n    assert what != 'fails'\n    while what == 'hangs': pass\n"
    test += "    if what == 'dies': os._exit(0)\n"
    test += "    if what == 'never': open('/excise/out/ran', 'w').close()\n"
    bench = vary({"tests/test_last.py": test.replace("LAST", last)})
    ids = [f"tests/test_last.py::test_a[{what}]" for what in ("passes", last, "never")]
    asked = TestRunRequest(start=start, ids=ids, test_timeout_s=1, timeout_s=60, until_failure=True)
    with bench.open({}, start=start) as session:
        run = bench.language.run_tests(session, bench.recipe, asked)
        assert not (session.out / "ran").exists()
    is_lost = start is Start.COLLECTED and last == "dies"
    assert run.finished is not is_lost, "a forked process that a test ends has told nothing of its end"
    assert run.statuses()[ids[0]] is Status.PASSED
    assert run.statuses()[ids[1]] is (Status.MISSING if is_lost else Status.FAILED)
    assert run.statuses()[ids[2]] is Status.MISSING


def test_every_function_without_its_body_gives_the_same_results(shapes_run: Run, bench: Workbench) -> None:
    proposed = find_stage(shapes_run.settings, "shapes", bench.prepared)
    assert isinstance(proposed, FoundFeatures)
    served = 0
    for number, feature in enumerate(proposed.features):
        try:
            deletion = get("stub").delete(bench.codebase, feature)
        except DeletionRefused:
            continue
        trees, tests = DeletionTrees(bench=bench, deletion=deletion), sorted(feature.tests)
        for tree in ("deleted", EMPTY[number % len(EMPTY)]):
            run = collected(bench, trees.edits(tree), ids=tests)
            served += run.finished
            if run.finished:
                assert run.statuses() == bench.run(trees.edits(tree), ids=tests).statuses(), (feature.entry, tree)
    assert served >= 15


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (SQUARES, "class Rectangle", "class Gone"),
        (SQUARES, "def grow(self, step):", "def grow(self):"),
        ("src/shapes/base.py", "def register(name):", "def register(name):\n    raise KeyError"),
    ],
)
def test_what_needs_an_import_is_refused_and_run_in_another_way(
    bench: Workbench, path: str, old: str, new: str
) -> None:
    edits = edited(bench, path, old, new)
    refused = collected(bench, edits)
    assert (refused.finished, refused.results) == (False, ())
    bench.starts.collect_now()
    assert bench.run(edits, forked=True).statuses() == bench.run(edits).statuses() != bench.run({}).statuses()


LEAVES_TRACES = {
    "a thread": "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
    "a process": "import subprocess\nchild = subprocess.Popen(['sleep', '60'])",
    "an open file": "opened = open(__file__)",
    "a socket": "import socket\nends = socket.socketpair()",
    "an empty folder": "import os\nos.mkdir('made')",
    "shared memory": "import mmap\nshared = mmap.mmap(-1, 4096)",
    "a file in the checkout": "open('made.txt', 'w').close()",
    "a temporary folder": "import tempfile\nmade = tempfile.mkdtemp()",
    "a profiler": (
        "import sys\nsys.version_info >= (3, 12) and sys.monitoring.free_tool_id(4)\nsys.setprofile(lambda *n: None)"
    ),
}


@pytest.mark.parametrize("trace", LEAVES_TRACES)
def test_a_project_that_leaves_something_when_it_is_imported_is_not_served(vary: Vary, trace: str) -> None:
    bench = vary({"tests/test_import.py": LEAVES_TRACES[trace] + "\n\n\ndef test_one():\n    pass\n"})
    bench.starts.collect_now()
    run = bench.run({}, forked=True)
    assert not bench.starts.can_collect
    assert run.finished
    assert run.statuses()["tests/test_import.py::test_one"] is Status.PASSED


EXAMPLE = """from functools import reduce


def larger(a, b):
    '''The larger one.

    >>> larger(1, 2), "reduce" in globals()
    (2, False)
    '''
    return reduce(max, [a, b])
"""


def test_names_that_go_are_gone_for_examples_in_docstrings_too(vary: Vary) -> None:
    options = "def pytest_configure(config):\n    config.option.doctestmodules = True\n"
    bench = vary({"tests/unit/conftest.py": options, "tests/unit/example.py": EXAMPLE})
    tests = [test for test in collected(bench).statuses() if test.startswith("tests/unit/example.py::")]
    assert len(tests) == 1
    edits = edited(bench, "tests/unit/example.py", "from functools import reduce\n\n\n", "")
    edits = {path: data.replace(b"reduce(max, [a, b])", b"max(a, b)") for path, data in edits.items() if data}
    for change, expected in (({}, Status.FAILED), (edits, Status.PASSED)):
        run = collected(bench, change, ids=tests)
        assert (run.finished, run.statuses()) == (True, {tests[0]: expected})


DETOUR = "import os, sys\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))\nfrom extra import two\n"


def test_modules_that_are_imported_by_a_detour_are_found(vary: Vary) -> None:
    files = {
        "extra.py": "def two():\n    return 2\n",
        "tests/test_extra.py": f"{DETOUR}\n\ndef test_two():\n    assert two() == 2\n",
    }
    bench = vary(files)
    tests = ["tests/test_extra.py::test_two"]
    run = collected(bench, edited(bench, "extra.py", "return 2", "return 3"), ids=tests)
    assert (run.finished, run.statuses()) == (True, {tests[0]: Status.FAILED})


def test_a_suite_that_does_not_pass_when_it_is_forked_is_not_served(bench: Workbench, vary: Vary) -> None:
    path, test = "tests/test_walk.py", sorted(t for t in bench.trusted if t.startswith("tests/test_walk.py"))[0]
    text, name = (bench.root / path).read_text(), test.rpartition("::")[2].partition("[")[0]
    head, line, body = text.partition(next(line for line in text.splitlines(True) if f"def {name}(" in line))
    changed = f"import os\n\nOWN = os.getpid()\n{head}{line}    assert os.getpid() == OWN\n{body}"
    for content, served in ((text, True), (changed, False)):
        other = vary({path: content}, baseline=True)
        other.starts.collect_now()
        assert other.run({}, ids=[test], forked=True).statuses() == {test: Status.PASSED}
        assert other.starts.can_collect is served


VIOLENT = """
import os, signal, time

from shapes import Square


def test_before():
    assert Square(1).area() == 1


def test_kill():
    if Square(1).area() != 1:
        os.kill(os.getpid(), signal.SIGKILL)


def test_hang():
    while Square(1).area() != 1:
        time.sleep(0.1)


def test_after():
    assert Square(2).area() == 4
"""


def test_tests_that_end_or_block_the_process_fail_alone(vary: Vary) -> None:
    bench = vary({"tests/test_violent.py": VIOLENT}, verdict={})
    bench.settings = bench.settings.model_copy(update={"test_timeout_s": 2.0})
    tests = [f"tests/test_violent.py::test_{name}" for name in ("before", "kill", "hang", "after")]
    edits = edited(bench, SQUARES, "return self.width * self.height", "return 7")
    bench.starts.collect_now()
    run = bench.run(edits, ids=tests, forked=True)
    assert run.finished
    assert set(run.statuses().values()) == {Status.FAILED}
    assert "ended the test process" in {r.test_id: r.message for r in run.results}[tests[1]]
    assert collected(bench, ids=tests).statuses() == dict.fromkeys(tests, Status.PASSED), "the next run is served"


ABOUT_ITSELF = """
import json, os, random, sys, warnings, logging, gc

import pytest

IMPORTED = random.random()


def test_describe(capfd):
    found = {
        "path": sorted(set(sys.path)), "argv": sys.argv, "environ": dict(os.environ), "cwd": os.getcwd(),
        "gc": [gc.isenabled(), gc.get_threshold()], "filters": len(warnings.filters), "captured": capfd.readouterr(),
        "handlers": len(logging.getLogger().handlers), "temporary": sorted(os.listdir("/tmp")),
    }
    with open("/excise/out/found", "w") as file:
        json.dump([found, random.random()], file)
    os.write(1, b"left in the file of the captured output")
    os._exit(0) if os.path.exists("/excise/out/ends") else None
"""


def test_a_test_cannot_tell_what_ran_before(vary: Vary) -> None:
    bench = vary({"tests/test_itself.py": ABOUT_ITSELF.replace("IMPORTED = random.random()\n", "")})
    found, drawn = [], set()
    request = TestRunRequest(ids=["tests/test_itself.py::test_describe"])
    for start in (Start.FRESH, Start.COLLECTED, Start.COLLECTED, Start.COLLECTED):
        asked = TestRunRequest(ids=request.ids, start=start)
        with bench.open({}, start=start) as session:
            if len(found) == 1:
                (session.out / "ends").touch()  # the run is killed with output in its file
            bench.language.run_tests(session, bench.recipe, asked)
            description, number = json.loads((session.out / "found").read_text())
        found.append(description)
        drawn.add(number)
    assert found[1:] == found[:1] * 3
    assert len(drawn) == 4, "random numbers are random"


def test_the_suite_is_collected_when_that_has_paid_off() -> None:
    starts = RunStarts(["a.py", "b.txt"], (".py",))
    paid = TestRun(worker=WorkerOutcome.OK, cpu_s=0.3)
    body: dict[str, bytes | None] = {"a.py": b""}
    assert starts.choose(body) is Start.FORKED
    starts.note(TestRun(worker=WorkerOutcome.OK, cpu_s=0.5), Start.FRESH, {}, whole=True)
    starts.note(paid, Start.FORKED, {"a.py": None}, whole=False)
    starts.note(paid, Start.FORKED, body, whole=False)
    assert starts.choose(body) is Start.FORKED
    starts.note(paid, Start.FORKED, body, whole=False)
    assert starts.choose(body) is Start.COLLECTED
    for edits in ({"a.py": None}, {"new.py": b""}, {"b.txt": b""}):
        assert starts.choose(edits) is Start.FORKED  # type: ignore[arg-type]
    starts.can_collect = False
    assert starts.choose(body) is Start.FORKED
