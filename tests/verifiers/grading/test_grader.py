"""The grader on real runs: only honest solutions pass, and changes of protected files are ignored."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from excise.datasets.queries.catalogue import connect
from excise.datasets.taskset import TaskSet
from excise.deleters.patches.git_patches import unified
from excise.deleters.statement.how_checked import CALLS
from excise.errors import PatchError, SandboxError
from excise.pipeline.services.attack_suite import stub_of
from excise.pipeline.services.task_grader import Grader
from excise.types import Grade, Status, Task, WorkerOutcome
from excise.verifiers.attacks.attack import LINK, attack_target, diff_of
from excise.verifiers.grading import grader as grading
from excise.verifiers.grading import kit as kit_module
from excise.verifiers.grading.graded_runs import graded_run, mode_of
from excise.verifiers.grading.intake import MAX_DIFF_BYTES, accepted_changes, paths_of, sections
from excise.verifiers.grading.lifting import Lifting
from excise.verifiers.stored_tasks import candidate_of
from excise.verifiers.workbench import Workbench


def test_the_gold_patch_passes_and_an_empty_diff_fails(graders: Grader, shapes: Any) -> None:
    for one in shapes.taskset.tasks():
        gold, noop = graders.grade(one.instance_id, one.patch), graders.grade(one.instance_id, "")
        assert (gold.reward, gold.reward_tests, gold.partial, gold.decided) == (1, 1, 1, True), gold
        assert gold.reward_calls in {1.0, None}
        assert gold.num_passed == gold.num_tests == len(one.fail_to_pass) + len(one.pass_to_pass)
        assert set(gold.canaries.values()) <= {Status.FAILED, Status.ERROR}
        assert len(gold.canaries) == 6
        assert gold.num_mirrored + gold.num_lifted == len(one.fail_to_pass)
        assert gold.lifted_failed == ()
        assert (noop.reward, noop.reward_tests, noop.decided) == (0, 0, True)
        assert "fail_to_pass" in noop.reasons


def test_a_stub_gets_reward_zero(graders: Grader, ready: Workbench, task: Task) -> None:
    found = graders.grade(task.instance_id, stub_of(ready, task))
    assert (found.reward_tests, found.reward_calls, found.reward) == (0, 0, 0)


def test_the_kit_is_stored_with_the_set(shapes: Any, task: Task) -> None:
    kit = shapes.taskset.kit(task.instance_id)
    assert kit is not None
    assert len(kit.calls) > 3, "three of the tests, and some that the statement shows"
    assert kit.removed == ("shapes.walk:spiral",)
    assert {each.test for each in kit.lifted} == set(task.fail_to_pass)
    assert (kit.mirrored, kit.not_lifted) == ((), {})
    verdict = next(v for v in shapes.taskset.certificate(task.instance_id).verdicts if v.gate == "g10_calls")
    assert (verdict.evidence["calls_recorded"], verdict.evidence["calls_usable"]) == ("3", str(len(kit.calls)))
    assert verdict.evidence["calls_telling"] == "true"
    assert verdict.evidence["tests_outside"] == str(len(task.fail_to_pass))
    assert shapes.taskset.lifted_share(task.instance_id) == 1
    assert task.instance_id in shapes.taskset.tamper_proof()
    rows = connect(shapes.out).sql("SELECT instance_id FROM lifting WHERE tamper_proof").fetchall()
    assert {name for (name,) in rows} == shapes.taskset.tamper_proof()


def test_of_many_tests_some_are_drawn_for_the_kit(
    ready: Workbench, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kit_module, "MAX_TESTS", 1)
    empty = candidate_of(ready, task).edits("none")
    monkeypatch.setattr(kit_module, "find_lifted", lambda *given: Lifting((), {}))
    made = [kit_module.make_kit(ready, task, empty) for _ in range(2)]
    assert made[0].mirrored == made[1].mirrored, "the same one each time"
    assert len(made[0].mirrored) == 1 < len(task.fail_to_pass)
    assert 0 < made[0].num_recorded <= 3


def test_tasks_whose_calls_a_stub_could_answer_are_named(shapes: Any) -> None:
    kits = {name: shapes.taskset.kit(name) for name in shapes.taskset.ids()}
    silent = {name for name, kit in kits.items() if not kit.telling}
    assert shapes.taskset.tests_only() == silent
    assert len(silent) < len(kits)
    statements = {task.instance_id: task.problem_statement for task in shapes.taskset.tasks()}
    assert {name for name, text in statements.items() if CALLS in text} == kits.keys() - silent


def test_an_honest_rewrite_passes(graders: Grader, ready: Workbench, task: Task) -> None:
    """The same behaviour in another way: the iterator of a list instead of a generator, other names, another file."""
    code = (
        "def spiral(steps):\n    found, place, step, leg = [], 0j, 1 + 0j, 1\n    while len(found) < steps:\n"
        "        for _ in range(2):\n            for _ in range(leg):\n"
        "                found.append((int(place.real), int(place.imag)))\n                place += step\n"
        "            step *= 1j\n        leg += 1\n    return iter(found[:steps])\n"
    )
    target = attack_target(ready, task)
    files = {**target.stubbed, "src/shapes/winding.py": code, target.module: "from .winding import spiral\n"}
    found = graders.grade(task.instance_id, diff_of(target.shipped, files))
    assert (found.reward, found.reward_calls, found.ignored) == (1, 1, {}), found


def test_a_wrong_answer_is_not_flagged_as_tampering(graders: Grader, ready: Workbench, task: Task) -> None:
    found = graders.grade(task.instance_id, changed(ready, task, lambda t: t.replace("yield x, y", "yield y, x")))
    assert found.reward == found.reward_calls == 0
    assert not set(found.reasons) & grading.TAMPERED
    assert found.partial == pytest.approx(2 / 3, abs=1e-5)


def changed(bench: Workbench, task: Task, edit: Callable[[str], str]) -> str:
    """The gold solution, edited."""
    target = attack_target(bench, task)
    gold = bench.read([target.module])[target.module].decode()
    return diff_of(target.shipped, {**{p: bench.read([p])[p] for p in target.stubbed}, target.module: edit(gold)})


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("conftest.py", "test_configuration"),
        ("tests/conftest.py", "test_configuration"),
        ("deep/inside/conftest.py", "test_configuration"),
        ("pytest.ini", "test_configuration"),
        ("pyproject.toml", "test_configuration"),
        ("PyProject.TOML", "test_configuration"),
        ("tests/test_walk.py", "test"),
        ("tests/helper.py", "test"),
        ("src/shapes/test_more.py", "test"),
        ("src/x.pth", "start_up_hook"),
        ("sitecustomize.py", "start_up_hook"),
        ("src/shapes/__pycache__/walk.cpython-313.pyc", "byte_code"),
        ("src/shapes/walk.so", "byte_code"),
        ("evil.egg-info/entry_points.txt", "metadata"),
        (".gitmodules", "version_control"),
        ("pytest.py", "shadows_a_module"),
        ("src/json.py", "shadows_a_module"),
        ("re/__init__.py", "shadows_a_module"),
    ],
)
def test_changes_of_protected_files_are_ignored(ready: Workbench, task: Task, path: str, reason: str) -> None:
    shipped = ready.edits_of(task.deletion_patch)
    before = {} if path in shipped else ready.read([path])
    diff = task.patch + unified(dict(before), {path: b"import os\n"})
    found = accepted_changes(ready, task, diff, shipped)
    assert found.ignored == {path: reason}
    assert set(found.edits) == {"src/shapes/__init__.py", "src/shapes/walk.py"}


def test_library_code_with_the_name_of_a_test_file_counts(vary: Any, task: Task) -> None:
    before, after = b"def is_round():\n    return 1\n", b"def is_round():\n    return 2\n"
    bench = vary({"src/shapes/tests.py": before.decode(), "src/shapes/test.py": "def test_it():\n    pass\n"})
    diff = unified({"src/shapes/tests.py": before}, {"src/shapes/tests.py": after})
    diff += unified(dict(bench.read(["src/shapes/test.py"])), {"src/shapes/test.py": b""})
    found = accepted_changes(bench, task, diff, {})
    assert (found.edits, found.ignored) == ({"src/shapes/tests.py": after}, {"src/shapes/test.py": "test"})


def test_links_and_paths_outside_are_dropped(ready: Workbench, task: Task) -> None:
    shipped = ready.edits_of(task.deletion_patch)
    found = accepted_changes(ready, task, diff_of({}, {"src/shapes/evil.py": LINK + "/etc/passwd"}), shipped)
    assert (found.edits, found.ignored) == ({}, {"src/shapes/evil.py": "not_a_regular_file"})
    for path in ("../evil.py", "/etc/evil", ".git/hooks/pre-commit", "src/.GIT/config"):
        diff = f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
        found = accepted_changes(ready, task, diff + task.patch, shipped)
        assert found.ignored == {path: "outside_the_tree"}
        assert "src/shapes/walk.py" in found.edits
    submodule = (
        "diff --git a/sub b/sub\nnew file mode 160000\nindex 0000000..1234567\n--- /dev/null\n+++ b/sub\n"
        "@@ -0,0 +1 @@\n+Subproject commit 1234567890123456789012345678901234567890\n"
    )
    assert accepted_changes(ready, task, submodule, shipped).edits == {}


def test_a_diff_without_prefixes_counts(ready: Workbench, task: Task) -> None:
    """With git's ``diff.noprefix``, a new file must not lose its first folder."""
    shipped = ready.edits_of(task.deletion_patch)
    expected = accepted_changes(ready, task, task.patch + unified({}, {"src/shapes/more.py": b"x = 1\n"}), shipped)
    diff = task.patch + unified({}, {"src/shapes/more.py": b"x = 1\n"})
    bare = re.sub(r"(?m)^(diff --git) a/(\S+) b/", r"\1 \2 ", diff)
    bare = re.sub(r"(?m)^(---|\+\+\+) [ab]/", r"\1 ", bare)
    assert bare != diff
    assert accepted_changes(ready, task, bare, shipped) == expected
    assert "src/shapes/more.py" in expected.edits


def test_a_rename_without_prefixes_counts(ready: Workbench, task: Task) -> None:
    diff = (
        "diff --git src/shapes/text.py src/shapes/words.py\nsimilarity index 100%\n"
        "rename from src/shapes/text.py\nrename to src/shapes/words.py\n"
        "diff --git src/shapes/more.py src/shapes/more.py\nnew file mode 100644\n"
        "--- /dev/null\n+++ src/shapes/more.py\n@@ -0,0 +1 @@\n+x = 1\n"
    )
    found = accepted_changes(ready, task, diff, ready.edits_of(task.deletion_patch))
    assert {path for path, data in found.edits.items() if data is not None} >= {
        "src/shapes/words.py",
        "src/shapes/more.py",
    }


def test_kits_of_an_older_format_are_made_again(graders: Grader, task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    kit = graders.taskset.kit(task.instance_id)
    assert kit is not None
    wrong = tuple(replace(call, outcome='{"result": ["c", null], "after": []}') for call in kit.calls)
    old = replace(kit, format=0, calls=wrong)
    monkeypatch.setattr(TaskSet, "kit", lambda self, name: old)
    monkeypatch.setattr(graders, "_kits", {})
    assert graders.grade(task.instance_id, task.patch + "\n").reward == 1


def test_renames_are_followed(ready: Workbench, task: Task) -> None:
    diff = (
        "diff --git a/src/shapes/text.py b/src/shapes/words.py\nsimilarity index 100%\n"
        "rename from src/shapes/text.py\nrename to src/shapes/words.py\n"
    )
    found = accepted_changes(ready, task, diff, ready.edits_of(task.deletion_patch))
    assert found.edits["src/shapes/text.py"] is None
    assert found.edits["src/shapes/words.py"] == ready.read(["src/shapes/text.py"])["src/shapes/text.py"]


def test_paths_are_read_from_heads_however_they_are_quoted() -> None:
    (part,) = sections('diff --git "a/\\303\\251 x.py" "b/\\303\\251 x.py"\nold mode 100644\nnew mode 100755\n')
    assert paths_of(part) == {"é x.py"}
    (part,) = sections("diff --git a/b b/c.py b/b b/c.py\nold mode 100644\nnew mode 100755\n")
    assert paths_of(part) == {"b b/c.py"}


@pytest.mark.parametrize(
    ("diff", "reason"),
    [
        ("x" * (MAX_DIFF_BYTES + 1), "diff_too_large"),
        ("hello\n", "patch_does_not_apply"),
        ("diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n", "patch_does_not_apply"),
    ],
    ids=["large", "no-diff", "does-not-apply"],
)
def test_a_bad_diff_is_a_zero_with_a_reason(graders: Grader, task: Task, diff: str, reason: str) -> None:
    found = graders.grade(task.instance_id, diff)
    assert (found.reward, found.decided, found.reasons) == (0, True, (reason,))
    assert found.evidence["error"]


def test_an_infrastructure_failure_is_no_verdict(graders: Grader, task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **kwargs: object) -> Any:
        raise SandboxError("gone")

    monkeypatch.setattr(grading, "graded_run", broken)
    found = graders.grade(task.instance_id, task.patch)
    assert (found.decided, found.worker_outcome, found.reward) == (False, WorkerOutcome.INFRA_ERROR, 0)


def test_reports_of_many_tests_fit_into_little_output(ready: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = list(ready.baseline.passing())
    few = len(ids) * len(max(ids, key=len))
    monkeypatch.setattr(ready, "policy", replace(ready.policy, output_bytes=few))
    done = graded_run(ready, {}, ids, mode_of(ready))
    assert len(str(done.run.results)) > few
    assert done.run.finished
    monkeypatch.setattr(ready, "policy", replace(ready.policy, output_bytes=100))
    with pytest.raises(SandboxError, match=r"none of .* passes\. The report is missing"):
        grading.find_conditions(ready, ids)


def test_many_at_once(graders: Grader, task: Task) -> None:
    with ThreadPoolExecutor(4) as pool:
        found: list[Grade] = list(pool.map(lambda d: graders.grade(task.instance_id, d), [task.patch, ""] * 3))
    assert [one.reward for one in found] == [1, 0] * 3


def test_hidden_tests_are_in_no_file(graders: Grader, ready: Workbench, task: Task) -> None:
    """The deleted code searches for hidden tests while they run, and puts what it finds into its exception."""
    spy = (
        "\n\nimport pathlib\n_spiral = spiral\ndef spiral(steps):\n"
        "    text = pathlib.Path('/testbed/tests/test_walk.py').read_bytes()\n"
        "    assert b'assert' not in text, text\n    return _spiral(steps)\n"
    )
    found = graders.grade(task.instance_id, changed(ready, task, lambda t: t + spy))
    assert found.reward_tests == 1, found


def test_tests_that_fail_in_the_untouched_project_are_unfit(ready: Workbench, task: Task) -> None:
    conditions = grading.find_conditions(ready, [*task.fail_to_pass, *task.pass_to_pass])
    assert (conditions.mode.strict, conditions.mode.sealed, conditions.unfit) == (True, True, ())
    missing = "tests/test_walk.py::test_that_is_not_there"
    assert grading.find_conditions(ready, [*task.fail_to_pass, missing]).unfit == (missing,)


def test_without_recorded_calls_the_tests_alone_decide(graders: Grader, ready: Workbench, task: Task) -> None:
    kit = replace(graders.kit(ready, task), calls=())
    found = graders.environment_of(task)
    assert isinstance(found, tuple)
    request = grading.GradeRequest(task=task, kit=kit, diff=task.patch, conditions=found[1])
    got = grading.grade(ready, request)
    assert (got.reward, got.reward_calls, got.num_calls) == (1, None, 0)


def test_a_test_that_only_passes_beside_tests_of_others_is_not_graded(
    graders: Grader, ready: Workbench, task: Task
) -> None:
    """Of a document, one block may end the skipping of others; it need not be among a task's tests."""
    missing = "tests/test_walk.py::test_that_needs_others"
    wider = replace(task, pass_to_pass=(*task.pass_to_pass, missing))
    found, kit, asked = graders.environment_of(task), graders.kit(ready, task), list[int]()
    assert isinstance(found, tuple)

    def untouched(ids: Sequence[str]) -> tuple[str, ...]:
        asked.append(len(ids))
        return grading.failing_untouched(ready, ids, found[1].mode)

    request = grading.GradeRequest(task=wider, kit=kit, diff=task.patch, conditions=found[1])
    assert grading.grade(ready, request).reasons == ("pass_to_pass",)
    right = grading.grade(ready, replace(request, untouched=untouched))
    assert (right.reward, right.num_passed) == (1, right.num_tests)
    assert "1 tests do not pass untouched" in right.evidence["left_out"]
    nothing = grading.grade(ready, replace(request, untouched=untouched, diff=""))
    assert nothing.reward == 0
    assert asked == [len(task.fail_to_pass) + len(wider.pass_to_pass)] * 2


def test_a_malformed_patch_raises_patch_error(ready: Workbench, task: Task) -> None:
    with pytest.raises(PatchError):
        accepted_changes(ready, task, "diff --git a/x b/x\nnonsense\n", ready.edits_of(task.deletion_patch))


def test_grades_that_fail_fast_agree_with_full_ones_at_a_lower_cost(
    shapes: Any, ready: Workbench, task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong answer costs one run of the hidden tests, a passing one is graded completely, an equal one not again."""
    fast = Grader(shapes.taskset, shapes.settings, fail_fast=True)
    mark = f"\n# {tmp_path}"  # the cache outlives this test
    runs: list[int] = []

    def counted(*given: Any, **options: Any) -> Any:
        runs.append(len(given[2]))
        return graded_run(*given, **options)

    monkeypatch.setattr(grading, "graded_run", counted)
    target = attack_target(ready, task)
    code = ready.read([target.module])[target.module].decode()
    wrong = diff_of(target.shipped, {target.module: code.replace("def spiral", "def other") + mark})
    gold = diff_of(target.shipped, {**target.stubbed, target.module: code + mark})
    spoiling = {**target.stubbed, target.module: code + mark, "src/shapes/text.py": "raise ImportError\n"}
    spoilt = diff_of(target.shipped, spoiling)
    num_hidden = len(task.fail_to_pass)
    found = fast.grade(task.instance_id, wrong)
    assert (found.decided, found.reward, found.reasons, found.num_tests) == (True, 0, ("fail_to_pass",), num_hidden)
    assert runs[-1] == num_hidden
    before = len(runs)
    assert fast.grade(task.instance_id, wrong) == found
    assert len(runs) == before
    best = fast.grade(task.instance_id, gold)
    assert (best.reward, best.num_tests) == (1, num_hidden + len(task.pass_to_pass))
    assert best.reward_calls == 1
    assert fast.grade(task.instance_id, spoilt).reward == 0


def test_tests_that_depend_on_earlier_ones_are_not_run_alone(
    shapes: Any, task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = shapes.settings.model_copy(update={"cache": tmp_path})
    monkeypatch.setattr("excise.pipeline.services.task_grader.supports_fail_fast", lambda *_: False)
    made = Grader(shapes.taskset, shapes.settings, fail_fast=True)
    environment = made.environment_of(task)
    assert isinstance(environment, tuple)
    made.settings = settings
    assert made._grade_fail_fast(environment, task, "").num_tests == len(task.fail_to_pass) + len(task.pass_to_pass)


def test_no_more_than_two_solutions_for_each_worker_run_at_once(
    shapes: Any, task: Task, graders: Grader, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Grader(shapes.taskset, shapes.settings.model_copy(update={"workers": 1}))
    expected = graders.grade(task.instance_id, "")
    count, running, most = threading.Lock(), 0, 0

    def slow(*_: Any) -> Grade:
        nonlocal running, most
        with count:
            running += 1
            most = max(most, running)
        time.sleep(0.05)
        with count:
            running -= 1
        return expected

    monkeypatch.setattr("excise.pipeline.services.task_grader.grade", slow)
    with ThreadPoolExecutor(12) as pool:
        assert set(pool.map(lambda _: made.grade(task.instance_id, "").reward, range(12))) == {0.0}
    assert most == 2


@pytest.mark.parametrize(("number", "times", "reward"), [(3, 1, 1.0), (4, 1, 0.0), (1, 2, 0.0)])
def test_a_few_failing_tests_outside_the_feature_are_repeated(
    graders: Grader, task: Task, monkeypatch: pytest.MonkeyPatch, number: int, times: int, reward: float
) -> None:
    """``number`` tests outside of the feature fail in the first ``times`` runs, like tests that depend on a clock."""
    late, runs = set(task.pass_to_pass[:number]), []

    def on_a_busy_machine(*given: Any, **named: Any) -> Any:
        done = graded_run(*given, **named)
        if "canaries" not in named:
            return done
        runs.append(given)
        results = tuple(
            replace(r, status=Status.FAILED) if r.test_id in late and len(runs) <= times else r
            for r in done.run.results
        )
        return replace(done, run=replace(done.run, results=results))

    monkeypatch.setattr(grading, "graded_run", on_a_busy_machine)
    found = graders.grade(task.instance_id, task.patch)
    again = number <= grading.MAX_RERUN
    assert (found.reward, len(runs)) == (reward, 1 + again)
    assert ("passed_when_run_again" in found.evidence) == (reward == 1)
    assert ("pass_to_pass" in found.reasons) == (reward == 0)


def test_a_solution_that_deceives_some_tests_gets_no_partial_reward(
    graders: Grader, ready: Workbench, task: Task
) -> None:
    """The items are equal to everything, which a test that they are distinct detects."""
    code = (
        "class Anything:\n    __hash__ = lambda self: 0\n    __eq__ = lambda self, other: True\n"
        "    __ne__ = lambda self, other: False\n\n\ndef spiral(steps):\n    return iter([Anything()] * steps)\n"
    )
    target = attack_target(ready, task)
    found = graders.grade(task.instance_id, diff_of(target.shipped, {**target.stubbed, target.module: code}))
    assert Status.PASSED in found.statuses.values()
    assert (found.reward, found.partial) == (0, 0), found
    assert "lifted_differ" in found.reasons
    kit = replace(graders.kit(ready, task), lifted=(), mirrored=task.fail_to_pass)
    environment = graders.environment_of(task)
    assert isinstance(environment, tuple)
    diff = diff_of(target.shipped, {**target.stubbed, target.module: code})
    mirrored = grading.grade(ready, grading.GradeRequest(task=task, kit=kit, diff=diff, conditions=environment[1]))
    assert (mirrored.reward, mirrored.partial) == (0, 0)
    assert "mirror_passed" in mirrored.reasons
