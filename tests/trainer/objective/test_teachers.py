"""Teachers: the moving average, the frozen copy and the trust region."""

from __future__ import annotations

import copy

import torch

from excise.trainer.objective.policy_forward import predicted_logits
from excise.trainer.objective.row_packing import pack_ids
from excise.trainer.objective.teachers import EmaTeacher, FrozenTeacher, TrustRegionTeacher, frozen_copy
from excise.trainer.setup.run_builder import build_learner
from excise.trainer.setup.training_config import TrainSettings

from ..tiny_policy import tiny_model

CPU = torch.device("cpu")
IDS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)


def test_only_the_moving_average_teacher_follows_the_policy() -> None:
    model = tiny_model(0)
    first = copy.deepcopy(model)
    ema, frozen = EmaTeacher(frozen_copy(model), 0.25), FrozenTeacher(frozen_copy(model))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)
    ema.update(model)
    frozen.update(model)
    average = ema.weights()
    assert average is not None
    for old, mid in zip(first.parameters(), average.parameters(), strict=True):
        torch.testing.assert_close(mid, old + 0.25)
    packed = pack_ids([IDS], [range(1, 10)], CPU)
    assert torch.equal(frozen.logits(packed), predicted_logits(first, packed))
    mixed = TrustRegionTeacher(first, model, 0.01).logits(packed)
    expected = 0.99 * predicted_logits(first, packed) + 0.01 * predicted_logits(model, packed)
    torch.testing.assert_close(mixed, expected)
    assert not mixed.requires_grad


def test_the_moving_average_of_a_bf16_model_follows_the_policy() -> None:
    student = tiny_model(0, dtype=torch.bfloat16)
    settings = TrainSettings.model_validate(
        {"folder": "run", "policy": {"model": "m"}, "learner": {"lessons": {}}, "teacher": {"rate": 0.02}}
    )
    learner = build_learner(settings, student)
    assert isinstance(learner.teacher, EmaTeacher)
    before = [p.detach().clone().float() for p in student.parameters()]
    with torch.no_grad():
        for parameter in student.parameters():
            parameter.mul_(1 + 2**-7)
    for _ in range(200):
        learner.teacher.update(student)
    average = learner.teacher.weights()
    assert average is not None
    for old, mid, new in zip(before, average.parameters(), student.parameters(), strict=True):
        assert mid.dtype == torch.float32
        torch.testing.assert_close(mid, old + (1 - 0.98**200) * (new.float() - old), atol=1e-4, rtol=1e-4)
    packed = pack_ids([IDS], [range(1, 10)], CPU)
    exact = predicted_logits(student, packed).float()
    assert (learner.teacher.logits(packed) - exact).abs().max() < 0.1 * exact.std()
