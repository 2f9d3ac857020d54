"""Privileged context: what the teacher is shown of a group without a success."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from excise.trainer.objective.privileged_context import PrivilegedContext, PrivilegedKind, grade_text
from excise.trainer.objective.training_sequences import LessonLimits, training_sequences
from excise.trainer.rollout_types import Group
from excise.types import Grade, Status, WorkerOutcome

from ..tiny_policy import plain_logprobs, rollout_of, segment_of, tiny_model

IDS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
HINT = (11, 12, 13)


def grade(reward: float, **fields: Any) -> Grade:
    return Grade(
        instance_id="t", worker_outcome=WorkerOutcome.OK, decided=True, reward=reward, reward_tests=reward,
        reward_calls=None, partial=0.0, statuses={"test_a": Status.FAILED, "test_b": Status.PASSED},
        reasons=("f2p_failed",),
        num_passed=1, num_tests=2, **fields,
    )  # fmt: skip


def test_privileged_context_is_for_groups_without_a_success() -> None:
    model = tiny_model(0)
    plain = segment_of(IDS, [(2, 4), (6, 9)], plain_logprobs(model, IDS).detach().tolist())
    seen: list[str] = []

    def encode(text: str) -> tuple[int, ...]:
        seen.append(text)
        return HINT

    context = PrivilegedContext(PrivilegedKind.TESTS, dict, encode)
    failed = rollout_of("g-0", [plain, plain], 0.0, grade=grade(0.0))
    group = context(Group(group_id="g", instance_id="t", rollouts=(failed,)))
    (told,) = group.rollouts
    assert told == replace(failed, privileged=HINT)
    found, _ = training_sequences([group], {}, limits=LessonLimits())
    (sequence,) = found
    (lesson,) = sequence.lessons
    assert (lesson.at, lesson.kind, lesson.positions) == (1, "privileged", (2, 3, 6, 7, 8))
    assert "FAILED test_a" in seen[0]
    assert "test_b" not in seen[0]
    better = replace(group, rollouts=(failed, rollout_of("g-1", [plain], 1.0, grade=grade(1.0))))
    assert context(better) is better
    assert (
        training_sequences([replace(better, rollouts=(told, *better.rollouts[1:]))], {}, limits=LessonLimits())[0] == []
    )
    assert grade_text(grade(1.0)) == ""
    assert training_sequences([group], {}, limits=LessonLimits(privileged=2))[1].skipped == 1
    assert training_sequences([group], {})[0] == []
