"""The policy gradient, term by term, against sums that are written out token by token."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from excise.trainer.loop.learner import Learner
from excise.trainer.objective.block_attention import enable_block_attention
from excise.trainer.objective.losses import LossSettings, PolicyTokens, policy_loss
from excise.trainer.objective.policy_forward import (
    can_compile,
    compile_layers,
    entropies,
    predicted_logits,
    token_logprobs,
    without_dropout,
)
from excise.trainer.objective.rewards import (
    advantages,
)
from excise.trainer.objective.row_packing import make_row, pack_ids
from excise.trainer.objective.training_sequences import training_sequences
from excise.trainer.optimizers.optimizer_kinds import OptimizerSettings, build_optimizer
from excise.trainer.rollout_types import Group

from ..tiny_policy import VOCABULARY, plain_logprobs, random_group, rollout_of, segment_of, tiny_model
from .reference_loss import UNCLIPPED, close, gradient_of_step, gradients, mixed_groups, written_out_loss


@pytest.fixture
def groups() -> list[Group]:
    return mixed_groups()


@pytest.mark.parametrize(
    "constants",
    [
        LossSettings(),
        LossSettings(cap=1.1),
        LossSettings(kappa=0.3),
        LossSettings(beta=0.2),
        LossSettings(cap=0.7, kappa=0.1, beta=0.05),
    ],
)
@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_the_loss_and_its_gradient_match_the_written_out_formula(
    groups: list[Group], constants: LossSettings, temperature: float
) -> None:
    settings = replace(UNCLIPPED, loss=constants, temperature=temperature)
    model, reference = tiny_model(0), tiny_model(7)
    expected = written_out_loss(model, groups, settings, reference if constants.beta else None)
    model.zero_grad()
    expected.backward()
    wanted = gradients(model)
    assert wanted.abs().max() > 1e-4
    learner = Learner(model, torch.optim.SGD(model.parameters(), lr=0.0), settings, reference=reference)
    metrics = learner.step(groups, version=0)
    assert close(gradients(model), wanted)
    assert metrics["loss"] == pytest.approx(expected.item(), rel=1e-6)


def test_each_term_changes_the_gradient(groups: list[Group]) -> None:
    """Mask, cap, κ and β each change the gradient of these groups."""
    model, reference = tiny_model(0), tiny_model(7)
    plain = gradient_of_step(model, groups, UNCLIPPED)
    for constants in (
        LossSettings(trust_region=2.0), LossSettings(cap=1.1), LossSettings(kappa=0.3), LossSettings(beta=0.2)
    ):  # fmt: skip
        other = gradient_of_step(model, groups, replace(UNCLIPPED, loss=constants), reference=reference)
        assert (other - plain).abs().max() > 1e-5, constants


def test_the_on_policy_gradient_is_that_of_reinforce() -> None:
    """Closed form: where sampler and policy agree, r = 1, nothing is masked, and κ's gradient is zero."""
    model = tiny_model(0)
    ids = [3, 1, 4, 1, 5, 9]
    mu = plain_logprobs(model, ids).detach().tolist()
    pair = tuple(rollout_of(f"g-{i}", [segment_of(ids, [(2, 6)], mu)], r) for i, r in enumerate((1.0, 0.0)))
    both = [Group(group_id="g", instance_id="t", rollouts=pair)]
    assert gradient_of_step(model, both, UNCLIPPED).abs().max() < 1e-7  # equal answers, opposite advantages
    other = [3, 1, 2, 2, 2, 2]
    mu2 = plain_logprobs(model, other).detach().tolist()
    second = rollout_of("g-1", [segment_of(other, [(2, 6)], mu2)], 0.0)
    found = gradient_of_step(model, [replace(both[0], rollouts=(pair[0], second))], UNCLIPPED)
    model.zero_grad()
    (-(0.5 * plain_logprobs(model, ids)[2:].sum() - 0.5 * plain_logprobs(model, other)[2:].sum()) / 20).backward()
    assert close(found, gradients(model))


@pytest.mark.parametrize(("advantage", "shift", "kept"), [(1, 0.3, 0), (1, 0.1, 1), (1, -0.5, 1), (-1, -0.3, 0)])
def test_the_mask_is_one_sided(advantage: float, shift: float, kept: int) -> None:
    probability = torch.tensor([0.6], dtype=torch.float64)
    ours = probability.log().requires_grad_()
    mu = (probability - shift).log()
    counted = torch.tensor([True])
    found = policy_loss(
        ours,
        PolicyTokens(sampler=mu, advantages=torch.tensor([advantage]), counted=counted),
        1.0,
        LossSettings(kappa=0.0),
    )
    found.loss.backward()
    assert ours.grad is not None
    expected = -advantage * (0.6 / (0.6 - shift)) * kept
    assert ours.grad.item() == pytest.approx(expected, rel=1e-6)


def test_tiny_probabilities_give_capped_finite_gradients() -> None:
    ours = torch.tensor([-0.1, -80.0], dtype=torch.float64, requires_grad=True)
    mu = torch.tensor([-60.0, -0.1], dtype=torch.float64)
    earned = torch.tensor([-1.0, 1.0])
    found = policy_loss(
        ours,
        PolicyTokens(sampler=mu, advantages=earned, counted=torch.tensor([True, True])),
        1.0,
        LossSettings(kappa=0.0),
    )
    found.loss.backward()
    assert ours.grad is not None
    assert ours.grad.tolist() == pytest.approx([20.0, -math.exp(-79.9)])
    assert found.sums["capped"] == 1


@pytest.mark.parametrize("row_tokens", [1, 30, 10_000])
def test_gradient_accumulation_equals_one_large_batch(groups: list[Group], row_tokens: int) -> None:
    model = tiny_model(0)
    whole = gradient_of_step(model, groups, replace(UNCLIPPED, row_tokens=10_000))
    parts = gradient_of_step(model, groups, replace(UNCLIPPED, row_tokens=row_tokens))
    assert close(parts, whole)


@pytest.mark.parametrize("name", ["gpt2", "qwen3"])
def test_dropout_is_off_in_training(name: str) -> None:
    if name == "gpt2":
        from transformers import GPT2Config, GPT2LMHeadModel

        model: torch.nn.Module = GPT2LMHeadModel(GPT2Config(vocab_size=17, n_embd=16, n_layer=2, n_head=4))
    else:
        model = tiny_model(0, attention_dropout=0.5)
    ids = torch.tensor([[1, 2, 3, 4, 5, 6]])
    model.train()
    assert not torch.equal(model(input_ids=ids).logits, model(input_ids=ids).logits)
    without_dropout(model)
    assert model.training
    assert torch.equal(model(input_ids=ids).logits, model.eval()(input_ids=ids).logits)


def test_activation_checkpointing_does_not_change_the_gradient(groups: list[Group]) -> None:
    model = tiny_model(0)
    plain = gradient_of_step(model, groups, UNCLIPPED)
    model.gradient_checkpointing_enable({"use_reentrant": False})  # type: ignore[operator]
    assert close(gradient_of_step(model, groups, UNCLIPPED), plain)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("bf16", [False, True])
def test_a_gpu_computes_the_same_gradient(groups: list[Group], bf16: bool) -> None:
    exact = gradient_of_step(tiny_model(0, dtype=torch.float32), groups, UNCLIPPED)
    found = gradient_of_step(tiny_model(0, dtype=torch.float32).cuda(), groups, replace(UNCLIPPED, bf16=bf16)).cpu()
    assert (found - exact).norm() < (0.1 if bf16 else 1e-3) * exact.norm()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_compiled_layers_compute_nearly_the_same_gradient_on_a_gpu(groups: list[Group]) -> None:
    settings = replace(UNCLIPPED, bf16=True)
    exact = gradient_of_step(tiny_model(0, dtype=torch.float32), groups, UNCLIPPED)
    model = tiny_model(0, dtype=torch.float32).cuda()
    enable_block_attention(model)
    assert can_compile(model, torch.device("cuda"))
    compile_layers(model)
    assert (gradient_of_step(model, groups, settings).cpu() - exact).norm() < 0.1 * exact.norm()


ON_GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=ON_GPU)])
def test_a_deterministic_step_gives_equal_weights(groups: list[Group], device: str) -> None:
    def weights() -> torch.Tensor:
        model = tiny_model(0, dtype=torch.float32).to(device)
        enable_block_attention(model)
        optimizer = build_optimizer(model, OptimizerSettings(name="muon", lr=0.1))
        optimizer.register_step_pre_hook(lambda *_: seen.append(torch.are_deterministic_algorithms_enabled()))
        Learner(model, optimizer, replace(UNCLIPPED, bf16=device == "cuda", deterministic=True)).step(groups, 0)
        return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])

    seen: list[bool] = []
    assert torch.equal(weights(), weights())
    assert seen == [True, True]
    assert not torch.are_deterministic_algorithms_enabled()


def test_bfloat16_products_give_nearly_the_same_gradient_in_float32(groups: list[Group]) -> None:
    model = tiny_model(0, dtype=torch.float32)
    exact = gradient_of_step(model, groups, UNCLIPPED)
    rough = gradient_of_step(model, groups, replace(UNCLIPPED, bf16=True))
    assert rough.dtype == torch.float32
    assert 0 < (rough - exact).norm() / exact.norm() < 0.1
    packed = pack_ids([[1, 2, 3]], [[1, 2]], torch.device("cpu"))
    with torch.autocast("cpu", torch.bfloat16):
        logits = predicted_logits(model, packed)
    assert logits.dtype == torch.bfloat16
    assert token_logprobs(logits, packed.targets).dtype == torch.float32


def test_both_segments_of_a_rollout_have_its_one_advantage(groups: list[Group]) -> None:
    earned = advantages(groups)
    found, _ = training_sequences(groups, earned)
    assert len(found) == sum(len(r.segments) for g in groups for r in g.valid_rollouts)
    assert len(found) > len(earned)
    assert all(sequence.advantage == earned[sequence.rollout_id] for sequence in found)


def test_a_step_without_signal_changes_no_weights() -> None:
    model = tiny_model(0)
    before = [p.clone() for p in model.parameters()]
    learner = Learner(model, torch.optim.AdamW(model.parameters(), lr=0.1), UNCLIPPED)
    assert learner.step([random_group("b", 2, [1.0, 1.0])], 0) == {"trained_tokens": 0.0}
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


@pytest.mark.parametrize("name", ["adamw", "muon"])
def test_a_non_finite_gradient_changes_no_weights(groups: list[Group], name: str) -> None:
    model = tiny_model(0)
    settings = OptimizerSettings.model_validate({"name": name, "lr": 0.1, "weight_decay": 0.1})
    learner = Learner(model, build_optimizer(model, settings), UNCLIPPED)
    learner.step(groups, 0)
    before = [p.clone() for p in model.parameters()]
    next(model.parameters()).register_hook(lambda gradient: gradient * math.nan)
    assert learner.step(groups, 1)["skipped"] == 1
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_metrics_are_means_over_tokens(groups: list[Group]) -> None:
    model = tiny_model(0)
    learner = Learner(model, torch.optim.SGD(model.parameters(), lr=0.0), replace(UNCLIPPED, row_tokens=20))
    metrics = learner.step(groups, version=0)
    found, _ = training_sequences([g for g in groups if g.has_signal], advantages(g for g in groups if g.has_signal))
    row = make_row(found, torch.device("cpu"))
    logits = predicted_logits(model, row.packed)
    ours = torch.log_softmax(logits, -1)
    assert metrics["sampled_tokens"] == len(row.packed.targets)
    assert metrics["entropy"] == pytest.approx(-(ours.exp() * ours).sum(-1).mean().item())
    difference = ours.gather(-1, row.packed.targets[:, None])[:, 0] - row.sampler
    assert metrics["logprob_difference"] == pytest.approx(difference.abs().mean().item(), rel=1e-5)
    assert metrics["mismatch_kl"] == pytest.approx((difference.exp() - 1 - difference).mean().item(), rel=1e-5)
    assert metrics["logprob_difference_fresh"] == pytest.approx(metrics["logprob_difference"])
    mixed, _ = training_sequences([groups[2]], advantages([groups[2]]))
    changed = [replace(mixed[0], versions=(0,) * (len(mixed[0].versions) - 1) + (1,)), *mixed[1:]]
    fresh = make_row(changed, torch.device("cpu")).versions.tolist()
    count = len(mixed[0].versions)
    assert (set(fresh[:count]), set(fresh[count:])) == ({-1}, {0}), (
        "weights that changed under way make no answer fresh"
    )
    uniform = torch.zeros(3, VOCABULARY, dtype=torch.float64)
    assert entropies(uniform).tolist() == pytest.approx([math.log(VOCABULARY)] * 3)
