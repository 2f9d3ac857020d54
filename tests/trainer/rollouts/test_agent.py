"""Complete rollouts with real tools in real sandboxes; the answers of the model are scripted."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from excise.deleters.patches.git_patches import apply_patch, touched
from excise.pipeline.services.arena import TaskArena
from excise.protocols import Session
from excise.trainer.interfaces import GroupProgress
from excise.trainer.rollout_types import Ending, Group, Rollout, Segment
from excise.trainer.rollouts.agent import Agent
from excise.trainer.rollouts.rollout_maker import TaskRolloutMaker
from excise.trainer.rollouts.rollout_settings import RolloutSettings
from excise.types import Task
from excise.verifiers.agent_workspace import Workspace
from excise.verifiers.monitor.trajectory_readers import read_trajectories

from ..byte_model import QWEN_LIKE, byte_tokenizer
from ..scripted_engine import Say, ScriptedEngine

TOKENIZER = byte_tokenizer()
SETTINGS = RolloutSettings(answer_tokens=6000, max_tokens=40_000, max_turns=12, time_s=120.0)


@pytest.fixture(scope="module")
def task(arena: TaskArena) -> Task:
    """A task whose gold patch changes one file."""
    return next(task for task in arena.tasks().values() if len(touched(task.patch)) == 1)


def call(name: str, **arguments: Any) -> str:
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


def gold(arena: TaskArena, task: Task) -> tuple[str, str, str]:
    """The path, the shipped text and the original text of the file that the gold patch changes."""
    (path,) = touched(task.patch)
    base = (arena._grader.environment_of(task)[0].root / path).read_bytes()  # type: ignore[index]
    shipped = apply_patch({path: base}, "".join(p for p in split_patch(task.deletion_patch) if f"/{path}" in p))[path]
    assert shipped is not None
    return path, shipped.decode(), base.decode()


def split_patch(patch: str) -> list[str]:
    return ["diff --git " + part for part in patch.split("diff --git ") if part]


def attempts(
    arena: TaskArena, task: Task, say: Say | list[str], size: int = 1, *, engine: Any = None,
    settings: RolloutSettings = SETTINGS, tokenizer: Any = TOKENIZER,
) -> tuple[Group, ScriptedEngine]:  # fmt: skip
    engine = engine or ScriptedEngine(tokenizer, say)

    async def go() -> Group:
        rollouts = TaskRolloutMaker(engine, arena, Agent(tokenizer), settings)
        try:
            return await asyncio.wait_for(rollouts.group(task.instance_id, size), 300)
        finally:
            rollouts.close()

    return asyncio.run(go()), engine


def attempt(*arguments: Any, **options: Any) -> tuple[Rollout, ScriptedEngine]:
    group, engine = attempts(*arguments, **options)
    return group.rollouts[0], engine


def check_segment(segment: Segment, engine: ScriptedEngine) -> None:
    """Check what holds for every segment: lengths, sampled places, versions, log-probabilities, contexts."""
    assert len(segment.ids) == len(segment.sampled) == len(segment.logprobs) == len(segment.versions)
    drawn = {n for turn in segment.turns for n in range(turn.start, turn.end)}
    assert drawn == {n for n, sampled in enumerate(segment.sampled) if sampled}
    assert {segment.versions[n] for n in drawn} == {engine.version}
    assert all(segment.logprobs[n] == -0.5 for n in drawn)
    rest = set(range(len(segment.ids))) - drawn
    assert all(segment.versions[n] == -1 and segment.logprobs[n] == 0 for n in rest)
    for turn in segment.turns:
        assert segment.ids[: turn.start] in engine.contexts
        assert TOKENIZER.decode(segment.ids[turn.prompt_end : turn.start]) == "<|im_start|>assistant\n"


def test_the_gold_edit_earns_the_full_reward(arena: TaskArena, task: Task) -> None:
    path, shipped, whole = gold(arena, task)
    changed = next(n for n, (a, b) in enumerate(zip(shipped + "\0", whole + "\0", strict=False)) if a != b)
    start = shipped.rfind("\n", 0, max(0, changed - 200)) + 1
    old, new = shipped[start:], whole[start:]
    assert shipped.count(old) == 1
    script = [
        "Let me see.\n" + call("read_file", path=path),
        call("search", pattern="^def ", path="src") + "\n" + call("read_file", path="nothing.py"),
        call("edit_file", path=path, old="not in there", new="x"),
        call("edit_file", path=path, old=old, new=new),
        call("run", command="python -m pytest -q -x tests; echo $PWD"),
        call("finish"),
    ]
    rollout, engine = attempt(arena, task, script)
    assert rollout.detail == ""
    assert (rollout.ending, rollout.task_reward, rollout.flags) == (Ending.FINISHED, 1.0, ())
    assert rollout.grade is not None
    assert rollout.grade.decided
    assert rollout.is_valid
    (segment,) = rollout.segments
    check_segment(segment, engine)
    text = TOKENIZER.decode(list(segment.ids))
    assert text.startswith("<|im_start|>system\n")
    assert task.problem_statement in text
    assert "    1\t" in text
    assert "error: nothing.py: no such file" in text
    assert "[exit code 0]" in text
    assert "/testbed" in text
    assert [turn.detector for turn in segment.turns] == ["", "", "edit_not_applied", "", "", ""]
    assert [turn.calls for turn in segment.turns] == [1, 2, 1, 1, 1, 1]
    usage = rollout.usage
    assert (usage.num_turns, usage.num_calls, usage.num_summaries) == (6, 7, 0)
    assert usage.thinking + usage.calls + usage.final == sum(segment.sampled)
    assert usage.prompt + usage.tool_output + sum(segment.sampled) + 2 * 5 < len(segment.ids) + 300
    assert usage.calls > usage.final > 0 == usage.thinking
    assert usage.grade_s > 0 < usage.sandbox_s


def test_doing_nothing_earns_nothing_and_gets_a_hint(arena: TaskArena, task: Task) -> None:
    rollout, engine = attempt(arena, task, [call("finish")])
    assert (rollout.ending, rollout.task_reward, rollout.diff, rollout.grade) == (Ending.FINISHED, 0.0, "", None)
    assert rollout.is_valid
    (segment,) = rollout.segments
    check_segment(segment, engine)
    (turn,) = segment.turns
    assert turn.detector == "nothing_done"
    assert TOKENIZER.decode(list(turn.hint_ids)) == f"<|im_start|>user\n{turn.hint}<|im_end|>\n"


def test_a_wrong_answer_is_graded(arena: TaskArena, task: Task) -> None:
    path, _, _ = gold(arena, task)
    rollout, _ = attempt(arena, task, [call("write_file", path=path, content="x = 1\n"), call("finish")])
    assert (rollout.ending, rollout.task_reward) == (Ending.FINISHED, 0.0)
    assert rollout.grade is not None
    assert rollout.grade.decided
    assert rollout.grade.reward == 0


def test_three_malformed_calls_end_the_rollout(arena: TaskArena, task: Task) -> None:
    script = ["I cannot.", call("grep", x=1), "<tool_call>{broken</tool_call>", "never said"]
    rollout, engine = attempt(arena, task, script)
    assert rollout.ending is Ending.MALFORMED
    (segment,) = rollout.segments
    check_segment(segment, engine)
    assert segment.sampled[-1]
    assert [turn.detector for turn in segment.turns] == ["no_call", "unknown_tool", "malformed_call"]


@pytest.mark.parametrize(
    ("limits", "ending"),
    [
        ({"max_turns": 3}, Ending.TURNS),
        ({"max_tokens": 150}, Ending.TOKENS),
        ({"time_s": 0.6}, Ending.TIME),
    ],
)
def test_a_spent_budget_ends_the_rollout_which_still_counts(
    arena: TaskArena, task: Task, limits: dict[str, Any], ending: Ending
) -> None:
    settings = RolloutSettings(**{"answer_tokens": 1000, "max_tokens": 40_000, "time_s": 60.0, **limits})
    engine = ScriptedEngine(TOKENIZER, lambda _: call("run", command="echo hello"))
    engine.pause_s = 0.1
    rollout, _ = attempt(arena, task, [], engine=engine, settings=settings)
    assert rollout.ending is ending
    assert rollout.is_valid
    for segment in rollout.segments:
        check_segment(segment, engine)
    assert rollout.usage.num_turns == len(rollout.segments[0].turns) > 0


def test_a_full_context_ends_the_rollout(arena: TaskArena, task: Task) -> None:
    engine = ScriptedEngine(TOKENIZER, lambda _: call("run", command="seq 1 200"), context_length=9000)
    rollout, _ = attempt(arena, task, [], engine=engine)
    assert rollout.ending is Ending.TOKENS
    assert 4000 < max(len(segment.ids) for segment in rollout.segments) <= 9000


def test_a_rollout_goes_on_after_an_answer_that_was_cut_off(arena: TaskArena, task: Task) -> None:
    settings = RolloutSettings(answer_tokens=100)
    rollout, engine = attempt(arena, task, ["word " * 100, call("finish")], settings=settings)
    (segment,) = rollout.segments
    check_segment(segment, engine)
    assert [turn.detector for turn in segment.turns] == ["over_long", "nothing_done"]
    first = segment.turns[0]
    assert TOKENIZER.decode(segment.ids[first.end : first.end + 1]) == "<|im_end|>"
    assert not segment.sampled[first.end]


def test_an_engine_error_ends_only_one_attempt_of_a_group(arena: TaskArena, task: Task) -> None:
    seen: list[int] = []

    def say(_: str) -> str:
        seen.append(1)
        return "DEAD" if len(seen) == 2 else call("finish")

    group, _ = attempts(arena, task, say, 3)
    endings = sorted(rollout.ending for rollout in group.rollouts)
    assert endings == [Ending.FINISHED, Ending.FINISHED, Ending.INFRA]
    assert len(group.valid_rollouts) == 2
    lost = next(rollout for rollout in group.rollouts if rollout.ending is Ending.INFRA)
    assert "The engine is gone" in lost.detail


def test_a_summary_begins_the_next_segment(arena: TaskArena, task: Task) -> None:
    script = [call("run", command="seq 1 400"), "<think>hm</think>I ran seq.", call("finish")]
    settings = RolloutSettings(summary_at=3500, answer_tokens=500)
    rollout, engine = attempt(arena, task, script, settings=settings)
    first, second = rollout.segments
    for segment in rollout.segments:
        check_segment(segment, engine)
    assert (first.is_summary, second.is_summary, len(first.turns), len(second.turns)) == (True, False, 2, 1)
    text = TOKENIZER.decode(list(second.ids))
    assert "This is your own summary of it:\n\nI ran seq." in text
    assert task.problem_statement in text
    assert "hm" not in text.partition("summary of it")[2][:30]
    assert (rollout.usage.num_summaries, rollout.usage.num_turns) == (1, 3)
    assert rollout.usage.thinking == len("<think>hm</think>")
    assert 1000 < rollout.usage.tool_output < 2000, "the output of seq, without the request for a summary"


def test_a_segment_begins_where_the_template_rewrites_history(arena: TaskArena, task: Task) -> None:
    tokenizer = byte_tokenizer(QWEN_LIKE)
    script = ["<think>a</think>" + call("read_file", path="README.md"), "<think>b</think>none", call("finish")]
    rollout, _ = attempt(arena, task, script, tokenizer=tokenizer)
    first, second = rollout.segments
    assert len(first.turns) == 2
    assert "<think>a</think>" in tokenizer.decode(list(first.ids))
    assert "<think>" not in tokenizer.decode(list(second.ids))
    assert "README.md" in tokenizer.decode(list(second.ids))
    assert rollout.usage.tool_output > 50


def test_tampering_is_flagged_and_its_trajectory_is_stored(arena: TaskArena, task: Task) -> None:
    hook = "import sys\n\ndef pytest_runtest_makereport():\n    sys.exit(0)\n"
    rollout, _ = attempt(arena, task, [call("write_file", path="conftest.py", content=hook), call("finish")])
    assert rollout.flags == ("test_tamper",)
    assert not rollout.is_valid
    folder = arena._flagged
    assert folder is not None
    kept = [t for path in folder.iterdir() for t in read_trajectories(path)]
    assert [t.instance_id for t in kept] == [task.instance_id]
    assert "pytest_runtest_makereport" in kept[0].steps[0].agent_text


def test_two_dozen_rollouts_run_at_once(arena: TaskArena, task: Task) -> None:
    """24 rollouts with two commands each, all sandboxes open at once."""
    script: Callable[[str], str] = lambda text: call("finish") if "[exit" in text else call("run", command="pwd")  # noqa: E731
    began = time.monotonic()
    group, _ = attempts(arena, task, script, 24)
    assert {rollout.ending for rollout in group.rollouts} == {Ending.FINISHED}
    assert time.monotonic() - began < 60


def test_an_attempt_that_is_being_graded_frees_its_place(
    arena: TaskArena, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One place: the second attempt is made while the first one is being graded."""
    order: list[str] = []
    original = arena.grade

    async def grade(instance_id: str, diff: str) -> Any:
        order.append("grading")
        while order.count("said") < 4:
            await asyncio.sleep(0.01)
        return await original(instance_id, diff)

    def say(text: str) -> str:
        order.append("said")
        return call("finish") if "a.txt" in text else call("write_file", path="a.txt", content="a")

    monkeypatch.setattr(arena, "grade", grade)
    group, _ = attempts(arena, task, say, 2, settings=SETTINGS.model_copy(update={"at_once": 1}))
    assert {rollout.ending for rollout in group.rollouts} == {Ending.FINISHED}
    assert order == ["said", "said", "grading", "said", "said", "grading"]


def test_a_cancelled_attempt_leaves_no_sandbox(arena: TaskArena, task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []
    original = Workspace.open

    def opening(space: Workspace) -> Session:
        opened.append(original(space))
        return opened[-1]  # type: ignore[no-any-return]

    monkeypatch.setattr(Workspace, "open", opening)

    async def go() -> None:
        engine = ScriptedEngine(TOKENIZER, lambda _: call("run", command="sleep 30"))
        rollouts = TaskRolloutMaker(engine, arena, Agent(TOKENIZER), SETTINGS)
        for wait in (0.005, 1.0):
            running = asyncio.create_task(rollouts.group(task.instance_id, 2))
            await asyncio.sleep(wait)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        rollouts.close()

    began = time.monotonic()
    asyncio.run(go())
    deadline = time.monotonic() + 10
    while not all(session._closed for session in opened) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(opened) >= 2
    assert all(session._closed for session in opened)
    assert time.monotonic() - began < 20


def test_finished_attempts_are_not_repeated(arena: TaskArena, task: Task) -> None:
    reported: list[str] = []
    engine = ScriptedEngine(TOKENIZER, lambda _: call("finish"))
    known = Rollout(
        rollout_id="g-1", group_id="g", instance_id=task.instance_id, segments=(), ending=Ending.TURNS, task_reward=1.0
    )
    progress = GroupProgress(
        finished_attempts={"g-1": known},
        on_start=lambda: reported.append("started"),
        on_attempt=lambda one: reported.append(one.rollout_id),
    )

    async def go() -> Group:
        rollouts = TaskRolloutMaker(engine, arena, Agent(TOKENIZER), SETTINGS)
        try:
            return await rollouts.group(task.instance_id, 3, group_id="g", seed=4, progress=progress)
        finally:
            rollouts.close()

    group = asyncio.run(go())
    assert group.rollouts[1] is known
    assert [rollout.rollout_id for rollout in group.rollouts] == ["g-0", "g-1", "g-2"]
    assert sorted(reported) == ["g-0", "g-2", "started", "started"]
