"""Tasks in Go from end to end: certified, verified, graded, attacked, and searched for planted leaks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from excise.datasets.taskset import TaskSet
from excise.envs.go.toolchain import VARIABLES
from excise.pipeline.services.attack_suite import AttackResult, attack_tasks, summary
from excise.pipeline.services.task_grader import Grader
from excise.pipeline.stages.environment_stage import open_workbench
from excise.types import GateOutcome, Status, Task
from excise.verifiers import build_candidate
from excise.verifiers.attacks.all_attacks import attacks_of
from excise.verifiers.candidate import PlannedDeletion, Rejected
from excise.verifiers.gates.no_leaks import NoLeaks
from excise.verifiers.recovery.recover import recover
from excise.verifiers.stored_tasks import candidate_of
from excise.verifiers.workbench import Workbench

CHOSEN = (
    "go-call-syscall-exit-0", "go-call-pass-lines-exit", "go-init-token", "go-call-token", "go-call-embedded-tests",
    "go-init-rewrite-tests", "go-call-values-on-the-stack",
)  # fmt: skip
"""One or two attacks of each vector that a weak grader would reward."""


@pytest.fixture(scope="module")
def tasks(spans: Any) -> list[Task]:
    return sorted(spans.taskset.tasks(), key=lambda task: task.instance_id)


@pytest.fixture(scope="module")
def results(spans: Any, tasks: list[Task]) -> list[AttackResult]:
    return attack_tasks(spans.settings, spans.taskset, [tasks[0].instance_id], CHOSEN, lambda line: None)


@pytest.fixture(scope="module")
def bench(spans: Any, tasks: list[Task]) -> Workbench:
    environment = Grader(spans.taskset, spans.settings).environment_of(tasks[0])
    return environment.bench  # type: ignore[union-attr]


def test_every_task_passed_every_gate(spans: Any, tasks: list[Task]) -> None:
    assert len(tasks) == 1
    assert spans.taskset.tests_only() == {tasks[0].instance_id}, "no calls are recorded in Go"
    for task in tasks:
        certificate = spans.taskset.certificate(task.instance_id)
        assert {verdict.outcome for verdict in certificate.verdicts} == {GateOutcome.PASSED}
        assert certificate.tools["go"].startswith("1.")
        assert (task.language, task.deleter) == ("go", "remove")
        assert "```go\nfunc " in task.problem_statement
        assert "panic(" not in task.deletion_patch


def test_gold_wins_and_neither_stubs_nor_forgeries_do(results: list[AttackResult]) -> None:
    total = summary(results)
    assert total["ok"], [(r.name, r.reasons) for r in results if r.reward == 1 or not r.decided]
    assert (total["attacks"], total["honest_passed"]) == (len(CHOSEN), 1)


@pytest.mark.parametrize(("name", "reason"), [("go-call-token", "lifted_differ"), ("go-init-token", "canary_passed")])
def test_forged_tokens_are_told_by_values_and_canaries(results: list[AttackResult], name: str, reason: str) -> None:
    (found,) = [r for r in results if r.name == name]
    assert reason in found.reasons


def test_constants_in_place_of_the_function_are_compiled_and_noticed(bench: Workbench, tasks: list[Task]) -> None:
    candidate = candidate_of(bench, tasks[0])
    removed = {"spans.go": frozenset(range(1, 1 + bench.codebase.modules["spans.go"].source.count(b"\n")))}
    parts = [part for part in bench.editor.shortcuts(bench.codebase, removed) if part.symbol == tasks[0].removed[0]]
    assert [part.what for part in parts] == ["all but `return 1`", "all but `return 0`"]
    source, ids = bench.codebase.modules["spans.go"].source, list(candidate.fail_to_pass)
    for part in parts:
        edits = {part.path: source[: part.start] + part.replacement + source[part.end :]}
        assert Status.FAILED in bench.run(edits, ids=ids, forked=True, until_failure=True).statuses().values()


OTHER_COUNT = """\tseen := map[int]bool{}
\tfor _, span := range spans {
\t\tfor n := span.First; n <= span.Last; n++ {
\t\t\tseen[n] = true
\t\t}
\t}
\treturn len(seen)
"""
"""Another body of the function that the task is about."""


def test_tests_are_lifted_and_another_implementation_wins(spans: Any, tasks: list[Task]) -> None:
    (task,) = tasks
    assert task.removed == ("spans.go::Count",)
    assert spans.taskset.lifted_share(task.instance_id) == 1.0
    assert spans.taskset.tamper_proof() == {task.instance_id}
    head, start, rest = task.patch.partition("+\ttotal := 0\n")
    body, end, after = rest.partition("+\treturn total\n")
    assert start
    assert end
    other = "".join(f"+{line}\n" for line in OTHER_COUNT.splitlines())
    more = other.count("\n") - (start + body + end).count("\n")
    head = re.sub(r"\+(\d+),(\d+) @@", lambda found: f"+{found[1]},{int(found[2]) + more} @@", head)
    grade = Grader(spans.taskset, spans.settings).grade(task.instance_id, head + other + after)
    assert (grade.reward, grade.num_lifted, grade.lifted_failed) == (1.0, 1, ()), grade.reasons


def test_tests_without_a_mirrored_form_must_pass_too(
    bench: Workbench, tasks: list[Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    candidate = candidate_of(bench, tasks[0])
    failing = [*candidate.fail_to_pass, "spans_test.go::TestLen"]
    monkeypatch.setattr(build_candidate, "tests_needing_feature", lambda plan, tests: failing)
    monkeypatch.setattr(PlannedDeletion, "is_guarded", lambda self, test: test == failing[0])
    assert build_candidate.split_tests(candidate).fail_to_pass == tuple(failing)
    monkeypatch.setattr(PlannedDeletion, "is_guarded", lambda self, test: False)
    with pytest.raises(Rejected) as refused:
        build_candidate.split_tests(candidate)
    assert refused.value.reason == "only_unguarded_tests"


def test_there_are_attacks_of_every_kind() -> None:
    assert len({attack.vector for attack in attacks_of("go").values()}) >= 9


def test_runs_and_agents_find_nothing_that_was_built_of_the_project(bench: Workbench) -> None:
    """The layer of build outputs holds other packages only, however many tests have run with it."""
    assert bench.run({}, ids=["spans_test.go::TestJoin"]).statuses()
    for path in Path(bench.prepared.layers.outputs).rglob("*"):
        assert path.is_dir() or b"example.com/spans" not in path.read_bytes()


def test_a_panic_is_no_verdict_about_other_tests(bench: Workbench, tasks: list[Task]) -> None:
    broken = (bench.root / "spans.go").read_bytes().replace(b"\treturn total\n", b'\tpanic("x")\n')
    statuses = bench.run({"spans.go": broken}).statuses()
    assert [test for test, status in statuses.items() if status.value == "FAILED"] == ["spans_test.go::TestCount"]
    assert statuses["spans_test.go::TestSkipped"].value == "SKIPPED"
    assert statuses["example_test.go::ExampleParse"].value == "PASSED"


def built(sources: Path, work: Path) -> dict[str, Path]:
    """What Go builds of the untouched project: a program without debug information, and a build cache."""
    copy = work / "src"
    shutil.copytree(sources, copy)
    variables = {**os.environ, **VARIABLES, "GOFLAGS": "-mod=mod", "GOCACHE": str(work / "cache"), "HOME": str(work)}
    words = ["/usr/lib/go/bin/go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", str(work / "program"), "."]
    subprocess.run(words, cwd=copy, env=variables, check=True, capture_output=True)
    return {"program": work / "program", "cache": work / "cache", "vendor": copy}


@pytest.mark.parametrize("kind", ["program", "cache", "vendor"])
def test_planted_copies_are_found(spans: Any, bench: Workbench, tasks: list[Task], tmp_path: Path, kind: str) -> None:
    layer = Path(bench.prepared.layers.env).parent.parent / f"planted-{kind}-{os.getpid()}" / "env"
    layer.parent.mkdir()
    shutil.copytree(bench.prepared.layers.env, layer, symlinks=True)
    found = built(bench.root, tmp_path)[kind]
    target = layer / "share" / found.name
    target.parent.mkdir()
    (shutil.copytree if found.is_dir() else shutil.copy)(found, target)
    subprocess.run(["chmod", "-R", "a+rX", str(layer.parent)], check=True)
    prepared = replace(bench.prepared, layers=replace(bench.prepared.layers, env=str(layer)))
    candidate = candidate_of(open_workbench(spans.settings, prepared), tasks[0])
    (verdict,) = NoLeaks().check(candidate).verdicts
    assert verdict.reason == "leak"
    assert ("source text" if kind == "vendor" else "machine code") in verdict.detail
    if kind == "vendor":
        assert recover(candidate).succeeded


def test_a_real_project_gives_a_certified_task(tmp_path: Path, spans: Any) -> None:
    out = tmp_path / "out"
    command = [
        sys.executable, "-m", "excise.pipeline.cli", "generate", "debsrc:golang-github-hashicorp-go-version",
        "--limit", "1",
        "--workers", "1", "--out", str(out), "--cache", str(tmp_path / "cache"), "--config", str(spans.config), "-q",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (task,) = TaskSet.open(out).tasks()
    assert (task.language, task.repo) == ("go", "hashicorp/go-version")
