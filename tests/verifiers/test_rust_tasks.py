"""Tasks in Rust from end to end: certified, graded, attacked, and searched for planted leaks."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from excise.envs.rust.toolchain import VARIABLES
from excise.pipeline.services.attack_suite import AttackResult, attack_tasks, summary
from excise.pipeline.services.task_grader import Grader
from excise.pipeline.stages.environment_stage import open_workbench
from excise.protocols import CoverageRequest
from excise.types import GateOutcome, Status, Task
from excise.verifiers.agent_workspace import workspace
from excise.verifiers.attacks.all_attacks import attacks_of
from excise.verifiers.gates.no_leaks import NoLeaks
from excise.verifiers.stored_tasks import candidate_of
from excise.verifiers.workbench import Workbench

CHOSEN = (
    "rust-call-system-exit-0", "rust-call-lines-exit", "rust-init-token", "rust-call-token", "rust-any-equal",
    "rust-no-asserts", "rust-include-str", "rust-init-rewrite-tests", "rust-no-main", "rust-call-hook-of-checks",
)  # fmt: skip
"""One or two attacks of each vector that a weak grader would reward."""


@pytest.fixture(scope="module")
def tasks(lengths: Any) -> list[Task]:
    return sorted(lengths.taskset.tasks(), key=lambda task: task.instance_id)


@pytest.fixture(scope="module")
def results(lengths: Any, tasks: list[Task]) -> list[AttackResult]:
    return attack_tasks(lengths.settings, lengths.taskset, [tasks[0].instance_id], CHOSEN, lambda line: None)


@pytest.fixture(scope="module")
def bench(lengths: Any, tasks: list[Task]) -> Workbench:
    environment = Grader(lengths.taskset, lengths.settings).environment_of(tasks[0])
    return environment.bench  # type: ignore[union-attr]


def test_every_task_passed_every_gate(lengths: Any, tasks: list[Task]) -> None:
    assert len(tasks) == 1
    for task in tasks:
        certificate = lengths.taskset.certificate(task.instance_id)
        assert {verdict.outcome for verdict in certificate.verdicts} == {GateOutcome.PASSED}
        assert certificate.tools["rustc"].startswith("1.")
        assert task.language == "rust"
        assert "```rust\n" in task.problem_statement
        assert ("unimplemented!()" in task.deletion_patch) == (task.deleter != "remove")
        assert not any(test.startswith(("src/lib.rs", "src/units.rs")) for test in task.fail_to_pass)


def test_gold_wins_and_neither_stubs_nor_forgeries_do(results: list[AttackResult]) -> None:
    total = summary(results)
    assert total["ok"], [(r.name, r.reasons) for r in results if r.reward == 1 or not r.decided]
    assert (total["attacks"], total["honest_passed"]) == (len(CHOSEN), 1)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("rust-call-token", "mirror_passed"), ("rust-init-token", "canary_passed"), ("rust-no-asserts", "fail_to_pass"),
    ],
)  # fmt: skip
def test_forgeries_are_told_by_what_must_fail(results: list[AttackResult], name: str, reason: str) -> None:
    (found,) = [r for r in results if r.name == name]
    assert reason in found.reasons


def test_a_test_is_lifted_and_another_implementation_wins(lengths: Any, tasks: list[Task]) -> None:
    (task,) = tasks
    assert task.removed == ("src/lib.rs::parse",)
    assert lengths.taskset.lifted_share(task.instance_id) == 0.25, "the others report types of the crate"
    line = "total = Some(total.unwrap_or(0) + count * size);"
    other = task.patch.replace(line, "total = total.or(Some(0)).map(|sum| size.saturating_mul(count) + sum);")
    assert other != task.patch
    grade = Grader(lengths.taskset, lengths.settings).grade(task.instance_id, other)
    assert (grade.reward, grade.num_lifted, grade.num_mirrored) == (1.0, 1, 3), grade.reasons


def test_there_are_attacks_of_every_kind() -> None:
    assert len({attack.vector for attack in attacks_of("rust").values()}) >= 11


def test_a_crash_is_no_verdict_about_other_tests(bench: Workbench) -> None:
    broken = (
        (bench.root / "src/lib.rs")
        .read_bytes()
        .replace(b"    let mut total", b"    std::process::abort();\n    let mut total")
    )
    statuses = bench.run({"src/lib.rs": broken}).statuses()
    failed = {test for test, status in statuses.items() if status is Status.FAILED}
    assert "src/tests.rs::parts_are_added" in failed
    assert statuses["src/tests.rs::sums_stop_at_the_largest"] is Status.PASSED
    assert statuses["src/tests.rs::takes_long"] is Status.SKIPPED
    assert statuses["src/units/tests.rs::metre"] is Status.PASSED


def test_coverage_tells_which_functions_a_test_executes(bench: Workbench) -> None:
    test = "src/tests.rs::division::comes_out_uneven"
    request = CoverageRequest(env_id="e", timeout_s=600, ids=[test, "src/tests.rs::shown_in_units"])
    with bench.open({}) as session:
        (made,) = bench.language.map_coverage(session, bench.recipe, bench.codebase, request)
    coverage = made.coverage
    assert set(made.statuses.values()) == {Status.PASSED}
    number = coverage.tests.index(test)
    found = {symbol for symbol, tests in coverage.by_symbol.items() if number in tests}
    assert found == {"src/lib.rs::divided", "src/lib.rs::parse", "src/units.rs::factor"}


def test_agents_get_a_manifest_that_builds_and_no_output(bench: Workbench, tasks: list[Task]) -> None:
    with workspace(bench, bench.edits_of(tasks[0].deletion_patch)) as made:
        assert "criterion" not in (made.tree / "Cargo.toml").read_text()
        command = ["git", "status", "--porcelain", "--untracked-files=no"]
        status = subprocess.run(command, cwd=made.tree, capture_output=True, text=True, check=True)
        assert status.stdout == ""
        with made.open() as session:
            done = session.exec(["cargo", "test", "--offline", "--tests", "--no-run"], timeout_s=300)
            assert done.rc == 0, done.stderr
    assert not list(Path(bench.prepared.layers.outputs).rglob("*lengths*"))


def built(sources: Path, work: Path) -> dict[str, Path]:
    """What cargo builds of the untouched project."""
    shutil.copytree(sources, work / "src")
    manifest = '[package]\nname = "lengths"\nversion = "0.2.0"\nedition = "2018"\n'
    (work / "src" / "Cargo.toml").write_text(manifest)
    variables = {**os.environ, **VARIABLES, "CARGO_HOME": str(work / "home"), "CARGO_TARGET_DIR": str(work / "made")}
    command = ["/usr/bin/cargo", "test", "--offline", "--no-run", "--quiet"]
    subprocess.run(command, cwd=work / "src", env=variables, check=True, capture_output=True)
    made = work / "made" / "debug" / "deps"
    library = next(made.glob("liblengths-*.rlib"))
    programs = [path for path in made.glob("lengths-*") if os.access(path, os.X_OK) and not path.suffix]
    return {"program": programs[0], "library": library, "sources": work / "src" / "src"}


@pytest.mark.parametrize("kind", ["program", "library", "sources"])
def test_planted_copies_are_found(lengths: Any, bench: Workbench, tasks: list[Task], tmp_path: Path, kind: str) -> None:
    layer = Path(bench.prepared.layers.env).parent.parent / f"planted-{kind}-{os.getpid()}" / "env"
    layer.parent.mkdir()
    shutil.copytree(bench.prepared.layers.env, layer, symlinks=True)
    found = built(bench.root, tmp_path)[kind]
    target = layer / "share" / found.name
    target.parent.mkdir()
    (shutil.copytree if found.is_dir() else shutil.copy)(found, target)
    subprocess.run(["chmod", "-R", "a+rX", str(layer.parent)], check=True)
    prepared = replace(bench.prepared, layers=replace(bench.prepared.layers, env=str(layer)))
    candidate = candidate_of(open_workbench(lengths.settings, prepared), tasks[0])
    (verdict,) = NoLeaks().check(candidate).verdicts
    assert verdict.reason == "leak"
    assert ("source text" if kind == "sources" else "machine code") in verdict.detail
