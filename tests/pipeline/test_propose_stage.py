"""A model proposes features of ``shapes``: a scripted endpoint over a real socket, real sandboxes, the usual proofs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from excise.config import ModelSettings, Settings
from excise.datasets.queries.catalogue import query
from excise.datasets.taskset import TaskSet
from excise.extractors.features.find_features import FoundFeatures
from excise.pipeline.run.graph import run
from excise.pipeline.run.source_state import SourceState
from excise.pipeline.stages.find_stage import find_stage
from excise.pipeline.stages.propose_stage import ProposedFeatures, propose_stage
from excise.types import Rejection, SourceSpec, WorkerOutcome
from excise.verifiers.plan_deletion import plan_deletion
from excise.verifiers.stored_tasks import candidate_of
from excise.verifiers.workbench import Prepared, Workbench

from ..agents.scripted_server import Answer, ScriptedServer, calls, fails
from ..conftest import REPOS

ROUND, WALK, SQUARES = "src/shapes/round.py", "src/shapes/walk.py", "src/shapes/squares.py"
CUT = """import ast, sys
path, *names = sys.argv[1:]
text = open(path).read()
lines = text.splitlines(keepends=True)
for node in sorted(ast.walk(ast.parse(text)), key=lambda n: -getattr(n, "lineno", 0)):
    if getattr(node, "name", None) in names:
        lines[node.lineno - 1 : node.end_lineno] = []
open(path, "w").write("".join(lines) or "")
"""
"""Deletes definitions from a file, and nothing else."""

Ask = Callable[..., ProposedFeatures]


def cut(path: str, *names: str) -> tuple[str, dict[str, str]]:
    """A call that deletes definitions, as a model with little care would."""
    return "run", {"command": f"python - {path} {' '.join(names)} <<'END'\n{CUT}END"}


def finish(name: str = "Rings and spirals") -> tuple[str, dict[str, str]]:
    return "finish", {"name": name, "summary": "Areas between\ncircles, and walks."}


GOOD = [calls(cut(ROUND, "ring_area", "_disc"), cut(WALK, "spiral")), calls(finish())]
"""Two functions of two files that no found feature has together; their imports and exports are left behind."""


@pytest.fixture(scope="module")
def found(shapes_run: Any, prepared: Prepared) -> FoundFeatures:
    answer = find_stage(shapes_run.settings, "shapes", prepared)
    assert isinstance(answer, FoundFeatures)
    return answer


@pytest.fixture
def ask(shapes_run: Any, prepared: Prepared, found: FoundFeatures, tmp_path: Path) -> Ask:
    """Asks a scripted model for features; all of the script must be used."""

    def proposals(script: list[Answer], wanted: int = 1, **options: Any) -> ProposedFeatures:
        with ScriptedServer(script) as server:
            settings = settings_of(shapes_run.settings, tmp_path, server.url, wanted, **options)
            answer = propose_stage(settings, "shapes", prepared, found)
            assert isinstance(answer, ProposedFeatures)
            assert len(server.requests) == len(script)
            return answer

    return proposals


def settings_of(settings: Settings, folder: Path, url: str, wanted: int = 1, **options: Any) -> Settings:
    model = ModelSettings(base_url=url, model="scripted", propose_features=wanted, **options)
    return settings.model_copy(update={"model": model, "cache": folder / "cache", "out": folder / "out"})


def refused(answer: ProposedFeatures) -> tuple[str, str]:
    (row,) = answer.rejections
    assert answer.features == ()
    assert (row.stage, row.worker_outcome, row.evidence["model"]) == ("propose", WorkerOutcome.OK, "scripted")
    return row.reason, row.detail


def test_what_is_gone_from_the_tree_is_the_feature(ask: Ask, found: FoundFeatures, tmp_path: Path) -> None:
    (feature,) = ask(GOOD).features
    assert feature.symbols == (f"{ROUND}::_disc", f"{ROUND}::ring_area", f"{WALK}::spiral")
    assert feature.entry == (f"{ROUND}::ring_area", f"{WALK}::spiral")
    assert (feature.name, feature.summary) == ("Rings and spirals", "Areas between circles, and walks.")
    assert (feature.kind, feature.tier, feature.proposed_by) == ("cross_file", 4, "scripted")
    assert len(feature.tests) == 7
    assert feature.feature_id not in {known.feature_id for known in found.features}
    assert len(list((tmp_path / "cache" / "transcripts").glob("propose-*.jsonl"))) == 1
    assert ask([]).features == (feature,)  # from the cache


def test_the_transcript_answers_in_place_of_the_model(
    ask: Ask, shapes_run: Any, prepared: Prepared, found: FoundFeatures, tmp_path: Path
) -> None:
    first = ask(GOOD)
    replay = tmp_path / "cache" / "transcripts"
    settings = settings_of(shapes_run.settings, tmp_path / "other", "", replay=replay)
    assert propose_stage(settings, "shapes", prepared, found) == first


def test_a_later_proposal_knows_the_earlier_ones(ask: Ask) -> None:
    def told(request: dict[str, Any]) -> Answer:
        facts = request["messages"][1]["content"]
        assert "Rings and spirals: src/shapes/round.py::ring_area" in facts
        assert "- Proposal 2: this feature is known already: Rings and spirals." in facts
        return calls(finish())

    again = calls(cut(ROUND, "ring_area"), cut(WALK, "spiral"), finish("Again"))
    answer = ask([*GOOD, again, *[calls(finish())] * 2, told, *[calls(finish())] * 2], wanted=3)
    assert [feature.name for feature in answer.features] == ["Rings and spirals"]
    assert [row.reason for row in answer.rejections] == ["already_found", "no_change"]


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (("run", {"command": "true"}), "no_change"),
        (("write_file", {"path": "tests/test_walk.py", "content": ""}), "only_tests"),
        (("write_file", {"path": "src/shapes/more.py", "content": "x = 1\n"}), "no_change"),
        (("write_file", {"path": WALK, "content": "def spiral(:\n"}), "would_not_parse"),
        (cut(WALK, "spiral"), "already_found"),
        (cut("src/shapes/tables.py", "make_table"), "runs_at_import"),
        (cut("src/shapes/base.py", "register"), "runs_at_import"),
    ],
)
def test_what_is_no_new_feature_is_refused(ask: Ask, call: tuple[str, Any], reason: str) -> None:
    assert refused(ask([calls(call), *[calls(finish())] * 3]))[0] == reason
    assert refused(ask([]))[0] == reason  # from the cache


def test_a_model_may_correct_what_it_hands_in(ask: Ask) -> None:
    (feature,) = ask([calls(finish("Nothing")), *GOOD]).features
    assert feature.name == "Rings and spirals"


def test_an_emptied_body_is_gone_and_what_cannot_go_is_left_out(ask: Ask) -> None:
    empty = {"path": WALK, "old": "    x = y = 0\n", "new": "    raise NotImplementedError\n"}
    rest = ("run", {"command": f"sed -i '/NotImplementedError/q' {WALK}"})
    cuts = cut(ROUND, "ring_area", "_disc"), cut("src/shapes/tables.py", "make_table")
    (feature,) = ask([calls(("edit_file", empty), rest, *cuts, finish())]).features
    assert feature.symbols == (f"{ROUND}::_disc", f"{ROUND}::ring_area", f"{WALK}::spiral")


def test_a_deleted_file_is_a_feature_with_others(ask: Ask) -> None:
    (feature,) = ask([calls(("run", {"command": f"rm {WALK}"}), cut(ROUND, "ring_area"), finish())]).features
    assert feature.symbols == (f"{ROUND}::_disc", f"{ROUND}::ring_area", WALK)


MIRRORED = {"path": "src/shapes/base.py", "old": """        if mine < theirs:
            return -1
        return int(mine > theirs)
""", "new": "        return int(mine > theirs)\n"}  # fmt: skip
"""Takes one branch of a method that three tests execute, of which one needs it."""


def test_a_part_of_a_function_is_a_feature_whose_tests_are_found_by_running(ask: Ask) -> None:
    (feature,) = ask([calls(("edit_file", MIRRORED), finish("Smaller"))]).features
    assert feature.tests == ("tests/test_base.py::test_compare[4--1]",)
    assert [name for name, _ in feature.changed] == list(feature.symbols) == ["src/shapes/base.py::Shape.compare"]
    assert (feature.kind, feature.tier, feature.loc) == ("method", 0, 2)


def test_parts_that_break_everything_are_left_out(ask: Ask) -> None:
    edit = {"path": "src/shapes/base.py", "old": "        _REGISTER[name] = cls\n        return cls\n", "new": ""}
    cuts = cut(ROUND, "ring_area", "_disc"), cut(WALK, "spiral")
    (feature,) = ask([calls(("edit_file", edit), *cuts, finish())]).features
    assert feature.changed == ()
    assert feature.symbols == (f"{ROUND}::_disc", f"{ROUND}::ring_area", f"{WALK}::spiral")
    assert len(feature.tests) == 7


def test_a_budget_that_is_used_up_ends_the_proposal_and_not_what_was_done(ask: Ask, tmp_path: Path) -> None:
    look = calls(("run", {"command": "ls"}), tokens=(900, 200))
    limits = {"max_tokens": 1000, "max_reply_tokens": 200}
    reason, detail = refused(ask([look], **limits))
    assert reason == "budget"
    assert "max_tokens" in detail
    done = calls(cut(ROUND, "ring_area", "_disc"), cut(WALK, "spiral"), tokens=(900, 200))
    (feature,) = ask([done], temperature=0.5, **limits).features
    assert feature.name == "walk, round"


def test_steps_that_are_used_up_end_the_proposal(ask: Ask) -> None:
    look = calls(("run", {"command": "ls"}))
    assert refused(ask([look, look], propose_steps=2))[0] == "step_limit"


def test_a_model_that_does_not_answer_decides_nothing(ask: Ask) -> None:
    for _ in range(2):  # not from the cache
        (row,) = ask([fails(401)], wanted=3).rejections
        assert (row.reason, row.worker_outcome) == ("model_unavailable", WorkerOutcome.INFRA_ERROR)


@pytest.mark.parametrize(
    ("call", "stays"),
    [
        (cut("src/shapes/base.py", "Shape"), {"src/shapes/base.py::Shape"}),
        (
            ("run", {"command": "rm src/shapes/*.py"}),  # what stays uses the two functions
            {"src/shapes/__init__.py", "src/shapes/base.py::lookup", "src/shapes/base.py::registered"},
        ),
    ],
)
def test_a_proposal_that_breaks_everything_is_shrunk(ask: Ask, bench: Workbench, call: Any, stays: set[str]) -> None:
    (feature,) = ask([calls(call, cut(WALK, "spiral"), cut(ROUND, "ring_area", "_disc"), finish())]).features
    plan = plan_deletion(bench, feature, "remove")
    assert stays == set(feature.symbols) - set(plan.deletion.removed)
    assert f"{ROUND}::ring_area" in plan.deletion.removed


@pytest.mark.slow
def test_a_run_tries_proposals_first_and_keeps_what_was_refused(
    shapes_run: Any, bench: Workbench, excise: Callable[..., Any], tmp_path: Path
) -> None:
    """Whole definitions, a partly wrong proposal and a part of a function become tasks; an empty one a rejection."""
    text, out = "src/shapes/text.py", tmp_path / "out"
    wrong = [cut(text, "describe"), cut(ROUND, "circumference"), cut("src/shapes/base.py", "Shape"), finish("Wrong")]
    part = calls(("edit_file", MIRRORED), finish("Part"))
    with ScriptedServer([*GOOD, calls(*wrong), part, *[calls(finish("Nothing"))] * 3]) as server:
        model = ModelSettings(base_url=server.url, model=server.url, propose_features=4)  # nothing is in the cache
        sources = (SourceSpec(spec=str(REPOS / "shapes")),)
        changed = {"model": model, "out": out, "sources": sources, "limit": 3, "workers": 1}
        result = run(shapes_run.settings.model_copy(update=changed), lambda _: None)
    assert not result.interrupted
    taskset = TaskSet.open(out)
    tasks = {task.removed: task for task in taskset.tasks()}
    good = next(task for removed, task in tasks.items() if f"{WALK}::spiral" in removed)
    assert {f"{ROUND}::_disc", f"{ROUND}::ring_area"} < set(good.removed)
    assert (good.deleter, good.difficulty.kind, good.difficulty.tier) == ("remove", "cross_file", 4)
    shrunk = next(task for removed, task in tasks.items() if f"{ROUND}::Circle.circumference" in removed)
    assert "src/shapes/base.py::Shape" not in shrunk.removed
    partial = tasks["src/shapes/base.py::Shape.compare",]
    assert (partial.deleter, partial.difficulty.loc, partial.difficulty.tier) == ("proposed", 2, 0)
    assert partial.fail_to_pass == ("tests/test_base.py::test_compare[4--1]",)
    lost = "".join(MIRRORED["old"].splitlines(keepends=True)[:2])
    assert candidate_of(bench, partial).deletion.text == (("src/shapes/base.py::Shape.compare#part1", lost),)
    (row,) = taskset.rejections()
    assert (row.repo, row.stage, row.reason) == ("shapes", "propose", "no_change")
    rows = query(out, "SELECT name FROM features WHERE proposed_by != '' ORDER BY 1", format="csv")
    assert rows.splitlines() == ["name", "Part", "Rings and spirals", "Wrong"]
    where = "--set", f"cache={shapes_run.cache}", "--config", shapes_run.config
    done = excise("verify", "-o", out, partial.instance_id, "--reuse-environments", *where)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_stage_that_fails_leaves_what_was_found(found: FoundFeatures) -> None:
    state = SourceState(SourceSpec(spec="shapes"), limit=None)
    state.add_features(found)
    expected = list(state.pending)
    row = Rejection(repo="shapes", stage="propose", subject="shapes", reason="infra_error", detail="x")
    state.add_proposals(ProposedFeatures(rejections=(row,)))
    assert (state.pending, state.rejections, state.failure) == (expected, [row], None)
    state.record_proofs(0, [])
    assert state.rejections == [row]
