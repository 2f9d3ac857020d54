"""Several sequences in one row: the same results as one sequence at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from excise.trainer.loop.learner import Learner
from excise.trainer.objective.block_attention import enable_block_attention, uses_block_attention
from excise.trainer.objective.losses import LossSettings
from excise.trainer.objective.policy_forward import keeps_sequences_apart, predicted_logits
from excise.trainer.objective.row_packing import can_share, pack_ids, pack_rows
from excise.trainer.rollout_types import Group

from ..tiny_policy import VOCABULARY, plain_logprobs, rollout_of, segment_of, tiny_model
from .reference_loss import UNCLIPPED, close, gradient_of_step, gradients, mixed_groups, written_out_loss


@pytest.fixture
def groups() -> list[Group]:
    return mixed_groups()


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_packed_sequences_do_not_see_each_other(attention: str) -> None:
    model = tiny_model(0, attn_implementation=attention)
    lists = [[1, 2, 3, 4, 5], [6, 7], [8, 9, 10, 11, 12, 13, 14]]
    packed = pack_ids(lists, [range(1, len(ids)) for ids in lists], torch.device("cpu"))
    logits = predicted_logits(model, packed)
    alone = torch.cat([model(input_ids=torch.tensor([ids])).logits[0, :-1] for ids in lists])
    assert close(logits, alone)
    mixed = model(input_ids=packed.ids, position_ids=torch.arange(14)[None]).logits[0, packed.predict]
    assert (mixed - alone).abs().max() > 1e-3


def test_sliding_windows_hold_in_packed_rows() -> None:
    changes = {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 0}
    model = tiny_model(0, layer_types=["sliding_attention", "full_attention"], **changes)
    lists = [[1, 2, 3, 4, 5, 6, 7, 8], [8, 9, 10, 11, 12, 13, 14]]
    packed = pack_ids(lists, [range(1, len(ids)) for ids in lists], torch.device("cpu"))
    alone = torch.cat([model(input_ids=torch.tensor([ids])).logits[0, :-1] for ids in lists])
    assert close(predicted_logits(model, packed), alone)
    unwindowed = tiny_model(0)(input_ids=torch.tensor([lists[0]])).logits[0, :-1]
    assert (unwindowed - alone[:7]).abs().max() > 1e-3


def test_rows_are_full_and_nothing_is_cut() -> None:
    lengths = [5, 9, 2, 2, 7, 1, 30]
    lists = [[number] * length for number, length in enumerate(lengths)]
    rows = pack_rows(lists, [[]] * 7, 10)
    assert sorted(i for row in rows for i in row) == list(range(7))
    assert [6] in rows
    assert all(sum(lengths[i] for i in row) <= 10 for row in rows if row != [6])
    assert len(rows) == 4
    assert pack_rows([], [], 10) == []


ANSWERS = [[3, 1, 4, 1, 5], [3, 1, 4, 9, 2, 6, 5], [8, 8, 8, 3], [3, 1, 4, 3]]
"""Three sequences with a prompt of three tokens in common, one with another prompt."""
DRAWN = [[3, 4], [3, 5, 6], [2, 3], [3]]


def test_answers_with_a_shared_prompt_see_that_prompt_only() -> None:
    (row,) = pack_rows(ANSWERS, DRAWN, 14, share=True)
    lists, places = [ANSWERS[n] for n in row], [DRAWN[n] for n in row]
    both = list(zip(lists, places, strict=True))
    packed = pack_ids(lists, places, torch.device("cpu"), share=True)
    assert packed.ids.shape[1] == 3 + 2 + 4 + 1 + 4
    model = tiny_model(0)
    alone = torch.cat([model(input_ids=torch.tensor([ids])).logits[0, [n - 1 for n in wanted]] for ids, wanted in both])
    assert close(predicted_logits(model, packed), alone)
    assert packed.targets.tolist() == [ids[n] for ids, wanted in both for n in wanted]
    assert pack_ids(lists, places, torch.device("cpu")).mask is None


@pytest.mark.parametrize("most", [1, 8, 9, 10, 13])
def test_rows_hold_as_many_answers_as_fit_behind_their_prompt(most: int) -> None:
    rows = pack_rows(ANSWERS, DRAWN, most, share=True)
    assert sorted(n for row in rows for n in row) == [0, 1, 2, 3]
    for row in rows:
        packed = pack_ids([ANSWERS[n] for n in row], [DRAWN[n] for n in row], torch.device("cpu"), share=True)
        assert packed.ids.shape[1] <= most or len(row) == 1


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("row_tokens", [8, 1000])
def test_sharing_prompts_does_not_change_the_gradients(row_tokens: int, blocks: bool) -> None:
    groups = []
    for number, prompt in enumerate(([3, 1, 4, 1, 5, 9, 2, 6], [2, 7])):
        answers = [[5, 3, 5], [8], [9, 7, 9, 3], [2, 3]]
        rollouts = []
        for i, answer in enumerate(answers):
            ids, drawn = prompt + answer, [(len(prompt), len(prompt + answer))]
            rollouts.append(rollout_of(f"{number}-{i}", [segment_of(ids, drawn, [-2.0] * len(ids))], float(i == 2)))
        groups.append(Group(group_id=str(number), instance_id="task", rollouts=tuple(rollouts)))
    settings = replace(UNCLIPPED, row_tokens=row_tokens, loss=LossSettings(beta=0.2))
    model, reference = tiny_model(0), tiny_model(7)
    if blocks:
        enable_block_attention(model)
        enable_block_attention(reference)
        assert uses_block_attention(model)
    written_out_loss(model, groups, settings, reference).backward()
    wanted = gradients(model)
    learner = Learner(model, torch.optim.SGD(model.parameters(), lr=0.0), settings, reference=reference)
    assert can_share(model) is not blocks
    tokens = learner.step(groups, version=0)["trained_tokens"]
    assert close(gradients(model), wanted)
    assert tokens == 30 if row_tokens == 1000 else tokens < 60


def test_prompts_are_shared_only_in_models_that_use_the_mask() -> None:
    assert can_share(tiny_model(0))
    assert not can_share(tiny_model(0, attn_implementation="eager"))
    windows = {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 0}
    assert not can_share(tiny_model(0, layer_types=["sliding_attention", "full_attention"], **windows))
    assert not can_share(torch.nn.Linear(1, 1))


def other_model(name: str) -> torch.nn.Module:
    """A model in which some layers ignore position ids."""
    import transformers

    torch.manual_seed(0)
    common = {"vocab_size": VOCABULARY, "hidden_size": 16, "initializer_range": 0.3}
    if name == "bloom":
        config: Any = transformers.BloomConfig(**common, n_layer=2, n_head=4)
        return transformers.BloomForCausalLM(config).double().eval()
    config = transformers.Lfm2Config(
        **common, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=256, full_attn_idxs=[1], block_auto_adjust_ff_dim=False,
    )  # fmt: skip
    return transformers.Lfm2ForCausalLM(config).double().eval()


@pytest.mark.parametrize("name", ["bloom", "convolutions"])
def test_models_that_mix_the_sequences_of_a_row_get_one_sequence_per_row(name: str, groups: list[Group]) -> None:
    model = other_model(name)
    assert not keeps_sequences_apart(model)
    assert keeps_sequences_apart(tiny_model(0))
    assert keeps_sequences_apart(tiny_model(0), share=True)
    assert keeps_sequences_apart(tiny_model(0, dtype=torch.bfloat16), share=True)
    written_out_loss(model, groups, UNCLIPPED).backward()
    wanted = gradients(model)
    model.zero_grad()
    found = gradient_of_step(model, groups, replace(UNCLIPPED, row_tokens=10_000))
    assert (found - wanted).norm() < 1e-6 * wanted.norm()


def test_packed_rows_score_like_single_sequences() -> None:
    model = tiny_model(0)
    learner = Learner(model, torch.optim.SGD(model.parameters(), lr=0.0), UNCLIPPED)
    lists = [[3, 1, 4, 1, 5], [3, 1, 4], [3], [8, 8, 2]]
    scores = learner.score(lists, 0.7)
    assert [len(some) for some in scores] == [5, 3, 1, 3]
    for ids, some in zip(lists, scores, strict=True):
        assert some == pytest.approx(plain_logprobs(model, ids, 0.7).tolist(), abs=1e-6)
