"""Evaluation of a policy: pass@k, effort, and the command on real tasks with a tiny model."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from excise.datasets.queries.scores import TaskScore, draw, effort_curve, pass_at_k, summarise, table
from excise.trainer.rollout_types import Ending, Group, Rollout, Usage
from excise.trainer.rollouts.evaluation import evaluate, score

from ..byte_model import byte_model, byte_tokenizer


@pytest.mark.parametrize(("n", "c"), [(5, 0), (5, 2), (5, 5), (8, 1), (8, 7)])
def test_pass_at_k_equals_counting_all_choices(n: int, c: int) -> None:
    solved = [number < c for number in range(n)]
    for k in range(1, n + 1):
        chosen = list(itertools.combinations(solved, k))
        assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, chosen)) / len(chosen))


def rollout(reward: float, tokens: int, ending: Ending = Ending.FINISHED, flags: tuple[str, ...] = ()) -> Rollout:
    usage = Usage(thinking=tokens // 2, final=tokens - tokens // 2, tool_output=1000)
    return Rollout(
        rollout_id="r", group_id="g", instance_id="a", segments=(), ending=ending, task_reward=reward, usage=usage,
        flags=flags,
    )  # fmt: skip


def test_lost_attempts_do_not_count_in_a_score() -> None:
    rollouts = (
        rollout(1.0, 10), rollout(0.5, 20), rollout(1.0, 30, flags=("leak_used",)), rollout(0.0, 0, Ending.INFRA),
        rollout(0.0, 40, Ending.TOKENS),
    )  # fmt: skip
    found = score(Group(group_id="g", instance_id="a", rollouts=rollouts))
    assert (found.num_attempts, found.num_solved, found.num_lost, found.num_flagged) == (4, 1, 1, 1)
    assert (found.tokens, found.solved_tokens) == ((10, 20, 30, 40), (10,))


def test_the_effort_curve_is_the_score_at_each_token_budget() -> None:
    tasks = [
        TaskScore(instance_id="a", num_attempts=2, num_solved=2, tokens=(10, 40), solved_tokens=(10, 40)),
        TaskScore(instance_id="b", num_attempts=2, num_solved=1, tokens=(20, 30), solved_tokens=(30,)),
        TaskScore(instance_id="c", num_attempts=0, num_solved=0, num_lost=2),
    ]
    assert effort_curve(tasks) == ((10, 0.25), (20, 0.25), (30, 0.5), (40, 0.75))
    many = [TaskScore(instance_id="a", num_attempts=500, num_solved=1, tokens=tuple(range(500)), solved_tokens=(499,))]
    assert len(effort_curve(many)) <= 41
    assert effort_curve(many)[-1] == (499, 0.002)
    assert effort_curve([]) == ()


def test_an_evaluation_summarises_its_tasks(tmp_path: Path) -> None:
    tasks = [
        TaskScore(instance_id=name, num_attempts=4, num_solved=solved, tokens=(8,) * 4, solved_tokens=(8,) * solved)
        for name, solved in (("a", 0), ("b", 2), ("c", 4))
    ]
    found = summarise("p", 4, [*tasks, TaskScore(instance_id="d", num_attempts=1, num_solved=1)])
    assert found.pass_at == pytest.approx({1: 2.5 / 4, 2: (0 + 5 / 6 + 1) / 3, 4: 2 / 3})
    assert found.error[4] == pytest.approx((1 / 3 / 3) ** 0.5)
    head, row = table([found])
    assert head[3:6] == ["pass@1", "pass@2", "pass@4"]
    assert row[:4] == ["p", "4", "13", "0.625 ± 0.239"]
    assert draw([found, found], tmp_path / "eval.svg")
    assert (tmp_path / "eval.svg").read_text().count("pass@k") >= 1


def test_each_task_is_tried_the_given_number_of_times() -> None:
    class Maker:
        async def group(self, instance_id: str, size: int) -> Group:
            await asyncio.sleep(0)
            made = tuple(rollout(float(n < len(instance_id)), 5) for n in range(size))
            return Group(group_id="g", instance_id=instance_id, rollouts=made)

    heard: list[str] = []
    found = asyncio.run(evaluate(Maker(), ["bb", "a"], samples=4, listener=lambda task: heard.append(task.instance_id)))
    assert [(task.instance_id, task.num_solved) for task in found.tasks] == [("a", 1), ("bb", 2)]
    assert sorted(heard) == ["a", "bb"]
    assert found.endings == {"finished": 8}
    assert found.pass_at[1] == pytest.approx(3 / 8)


def test_a_failed_evaluation_cancels_its_groups() -> None:
    running: set[str] = set()

    class Maker:
        async def group(self, instance_id: str, size: int) -> Group:
            running.add(instance_id)
            try:
                await asyncio.sleep(0 if instance_id == "bad" else 30)
                raise KeyError("unforeseen")
            finally:
                running.discard(instance_id)

    async def go() -> None:
        with pytest.raises(KeyError, match="unforeseen"):
            await evaluate(Maker(), ["a", "bad", "b"], samples=4)
        assert running == set()

    asyncio.run(asyncio.wait_for(go(), 20))


CONFIG = """
[engine]
kind = "transformers"
context_length = 8192
[rollouts]
answer_tokens = 24
max_turns = 2
[eval]
samples = 2
"""


def test_the_command_scores_a_model_on_real_tasks(shapes: Any, excise: Any, tmp_path: Path) -> None:
    """An untrained model solves nothing: all attempts are counted, and the files are written."""
    model = byte_model(context=8192)
    model.save_pretrained(tmp_path / "model")
    byte_tokenizer().save_pretrained(tmp_path / "model")
    (tmp_path / "eval.toml").write_text(CONFIG)
    ids = sorted(task.instance_id for task in shapes.taskset.tasks())[:2]
    only = [word for name in ids for word in ("--tasks", name)]
    line = ["eval", tmp_path / "eval.toml", "--model", tmp_path / "model", "--out", shapes.out, "--cache", shapes.cache]
    done = excise(*line, *only, "--into", tmp_path / "found", "--name", "tiny")
    assert done.returncode == 0, done.stderr
    assert "pass@1" in done.stdout
    found = json.loads((tmp_path / "found/eval.json").read_text())
    assert [task["instance_id"] for task in found["tasks"]] == ids
    assert [task["num_attempts"] for task in found["tasks"]] == [2, 2]
    assert found["pass_at"] == {"1": 0.0, "2": 0.0}
    assert found["mean_tokens"] > 0
    assert (tmp_path / "found/eval.svg").stat().st_size > 1000
    again = excise(*line, "--tasks", ids[0], "--set", "eval.mode=function", "--compare", tmp_path / "found/eval.json")
    assert again.returncode == 2
    assert "has no task that the mode 'function'" in again.stderr
    assert "Nothing of" in (done := excise(*line, "--held-out")).stderr
    assert done.returncode == 2
    kept = excise(
        *line,
        "--tasks",
        ids[0],
        "--held-out",
        "--samples",
        "1",
        "--set",
        "eval.held_out.projects=['shapes']",
        "--json",
    )
    assert [task["instance_id"] for task in json.loads(kept.stdout)["tasks"]] == ids[:1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[rollouts]\nmax_turn = 3", "rollouts.max_turn"),
        ("[engine]\nkind = 'magic'", "engine.kind"),
        ("[engine", "not valid TOML"),
    ],
)
def test_errors_in_the_evaluation_file_are_reported(excise: Any, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "eval.toml").write_text(text)
    done = excise("eval", tmp_path / "eval.toml", "--model", tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
