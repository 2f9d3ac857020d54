"""Packs sequences into rows without padding; answers to one prompt may share a single copy of it.

For the model a row is one sequence, ``[1, T]``, whose position ids restart at 0 with each packed sequence. From them
transformers makes the block-diagonal causal mask (``masking_utils.create_causal_mask`` without mask and cache), for
SDPA and eager attention and with sliding windows; flash attention reads the boundaries from the position ids. A model
with layers that ignore position ids gets one sequence per row: see ``keeps_sequences_apart`` in ``policy_forward.py``.

With shared prompts, a row holds each prompt once, followed by its answers, and each answer attends to its prompt and
to itself. That needs a mask of our own, which only works with SDPA over the whole context: :func:`can_share`.
Gradients are those of the separate sequences, since a prompt's keys and values do not depend on its answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from excise.trainer.objective.attention_blocks import block_mask
from excise.trainer.objective.training_sequences import Lesson, TrainingSequence


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedIds:
    """A row of packed token sequences, as the model's inputs. T is its length, P the number of predictions."""

    ids: torch.Tensor
    """``[1, T]``, int64."""
    positions: torch.Tensor
    """``[1, T]``, int64, restarting at 0 with each sequence."""
    predict: torch.Tensor
    """``[P]``, int64: indices in the row whose logits are needed, each the one before its target."""
    targets: torch.Tensor
    """``[P]``, int64: the tokens to predict."""
    mask: torch.Tensor | None = None
    """``None`` where position ids define the mask. Else ``[1, 1, T, T]``, bool: query index to key index. Or, for
    :mod:`~excise.trainer.objective.block_attention`: ``[1, 1, B, 2]``, int64, for each of the row's B blocks its length
    and the number of its prompt's block (-1 for none)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedLesson:
    """A lesson in a row."""

    lesson: Lesson
    """The lesson."""
    teacher_ids: tuple[int, ...]
    """Token ids of the teacher's sequence."""
    rows: tuple[int, ...]
    """Indices into ``[P]``, one per position of the lesson."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A packed row with everything that its loss needs: one forward and backward pass."""

    packed: PackedIds
    """The model's inputs."""
    sampler: torch.Tensor
    """``[P]``, float64: the sampler's log-probability."""
    versions: torch.Tensor
    """``[P]``, int64: policy version that sampled the token's whole sequence; -1 if there were several."""
    advantages: torch.Tensor
    """``[P]``, float64; 0 where :attr:`counted` is false."""
    counted: torch.Tensor
    """``[P]``, bool: whether the token is part of the policy gradient; others have only a lesson."""
    lessons: tuple[PlacedLesson, ...]
    """Lessons of the row's sequences."""
    num_tokens: int
    """Length of the row, T."""


def can_share(model: torch.nn.Module) -> bool:
    """Whether a model can share prompts among answers: SDPA over the whole context in all layers."""
    config: Any = getattr(model, "config", None)
    if config is None or getattr(config, "_attn_implementation", None) != "sdpa":
        return False
    config = config.get_text_config()
    kinds = getattr(config, "layer_types", None)
    if kinds:
        return all(kind == "full_attention" for kind in kinds)
    return getattr(config, "sliding_window", None) is None


def pack_rows(
    sequences: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], max_tokens: int, *, share: bool = False
) -> list[list[int]]:
    """Distribute sequences over rows of at most ``max_tokens`` tokens; returns the indices of each row's sequences.

    A longer sequence gets a row of its own. First-fit decreasing; equal inputs give equal rows. ``targets`` are the
    positions of the tokens to predict. With ``share``, sequences with the same tokens before their first target are
    placed together and counted as :func:`pack_ids` lays them out.
    """
    units = (
        _prompt_groups(sequences, targets, max_tokens)
        if share
        else [([n], len(ids)) for n, ids in enumerate(sequences)]
    )
    rows: list[list[int]] = []
    room: list[int] = []
    for members, length in sorted(units, key=lambda unit: (-unit[1], unit[0])):
        fits = next((row for row, left in enumerate(room) if left >= length), None)
        if fits is None:
            rows.append(list(members))
            room.append(max_tokens - length)
        else:
            rows[fits] += members
            room[fits] -= length
    return rows


def _prompt_groups(
    sequences: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], max_tokens: int
) -> list[tuple[list[int], int]]:
    """(Indices of sequences with the same prompt, their tokens in a row), split where they exceed a row."""
    by_prompt: dict[tuple[int, ...], list[int]] = {}
    for index, (ids, own_targets) in enumerate(zip(sequences, targets, strict=True)):
        by_prompt.setdefault(tuple(ids[: _prompt_length(own_targets)]), []).append(index)
    found: list[tuple[list[int], int]] = []
    for prompt, members in by_prompt.items():
        chosen: list[int] = []
        length = len(prompt)
        for index in members:
            more = len(sequences[index]) - len(prompt)
            if chosen and length + more > max_tokens:
                found.append((chosen, length))
                chosen, length = [], len(prompt)
            chosen.append(index)
            length += more
        found.append((chosen, length))
    return found


def pack_ids(
    sequences: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    device: torch.device,
    *,
    share: bool = False,
    blocks: bool = False,
) -> PackedIds:
    """Pack all sequences into one row. ``targets``: for each, positions of the tokens to predict (never the first).

    With ``share``, neighbouring sequences with the same tokens before their first target share one copy of these. With
    ``blocks``, the mask has the form for block attention.
    """
    row = _RowBuilder()
    for ids, own_targets in zip(sequences, targets, strict=True):
        row.add(ids, own_targets, share=share)

    def tensor(values: Sequence[Any]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.int64, device=device)

    mask = None
    if blocks:
        mask = block_mask(row.blocks, device)
    elif row.num_shared:
        mask = dense_mask(tensor(row.blocks))
    return PackedIds(
        ids=tensor(row.ids)[None],
        positions=tensor(row.positions)[None],
        predict=tensor(row.predict),
        targets=tensor(row.targets),
        mask=mask,
    )


class _RowBuilder:
    """Builds a row, one sequence at a time."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.positions: list[int] = []
        self.predict: list[int] = []
        self.targets: list[int] = []
        self.blocks: list[tuple[int, int]] = []
        """Length of each block, and the number of its prompt's block (-1 for none)."""
        self.num_shared = 0
        """Sequences that use the prompt of an earlier one."""
        self._prompt_block = -1
        self._prompt: tuple[int, ...] = ()
        self._prompt_start = 0

    def add(self, ids: Sequence[int], targets: Sequence[int], *, share: bool) -> None:
        size = _prompt_length(targets) if share else 0
        prompt = tuple(ids[:size])
        if size and prompt == self._prompt:
            self.num_shared += 1
        else:
            self._prompt_start, self._prompt = len(self.ids), prompt
            self._prompt_block = self._append(ids, 0, size, prompt_block=-1)
        offset = len(self.ids) - size
        self._append(ids, size, len(ids), prompt_block=self._prompt_block)
        self.predict += [at - 1 + (offset if at > size else self._prompt_start) for at in targets]
        self.targets += [ids[at] for at in targets]

    def _append(self, ids: Sequence[int], start: int, end: int, *, prompt_block: int) -> int:
        """Append ``ids[start:end]`` as a block; returns its number, -1 if it is empty."""
        self.ids += ids[start:end]
        self.positions += range(start, end)
        if start == end:
            return -1
        self.blocks.append((end - start, prompt_block))
        return len(self.blocks) - 1


def _prompt_length(targets: Sequence[int]) -> int:
    """Number of tokens before the first target."""
    return targets[0] if targets else 0


def dense_mask(blocks: torch.Tensor) -> torch.Tensor:
    """``[1, 1, T, T]``, bool, from blocks ``[B, 2]``: each token attends to its own block, up to itself, and to its
    prompt's block."""
    lengths, prompts = blocks.unbind(1)
    number = torch.arange(len(blocks), device=blocks.device).repeat_interleave(lengths)
    visible = (number[:, None] == number) | (prompts[number][:, None] == number)
    return visible.tril()[None, None]


def make_row(
    sequences: Sequence[TrainingSequence], device: torch.device, *, share: bool = False, blocks: bool = False
) -> Row:
    """Pack training sequences into a row; see :func:`pack_ids`."""
    targets = [loss_positions(sequence) for sequence in sequences]
    packed = pack_ids([sequence.ids for sequence in sequences], targets, device, share=share, blocks=blocks)
    sampler: list[float] = []
    versions: list[int] = []
    advantages: list[float] = []
    counted: list[bool] = []
    lessons: list[PlacedLesson] = []
    for sequence, positions in zip(sequences, targets, strict=True):
        row_of = {position: len(sampler) + number for number, position in enumerate(positions)}
        logprob_of = dict(zip(sequence.positions, sequence.logprobs, strict=True))
        sampler += [logprob_of[position] for position in positions]
        versions += [sequence.versions[0] if len(set(sequence.versions)) == 1 else -1] * len(positions)
        advantages += [sequence.advantage or 0.0] * len(positions)
        counted += [sequence.advantage is not None] * len(positions)
        lessons += [
            PlacedLesson(
                lesson=lesson,
                teacher_ids=lesson.teacher_ids(sequence.ids),
                rows=tuple(row_of[position] for position in lesson.positions),
            )
            for lesson in sequence.lessons
        ]
    return Row(
        packed=packed,
        sampler=torch.tensor(sampler, dtype=torch.float64, device=device),
        versions=torch.tensor(versions, dtype=torch.int64, device=device),
        advantages=torch.tensor(advantages, dtype=torch.float64, device=device),
        counted=torch.tensor(counted, dtype=torch.bool, device=device),
        lessons=tuple(lessons),
        num_tokens=packed.ids.shape[1],
    )


def loss_positions(sequence: TrainingSequence) -> tuple[int, ...]:
    """Positions of the tokens with a loss: all sampled ones, or without an advantage only those of its lessons."""
    if sequence.advantage is not None:
        return sequence.positions
    return tuple(sorted({position for lesson in sequence.lessons for position in lesson.positions}))
