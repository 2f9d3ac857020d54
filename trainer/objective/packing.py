"""Sequences side by side in one row, without seeing each other.

The row is one sequence for the model, ``[1, T]``, with position ids that begin again at 0 where a sequence does.
transformers makes the block-diagonal causal mask from them (``masking_utils.create_causal_mask``, where no mask and no
cache is given), for SDPA and eager attention alike, with the windows of layers that have one; flash attention reads the
boundaries off the position ids. So nothing here depends on the kind of attention, and nothing is padded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from excise.trainer.objective.sequences import Lesson, TrainingSequence


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedIds:
    """Token sequences in one row."""

    ids: torch.Tensor
    """``[1, T]``, int64."""
    positions: torch.Tensor
    """``[1, T]``, int64, from 0 in each sequence."""
    predict: torch.Tensor
    """``[P]``, int64: places in the row whose logits are wanted, each the one before its target."""
    targets: torch.Tensor
    """``[P]``, int64: the tokens there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedLesson:
    """A lesson, and which predictions of its row it is about."""

    lesson: Lesson
    """The lesson."""
    teacher_ids: tuple[int, ...]
    """The teacher's sequence."""
    rows: tuple[int, ...]
    """Indices into ``[P]``, one per place of the lesson."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One forward and backward pass."""

    packed: PackedIds
    """What the model sees."""
    sampler: torch.Tensor
    """``[P]``, float64: log-probability that the sampler had."""
    versions: torch.Tensor
    """``[P]``, int64: version that drew the token."""
    advantages: torch.Tensor
    """``[P]``, float64; 0 where :attr:`counted` is false."""
    counted: torch.Tensor
    """``[P]``, bool: part of the policy gradient; the others are here for a lesson alone."""
    lessons: tuple[PlacedLesson, ...]
    """Lessons about its sequences."""
    num_tokens: int
    """T."""


def pack_lengths(lengths: Sequence[int], most: int) -> list[list[int]]:
    """Indices into ``lengths``, in rows of at most ``most`` tokens each; what is longer gets a row of its own.

    First fit, the longest first; equal input gives equal rows.
    """
    rows: list[list[int]] = []
    room: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        fits = next((row for row, left in enumerate(room) if left >= lengths[index]), None)
        if fits is None:
            rows.append([index])
            room.append(most - lengths[index])
        else:
            rows[fits].append(index)
            room[fits] -= lengths[index]
    return rows


def pack_ids(sequences: Sequence[Sequence[int]], places: Sequence[Sequence[int]], device: torch.device) -> PackedIds:
    """One row of all sequences; ``places`` are the tokens of each whose logits are wanted (none of them the first)."""
    starts = _starts([len(ids) for ids in sequences])
    predict = [start + place - 1 for start, wanted in zip(starts, places, strict=True) for place in wanted]
    targets = [ids[place] for ids, wanted in zip(sequences, places, strict=True) for place in wanted]

    def tensor(values: list[int]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.int64, device=device)

    return PackedIds(
        ids=tensor([token for ids in sequences for token in ids])[None],
        positions=tensor([place for ids in sequences for place in range(len(ids))])[None],
        predict=tensor(predict),
        targets=tensor(targets),
    )


def make_row(members: Sequence[TrainingSequence], device: torch.device) -> Row:
    """The row of these sequences."""
    wanted = [_wanted(member) for member in members]
    packed = pack_ids([member.ids for member in members], wanted, device)
    sampler: list[float] = []
    versions: list[int] = []
    advantages: list[float] = []
    counted: list[bool] = []
    lessons: list[PlacedLesson] = []
    for member, places in zip(members, wanted, strict=True):
        row_of = {place: len(sampler) + number for number, place in enumerate(places)}
        known = dict(zip(member.places, zip(member.logprobs, member.versions, strict=True), strict=True))
        sampler += [known[place][0] for place in places]
        versions += [known[place][1] for place in places]
        advantages += [member.advantage or 0.0] * len(places)
        counted += [member.advantage is not None] * len(places)
        lessons += [
            PlacedLesson(
                lesson=lesson,
                teacher_ids=lesson.teacher_ids(member.ids),
                rows=tuple(row_of[place] for place in lesson.places),
            )
            for lesson in member.lessons
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


def _wanted(member: TrainingSequence) -> tuple[int, ...]:
    if member.advantage is not None:
        return member.places
    return tuple(sorted({place for lesson in member.lessons for place in lesson.places}))


def _starts(lengths: Sequence[int]) -> list[int]:
    starts = [0]
    for length in lengths:
        starts.append(starts[-1] + length)
    return starts[:-1]
