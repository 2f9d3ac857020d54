"""Rollouts of one answer, which replaces a stub: the whole function, or its one line."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from excise.pipeline.services.arena import TaskArena
from excise.trainer.rollout_types import Ending, Rollout
from excise.trainer.rollouts.rollout_maker import Attempt, TaskRolloutMaker
from excise.trainer.rollouts.rollout_settings import RolloutSettings
from excise.trainer.rollouts.single_turn import AnswerKind, SingleTurn, tasks_for
from excise.trainer.rollouts.stub_context import NoStub, is_stub, missing_line
from excise.types import Task

from ..byte_model import byte_tokenizer
from ..scripted_engine import ScriptedEngine
from .stub_example import PATCH, SOURCE, one_line

TOKENIZER = byte_tokenizer()


def answered(arena: TaskArena, task: Task, answer: str, **options: Any) -> tuple[Rollout, ScriptedEngine]:
    engine = ScriptedEngine(TOKENIZER, [answer])

    async def go() -> Rollout:
        rollouts = TaskRolloutMaker(engine, arena, SingleTurn(TOKENIZER), RolloutSettings(**options))
        try:
            group = await asyncio.wait_for(rollouts.group(task.instance_id, 1), 120)
        finally:
            rollouts.close()
        return group.rollouts[0]

    return asyncio.run(go()), engine


def gold_body(task: Task) -> str:
    lines = [line[1:] for line in task.patch.splitlines() if line.startswith("+") and not line.startswith("+++")]
    return "\n".join(lines)


@pytest.mark.parametrize("whole", [True, False])
def test_the_gold_function_earns_the_full_reward(arena: TaskArena, stub: Task, whole: bool) -> None:
    body = gold_body(stub)
    code = f"def parse(text):\n{body}" if whole else "\n".join(line[4:] for line in body.splitlines())
    rollout, engine = answered(arena, stub, f"<think>so</think>Here it is:\n```python\n{code}\n```\n")
    assert rollout.detail == ""
    assert (rollout.ending, rollout.task_reward, rollout.flags) == (Ending.FINISHED, 1.0, ())
    (segment,) = rollout.segments
    (turn,) = segment.turns
    assert segment.sampled == (False,) * turn.start + (True,) * (turn.end - turn.start)
    assert (turn.hint, turn.thinking) == ("", len("<think>so</think>"))
    prompt = TOKENIZER.decode(list(segment.ids[: turn.start]))
    assert stub.problem_statement in prompt
    assert "def parse(text):" in prompt
    assert "raise NotImplementedError" in prompt
    assert not any(line.strip() in prompt for line in body.splitlines() if len(line.strip()) > 20)
    assert engine.contexts == [segment.ids[: turn.start]]


@pytest.mark.parametrize(
    ("answer", "detector"),
    [
        ("I do not know.", "unusable_code"),
        ("```python\ndef parse(text:\n```", "unusable_code"),
        ("```python\ndef other(text):\n    return 1\n```", "unusable_code"),
    ],
)
def test_an_unusable_answer_earns_nothing_and_gets_a_hint(
    arena: TaskArena, stub: Task, answer: str, detector: str
) -> None:
    rollout, _ = answered(arena, stub, answer)
    assert (rollout.ending, rollout.task_reward, rollout.diff) == (Ending.FINISHED, 0.0, "")
    assert rollout.is_valid
    (turn,) = rollout.segments[0].turns
    assert turn.detector == detector
    assert turn.hint_ids


def test_a_cut_off_answer_ends_with_the_token_budget(arena: TaskArena, stub: Task) -> None:
    rollout, _ = answered(arena, stub, "well " * 100, answer_tokens=50)
    assert (rollout.ending, rollout.segments[0].turns[0].detector) == (Ending.TOKENS, "over_long")


def test_a_task_without_a_stub_is_an_infrastructure_failure(arena: TaskArena) -> None:
    other = next(task for task in arena.tasks().values() if not is_stub(task))
    rollout, _ = answered(arena, other, "x")
    assert (rollout.ending, rollout.is_valid) == (Ending.INFRA, False)


def test_a_file_in_another_encoding_keeps_its_other_bytes(arena: TaskArena, stub: Task) -> None:
    """Files are decoded like Python does: coding lines, byte order marks, form feeds within lines."""
    latin = f"# coding: latin-1\n# caf\xe9 \x85\n\f\n{SOURCE}".encode("latin-1")
    files = {"latin.py": latin, "marked.py": b"\xef\xbb\xbf" + SOURCE.encode()}

    class OtherFileSandbox:
        """A sandbox whose task is about another file."""

        def __init__(self, sandbox: Any, path: str) -> None:
            self.task, self.session = replace(one_line(stub), removed=(f"{path}::Square.area",)), sandbox.session
            self.diff, self.flags = sandbox.diff, sandbox.flags

    async def go(path: str, answer: str) -> tuple[bytes, str]:
        async def work(attempt: Attempt) -> Ending:
            attempt.sandbox.session.put(f"/testbed/{path}", files[path])
            attempt.sandbox = OtherFileSandbox(attempt.sandbox, path)  # type: ignore[assignment]
            ending = await SingleTurn(TOKENIZER)(attempt)
            after.append(attempt.sandbox.session.get(f"/testbed/{path}"))
            return ending

        after: list[bytes] = []
        code = f'```python\ndef area(self, unit: str = "m") -> float:\n    return {answer}\n```'
        rollouts = TaskRolloutMaker(ScriptedEngine(TOKENIZER, [code]), arena, work, RolloutSettings())
        try:
            group = await asyncio.wait_for(rollouts.group(stub.instance_id, 1), 120)
        finally:
            rollouts.close()
        assert group.rollouts[0].ending is Ending.FINISHED, group.rollouts[0].detail
        return after[0], group.rollouts[0].segments[0].turns[0].hint

    raises = b'm") -> float:\n        raise NotImplementedError'
    for path, data in files.items():
        after, hint = asyncio.run(go(path, "1"))
        assert data.count(raises) == 1
        assert (after, hint) == (data.replace(raises, raises.replace(b"raise NotImplementedError", b"return 1")), "")
    after, hint = asyncio.run(go("latin.py", "'\u4e2d'"))
    assert after == latin
    assert "cannot hold" in hint or "latin-1" in hint or "iso-8859-1" in hint, hint


RETURN = """--- a/figures.py
+++ b/figures.py
@@ -13,3 +13,3 @@
 def area(x):
     y = x * x
-    raise NotImplementedError  # squared
+    return 2 * y  # squared
"""


def test_an_expression_is_continued_where_it_is_missing(stub: Task) -> None:
    source = SOURCE.replace("    return x\n", "    y = x * x\n    raise NotImplementedError  # squared\n")
    task = replace(stub, deleter="expression", removed=("figures.py::area",), patch=RETURN)
    work = SingleTurn(TOKENIZER, AnswerKind.LINE, lines=3)
    place = work.stub(task, source)
    assert TOKENIZER.decode(list(work.prompt(task, place).generation)) == "\ndef area(x):\n    y = x * x\n    return "
    assert work.fill_in(task, place, "2 * y\n") == source.replace(
        "raise NotImplementedError  # squared", "return 2 * y"
    )
    whole = SingleTurn(TOKENIZER)
    answer = "```python\ndef area(x):\n    return x\n```"
    assert whole.fill_in(task, whole.stub(task, source), answer) == SOURCE
    with pytest.raises(NoStub, match="nothing missing in line 14"):
        work.stub(replace(task, patch=RETURN.replace("-13", "-12")), source)


@pytest.mark.parametrize(
    "patch",
    [
        PATCH.replace("+        return", "+        x = 1\n+        return"),
        PATCH.replace("-        raise NotImplementedError\n", ""),
        PATCH.replace("-        raise", "-        self.x = 1; raise"),
    ],
)
def test_a_task_of_more_than_one_line_is_not_in_the_line_rung(stub: Task, patch: str) -> None:
    task = replace(one_line(stub), patch=patch)
    assert missing_line(task) is None
    assert tasks_for({"a": task}, AnswerKind.LINE) == ()
    with pytest.raises(NoStub):
        SingleTurn(TOKENIZER, AnswerKind.LINE).stub(task, SOURCE)


def test_the_line_rung_continues_the_file(arena: TaskArena, stub: Task) -> None:
    task = one_line(stub)
    work = SingleTurn(TOKENIZER, AnswerKind.LINE)
    place = work.stub(task, SOURCE)
    prompt = work.prompt(task, place)
    assert TOKENIZER.decode(list(prompt.generation)).endswith('unit: str = "m") -> float:\n        return ')
    filled = work.fill_in(task, place, "self.side ** 2  # so\n        and more")
    assert "-> float:\n        return self.side ** 2  # so\n\n\ndef area" in filled
    assert TOKENIZER.encode("\n", add_special_tokens=False)[0] in work.stop_ids
    missing = missing_line(task)
    assert missing is not None
    assert (missing.number, missing.text) == (9, "return self.side ** 2")
    assert tasks_for({"a": task, "b": replace(stub, instance_id="b")}, AnswerKind.LINE) == (task.instance_id,)
    assert len(tasks_for(arena.tasks(), AnswerKind.FUNCTION)) == sum(map(is_stub, arena.tasks().values())) == 2
