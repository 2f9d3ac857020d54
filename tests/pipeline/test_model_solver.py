"""A model tries tasks while they are proven: a scripted endpoint over a real socket, real sandboxes and grades."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from excise.config import ModelSettings, Settings
from excise.datasets.taskset import TaskSet
from excise.errors import AgentError, ConfigError
from excise.pipeline.cli.options import require_model
from excise.pipeline.stages import prove_stage
from excise.pipeline.stages.model_solver import solver_of
from excise.types import Feature, FeatureKind, GateOutcome, GradingKit, Verdict, WorkerOutcome
from excise.verifiers.candidate import Candidate
from excise.verifiers.prove import prove
from excise.verifiers.stored_tasks import candidate_of
from excise.verifiers.workbench import Workbench

from ..agents.scripted_server import Answer, Script, ScriptedServer, calls, fails

Solvable = tuple[Candidate, GradingKit]


@pytest.fixture(scope="module")
def solvable(shapes: Any, bench: Workbench) -> Solvable:
    """A stored task that a gold patch of one file solves, and its kit."""
    taskset: TaskSet = shapes.taskset
    task = next(task for task in taskset.tasks() if len(gold_files(bench, task.patch)) == 1)
    kit = taskset.kit(task.instance_id)
    assert kit is not None
    return candidate_of(bench, task), kit


def gold_files(bench: Workbench, patch: str) -> dict[str, bytes]:
    """Path to content of the files of a gold patch."""
    paths = [line[6:] for line in patch.splitlines() if line.startswith("+++ b/")]
    return bench.read(paths)


def settings_with(server: ScriptedServer, cache: Path, shapes: Any, **options: Any) -> Settings:
    model = ModelSettings(base_url=server.url, model="scripted", solve_attempts=2, **options)
    settings: Settings = shapes.settings
    return settings.model_copy(update={"model": model, "cache": cache})


def solved_by(script: Script, solvable: Solvable, cache: Path, shapes: Any, **options: Any) -> Verdict:
    with ScriptedServer(script) as server:
        solver = solver_of(settings_with(server, cache, shapes, **options))
        assert solver is not None
        verdict = solver(*solvable)
        assert len(server.requests) == len(script)
        asked = [request["messages"] for request in server.requests]
        assert all(solvable[0].task.problem_statement in messages[1]["content"] for messages in asked)
        return verdict


FINISH = calls(("finish", {}))


def writing(solvable: Solvable, *, wrong: bool = False) -> list[Answer]:
    """Answers that look around, write the gold files (or wrong ones), and finish."""
    candidate = solvable[0]
    files = gold_files(candidate.bench, candidate.task.patch)
    written = [("write_file", {"path": p, "content": "1 / 0" if wrong else d.decode()}) for p, d in files.items()]
    return [calls(("run", {"command": "ls"})), calls(*written), FINISH]


def test_a_task_is_solved_if_one_attempt_gets_the_reward(solvable: Solvable, tmp_path: Path, shapes: Any) -> None:
    script = [*writing(solvable, wrong=True), *writing(solvable)]
    verdict = solved_by(script, solvable, tmp_path, shapes)
    assert (verdict.gate, verdict.outcome, verdict.reason) == ("g13_solved", GateOutcome.PASSED, "")
    assert verdict.evidence == {
        "model": "scripted", "style": "docstring", "attempts": "2", "solved": "1", "first_solved": "2", "steps": "3, 3",
    }  # fmt: skip
    (transcript,) = (tmp_path / "transcripts").iterdir()
    assert transcript.name == f"solve-{solvable[0].task.instance_id}.jsonl"
    again = replace(solvable[0])  # the recording answers in place of the model
    model = ModelSettings(model="scripted", solve_attempts=2, replay=transcript)
    solver = solver_of(shapes.settings.model_copy(update={"model": model, "cache": tmp_path / "other"}))
    assert solver is not None
    assert solver(again, solvable[1]).evidence == verdict.evidence


def test_a_task_that_no_attempt_solves_is_refused(solvable: Solvable, tmp_path: Path, shapes: Any) -> None:
    steps = [calls(("run", {"command": "true"}))] * 3
    verdict = solved_by([FINISH, *steps], solvable, tmp_path, shapes, solve_steps=3)
    assert (verdict.outcome, verdict.reason) == (GateOutcome.FAILED, "not_solved")
    assert "finished after 1 steps: fail_to_pass" in verdict.detail
    assert "step_limit after 3 steps" in verdict.detail


def test_attempts_within_the_budget_count(solvable: Solvable, tmp_path: Path, shapes: Any) -> None:
    script = [calls(("finish", {}), tokens=(900, 100)), calls(("run", {"command": "ls"}), tokens=(900, 200))]
    verdict = solved_by(script, solvable, tmp_path, shapes, max_tokens=2000, max_reply_tokens=200)
    assert verdict.evidence["attempts"] == "1"
    with pytest.raises(AgentError, match="budget"):
        solved_by(script[1:], solvable, tmp_path / "b", shapes, max_tokens=1000, max_reply_tokens=200)


def test_without_an_answer_nothing_is_decided(
    solvable: Solvable, tmp_path: Path, shapes: Any, bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    candidate, _ = solvable
    feature = Feature(feature_id="f", kind=FeatureKind.FUNCTION, tier=0, entry=(), symbols=(), tests=())

    def proving(*given: Any) -> None:
        given[3](candidate, solvable[1])

    monkeypatch.setattr(prove_stage, "prove", proving)
    with ScriptedServer([fails(401)]) as server:
        settings = settings_with(server, tmp_path, shapes)
        (proof,) = prove_stage.prove_shard(settings, "shapes", bench.prepared, [(feature, "remove")])
    assert proof.rejection is not None
    assert (proof.rejection.reason, proof.rejection.worker_outcome) == ("model_unavailable", WorkerOutcome.INFRA_ERROR)


def features_of(bench: Workbench, solvable: Solvable) -> Feature:
    """The feature of a stored task, as the finder proposed it."""
    task = solvable[0].task
    coverage = bench.prepared.coverage
    assert coverage is not None
    tests = sorted({coverage.tests[n] for s in task.removed for n in coverage.by_symbol.get(s, ())})
    return Feature(
        feature_id=task.feature_id, kind=FeatureKind.FUNCTION, tier=1, entry=task.removed, symbols=task.removed,
        tests=tuple(tests),
    )  # fmt: skip


@pytest.mark.parametrize("solved", [True, False])
def test_a_proof_asks_the_solver_last(solvable: Solvable, bench: Workbench, solved: bool) -> None:
    asked: list[Candidate] = []

    def solver(candidate: Candidate, kit: GradingKit) -> Verdict:
        asked.append(candidate)
        assert kit.instance_id == candidate.task.instance_id
        outcome = GateOutcome.PASSED if solved else GateOutcome.FAILED
        row = Verdict(
            instance_id=candidate.task.instance_id, gate="g13_solved", worker_outcome=WorkerOutcome.OK, outcome=outcome
        )
        return replace(row, reason="" if solved else "not_solved", detail="It tried.")

    proof = prove(bench, features_of(bench, solvable), solvable[0].task.deleter, solver)
    assert len(asked) == 1
    if solved:
        assert proof.certificate is not None
        assert proof.certificate.verdicts[-1].gate == "g13_solved"
    else:
        assert proof.rejection is not None
        assert (proof.rejection.reason, proof.verdicts[-1].gate) == ("not_solved", "g13_solved")


def test_attempts_need_a_model() -> None:
    assert solver_of(Settings()) is None
    require_model(Settings())
    require_model(Settings(model=ModelSettings(solve_attempts=1, model="some")))
    with pytest.raises(ConfigError, match=r"model\.solve_attempts needs a model"):
        require_model(Settings(model=ModelSettings(solve_attempts=1)))
    with pytest.raises(ConfigError, match=r"model\.propose_features needs a model"):
        require_model(Settings(model=ModelSettings(propose_features=1)))
