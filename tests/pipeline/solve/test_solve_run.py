"""Runs of attempts: reference agents, resuming, what is an attempt and what is not, statement styles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from excise.datasets.queries.attempts import trajectory_path
from excise.errors import ConfigError, SandboxError, StoreError
from excise.pipeline.solve.attempt import AttemptJob, AttemptOutcome
from excise.pipeline.solve.reference_agents import ReferenceAgent
from excise.pipeline.solve.solve_run import MAX_LOST_IN_A_ROW, LostAttempt, open_run
from excise.types import StatementStyle
from excise.verifiers.monitor.trajectory_readers import read_trajectories

from .solving import Bench


def test_reference_agents_get_what_they_must(bench: Bench) -> None:
    ids = sorted(bench.arena.tasks())
    for agent, score in (("gold", 1.0), ("noop", 0.0), ("stub", 0.0)):
        result = bench.solve(agent, ids=ids, at_once=3)
        assert (result.num_new, result.lost, result.scores.pass_at) == (len(ids), (), {1: score}), agent
    reasons = {(row["agent"], row["solved"], tuple(row["reasons"])) for row in bench.rows()}
    assert reasons == {
        ("gold", True, ()), ("noop", False, ("empty_diff",)), ("stub", False, ("fail_to_pass",)),
    }  # fmt: skip
    gold = bench.rows()[0]
    assert (gold["run"], gold["flags"], gold["steps"], gold["cost"]) == ("gold-specification", [], None, None)
    assert gold["statement"] == bench.arena.tasks()[gold["instance_id"]].problem_statement


class CountingAgent(ReferenceAgent):
    """Counts its attempts; those in ``fails`` are lost to the infrastructure."""

    def __init__(self, name: str, fails: frozenset[int] = frozenset()) -> None:
        super().__init__(name)
        self.fails = fails
        self.count = 0

    def attempt(self, job: AttemptJob) -> AttemptOutcome:
        self.count += 1
        if self.count in self.fails:
            raise SandboxError("The disk is full.")
        return super().attempt(job)


def test_a_run_goes_on_where_it_stopped(bench: Bench) -> None:
    agent = CountingAgent("noop", frozenset({2}))
    first = bench.solve(agent, attempts=3, at_once=1)
    assert (first.num_new, first.num_kept, [lost.detail for lost in first.lost]) == (2, 0, ["The disk is full."])
    assert first.scores.tasks[0].num_lost == 1
    assert {row["number"] for row in bench.rows()} == {1, 3}
    second = bench.solve(agent, attempts=4)
    assert (second.num_new, second.num_kept, second.lost, agent.count) == (2, 2, (), 5)
    assert {row["number"] for row in bench.rows()} == {1, 2, 3, 4}
    assert second.scores.pass_at == {1: 0.0, 2: 0.0, 4: 0.0}
    assert bench.solve(agent, attempts=4).num_new == 0


def test_a_broken_infrastructure_ends_a_run_early(bench: Bench) -> None:
    agent = CountingAgent("noop", frozenset(range(100)))
    result = bench.solve(agent, attempts=20, at_once=1)
    assert (agent.count, len(result.lost), result.num_left_out) == (MAX_LOST_IN_A_ROW, MAX_LOST_IN_A_ROW, 15)
    assert bench.rows() == []
    assert all(isinstance(entry, LostAttempt) for entry in bench.heard)


def test_a_run_is_not_mixed_with_another(bench: Bench) -> None:
    bench.solve("noop")
    settings = bench.settings.model_copy(update={"out": bench.out})
    plan = bench.plan(ReferenceAgent("noop"))
    with (
        pytest.raises(ConfigError, match=r'made with agent = "noop"\. Name this one otherwise: --name'),
        open_run(settings, plan, ReferenceAgent("gold")),
    ):
        pass
    noop = ReferenceAgent("noop")
    with (
        open_run(settings, plan, noop),
        pytest.raises(StoreError, match="is being written by process"),
        open_run(settings, plan, noop),
    ):
        pass


@pytest.mark.parametrize("style", [StatementStyle.ISSUE, StatementStyle.TERSE, StatementStyle.AMBIGUOUS])
def test_the_style_is_told_and_stored(bench: Bench, style: StatementStyle) -> None:
    told: list[str] = []

    class Listening(ReferenceAgent):
        def attempt(self, job: AttemptJob) -> AttemptOutcome:
            told.append(job.statement)
            return super().attempt(job)

    bench.solve(Listening("noop"), style=style)
    row = bench.row()
    assert (row["style"], [row["statement"]], row["run"]) == (str(style), told, f"noop-{style}")
    assert ("`parse`" in row["statement"]) == (style is not StatementStyle.AMBIGUOUS)
    assert row["statement_author"] == "deterministic"


def test_trajectories_are_what_audit_reads(bench: Bench) -> None:
    bench.solve("gold")
    row = bench.row()
    path = trajectory_path(bench.out, row["run"], row["attempt_id"])
    (trajectory,) = read_trajectories(bench.out / "attempts")
    assert (trajectory.instance_id, trajectory.diff) == (bench.task.instance_id, row["diff"])
    assert trajectory.steps[0].command.startswith("git apply")
    assert sorted(p.name for p in path.parent.iterdir()) == sorted(
        [".lock", "run", f"{row['attempt_id']}.jsonl", f"{row['attempt_id']}.parquet"]
    )
    assert json.loads(Path(path.parent, "run").read_text())["agent"] == "gold"
