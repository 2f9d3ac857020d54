"""Lessons: the divergence between teacher and policy, and which logits get its gradient."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from excise.trainer.loop.learner import Learner, LearnerSettings
from excise.trainer.objective.losses import Divergence, LessonSettings, divergence, lesson_loss, top_and_rest
from excise.trainer.objective.teachers import EmaTeacher, FrozenTeacher, Teacher, TrustRegionTeacher, frozen_copy
from excise.trainer.objective.training_sequences import Lesson, LessonLimits, training_sequences
from excise.trainer.rollout_types import Ending, Group, Segment
from excise.trainer.setup.run_builder import build_learner
from excise.trainer.setup.training_config import TrainSettings

from ..tiny_policy import plain_logprobs, rollout_of, segment_of, tiny_model

CPU = torch.device("cpu")
IDS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
HINT = (11, 12, 13)


def random_logits(rows: int, seed: int, width: int = 200) -> torch.Tensor:
    return 3 * torch.randn(rows, width, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def over_buckets(p: torch.Tensor, q: torch.Tensor, k: int, kind: Divergence) -> list[float]:
    """The divergence by its definition, in probabilities, bucket by bucket."""
    found = []
    for ours, theirs in zip(p.softmax(-1).tolist(), q.softmax(-1).tolist(), strict=True):
        top = sorted(range(len(ours)), key=lambda i: -ours[i])[:k]
        rest = [i for i in range(len(ours)) if i not in top]
        pairs = [(ours[i], theirs[i]) for i in top]
        if rest:
            pairs.append((math.fsum(ours[i] for i in rest), math.fsum(theirs[i] for i in rest)))
        if kind is Divergence.REVERSE_KL:
            found.append(math.fsum(a * math.log(a / b) for a, b in pairs))
        else:
            halves = [(a, b, (a + b) / 2) for a, b in pairs]
            found.append(math.fsum(a * math.log(a / m) + b * math.log(b / m) for a, b, m in halves) / 2)
    return found


@pytest.mark.parametrize("kind", Divergence)
@pytest.mark.parametrize("k", [1, 20, 100, 199, 200, 500])
def test_the_divergence_matches_its_definition(kind: Divergence, k: int) -> None:
    ours, theirs = random_logits(4, 1), random_logits(4, 2)
    expected = over_buckets(ours, theirs, k, kind)
    assert divergence(ours, theirs, k=k, kind=kind).tolist() == pytest.approx(expected, rel=1e-6)
    assert divergence(ours, ours, k=k, kind=kind).tolist() == pytest.approx([0.0] * 4, abs=1e-12)


def test_the_rest_bucket_sums_the_tokens_outside_the_top() -> None:
    logprobs = random_logits(5, 3).log_softmax(-1)
    top = logprobs.topk(100, dim=-1).indices
    others = logprobs.scatter(-1, top, -torch.inf).logsumexp(-1)
    torch.testing.assert_close(top_and_rest(logprobs, top)[:, -1], others, rtol=1e-7, atol=1e-9)
    sharp = torch.zeros(1, 200, dtype=torch.float64)
    sharp[0, 0] = 500.0
    found = top_and_rest(sharp.log_softmax(-1), torch.tensor([[0, 1]]))
    assert found[0, -1].item() == pytest.approx(math.log(1e-7), rel=1e-6)


@pytest.mark.parametrize("kind", Divergence)
def test_the_divergence_gradient_matches_finite_differences_and_the_teacher_gets_none(kind: Divergence) -> None:
    ours, theirs = random_logits(2, 4, 12).requires_grad_(), random_logits(2, 5, 12).requires_grad_()
    divergence(ours, theirs, k=5, kind=kind).sum().backward()
    assert theirs.grad is None
    assert ours.grad is not None
    for row, column in ((0, 0), (0, 7), (1, 3)):
        step = torch.zeros_like(ours)
        step[row, column] = 1e-6
        with torch.no_grad():
            up = divergence(ours + step, theirs, k=5, kind=kind).sum()
            down = divergence(ours - step, theirs, k=5, kind=kind).sum()
        assert ours.grad[row, column].item() == pytest.approx(((up - down) / 2e-6).item(), rel=1e-4, abs=1e-8)


def test_the_weight_of_a_token_is_capped() -> None:
    ours, theirs = random_logits(3, 6), random_logits(3, 7)
    far = divergence(ours, theirs)
    logprobs = torch.tensor([-1.0, -1.0, -1.0], dtype=torch.float64, requires_grad=True)
    sampler = torch.tensor([-1.0, -3.0, -0.5])
    weighted, plain = lesson_loss(ours, theirs, logprobs, sampler, LessonSettings())
    expected = (far * torch.tensor([1.0, 2.0, math.exp(-0.5)], dtype=torch.float64)).sum()
    assert weighted.item() == pytest.approx(expected.item())
    assert plain.item() == pytest.approx(far.sum().item())
    assert not weighted.requires_grad


def segment_with_hint(model: torch.nn.Module, places: tuple[int, int] = (6, 9), **turn: Any) -> Segment:
    """A segment of two turns with a hint for the second."""
    mu = plain_logprobs(model, IDS).detach().tolist()
    segment = segment_of(IDS, [(2, 4), places], mu)
    first, second = segment.turns
    fields = {"hint": "No.", "hint_ids": HINT, "prompt_end": 5, "detector": "unknown_tool"} | turn
    return replace(segment, turns=(first, replace(second, **fields)))


def one_group(segment: Segment, reward: float = 0.0, **fields: Any) -> list[Group]:
    return [Group(group_id="g", instance_id="t", rollouts=(rollout_of("g-0", [segment], reward, **fields),))]


LESSONS = LearnerSettings(lessons=LessonSettings(weight=1.0, k=5), max_grad_norm=1e9)


def written_out_lesson_loss(model: torch.nn.Module, teacher: torch.nn.Module, kind: Divergence) -> torch.Tensor:
    """The loss of the lesson: the teacher reads the hint before the turn, the policy does not."""
    ours = model(input_ids=torch.tensor([IDS])).logits[0, 5:8]
    spliced = (*IDS[:5], *HINT, *IDS[5:9])
    with torch.no_grad():
        theirs = teacher(input_ids=torch.tensor([spliced])).logits[0, 8:11]
    return divergence(ours, theirs, k=5, kind=kind).sum() / 3


@pytest.mark.parametrize("kind", Divergence)
@pytest.mark.parametrize("which", ["ema", "frozen", "trust_region"])
def test_the_lesson_loss_has_the_hint_in_the_context_of_the_teacher(kind: Divergence, which: str) -> None:
    model = tiny_model(0)
    other = frozen_copy(tiny_model(5))
    teachers: dict[str, Teacher] = {
        "frozen": FrozenTeacher(other),
        "ema": EmaTeacher(frozen_copy(model), 0.1),
        "trust_region": TrustRegionTeacher(other, model, 1.0),
    }
    written_out_lesson_loss(model, other if which == "frozen" else model, kind).backward()
    wanted = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    assert LESSONS.lessons is not None
    settings = replace(LESSONS, lessons=replace(LESSONS.lessons, kind=kind))
    learner = Learner(model, torch.optim.SGD(model.parameters(), lr=0.0), settings, teacher=teachers[which])
    metrics = learner.step(one_group(segment_with_hint(model)), 0)
    found = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    assert wanted.norm() > 1e-3
    assert (found - wanted).norm() < 1e-5 * wanted.norm()
    assert metrics["hint_kl"] == pytest.approx(metrics["loss_lessons"], rel=1e-5)
    assert (metrics["hint_tokens"], metrics["hints/unknown_tool"]) == (3, 1)


def test_only_the_logits_of_the_hinted_turn_get_a_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_model(0)
    kept: list[torch.Tensor] = []

    def watched(student: torch.nn.Module, packed: Any) -> torch.Tensor:
        """Keep the gradients of all logits of the row, also of those that the learner does not use."""
        whole = student(input_ids=packed.ids, position_ids=packed.positions).logits
        if whole.requires_grad:
            whole.retain_grad()
            kept.append(whole)
        return whole[0, packed.predict]

    monkeypatch.setattr("excise.trainer.loop.learner.predicted_logits", watched)
    learner = Learner(
        model, torch.optim.SGD(model.parameters(), lr=0.0), LESSONS, teacher=FrozenTeacher(frozen_copy(model))
    )
    learner.step(one_group(segment_with_hint(model)), 0)
    (whole,) = kept
    assert whole.grad is not None
    touched = whole.grad[0].abs().sum(-1) != 0
    assert touched.tolist() == [place in (5, 6, 7) for place in range(len(IDS))]


def test_lessons_and_rewards_add_up_in_one_row() -> None:
    """The policy loss and the lesson loss each keep their own normaliser."""
    model = tiny_model(0)
    teacher = FrozenTeacher(frozen_copy(tiny_model(5)))
    mu = plain_logprobs(model, IDS).detach().tolist()
    plain = rollout_of("g-1", [segment_of(IDS, [(3, 8)], mu)], 1.0)
    both = [Group(group_id="g", instance_id="t", rollouts=(rollout_of("g-0", [segment_with_hint(model)], 0.0), plain))]
    assert LESSONS.lessons is not None

    def found(**changes: Any) -> torch.Tensor:
        settings = replace(LESSONS, reference_length=7, **changes)
        learner = Learner(model, torch.optim.SGD(model.parameters(), lr=0.0), settings, teacher=teacher)
        learner.step(both, 0)
        return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])

    whole = found(lessons=replace(LESSONS.lessons, weight=0.5))
    rewards = found(lessons=None)
    lessons = found(policy_weight=0.0)
    assert min(rewards.norm(), lessons.norm()) > 1e-3
    assert (whole - rewards - 0.5 * lessons).norm() < 1e-6 * whole.norm()


@pytest.mark.slow
def test_a_hint_makes_the_wrong_token_less_likely() -> None:
    """The teacher avoids a token when it reads the hint; the policy, which never reads it, learns to avoid it."""
    model = tiny_model(0)
    wise = frozen_copy(tiny_model(0))
    spliced = (*IDS[:5], *HINT, *IDS[5:9])
    tutor = torch.optim.Adam(wise.requires_grad_().parameters(), lr=0.02)
    for _ in range(30):  # a teacher that the hint makes avoid token 7 (at place 6)
        logits = wise(input_ids=torch.tensor([spliced])).logits[0, 8]
        tutor.zero_grad()
        (logits.log_softmax(-1)[7] * 1.0).backward()
        tutor.step()
        if logits.log_softmax(-1)[7] < -6:
            break
    learner = Learner(model, torch.optim.Adam(model.parameters(), lr=0.01), LESSONS, teacher=FrozenTeacher(wise))
    segment = segment_with_hint(model)
    before = plain_logprobs(model, IDS)[6].exp().item()
    first = learner.lesson_kl(one_group(segment))
    for version in range(8):
        learner.step(one_group(segment), version)
    after = plain_logprobs(model, IDS)[6].exp().item()
    assert after < before / 2
    assert learner.lesson_kl(one_group(segment)) < first / 2


def test_lessons_longer_than_the_context_of_the_model_are_skipped() -> None:
    settings = TrainSettings.model_validate(
        {"folder": "run", "policy": {"model": "m"}, "learner": {"lessons": {}}, "teacher": {"kind": "frozen"}}
    )
    for most, taken in ((11, 0.0), (12, 1.0)):
        model = tiny_model(0, max_position_embeddings=most)
        metrics = build_learner(settings, model).step(one_group(segment_with_hint(model)), 0)
        assert metrics.get("hints_taken", 0.0) == taken


def test_hints_and_privileged_context_are_normalised_by_their_own_number_of_tokens() -> None:
    """A failed group with long answers does not reduce the weight of the hints of another."""
    wise, model = tiny_model(5), tiny_model(0)
    long = [2, 7, 1, 8, 2, 8, 1, 8, 2, 8, 4, 5, 9, 0, 4, 5]
    told = rollout_of("h-0", [segment_of(long, [(2, 16)], plain_logprobs(model, long).detach().tolist())], 0.0)
    failed = Group(group_id="h", instance_id="u", rollouts=(replace(told, privileged=HINT),))

    def gradient(groups: list[Group]) -> torch.Tensor:
        model.zero_grad()
        learner = Learner(model, torch.optim.SGD(model.parameters(), lr=0.0), LESSONS, teacher=FrozenTeacher(wise))
        learner.step(groups, 0)
        return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])

    hints = list(one_group(segment_with_hint(model)))
    torch.testing.assert_close(gradient([*hints, failed]), gradient(hints) + gradient([failed]), atol=1e-9, rtol=1e-6)


def test_a_hint_that_is_too_long_for_rollouts_is_counted_as_skipped() -> None:
    segment = segment_with_hint(tiny_model(0))
    long = replace(segment, turns=tuple(replace(turn, hint_ids=()) for turn in segment.turns))
    found, counts = training_sequences(one_group(long), {}, limits=LessonLimits())
    assert (found, counts.taken, counts.skipped, counts.by_name) == ([], 0, 1, {"unknown_tool": 1})


@pytest.mark.parametrize("limits", [LessonLimits(context=2), LessonLimits(sequence=11)])
def test_a_lesson_over_the_limits_is_skipped_whole(limits: LessonLimits) -> None:
    groups = one_group(segment_with_hint(tiny_model(0)))
    found, counts = training_sequences(groups, {}, limits=limits)
    assert (found, counts.taken, counts.skipped, counts.by_name) == ([], 0, 1, {"unknown_tool": 1})
    found, counts = training_sequences(groups, {}, limits=LessonLimits(context=3, sequence=12))
    assert (len(found), counts.taken, counts.skipped) == (1, 1, 0)


def test_a_lesson_keeps_the_answer_as_it_was_sampled() -> None:
    lesson = Lesson(at=5, context=HINT, positions=(6, 7, 8))
    ids = lesson.teacher_ids(IDS)
    assert ids == (1, 2, 3, 4, 5, 11, 12, 13, 6, 7, 8, 9)
    assert [ids[place] for place in lesson.teacher_positions] == [IDS[place] for place in lesson.positions]


def test_invalid_rollouts_give_no_lessons() -> None:
    found, _ = training_sequences(
        one_group(segment_with_hint(tiny_model(0)), ending=Ending.INFRA), {}, limits=LessonLimits()
    )
    assert found == []
