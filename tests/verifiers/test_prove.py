"""From a feature to a task: candidates that are accepted, widened or shrunk, and each reason to refuse one."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from excise.datasets.taskset import TaskSet
from excise.deleters.deletion_record import USED_ELSEWHERE
from excise.deleters.patches.git_patches import touched, unified
from excise.errors import DeletionRefused
from excise.pipeline.stages.prove_stage import prove_shard
from excise.types import Feature, FeatureKind, GateOutcome, Status, Task, Visibility, WorkerOutcome
from excise.verifiers import candidate
from excise.verifiers.gates.all_gates import CLAIMS, GATES
from excise.verifiers.gates.fail_to_pass_fails import FailToPassFails
from excise.verifiers.grading.grader import GradeRequest, find_conditions, grade
from excise.verifiers.grading.kit import record_behaviour
from excise.verifiers.plan_deletion import plan_deletion
from excise.verifiers.prove import Proof, prove
from excise.verifiers.stored_tasks import candidate_of
from excise.verifiers.workbench import Workbench

pytestmark = pytest.mark.slow  # the leak scan reads all that a sandbox shows of this machine, once

WALK = "src/shapes/walk.py::spiral"
WALK_TESTS = tuple(f"tests/test_walk.py::{name}" for name in ("test_first_turn", "test_no_field_twice", "test_start"))
CONFTEST = "import shapes, os, time\nif not hasattr(shapes, 'spiral'):\n    {}\n"
REGISTERED, DOCTEST = "src/shapes/base.py::registered", "src/shapes/base.py::shapes.base.registered"
WALK_TEST_SOURCE = (Path(__file__).resolve().parents[1] / "repos" / "shapes" / "tests" / "test_walk.py").read_text()
WALK_SOURCE = (Path(__file__).resolve().parents[1] / "repos" / "shapes" / "src" / "shapes" / "walk.py").read_text()


def feature(bench: Workbench, *symbols: str, tests: tuple[str, ...] = WALK_TESTS) -> Feature:
    records = [bench.codebase.symbols()[symbol] for symbol in symbols if symbol in bench.codebase.symbols()]
    return Feature(
        feature_id="feature",
        kind=FeatureKind.FUNCTION if len(symbols) == 1 else FeatureKind.CROSS_FILE,
        tier=1,
        entry=symbols,
        symbols=symbols,
        tests=tests,
        loc=sum(record.loc for record in records),
    )


def accepted(proof: Proof) -> Task:
    assert proof.rejection is None, proof.rejection
    assert proof.task is not None
    return proof.task


def refused(proof: Proof, reason: str) -> str:
    assert proof.task is None
    assert proof.rejection is not None
    assert proof.rejection.reason == reason, proof.rejection
    return proof.rejection.detail


def test_a_method_stays_that_a_function_calls_in_all_of_its_tests(vary) -> None:
    calls = WALK_SOURCE.replace("    x = y = 0\n", "    x = y = [Pen()][0].read()\n") + "\n\nclass Pen:\n"
    bench = vary({"src/shapes/walk.py": calls + "    def read(self):\n        return 0\n"}, baseline=True)
    method = feature(bench, "src/shapes/walk.py::Pen.read")
    with pytest.raises(DeletionRefused, match="spiral uses read") as caught:
        plan_deletion(bench, method, "remove")
    assert caught.value.reason == USED_ELSEWHERE


def test_a_method_stays_that_a_function_calls_in_some_of_its_tests(vary) -> None:
    called = WALK_SOURCE.replace("    x = y = 0\n", "    x = y = [Pen()][0].read() if steps > 1 else 0\n")
    pen = "\n\nclass Pen:\n    def read(self):\n        return 0\n"
    bench = vary({"src/shapes/walk.py": called + pen}, baseline=True)
    method = feature(bench, "src/shapes/walk.py::Pen.read", tests=WALK_TESTS[1:])
    with pytest.raises(DeletionRefused, match=r"walk\.py needs it: tests/test_walk\.py::.* fails there") as caught:
        plan_deletion(bench, method, "remove")
    assert caught.value.reason == USED_ELSEWHERE


# --------------------------------------------------------------------------------------- accepted
def test_a_test_that_fails_now_and_then_is_neither_hidden_nor_required(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, wholes = bench.run, []
    unsteady = next(test for test in sorted(bench.trusted) if not test.startswith("tests/test_walk.py"))

    def failing_once(edits, *, ids=None, **more):
        found = run(edits, ids=ids, **more)
        wholes.append(ids)
        if ids is None and wholes.count(None) == 1:
            results = [replace(r, status=Status.FAILED) if r.test_id == unsteady else r for r in found.results]
            found = replace(found, results=tuple(results))
        return found

    monkeypatch.setattr(bench, "run", failing_once)
    task = accepted(prove(bench, feature(bench, WALK), "remove"))
    assert [unsteady] in wholes
    assert wholes.count(None) == 1
    assert set(task.fail_to_pass) == set(WALK_TESTS)
    assert unsteady not in task.pass_to_pass
    assert unsteady not in task.hidden
    assert unsteady in bench.trusted


def test_tests_that_pass_only_beside_others_are_left_out(vary) -> None:
    needy = WALK_TEST_SOURCE + "\n\ndef test_start():\n    assert list(spiral(1)) == [(0, 0)]\n"
    needy += "    import sys\n    assert any(name.endswith('test_squares') for name in sys.modules)\n"
    bench = vary({"tests/test_walk.py": needy}, baseline=True)
    assert WALK_TESTS[-1] in bench.trusted
    task = accepted(prove(bench, feature(bench, WALK), "remove"))
    assert set(task.fail_to_pass) == set(WALK_TESTS[:-1])
    assert WALK_TESTS[-1] not in task.pass_to_pass
    assert WALK_TESTS[-1] in bench.trusted  # a task does not depend on the ones before it


PINNED = [
    ("shapes__3b38568d31d0", "remove", ["src/shapes/walk.py"], 3),
    ("shapes__c27afc3b20a0", "remove", ["src/shapes/text.py::parse"], 4),
    ("shapes__b7793527c179", "remove", ["src/shapes/tables.py::Ruler.marks"], 1),
    ("shapes__cbe49924cce1", "remove", ["src/shapes/round.py::_disc", "src/shapes/round.py::ring_area"], 4),
    ("shapes__fc7b5eb568f6", "remove", ["src/shapes/text.py::_article", "src/shapes/text.py::describe"], 2),
    ("shapes__c94af881a8ed", "remove", ["src/shapes/round.py::Circle.circumference"], 1),
    (
        "shapes__b8df369adb94",
        "stub",
        [
            "src/shapes/base.py::Shape.area",
            "src/shapes/base.py::Shape.compare",
            "src/shapes/base.py::Shape.scaled_area",
        ],
        5,
    ),
    (
        "shapes__1aff3599d533",
        "remove",
        [
            "src/shapes/squares.py::Rectangle.corner_distance",
            "src/shapes/squares.py::Rectangle.fits_into",
            "src/shapes/squares.py::Square",
            "src/shapes/squares.py::diagonal",
        ],
        12,
    ),
]


def test_the_tasks_of_shapes(shapes) -> None:
    found = [
        (task.instance_id, task.deleter, list(task.removed), len(task.fail_to_pass)) for task in shapes.taskset.tasks()
    ]
    assert sorted(found) == sorted(PINNED)


def test_every_task_carries_the_verdicts_of_all_gates(shapes) -> None:
    taskset: TaskSet = shapes.taskset
    names = list(CLAIMS)
    for task in taskset.tasks():
        certificate = taskset.certificate(task.instance_id)
        assert list(dict.fromkeys(v.gate for v in certificate.verdicts)) == names
        assert {v.outcome for v in certificate.verdicts} == {GateOutcome.PASSED}
        assert {v.worker_outcome for v in certificate.verdicts} == {WorkerOutcome.OK}
        assert sum(v.gate == "g7_gold" for v in certificate.verdicts) == 2
        assert certificate.flake_rate == 0
        assert set(certificate.tools) == {"python", "pytest", "sandbox", "git", "host_python"}
        assert certificate.cpu_s > 0


def test_a_task_is_complete(shapes, bench: Workbench) -> None:
    for task in shapes.taskset.tasks():
        assert set(task.fail_to_pass) <= set(task.hidden) <= bench.trusted
        left_out = bench.trusted - set(task.fail_to_pass) - set(task.pass_to_pass)
        assert left_out <= set(task.hidden) | {DOCTEST}, "a solution may change examples; stubs pass some hidden tests"
        assert not set(task.fail_to_pass) & set(task.pass_to_pass)
        assert task.instance_id.startswith("shapes__")
        assert task.visibility is Visibility.DOCSTRING
        assert task.difficulty.num_f2p == len(task.fail_to_pass)
        assert (task.difficulty.tier == 0) is (task.deleter == "stub" and len(task.removed) == 1)
        assert "## " in task.problem_statement
        for symbol in task.removed:
            name = symbol.rpartition("::")[2].rpartition(".")[2]
            assert name in task.problem_statement or not name


def test_memoised_functions_are_deleted_with_all_their_tests(bench: Workbench) -> None:
    named = ("tests/test_squares.py::test_diagonal",)
    task = accepted(prove(bench, feature(bench, "src/shapes/squares.py::diagonal", tests=named), "remove"))
    assert task.fail_to_pass == (
        "tests/test_squares.py::test_corner_distance",
        "tests/test_squares.py::test_corner_distance_of_frame",
        "tests/test_squares.py::test_diagonal",
    )
    assert set(task.hidden) == set(task.fail_to_pass), "tests that coverage did not predict were found and hidden"


def test_a_parametrised_test_is_hidden_whole(bench: Workbench) -> None:
    one = ("tests/test_round.py::test_ring[1-1-0]",)
    task = accepted(prove(bench, feature(bench, "src/shapes/round.py::ring_area", tests=one), "remove"))
    assert {t for t in task.hidden if "test_ring[" in t} == {
        f"tests/test_round.py::test_ring[{p}]" for p in ("2-1-3", "1-2-3", "1-1-0")
    }


@pytest.mark.parametrize("deleter", ["remove", "stub"])
def test_tests_that_execute_code_and_pass_without_it_stay_in_sight(bench: Workbench, deleter: str) -> None:
    other = "tests/test_tables.py::test_marks"
    task = accepted(prove(bench, feature(bench, WALK, tests=(*WALK_TESTS, other)), deleter))
    assert task.fail_to_pass == WALK_TESTS
    assert set(task.hidden) == set(WALK_TESTS)
    assert other in task.pass_to_pass


def test_code_that_breaks_everything_else_is_not_deleted(bench: Workbench) -> None:
    both = feature(bench, WALK, "src/shapes/round.py::Circle.area")
    task = accepted(prove(bench, both, "remove"))
    assert task.removed == (WALK,)
    assert task.fail_to_pass == WALK_TESTS


def test_a_stub_keeps_signature_and_docstring(bench: Workbench) -> None:
    task = accepted(prove(bench, feature(bench, WALK), "stub"))
    assert task.difficulty.tier == 0
    removed = [line[1:] for line in task.deletion_patch.splitlines() if line.startswith("-") and "def spiral" in line]
    assert removed == []
    assert task.fail_to_pass == WALK_TESTS


def test_what_no_test_would_check_is_no_stub_unless_another_calls_it(vary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("excise.verifiers.unnoticed_parts.MIN_PARTS", 100)  # else they are too thin
    more = f"{WALK_SOURCE}\n\ndef idle(x):\n    return helper(x)\n\n\ndef helper(x):\n    y = x\n    return y\n"
    called = more.replace("    x = y = 0\n", "    x = y = helper(0) if steps < 0 else 0\n")
    names = [WALK, "src/shapes/walk.py::idle", "src/shapes/walk.py::helper"]
    for source, expected in ((more, (names[0],)), (called, (names[2], names[0]))):
        bench = vary({"src/shapes/walk.py": source}, baseline=True)
        assert accepted(prove(bench, feature(bench, *names), "stub")).removed == expected


@pytest.mark.parametrize("deleter", ["remove", "stub"])
def test_examples_in_files_of_the_solution_are_not_required(bench: Workbench, deleter: str) -> None:
    tests = (DOCTEST, "tests/test_base.py::test_registered")
    proof = prove(bench, feature(bench, REGISTERED, tests=tests), deleter)
    task = accepted(proof)
    assert tests[1] in task.fail_to_pass
    assert all(test.startswith("tests/") for test in (*task.fail_to_pass, *task.pass_to_pass))
    assert task.deleter == "stub", "`lookup` stays and calls it"
    assert DOCTEST not in task.hidden
    assert '>>> "circle" in registered()' in task.problem_statement
    assert proof.certificate is not None
    verdict = next(v for v in proof.certificate.verdicts if v.gate == FailToPassFails.name)
    assert verdict.evidence["uncounted"] == DOCTEST
    base = bench.read(touched(task.patch))
    example = b'\n\n    >>> "circle" in registered()\n    True\n    '
    solved = {path: data.replace(example, b"") for path, data in base.items()}
    assert solved != base
    shipped = {path: data for path, data in bench.edits_of(task.deletion_patch).items() if path in base}
    conditions = find_conditions(bench, [*task.fail_to_pass, *task.pass_to_pass])
    found = grade(bench, GradeRequest(task=task, kit=proof.kit, diff=unified(shipped, solved), conditions=conditions))
    assert (found.reward, found.ignored) == (1, {}), found
    asking = replace(task, fail_to_pass=(*task.fail_to_pass, DOCTEST))
    (refuted,) = FailToPassFails().check(candidate_of(bench, asking)).verdicts
    assert (refuted.outcome, refuted.reason) == (GateOutcome.FAILED, "in_solution_files")


# ---------------------------------------------------------------------------------------- refused
def test_code_that_only_examples_need_is_refused(bench: Workbench) -> None:
    statuses = {test: bench.baseline.statuses[test] for test in (DOCTEST, *WALK_TESTS)}
    prepared = replace(bench.prepared, baseline=replace(bench.baseline, statuses=statuses))
    bench = Workbench(prepared, bench.settings, bench.sandbox)
    proof = prove(bench, feature(bench, REGISTERED, tests=(DOCTEST,)), "stub")
    assert DOCTEST in refused(proof, "only_uncounted_tests")


def test_a_refused_candidate_has_the_verdicts_of_its_rejection(bench: Workbench, shapes) -> None:
    once = replace(bench.prepared, baseline=replace(bench.baseline, num_runs=1))
    proof = prove(Workbench(once, bench.settings, bench.sandbox), feature(bench, WALK), "remove")
    refused(proof, "not_in_baseline")
    assert proof.rejection is not None
    assert [(v.gate, v.instance_id) for v in proof.verdicts] == [("g1_baseline", proof.rejection.subject)]
    assert proof.rejection.subject not in shapes.taskset.ids()


def test_missing_code_is_refused(bench: Workbench) -> None:
    refused(prove(bench, feature(bench, "src/shapes/base.py::Shape.unused"), "remove"), "unknown_symbol")


def test_tests_that_pass_without_the_code_are_refused(vary) -> None:
    more = "\n\ndef idle():\n    first = 1\n    second = 2\n    return first + second\n"
    bench = vary({"src/shapes/walk.py": WALK_SOURCE + more}, baseline=True)
    idle = "src/shapes/walk.py::idle"
    refused(prove(bench, feature(bench, idle), "remove"), "no_fail_to_pass")
    proof = prove(bench, feature(bench, idle, tests=()), "remove")
    assert refused(proof, "no_fail_to_pass") == "No trusted test needs this code."


def test_code_that_everything_else_needs_is_refused(bench: Workbench) -> None:
    proof = prove(bench, feature(bench, "src/shapes/round.py::Circle.area"), "stub")
    detail = refused(proof, "breaks_other_tests")
    assert "other tests fail without it" in detail
    assert "the runner gave up" in detail, "conftest.py imports it"
    assert "NotImplementedError" in detail
    assert proof.cpu_s > 0


def test_code_that_runs_during_an_import_is_refused(bench: Workbench) -> None:
    proof = prove(bench, feature(bench, "src/shapes/base.py::Shape"), "remove")
    refused(proof, "import_time_reference")
    assert proof.rejection is not None
    assert (proof.rejection.stage, proof.rejection.worker_outcome) == ("delete", WorkerOutcome.OK)
    assert proof.rejection.evidence["stub"].startswith("no_fail_to_pass: ")


@pytest.mark.parametrize(
    ("action", "reason", "limits"),
    [
        ("time.sleep(600)", "shipped_timeout", {"suite_timeout_s": 4.0}),
        ("held = [bytearray(1 << 20) for _ in range(4000)]", "shipped_oom", {"memory_mb": 128}),
        ("os.kill(os.getppid(), 9); time.sleep(9)", "shipped_killed", {}),
    ],
)
def test_a_shipped_tree_whose_tests_do_not_end_is_refused(
    vary, action: str, reason: str, limits: dict[str, object]
) -> None:
    bench = vary({"conftest.py": CONFTEST.format(action)}, baseline=True, **limits)
    proof = prove(bench, feature(bench, WALK), "remove")
    refused(proof, reason)
    assert proof.rejection is not None
    assert proof.rejection.worker_outcome is WorkerOutcome(reason.removeprefix("shipped_"))


def test_a_shipped_tree_whose_test_runner_fails_is_refused(vary) -> None:
    conftest = "import shapes, os\ntry:\n    list(getattr(shapes, 'spiral')(1))\nexcept Exception:\n    os._exit(0)\n"
    bench = vary({"conftest.py": conftest}, baseline=True)
    detail = refused(prove(bench, feature(bench, WALK), "remove"), "breaks_other_tests")
    assert "the runner gave up" in detail


@pytest.mark.parametrize("body", ["return None", "raise NotImplementedError"])
def test_code_that_equals_a_stand_in_is_refused(vary, body: str) -> None:
    """A stand-in that equals the code leaves nothing for gate 8 to detect."""
    bench = vary({"src/shapes/walk.py": f"def spiral(n):\n    {body}\n"}, baseline=True)
    refused(prove(bench, feature(bench, WALK), "remove"), "empty_solution_passes")


def test_before_the_suite_is_run_the_statement_is_written(vary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("excise.verifiers.build_candidate.MIN_EXAMPLES", 1000)
    recorded: list[object] = []
    monkeypatch.setattr(
        candidate, "record_behaviour", lambda *given: recorded.append(given) or record_behaviour(*given)
    )
    for source, wholes in ((re.sub(r'(?s)""".*?"""', '""', WALK_SOURCE), 0), (WALK_SOURCE, 1)):
        bench = vary({"src/shapes/walk.py": source}, baseline=True, sample_undescribed=False)
        runs: list[object] = []
        run = bench.run
        bench.run = lambda *given, ids=None, runs=runs, run=run, **more: (
            runs.append(ids) or run(*given, ids=ids, **more)
        )
        proof = prove(bench, feature(bench, WALK), "remove")
        assert proof.rejection is None if wholes else refused(proof, "undescribed")
        assert runs.count(None) == wholes
    assert len(recorded) == 2, "what was recorded for the statement is used later"


def test_code_that_nothing_describes_shows_a_half_of_its_tests(vary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("excise.verifiers.build_candidate.MIN_EXAMPLES", 1000)
    bench = vary({"src/shapes/walk.py": re.sub(r'(?s)""".*?"""', '""', WALK_SOURCE)}, baseline=True)
    proof = prove(bench, feature(bench, WALK), "remove")
    task = accepted(proof)
    assert (task.visibility, task.deleter, task.fail_to_pass) == (Visibility.SAMPLE_TESTS, "stub", WALK_TESTS)
    assert len(task.hidden) == 2
    assert "failing now, must pass" in task.problem_statement
    assert bench.settings.visibility is Visibility.DOCSTRING
    candidate_again = candidate_of(bench, task)
    assert all(gate.check(candidate_again).passed for gate in GATES)


def test_a_single_test_of_code_that_nothing_describes_stays_hidden(vary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("excise.verifiers.build_candidate.MIN_EXAMPLES", 1000)
    one = WALK_TEST_SOURCE.partition("def test_first_turn")[0]
    undescribed = re.sub(r'(?s)""".*?"""', '""', WALK_SOURCE)
    bench = vary({"src/shapes/walk.py": undescribed, "tests/test_walk.py": one}, baseline=True)
    refused(prove(bench, feature(bench, WALK, tests=WALK_TESTS[2:]), "remove"), "undescribed")


def test_code_that_cannot_be_removed_is_tried_as_a_stub(vary) -> None:
    conftest = "import shapes\nassert callable(getattr(shapes, 'spiral'))\n"
    bench = vary({"conftest.py": conftest}, baseline=True)
    task = accepted(prove(bench, feature(bench, WALK), "remove"))
    assert (task.deleter, task.difficulty.tier) == ("stub", 0)
    assert task.fail_to_pass == WALK_TESTS


def test_of_several_definitions_one_that_others_use_becomes_a_stub(vary) -> None:
    user = "def outline(n):\n    path = spiral(n)\n    return path[:n]\n"
    source = WALK_SOURCE.replace("    x = y = 0\n", "    x = y = origin()\n")
    helper, made = "src/shapes/walk.py::origin", "def origin():\n    at = 0\n    return at\n"
    bench = vary({"src/shapes/walk.py": f"{source}\n\n{user}\n\n{made}"}, baseline=True)
    both = feature(bench, WALK, helper)
    task = accepted(prove(bench, both, "remove"))
    assert (task.deleter, set(task.removed)) == ("remove_and_stub", {WALK, helper})
    walk = bench.edits_of(task.deletion_patch)["src/shapes/walk.py"]
    assert walk is not None
    assert b"def spiral" in walk
    assert b"NotImplementedError" in walk
    assert user.encode() in walk
    assert b"def origin" not in walk
    assert "only names and signatures are there, others are missing" in task.problem_statement
    stored = dict(candidate_of(bench, task).deletion.text)
    assert set(stored) == {f"{WALK}#part1", helper}


LABEL = """

def label(sides, style=""):
    \"\"\"The word for a number of sides; its first three letters in capitals if `style` is `short`.\"\"\"
    words = {3: "triangle", 4: "square"}
    word = words.get(sides, "polygon")
    if style == "short":
        first = word[:3]
        word = _loud(first)
        word = word + "."
    elif style == "upper":
        word = word.upper()
    elif style == "title":
        word = word.title()
    return word


def _loud(word):
    return word.upper()
"""
LABEL_TESTS = """from shapes.walk import label


def test_first_turn():
    assert label(3) == "triangle"


def test_no_field_twice():
    assert label(4, "short") == "SQU."


def test_start():
    assert label(9, "short") == "POL."
"""


def test_a_path_through_a_function_goes_with_the_tests_that_need_it(vary) -> None:
    bench = vary({"src/shapes/walk.py": WALK_SOURCE + LABEL, "tests/test_walk.py": LABEL_TESTS}, baseline=True)
    symbol = bench.codebase.symbols()["src/shapes/walk.py::label"]
    path = bench.editor.path(bench.codebase, symbol)
    assert path is not None
    parts = ((symbol.symbol_id, path.text),)
    changed = replace(feature(bench, symbol.symbol_id), name=f"label: {path.name}", changed=parts)
    task = accepted(prove(bench, changed, "path"))
    assert task.fail_to_pass == WALK_TESTS[1:]
    assert WALK_TESTS[0] in task.pass_to_pass
    assert (task.difficulty.loc, task.difficulty.tier, task.deleter) == (7, 0, "path"), "with the helper"
    assert "is missing; so is what nothing else used: `_loud`. Write" in task.problem_statement
    assert 'the branch that ran under the condition `style == "short"` is missing' in task.problem_statement
    assert "word.upper" not in task.problem_statement
    alone = replace(changed, tests=WALK_TESTS[:1])
    refused(prove(bench, alone, "path"), "no_fail_to_pass")


def test_a_copy_in_the_repository_is_refused(vary) -> None:
    twin = WALK_SOURCE.replace("def spiral", "def swirl")
    bench = vary({"examples/swirl.py": twin}, baseline=True)
    proof = prove(bench, feature(bench, WALK), "remove")
    assert "examples/swirl.py" in refused(proof, "twin_in_repository")
    assert not proof.verdicts, "it was found before any test was run"


def test_of_several_definitions_a_copy_stays(vary) -> None:
    bench = vary({"examples/swirl.py": WALK_SOURCE.replace("def spiral", "def swirl")}, baseline=True)
    marks, test = "src/shapes/tables.py::Ruler.marks", "tests/test_tables.py::test_marks"
    proof = prove(bench, feature(bench, WALK, marks, tests=(*WALK_TESTS, test)), "remove")
    assert accepted(proof).removed == (marks,)


def test_of_several_definitions_one_that_cannot_be_deleted_stays(bench: Workbench) -> None:
    both = feature(bench, WALK, "src/shapes/base.py::Shape", tests=WALK_TESTS)
    assert accepted(prove(bench, both, "remove")).removed == (WALK,)


# ------------------------------------------------------------------------------------------ shards
def test_a_shard_answers_for_each_candidate_and_caches_the_answers(
    shapes, prepared, tmp_path, bench: Workbench
) -> None:
    settings = shapes.settings.model_copy(update={"cache": tmp_path})
    good = replace(feature(bench, WALK), feature_id="good")
    bad = replace(feature(bench, "src/shapes/base.py::Shape"), feature_id="bad")
    first = prove_shard(settings, "shapes", prepared, [(good, "remove"), (bad, "remove"), (good, "nonsense")])
    assert accepted(first[0]).removed == (WALK,)
    refused(first[1], "import_time_reference")
    refused(first[2], "bad_config")
    kept = sorted(path.name for path in (tmp_path / "stages" / "candidate").rglob("*.json"))
    assert len(kept) == 2
    again = prove_shard(settings, "shapes", prepared, [(good, "remove"), (bad, "remove")])
    assert again == first[:2]
