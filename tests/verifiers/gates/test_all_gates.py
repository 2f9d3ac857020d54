"""Each gate refuses a candidate that is broken for it, and passes the sound one."""

from __future__ import annotations

import marshal
import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from excise.protocols import GateReport
from excise.types import GateOutcome, Status, Task, TestResult, TestRun, Verdict, WorkerOutcome
from excise.verifiers import unnoticed_parts
from excise.verifiers.candidate import Candidate, DeletionTrees
from excise.verifiers.gates import empty_solutions_fail
from excise.verifiers.gates.all_gates import ALL_CLAIMS, CALLS_RECORDED, GATES, NUMBERS
from excise.verifiers.stored_tasks import candidate_of
from excise.verifiers.workbench import Edits, Workbench

pytestmark = pytest.mark.slow  # the leak scan reads all that a sandbox shows of this machine, once

BY_NAME = {gate.name: gate for gate in GATES}
PARSE = ("src/shapes/text.py::parse",)


@pytest.fixture(scope="session")
def task(shapes) -> Task:
    """The task that removes ``parse``."""
    return next(t for t in shapes.taskset.tasks() if t.removed == PARSE and t.deleter == "remove")


Make = Callable[..., Candidate]


@pytest.fixture
def make(bench: Workbench, task: Task) -> Make:
    """A candidate of that task with some parts replaced."""

    def candidate(*, on: Workbench | None = None, deletion: dict | None = None, task_: dict | None = None, **parts):
        made = candidate_of(on or bench, replace(task, **(task_ or {})))
        trees = DeletionTrees(bench=made.bench, deletion=replace(made.deletion, **(deletion or {})))
        return replace(made, trees=trees, **parts)

    return candidate


def check(name: str, candidate: Candidate) -> GateReport:
    report: GateReport = BY_NAME[name].check(candidate)
    assert {v.gate for v in report.verdicts} == {name}
    return report


def refuted(name: str, candidate: Candidate, reason: str) -> Verdict:
    report = check(name, candidate)
    assert not report.passed
    verdict = report.verdicts[-1]
    assert (verdict.outcome, verdict.reason) == (GateOutcome.FAILED, reason), verdict
    assert verdict.detail
    assert verdict.detail != BY_NAME[name].claim
    return verdict


def test_a_sound_candidate_passes_every_gate(make: Make) -> None:
    candidate = make()
    for name, gate in BY_NAME.items():
        report = check(name, candidate)
        assert report.passed, report.verdicts
        assert all(v.detail == gate.claim for v in report.verdicts)
    kit, row = CALLS_RECORDED.make(candidate)
    assert (row.gate, row.outcome, row.detail) == ("g10_calls", GateOutcome.PASSED, CALLS_RECORDED.claim)
    assert kit.instance_id == row.instance_id == candidate.task.instance_id


def test_each_gate_has_its_own_number_and_name() -> None:
    assert list(NUMBERS) == list(ALL_CLAIMS) == [*BY_NAME, "g10_calls", "g13_solved"]
    assert sorted(NUMBERS.values()) == list(range(1, len(ALL_CLAIMS) + 1))


# ---------------------------------------------------------------------------------------- 1, 2, 3
def test_g1_refuses_tasks_with_flaky_or_failing_tests(make: Make, task: Task) -> None:
    flaky = "tests/test_order.py::test_c_third"
    verdict = refuted("g1_baseline", make(pass_to_pass=(*task.pass_to_pass, flaky)), "not_in_baseline")
    assert list(verdict.statuses) == [flaky]


def test_g1_repeats_a_test_that_failed_once(make: Make, bench: Workbench, task: Task) -> None:
    late, baseline = task.pass_to_pass[0], bench.baseline
    statuses = {test: status for test, status in baseline.statuses.items() if test != late}
    seen = replace(baseline, statuses=statuses, flaky=baseline.flaky | {late: "PASSED then FAILED then PASSED"})
    report = check(
        "g1_baseline", make(on=Workbench(replace(bench.prepared, baseline=seen), bench.settings, bench.sandbox))
    )
    assert report.passed
    assert report.verdicts[0].evidence[late] == "PASSED then FAILED then PASSED, then PASSED 2 times"
    never = replace(seen, flaky=seen.flaky | {late: "FAILED then MISSING then FAILED"})
    on = Workbench(replace(bench.prepared, baseline=never), bench.settings, bench.sandbox)
    assert list(refuted("g1_baseline", make(on=on), "not_in_baseline").statuses) == [late]


@pytest.fixture
def planted(bench: Workbench, prepared, tmp_path: Path) -> Callable[[dict[str, bytes]], Workbench]:
    """A workbench whose environment holds further files in its site-packages."""

    def plant(files: dict[str, bytes]) -> Workbench:
        env = Path(prepared.layers.env).parent.parent / f"planted-{os.getpid()}-{tmp_path.name}" / "env"
        env.parent.mkdir()
        subprocess.run(["cp", "-a", "--reflink=auto", prepared.layers.env, str(env)], check=True)
        packages = next(env.glob("lib/python3*/site-packages"))
        for path, data in files.items():
            (packages / path).parent.mkdir(parents=True, exist_ok=True)
            (packages / path).write_bytes(data)
        subprocess.run(["chmod", "-R", "a+rwX", str(env)], check=True)
        layers = replace(prepared.layers, env=str(env))
        return Workbench(replace(prepared, layers=layers), bench.settings, bench.sandbox)

    return plant


def test_g2_refuses_an_installed_copy(make: Make, planted, bench: Workbench) -> None:
    package = {f"shapes/{p.name}": p.read_bytes() for p in (bench.root / "src" / "shapes").glob("*.py")}
    verdict = refuted("g2_resolves", make(on=planted(package)), "imports_elsewhere")
    assert "/opt/env/lib" in verdict.detail


def test_g3_refuses_a_patch_that_does_not_apply(make: Make, task: Task) -> None:
    context = next(line for line in task.deletion_patch.splitlines() if line.startswith(" ") and line.strip())
    other = task.deletion_patch.replace(context, context + " # edited")
    refuted("g3_applies", make(task=replace(task, deletion_patch=other)), "patch_does_not_apply")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda t: {"shipped_tree": "0" * 40}, "tree_differs"),
        (lambda t: {"patch": t.patch.replace("lookup(", "lookdown(")}, "not_restored"),
        (lambda t: {"patch": ""}, "not_restored"),
        (lambda t: {"test_patch": ""}, "not_restored"),
        (lambda t: {"patch": "nonsense\n" + t.patch}, "patch_does_not_apply"),
        (lambda t: {"patch": t.patch.replace("\n ", "\n #", 1)}, "patch_does_not_apply"),
    ],
)
def test_g3_refuses_a_wrong_gold_patch(make: Make, task: Task, change, reason: str) -> None:
    refuted("g3_applies", make(task=replace(task, **change(task))), reason)


def test_g3_does_not_depend_on_the_configuration_of_git(
    make: Make, task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = next(line for line in task.deletion_patch.splitlines() if line.startswith("     ") and line.strip())
    loose = task.deletion_patch.replace(context, context.replace("     ", "   ", 1))
    config = tmp_path / "gitconfig"
    config.write_text("[core]\nautocrlf = true\n[apply]\nwhitespace = error-all\nignoreWhitespace = change\n")
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, str(config))
    assert check("g3_applies", make()).passed
    refuted("g3_applies", make(task=replace(task, deletion_patch=loose)), "patch_does_not_apply")


# ---------------------------------------------------------------------------------------- 4, 5, 6
def test_g4_and_g6_refuse_a_deletion_that_breaks_visible_tests(make: Make, task: Task, bench: Workbench) -> None:
    source = "".join(
        f"diff --git {part}" for part in task.deletion_patch.split("diff --git ")[1:] if part.startswith("a/src")
    )
    walk = next(t for t in make().bench.codebase.modules if t.endswith("walk.py"))
    text = bench.codebase.modules[walk].source.decode()
    lines = text.splitlines()
    gone = f"diff --git a/{walk} b/{walk}\ndeleted file mode 100644\n--- a/{walk}\n+++ /dev/null\n"
    gone += f"@@ -1,{len(lines)} +0,0 @@\n" + "".join(f"-{line}\n" for line in lines)
    candidate = make(deletion={"source_patch": source + gone})
    verdict = refuted("g4_collects", candidate, "does_not_collect")
    assert "visible tests are not collected" in verdict.detail
    assert "walk" in verdict.detail
    refuted("g6_p2p_pass", candidate, "breaks_other_tests")


def test_g6_names_the_other_tests_that_fail(make: Make, task: Task) -> None:
    candidate = make(deletion={"hide_patch": "", "hidden": ()}, fail_to_pass=())
    verdict = refuted("g6_p2p_pass", candidate, "breaks_other_tests")
    assert set(verdict.statuses) == set(task.fail_to_pass)


def test_g5_refuses_a_test_that_passes_without_the_feature(make: Make, task: Task) -> None:
    for other in ("tests/test_walk.py::test_start", "tests/test_text.py::TestDescribe::test_circle"):
        verdict = refuted("g5_f2p_fail", make(fail_to_pass=(*task.fail_to_pass, other)), "passes_without_feature")
        assert str(verdict.statuses[other]) == "PASSED"
    refuted("g5_f2p_fail", make(fail_to_pass=()), "passes_without_feature")


# ---------------------------------------------------------------------------------------- 7, 8
def test_g7_refuses_a_gold_patch_that_does_not_pass(make: Make, task: Task) -> None:
    gone = "tests/test_text.py::TestParse::test_that_never_was"
    report = check("g7_gold", make(fail_to_pass=(*task.fail_to_pass, gone)))
    assert [v.reason for v in report.verdicts] == ["gold_fails"], "the first failing run is enough"
    assert {t: str(s) for t, s in report.verdicts[0].statuses.items()} == {gone: "MISSING"}


@pytest.mark.parametrize(
    ("worker", "outcome"), [(WorkerOutcome.TIMEOUT, GateOutcome.UNDECIDED), (WorkerOutcome.OOM, GateOutcome.FAILED)]
)
def test_g7_decides_nothing_on_a_machine_that_is_too_busy(
    make: Make, monkeypatch: pytest.MonkeyPatch, worker: WorkerOutcome, outcome: GateOutcome
) -> None:
    monkeypatch.setattr(Candidate, "run", lambda *_, **__: TestRun(worker=worker))
    (verdict,) = check("g7_gold", make()).verdicts
    assert (verdict.outcome, verdict.worker_outcome) == (outcome, worker)
    assert verdict.detail == f"The tests with the gold patch did not end: {worker}."


def test_g7_runs_are_repeated_and_one_is_shuffled(make: Make) -> None:
    report = check("g7_gold", make())
    assert [(v.run, v.evidence["shuffled"]) for v in report.verdicts] == [(0, "false"), (1, "true")]


def test_g8_refuses_a_task_that_a_stand_in_solves(make: Make, task: Task, bench: Workbench) -> None:
    path = "src/shapes/text.py"
    good = bench.codebase.modules[path].source
    patch = f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n"
    patch += '-"""Figures as text."""\n+"""Text."""\n'
    assert good.startswith(b'"""Figures as text."""\n')
    verdict = refuted("g8_empty", make(deletion={"stub_patches": (("raise", patch),)}), "empty_solution_passes")
    assert "raise" in verdict.detail
    solved = make(deletion={"source_patch": patch, "hide_patch": "", "hidden": task.hidden})
    assert "nothing" in check("g8_empty", solved).verdicts[0].detail


def test_g8_runs_all_tests_only_if_the_quickest_pass(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def tested(first: int, seconds: float = 100.0) -> list[int]:
        monkeypatch.setattr(empty_solutions_fail, "FIRST_TESTS", first)
        monkeypatch.setattr(empty_solutions_fail, "FIRST_S", seconds)
        monkeypatch.setattr(empty_solutions_fail, "MIN_FIRST_TESTS", 1)
        candidate = make()
        report = check("g8_empty", candidate)
        assert report.passed
        assert len(report.verdicts) == 2 + len(candidate.deletion.stub_patches), "the last is about its parts"
        assert {v.num_tests for v in report.verdicts} <= {1, first, len(candidate.fail_to_pass)}
        return [len(key[1]) for key in candidate.trees.runs]

    everything = max(tested(100))
    assert everything > 1
    assert min(tested(1)) == 1
    assert min(tested(100, 0.0)) == 1, "long ones are few"
    assert set(tested(0)) == {0, everything}, "no test passes as well as any"


def test_g8_refuses_a_task_that_a_trivial_program_solves(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    candidate = make()
    run = TestRun(worker=WorkerOutcome.OK, results=(TestResult(test_id="self", status=Status.PASSED),), finished=True)
    monkeypatch.setattr(type(candidate.trees), "try_programs", lambda self, ids: run)
    report = check("g8_empty", candidate)
    assert [v.reason for v in report.verdicts if v.reason] == ["trivial_solution_passes"]
    assert "“self”" in report.verdicts[-1].detail


@pytest.mark.parametrize(
    ("num_unnoticed", "num_tried", "is_thin"), [(0, 3, False), (1, 4, False), (2, 2, True)], ids=str
)
def test_g8_refuses_a_task_whose_tests_notice_few_parts(
    make: Make, monkeypatch: pytest.MonkeyPatch, num_unnoticed: int, num_tried: int, is_thin: bool
) -> None:
    """It tries no more of them than it needs to know."""
    candidate, changed = make(), list[bytes | None]()
    monkeypatch.setattr(unnoticed_parts, "MIN_PARTS", 4)
    monkeypatch.setattr(unnoticed_parts, "LEAST_S", 1000.0)  # however long tests took here
    assert check("g8_empty", candidate).verdicts[-1].evidence["unnoticed"] == "0"

    def run(edits: Edits, *, ids: Sequence[str], **_: object) -> TestRun:
        changed.extend(edits.values())
        status = Status.PASSED if len(changed) <= num_unnoticed else Status.FAILED
        return TestRun(worker=WorkerOutcome.OK, results=tuple(TestResult(test_id=i, status=status) for i in ids))

    monkeypatch.setattr(unnoticed_parts, "MAX_PARTS", 4)
    monkeypatch.setattr(candidate.bench, "run", run)
    tried = unnoticed_parts.try_parts(candidate)
    assert (tried.is_thin, tried.num_tried, len(tried.unnoticed)) == (is_thin, num_tried, num_unnoticed)
    assert len(set(changed)) == num_tried, "each lacks another part"
    monkeypatch.undo()
    monkeypatch.setattr(empty_solutions_fail, "try_parts", lambda candidate: tried)
    last = check("g8_empty", candidate).verdicts[-1]
    assert (last.reason, last.evidence["parts"]) == ("thin_tests" if is_thin else "", str(num_tried))


# ---------------------------------------------------------------------------------------- 9
def source_of(bench: Workbench) -> bytes:
    symbol = bench.codebase.symbols()[PARSE[0]]
    return bench.codebase.modules[symbol.path].source[symbol.start : symbol.end]


def test_g9_finds_code_byte_code_and_archives_in_the_environment(
    make: Make, planted, shapes, bench: Workbench, tmp_path: Path
) -> None:
    modules = bench.codebase.modules
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("anything", modules["src/shapes/walk.py"].source)
    compiled = compile(modules["src/shapes/tables.py"].source, "/testbed/src/shapes/tables.py", "exec")
    on = planted(
        {
            "other/deep/vendored.py": source_of(bench).replace(b"    ", b"\t"),
            "cache/shapes.dat": (tmp_path / "x.zip").read_bytes(),
            "__pycache__/tables.cpython-312.pyc": b"\0" * 16 + marshal.dumps(compiled),
        }
    )
    tasks = {t.removed[0]: t for t in shapes.taskset.tasks() if t.deleter == "remove" and len(t.removed) == 1}
    for removed, where in (
        (PARSE[0], "other/deep/vendored.py"),
        ("src/shapes/walk.py", "cache/shapes.dat"),
        ("src/shapes/tables.py::Ruler.marks", "__pycache__/tables.cpython-312.pyc"),
    ):
        verdict = refuted("g9_leaks", candidate_of(on, tasks[removed]), "leak")
        assert where in verdict.detail


@pytest.mark.parametrize("name", ["src/shapes/old_text.py", "docs/howto.md", "build/lib/shapes/text.txt"])
def test_g9_finds_a_copy_in_the_tree(make: Make, vary, bench: Workbench, name: str) -> None:
    other = vary({name: "Intro\n\n" + source_of(bench).decode()}, baseline=True)
    verdict = refuted("g9_leaks", make(on=other), "twin_in_repository")
    assert f"/testbed/{name}" in verdict.detail


def test_g9_searches_build_outputs(make: Make, prepared, bench: Workbench, tmp_path: Path) -> None:
    built = tmp_path / "built"
    shutil.copytree(prepared.layers.built, built)
    (built / "generated").mkdir()
    (built / "generated" / "text.py").write_bytes(source_of(bench))
    layers = replace(prepared.layers, built=str(built))
    other = Workbench(replace(prepared, layers=layers), bench.settings, bench.sandbox)
    assert "/testbed/generated/text.py" in refuted("g9_leaks", make(on=other), "twin_in_repository").detail


def test_g9_ignores_caches_which_are_not_shipped(make: Make, vary, bench: Workbench) -> None:
    code = source_of(bench).decode()
    other = vary({".tox/py/text.py": code, "text.py.orig": code, ".mypy_cache/x.json": code}, baseline=True)
    assert check("g9_leaks", make(on=other)).passed


# ---------------------------------------------------------------------------------------- 10
def test_g10_refuses_a_statement_that_misses_a_name(make: Make, task: Task) -> None:
    for statement in ("", task.problem_statement.replace("parse", "read")):
        verdict = refuted(
            "g10_statement", make(task=replace(task, problem_statement=statement)), "statement_incomplete"
        )
        assert "parse" in verdict.detail


def test_g10_refuses_a_statement_that_contains_the_code(make: Make, task: Task, bench: Workbench) -> None:
    body = source_of(bench).decode().rpartition('"""')[2]
    candidate = make(task=replace(task, problem_statement=f"{task.problem_statement}\n{body}"))
    verdict = refuted("g10_statement", candidate, "statement_gives_code")
    assert "lines of the deleted code" in verdict.detail
