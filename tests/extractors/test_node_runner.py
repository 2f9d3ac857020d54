"""Tests run in node: by id, each with a result of its own, whatever another one does; and their coverage."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from excise.envs.sandbox.mount_points import open_to_all
from excise.extractors.fetch.trees import copy_files, list_files
from excise.pipeline.stages.environment_stage import open_workbench
from excise.protocols import GradingMode
from excise.types import Status, TestRun, WorkerOutcome, name_in_file
from excise.verifiers.grading.graded_runs import graded_run
from excise.verifiers.workbench import Prepared, Workbench

REPOS = Path(__file__).resolve().parents[1] / "repos"
TESTS = ("test/depot.test.js", "test/label.test.js", "test/postage.test.js")
COUNTS = "test/depot.test.js::Depot::counts by zone"


@pytest.fixture(scope="module")
def bench(parcels_run: Any, prepared_parcels: Prepared) -> Workbench:
    return open_workbench(parcels_run.settings, prepared_parcels)


@pytest.fixture(scope="module")
def rapids(parcels_run: Any, prepared_parcels: Prepared, tmp_path_factory: pytest.TempPathFactory) -> TestRun:
    """A run of tests that hang, end their process, fail late or forge a report."""
    root = tmp_path_factory.mktemp("rapids") / "sources"
    root.mkdir()
    copy_files(REPOS / "rapids", list_files(REPOS / "rapids"), root)
    open_to_all(root)
    files = tuple(path for path in list_files(root) if path.startswith("test/"))
    environment = prepared_parcels.environment
    other = replace(
        prepared_parcels,
        layers=replace(prepared_parcels.layers, sources=str(root)),
        environment=replace(environment, recipe=replace(environment.recipe, test_paths=files)),
        baseline=None,
        coverage=None,
    )
    verdict = parcels_run.settings.verdict.model_copy(update={"test_timeout_s": 1.0, "suite_timeout_s": 120.0})
    return open_workbench(parcels_run.settings.model_copy(update={"verdict": verdict}), other).run({})


def test_all_tests_of_all_files_run(bench: Workbench) -> None:
    assert {test.partition("::")[0] for test in bench.baseline.passing()} == set(TESTS)
    assert len(bench.baseline.passing()) == 13
    assert {"test/label.test.js::label", "test/label.test.js::label[2]"} <= set(bench.baseline.passing())


def test_exactly_the_requested_tests_run(bench: Workbench) -> None:
    run = bench.run({}, ids=[COUNTS, "test/label.test.js::label[2]", "test/label.test.js::none"])
    assert run.statuses() == {
        COUNTS: Status.PASSED,
        "test/label.test.js::label[2]": Status.PASSED,
        "test/label.test.js::none": Status.MISSING,
    }


def test_tests_that_hang_or_end_their_process_fail_alone(rapids: TestRun) -> None:
    assert (rapids.worker, rapids.finished) == (WorkerOutcome.OK, True)
    messages = {name_in_file(r.test_id): r.message for r in rapids.results if r.status is Status.FAILED}
    assert messages.pop("misses its plan")  # older versions of node know no plans
    assert messages == {
        "ends the process": "ended the test process",
        "blocks for ever": "did not end when told to",
        "waits for ever": "ran for more than 1 s",
        "fails late": "Error: late",
        "fails": "AssertionError: Expected values to be strictly equal:",
        "forges a report": "Error: no",
    }
    passed = {name_in_file(r.test_id) for r in rapids.results if r.status is Status.PASSED}
    assert passed == {"first", "after the end", "last"}


def test_a_file_that_cannot_be_loaded_is_reported(rapids: TestRun) -> None:
    assert rapids.collect_errors == (("test/broken.test.js", "Error: Cannot find module './no-such-file'"),)


def test_coverage_tells_which_functions_a_test_executes(bench: Workbench) -> None:
    coverage = bench.prepared.coverage
    assert coverage is not None
    by_test = {
        test: {s for s, numbers in coverage.by_symbol.items() if coverage.tests.index(test) in numbers and "::" in s}
        for test in coverage.tests
    }
    depot = "lib/depot.js::Depot"
    assert by_test[COUNTS] == {depot, f"{depot}.constructor", f"{depot}.add", f"{depot}.byZone"}
    assert by_test["test/depot.test.js::Depot::begins empty"] == {depot, f"{depot}.constructor"}
    assert by_test["test/label.test.js::label"] == {"lib/label.js::label", "lib/label.js::shortened"}
    assert coverage.at_import == ()
    assert coverage.unstable == ()


def test_graded_runs_read_hidden_tests_from_memory_and_run_canaries_in_every_process(bench: Workbench) -> None:
    ids = ["test/label.test.js::label", COUNTS]
    sealed = {path: (bench.root / path).read_text() for path in TESTS[:2]}
    name, canaries = bench.language.grading.canaries("seed", sealed[TESTS[1]].encode())
    places = {f"test/{name}::{title}": n / 5 for n, title in enumerate(canaries.tests)}
    edits = dict.fromkeys([*sealed, f"test/{name}"], b"")
    done = graded_run(
        bench, edits, ids, GradingMode(), canaries=places, sealed={**sealed, f"test/{name}": canaries.text}
    )
    statuses = done.run.statuses()
    assert {test: statuses[test] for test in ids} == dict.fromkeys(ids, Status.PASSED)
    assert {statuses[test] for test in places} == {Status.FAILED}
    assert done.run.finished
    assert not done.changed


def test_failing_copies_do_what_their_tests_do_and_fail(bench: Workbench) -> None:
    path, names = TESTS[0], ["Depot::begins empty", "Depot::gives the heaviest first"]
    found = bench.language.grading.failing_copies(path, (bench.root / path).read_bytes(), names, "seed")
    assert found is not None
    name, copies = found
    assert name.startswith("depot-")
    assert copies.tests == tuple(names)
    copied = [f"test/{name}::{title}" for title in names]
    sealed = {f"test/{name}": copies.text}
    run = graded_run(
        bench, dict.fromkeys(sealed, b""), [COUNTS, *copied], GradingMode(), sealed=sealed, timed=[COUNTS]
    ).run
    assert run.statuses() == {COUNTS: Status.PASSED, **dict.fromkeys(copied, Status.FAILED)}


REPLACING = {
    "lib/depot.js": (
        "const excAssert = require('assert')\nconst excEqual = excAssert.strictEqual\n"
        "excAssert.strictEqual = () => {}\nprocess.nextTick(() => { excAssert.strictEqual = excEqual })\n",
        "assert.strictEqual",
    ),
    "lib/label.js": (
        "const excSlice = String.prototype.slice\nString.prototype.slice = function () { return '' }\n"
        "process.prependListener('exit', () => { String.prototype.slice = excSlice })\n",
        "String.slice",
    ),
}


@pytest.mark.parametrize("path", sorted(REPLACING))
def test_parts_of_the_test_runner_that_are_replaced_for_a_while_are_told(bench: Workbench, path: str) -> None:
    code, name = REPLACING[path]
    edits = {path: (bench.root / path).read_bytes() + code.encode()}
    assert name in graded_run(bench, edits, [COUNTS], GradingMode()).changed
