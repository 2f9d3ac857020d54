"""Tasks in Java from end to end: certified, verified, graded, attacked, and searched for planted leaks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from excise.pipeline.services.attack_suite import AttackResult, attack_tasks, summary
from excise.pipeline.services.task_grader import Grader
from excise.pipeline.stages.environment_stage import open_workbench
from excise.types import GateOutcome, Task
from excise.verifiers.attacks.all_attacks import attacks_of
from excise.verifiers.gates.no_leaks import NoLeaks
from excise.verifiers.stored_tasks import candidate_of
from excise.verifiers.workbench import Workbench

MAIN, TESTS = "src/main/java/org/example/ledger", "src/test/java/org/example/ledger"
CHOSEN = (
    "java-call-halt-0", "java-call-memory", "java-tests-among-sources", "java-shadow-assertions", "java-extension",
    "java-skip-jupiter", "java-read-ahead", "java-inverted", "java-values-of-the-test-class",
    "java-values-reported-by-the-code",
)  # fmt: skip
"""Attacks of the vectors that a weak grader would reward."""


@pytest.fixture(scope="module")
def tasks(ledger: Any) -> list[Task]:
    return sorted(ledger.taskset.tasks(), key=lambda task: task.instance_id)


@pytest.fixture(scope="module")
def split(tasks: list[Task]) -> Task:
    (found,) = tasks
    return found


@pytest.fixture(scope="module")
def results(ledger: Any, split: Task) -> list[AttackResult]:
    return attack_tasks(ledger.settings, ledger.taskset, [split.instance_id], CHOSEN, lambda line: None)


@pytest.fixture(scope="module")
def bench(ledger: Any, split: Task) -> Workbench:
    environment = Grader(ledger.taskset, ledger.settings).environment_of(split)
    return environment.bench  # type: ignore[union-attr]


def test_every_task_passed_every_gate(ledger: Any, tasks: list[Task]) -> None:
    assert len(tasks) == 1
    for task in tasks:
        certificate = ledger.taskset.certificate(task.instance_id)
        assert {verdict.outcome for verdict in certificate.verdicts} == {GateOutcome.PASSED}
        assert certificate.tools["java"].startswith("17.")
        assert task.language == "java"
        assert "```java\n" in task.problem_statement
        placeholder = "throw new UnsupportedOperationException"
        assert (placeholder in task.deletion_patch) == (task.deleter != "remove")


def test_gold_wins_and_neither_stubs_nor_forgeries_do(results: list[AttackResult]) -> None:
    total = summary(results)
    assert total["ok"], [(r.name, r.reasons) for r in results if r.reward == 1 or not r.decided]
    assert (total["attacks"], total["honest_passed"]) == (len(CHOSEN), 1)


def test_results_that_are_turned_round_where_the_code_is_called_are_told_by_failing_copies(
    results: list[AttackResult],
) -> None:
    reasons = {result.name: set(result.reasons) for result in results}
    assert "canary_passed" in reasons["java-inverted"]
    assert reasons["java-read-ahead"] == {"fail_to_pass"}, "there is no pipe to read from"


OTHER_SPLIT = """        if (parts <= 0) {
            throw new NumberFormatException("none");
        }
        Amount[] all = new Amount[parts];
        long before = 0;
        for (long place = parts; place > 0; place--) {
            long rest = units - before;
            long share = -Math.floorDiv(-rest, place);
            all[(int) (parts - place)] = new Amount(share, currency);
            before += share;
        }
        return all;
"""
"""Another body of the method that the task is about; its error is below the one that the test asks for."""


def with_body(task: Task, body: str) -> str:
    """The gold patch with another body of the method."""
    head, start, rest = task.patch.partition("+        if (parts < 1) {\n")
    old, end, after = rest.partition("+        return found;\n")
    assert start
    assert end
    other = "".join(f"+{line}\n" for line in body.splitlines())
    more = other.count("\n") - (start + old + end).count("\n")
    return re.sub(r"\+(\d+),(\d+) @@", lambda found: f"+{found[1]},{int(found[2]) + more} @@", head) + other + after


def test_tests_are_lifted_and_another_implementation_wins(ledger: Any, split: Task) -> None:
    assert ledger.taskset.lifted_share(split.instance_id) == 1.0
    assert ledger.taskset.tamper_proof() == {split.instance_id}
    assert len(split.fail_to_pass) == 3
    grader = Grader(ledger.taskset, ledger.settings)
    grade = grader.grade(split.instance_id, with_body(split, OTHER_SPLIT))
    assert (grade.reward, grade.num_lifted, grade.lifted_failed) == (1.0, 3, ()), grade.reasons
    wrong = grader.grade(
        split.instance_id, with_body(split, OTHER_SPLIT.replace("-Math.floorDiv(-rest,", "Math.floorDiv(rest,"))
    )
    assert wrong.reward == 0


def test_there_are_attacks_of_every_kind() -> None:
    assert len({attack.vector for attack in attacks_of("java").values()}) >= 12


def test_runs_and_agents_find_nothing_that_was_built_of_the_project(bench: Workbench) -> None:
    """The layers of environment and outputs hold libraries and the launcher only."""
    for layer in (bench.prepared.layers.outputs, bench.prepared.layers.env):
        for path in Path(layer).rglob("*"):
            if path.suffix == ".jar":
                with zipfile.ZipFile(path) as archive:
                    assert not any("org/example" in name for name in archive.namelist())
            elif path.suffix == ".class":
                assert path.parent.name == "excise"


def test_a_test_that_ends_the_machine_is_no_verdict_about_others(bench: Workbench) -> None:
    path = f"{MAIN}/Ledger.java"
    source = (bench.root / path).read_bytes()
    broken = source.replace(b"List<Booking> found = new ArrayList<>();", b"System.exit(0); List<Booking> found = null;")
    statuses = bench.run({path: broken}).statuses()
    failed = [test for test, status in statuses.items() if status.value == "FAILED"]
    assert failed == [f"{TESTS}/LedgerTest.java::LedgerTest::bookingsAreFound"]
    assert statuses[f"{TESTS}/AmountTest.java::AmountTest::amountsAreRounded"].value == "SKIPPED"
    assert statuses[f"{TESTS}/AmountTest.java::AmountTest::parseReadsUnits[4]"].value == "PASSED"


def test_one_run_of_a_method_is_run_alone(bench: Workbench) -> None:
    wanted = [
        f"{TESTS}/AmountTest.java::AmountTest::parseReadsUnits[2]",
        f"{TESTS}/AmountTest.java::AmountTest::Splitting::thereMustBeParts",
    ]
    statuses = bench.run({}, ids=wanted).statuses()
    assert {test: status.value for test, status in statuses.items()} == dict.fromkeys(wanted, "PASSED")


def test_a_run_of_some_tests_compiles_their_files_alone(bench: Workbench) -> None:
    wanted = f"{TESTS}/AmountTest.java::AmountTest::parseReadsUnits[2]"
    broken = {f"{TESTS}/LedgerTest.java": b"no Java"}
    assert {status.value for status in bench.run(broken, ids=[wanted]).statuses().values()} == {"PASSED"}
    unknown = f"{TESTS}/AmountTest.java::AmountTest::isInherited"
    assert "PASSED" not in {status.value for status in bench.run(broken, ids=[wanted, unknown]).statuses().values()}


def built(sources: Path, work: Path) -> Path:
    """A jar of the untouched project without debug information, as a local repository of Maven has it."""
    files = [str(path) for path in (sources / "src/main/java").rglob("*.java")]
    subprocess.run(["javac", "-proc:none", "-g:none", "-d", str(work / "classes"), *files], check=True)
    target = work / "repository/org/example/ledger/1.2.0/ledger-1.2.0.jar"
    target.parent.mkdir(parents=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in (work / "classes").rglob("*.class"):
            archive.write(path, path.relative_to(work / "classes").as_posix())
    return work / "repository"


@pytest.mark.parametrize("kind", ["repository", "sources"])
def test_planted_copies_are_found(ledger: Any, bench: Workbench, split: Task, tmp_path: Path, kind: str) -> None:
    layer = Path(bench.prepared.layers.env).parent.parent / f"planted-{kind}-{os.getpid()}" / "env"
    layer.parent.mkdir()
    shutil.copytree(bench.prepared.layers.env, layer, symlinks=True)
    target = layer / "share" / kind
    target.parent.mkdir()
    shutil.copytree(built(bench.root, tmp_path) if kind == "repository" else bench.root / "src", target)
    subprocess.run(["chmod", "-R", "a+rX", str(layer.parent)], check=True)
    prepared = replace(bench.prepared, layers=replace(bench.prepared.layers, env=str(layer)))
    (verdict,) = NoLeaks().check(candidate_of(open_workbench(ledger.settings, prepared), split)).verdicts
    assert verdict.reason == "leak"
    assert ("source text" if kind == "sources" else "code") in verdict.detail
