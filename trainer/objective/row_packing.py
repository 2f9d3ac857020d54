"""Sequences side by side in one row, without seeing each other; what begins equally, as answers to one prompt do, once.

The row is one sequence for the model, ``[1, T]``, with position ids that begin again at 0 where a sequence does.
transformers makes the block-diagonal causal mask from them (``masking_utils.create_causal_mask``, where no mask and no
cache is given), for SDPA and eager attention alike, with the windows of layers that have one; flash attention reads the
boundaries off the position ids. So nothing here depends on the kind of attention, and nothing is padded. A model with
layers that do not heed position ids gets one sequence a row: see ``keeps_apart`` in ``policy_forward.py``.

Where prompts are shared, a row is a forest: a prompt, and behind it its answers, each of which sees the prompt and
itself. That takes a mask of our own, which only SDPA over whole contexts has a use for: :func:`can_share`. Gradients
are those of the sequences one by one, since the prompt's keys and values are the same for all of its answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from excise.trainer.objective.training_sequences import Lesson, TrainingSequence


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
    mask: torch.Tensor | None = None
    """``[1, 1, T, T]``, bool: which place (the third dimension) sees which, where position ids do not say it; or for
    :mod:`~excise.trainer.objective.block_attention` ``[1, 1, B, 2]``, int64: length of each block of the row, and the
    number of the block that is its prompt, -1 for none."""


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
    """``[P]``, int64: version that drew the token and all others of its sequence; -1 where there were several."""
    advantages: torch.Tensor
    """``[P]``, float64; 0 where :attr:`counted` is false."""
    counted: torch.Tensor
    """``[P]``, bool: part of the policy gradient; the others are here for a lesson alone."""
    lessons: tuple[PlacedLesson, ...]
    """Lessons about its sequences."""
    num_tokens: int
    """T."""


def can_share(model: torch.nn.Module) -> bool:
    """Whether a model can read prompts once for all of their answers: SDPA in all layers, over the whole context."""
    config: Any = getattr(model, "config", None)
    if config is None or getattr(config, "_attn_implementation", None) != "sdpa":
        return False
    config = config.get_text_config()
    kinds = getattr(config, "layer_types", None)
    if kinds:
        return all(kind == "full_attention" for kind in kinds)
    return getattr(config, "sliding_window", None) is None


def pack_rows(
    sequences: Sequence[Sequence[int]], places: Sequence[Sequence[int]], most: int, *, share: bool = False
) -> list[list[int]]:
    """Indices into ``sequences``, in rows of at most ``most`` tokens each; what is longer gets a row of its own.

    First fit, the longest first; equal input gives equal rows. With ``share``, sequences whose tokens before the first
    of ``places`` are the same stand together and are counted as :func:`pack_ids` lays them out.
    """
    units = _families(sequences, places, most) if share else [([n], len(ids)) for n, ids in enumerate(sequences)]
    rows: list[list[int]] = []
    room: list[int] = []
    for members, length in sorted(units, key=lambda unit: (-unit[1], unit[0])):
        fits = next((row for row, left in enumerate(room) if left >= length), None)
        if fits is None:
            rows.append(list(members))
            room.append(most - length)
        else:
            rows[fits] += members
            room[fits] -= length
    return rows


def _families(
    sequences: Sequence[Sequence[int]], places: Sequence[Sequence[int]], most: int
) -> list[tuple[list[int], int]]:
    """Indices of sequences with one prompt, as many as fit into a row, and the tokens that they take."""
    by_prompt: dict[tuple[int, ...], list[int]] = {}
    for index, (ids, wanted) in enumerate(zip(sequences, places, strict=True)):
        by_prompt.setdefault(tuple(ids[: _shared(wanted)]), []).append(index)
    found: list[tuple[list[int], int]] = []
    for prompt, members in by_prompt.items():
        some: list[int] = []
        length = len(prompt)
        for index in members:
            more = len(sequences[index]) - len(prompt)
            if some and length + more > most:
                found.append((some, length))
                some, length = [], len(prompt)
            some.append(index)
            length += more
        found.append((some, length))
    return found


def pack_ids(
    sequences: Sequence[Sequence[int]],
    places: Sequence[Sequence[int]],
    device: torch.device,
    *,
    share: bool = False,
    blocks: bool = False,
) -> PackedIds:
    """One row of all sequences; ``places`` are the tokens of each whose logits are wanted (none of them the first).

    With ``share``, neighbours that have the tokens before the first of their places in common have them once. With
    ``blocks``, the mask says of what the row consists.
    """
    row = _Row()
    for ids, wanted in zip(sequences, places, strict=True):
        row.add(ids, wanted, share=share)

    def tensor(values: Sequence[Any]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.int64, device=device)

    mask = None
    if blocks:
        mask = tensor(row.blocks)[None, None]
    elif row.num_shared:
        mask = _mask(tensor(row.blocks))
    return PackedIds(
        ids=tensor(row.ids)[None],
        positions=tensor(row.positions)[None],
        predict=tensor(row.predict),
        targets=tensor(row.targets),
        mask=mask,
    )


class _Row:
    """A row that grows by sequences."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.positions: list[int] = []
        self.predict: list[int] = []
        self.targets: list[int] = []
        self.blocks: list[tuple[int, int]] = []
        """Length, and the block that is its prompt, -1 for none."""
        self.num_shared = 0
        self._above = -1
        self._prompt: tuple[int, ...] = ()
        self._start = 0

    def add(self, ids: Sequence[int], places: Sequence[int], *, share: bool) -> None:
        size = _shared(places) if share else 0
        prompt = tuple(ids[:size])
        if size and prompt == self._prompt:
            self.num_shared += 1
        else:
            self._start, self._prompt = len(self.ids), prompt
            self._above = self._append(ids, 0, size, above=-1)
        behind = len(self.ids) - size
        self._append(ids, size, len(ids), above=self._above)
        self.predict += [place - 1 + (behind if place > size else self._start) for place in places]
        self.targets += [ids[place] for place in places]

    def _append(self, ids: Sequence[int], start: int, end: int, *, above: int) -> int:
        """The number of the block that these tokens are; -1 without any."""
        self.ids += ids[start:end]
        self.positions += range(start, end)
        if start == end:
            return -1
        self.blocks.append((end - start, above))
        return len(self.blocks) - 1


def _shared(places: Sequence[int]) -> int:
    """Tokens before the first of these."""
    return places[0] if places else 0


def _mask(blocks: torch.Tensor) -> torch.Tensor:
    """Each place sees its block, up to itself, and the block that is its prompt."""
    lengths, prompts = blocks.unbind(1)
    number = torch.arange(len(blocks), device=blocks.device).repeat_interleave(lengths)
    near = (number[:, None] == number) | (prompts[number][:, None] == number)
    return near.tril()[None, None]


def make_row(
    members: Sequence[TrainingSequence], device: torch.device, *, share: bool = False, blocks: bool = False
) -> Row:
    """The row of these sequences; see :func:`pack_ids`."""
    wanted = [wanted_places(member) for member in members]
    packed = pack_ids([member.ids for member in members], wanted, device, share=share, blocks=blocks)
    sampler: list[float] = []
    versions: list[int] = []
    advantages: list[float] = []
    counted: list[bool] = []
    lessons: list[PlacedLesson] = []
    for member, places in zip(members, wanted, strict=True):
        row_of = {place: len(sampler) + number for number, place in enumerate(places)}
        known = dict(zip(member.places, member.logprobs, strict=True))
        sampler += [known[place] for place in places]
        versions += [member.versions[0] if len(set(member.versions)) == 1 else -1] * len(places)
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


def wanted_places(member: TrainingSequence) -> tuple[int, ...]:
    """The places of a sequence whose probabilities matter: all that was sampled, or those of its lessons alone."""
    if member.advantage is not None:
        return member.places
    return tuple(sorted({place for lesson in member.lessons for place in lesson.places}))
