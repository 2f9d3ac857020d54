"""The learner: one optimizer step over a batch of groups."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import torch
from pydantic import Field

from excise.trainer.collectives import RankGroup
from excise.trainer.objective.block_attention import uses_block_attention
from excise.trainer.objective.losses import (
    LessonSettings,
    LossSettings,
    PolicyTokens,
    divergence,
    lesson_loss,
    policy_loss,
)
from excise.trainer.objective.policy_forward import entropies, keeps_sequences_apart, predicted_logits, token_logprobs
from excise.trainer.objective.rewards import advantages
from excise.trainer.objective.row_packing import (
    PackedIds,
    Row,
    can_share,
    loss_positions,
    make_row,
    pack_ids,
    pack_rows,
)
from excise.trainer.objective.teachers import Teacher
from excise.trainer.objective.training_sequences import LessonCounts, TrainingSequence, training_sequences
from excise.trainer.optimizers.optimizer_kinds import clip_gradients
from excise.trainer.rollout_types import Group


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerSettings:
    """``[learner]``: the constants of an optimizer step."""

    loss: LossSettings = field(default_factory=LossSettings)
    """The policy-gradient loss."""
    policy_weight: float = 1.0
    """Weight of the policy gradient; 0 for pure distillation."""
    lessons: LessonSettings | None = None
    """Distillation; ``None`` switches it off."""
    reference_length: Annotated[int, Field(gt=0)] = 1024
    """Tokens of a typical rollout. The loss is divided by Z = number of valid rollouts (with a signal) times this."""
    temperature: Annotated[float, Field(gt=0)] = 1.0
    """The sampler's temperature."""
    row_tokens: Annotated[int, Field(gt=0)] = 8192
    """Maximum number of tokens of one forward pass."""
    max_grad_norm: float = 1.0
    """Gradients are clipped to this norm."""
    bf16: bool = False
    """Compute matrix products in bfloat16; weights and optimizer keep their number format."""
    deterministic: bool = False
    """Make equal steps give equal weights, bit for bit, on a GPU too (on a CPU they do). A step then takes
    twice as long with compiled layers, and a fifth longer without."""


class Learner:
    """The policy being trained, with its optimizer, learning-rate schedule, teacher and reference."""

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        settings: LearnerSettings,
        *,
        scheduler: torch.optim.lr_scheduler.LRScheduler | None = None,
        teacher: Teacher | None = None,
        reference: torch.nn.Module | None = None,
    ) -> None:
        """``reference`` is the frozen policy of the KL penalty, needed if ``settings.loss.beta`` is not 0."""
        if settings.deterministic:
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS reads it when it is first used
        self.model = model
        self.optimizer = optimizer
        self.scheduler = scheduler
        self.settings = settings
        self.teacher = teacher
        self.ranks = RankGroup()
        self._reference = reference
        self._device = next(model.parameters()).device
        can_pack = keeps_sequences_apart(model)
        self._blocks = uses_block_attention(model)
        self._shares = can_pack and (self._blocks or (can_share(model) and keeps_sequences_apart(model, share=True)))
        self._row_tokens = settings.row_tokens if can_pack else 1  # a sequence above the limit gets a row of its own

    def announce(self, command: str, *arguments: object) -> None:
        """Announce a command to the other ranks before running it; overridden in ``loop.rank_commands``."""

    def step(self, groups: Sequence[Group], version: int) -> dict[str, float]:
        """Make one optimizer step on these groups, sampled by policies up to ``version``; returns metrics by name.

        Groups without a signal contribute only their lessons. The weights stay unchanged if there is nothing to learn
        from (``trained_tokens`` is 0) or if the gradient is not finite (``skipped`` is 1).
        """
        with _deterministic() if self.settings.deterministic else contextlib.nullcontext():
            return self._step(groups, version)

    def _step(self, groups: Sequence[Group], version: int) -> dict[str, float]:
        started = time.perf_counter()
        lessons = self.settings.lessons
        advantage_of = advantages(group for group in groups if group.has_signal)
        batch, counts = training_sequences(groups, advantage_of, limits=lessons.limits if lessons else None)
        if not batch:
            return {"trained_tokens": 0.0}
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        sums = self._accumulate(batch, len(advantage_of), version)
        norm = self._clip()
        optimizer_started = time.perf_counter()
        is_finite = math.isfinite(norm)  # otherwise the step would make all weights nan
        if is_finite:
            self.optimizer.step()
        if self.scheduler is not None:
            self.scheduler.step()
        if is_finite and self.teacher is not None:
            self.teacher.update(self.model)
        now = time.perf_counter()
        return _metrics(sums, counts, len(batch)) | {
            "grad_norm": norm,
            "skipped": float(not is_finite),
            "learning_rate": float(self.optimizer.param_groups[0]["lr"]),
            "optimizer_ms": 1000 * (now - optimizer_started),
            "learn_s": now - started,
        }

    def _accumulate(self, batch: list[TrainingSequence], num_rollouts: int, version: int) -> dict[str, float]:
        """Accumulate the gradients of the whole batch, row by row; returns statistics summed over all ranks."""
        normaliser = float(max(1, num_rollouts) * self.settings.reference_length)
        lesson_tokens = _count_lesson_tokens(batch)
        rows = pack_rows(
            [sequence.ids for sequence in batch],
            [loss_positions(sequence) for sequence in batch],
            self._row_tokens,
            share=self._shares,
        )
        local_rows = self.ranks.local_rows(rows)
        sums: dict[str, torch.Tensor] = {}
        for chosen, counts in local_rows:
            row = self._row([batch[index] for index in chosen])
            loss, row_sums = self._row_loss(row, normaliser, lesson_tokens, version)
            # FSDP averages gradients over ranks, but the loss is a sum over the rows of all ranks.
            (loss * (self.ranks.world_size if counts else 0)).backward()
            if counts:
                for name, value in row_sums.items():
                    sums[name] = sums.get(name, torch.zeros((), dtype=torch.float64)) + value.double().cpu()
        return self.ranks.sum_by_name({name: float(value) for name, value in sums.items()})

    def _row_loss(
        self, row: Row, normaliser: float, lesson_tokens: Mapping[str, int], version: int
    ) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        settings = self.settings
        with self._autocast():
            teacher_logits = self._teacher_logits(row)
            reference = self._reference_logprobs(row)
            logits = predicted_logits(self.model, row.packed)
        logprobs = token_logprobs(logits, row.packed.targets, settings.temperature)
        tokens = PolicyTokens(sampler=row.sampler, advantages=row.advantages, counted=row.counted, reference=reference)
        policy = policy_loss(logprobs, tokens, normaliser, settings.loss)
        loss = settings.policy_weight * policy.loss
        sums = policy.sums | {"loss_policy": loss.detach(), "row_tokens": torch.tensor(float(row.num_tokens))}
        with torch.no_grad():
            sums["entropy"] = (entropies(logits.detach(), settings.temperature) * row.counted).sum()
            fresh = row.versions == version
            off = (logprobs.detach() - row.sampler).abs()
            sums["fresh_tokens"] = fresh.sum()
            sums["fresh_difference"] = (off * fresh).sum()
        for placed, teacher_part in zip(row.lessons, teacher_logits, strict=True):
            assert settings.lessons is not None
            index = torch.tensor(placed.rows, device=self._device)
            weighted, plain = lesson_loss(
                logits[index], teacher_part, logprobs[index], row.sampler[index], settings.lessons
            )
            part = settings.lessons.weight * weighted / lesson_tokens[placed.lesson.kind]
            loss = loss + part
            for name, value in (("loss_lessons", part.detach()), ("hint_kl", plain)):
                sums[name] = sums.get(name, torch.zeros((), device=self._device)) + value
            sums["hint_tokens"] = sums.get("hint_tokens", torch.zeros(())) + len(placed.rows)
        return loss, sums

    def _teacher_logits(self, row: Row) -> list[torch.Tensor]:
        """The teacher's logits, ``[N, V]`` for each lesson of the row.

        Computed before the student's forward pass: FSDP allows no other pass between that and its gradient.
        """
        if self.teacher is None:
            return []
        found: dict[int, torch.Tensor] = {}
        teacher_ids = [placed.teacher_ids for placed in row.lessons]
        positions = [placed.lesson.teacher_positions for placed in row.lessons]
        passes = pack_rows(teacher_ids, positions, self._row_tokens, share=self._shares)
        for _ in range(
            len(passes), self.ranks.max_over_ranks(len(passes))
        ):  # pad: all ranks must run a sharded teacher together
            self.teacher.logits(self._packed([[0, 0]], [[1]]))
        for chosen in passes:
            packed = self._packed([teacher_ids[index] for index in chosen], [positions[index] for index in chosen])
            parts = self.teacher.logits(packed).split([len(positions[index]) for index in chosen])
            found |= dict(zip(chosen, parts, strict=True))
        return [found[index] for index in range(len(row.lessons))]

    @torch.no_grad()
    def _reference_logprobs(self, row: Row) -> torch.Tensor | None:
        if self._reference is None or self.settings.loss.beta == 0:
            return None
        logits = predicted_logits(self._reference, row.packed)
        return token_logprobs(logits, row.packed.targets, self.settings.temperature)

    def _row(self, sequences: Sequence[TrainingSequence]) -> Row:
        return make_row(sequences, self._device, share=self._shares, blocks=self._blocks)

    def _packed(self, ids: Sequence[Sequence[int]], positions: Sequence[Sequence[int]]) -> PackedIds:
        return pack_ids(ids, positions, self._device, share=self._shares, blocks=self._blocks)

    def _autocast(self) -> contextlib.AbstractContextManager[object]:
        if not self.settings.bf16 or self.ranks.world_size > 1:  # FSDP casts sharded models itself
            return contextlib.nullcontext()
        return torch.autocast(self._device.type, torch.bfloat16)

    def _clip(self) -> float:
        parameters = [parameter for parameter in self.model.parameters() if parameter.grad is not None]
        return float(clip_gradients(parameters, self.settings.max_grad_norm))

    @torch.no_grad()
    def score(self, token_ids: Sequence[Sequence[int]], temperature: float = 1.0) -> list[list[float]]:
        """Log-probability of each token given those before it (0 for the first), in packed rows as in training.

        Comparable to an engine's ``score``.
        """
        self.model.eval()
        found: list[list[float]] = [[] for _ in token_ids]
        positions = [range(1, len(ids)) for ids in token_ids]
        for chosen in pack_rows(token_ids, positions, self._row_tokens, share=self._shares):
            chosen_positions = [positions[index] for index in chosen]
            packed = self._packed([token_ids[index] for index in chosen], chosen_positions)
            with self._autocast():
                logits = predicted_logits(self.model, packed)
            parts = token_logprobs(logits, packed.targets, temperature).split([len(one) for one in chosen_positions])
            for index, part in zip(chosen, parts, strict=True):
                found[index] = [0.0, *part.tolist()]
        return found

    @torch.no_grad()
    def lesson_kl(self, groups: Sequence[Group]) -> float:
        """Mean divergence from the teacher over all lesson tokens of these groups, in nats; nan if there are none."""
        lessons = self.settings.lessons
        if lessons is None or self.teacher is None:
            return float("nan")
        batch, _ = training_sequences(groups, {}, limits=lessons.limits)
        total, count = 0.0, 0
        for sequence in batch:
            row = self._row([sequence])
            with self._autocast():
                teacher_logits = self._teacher_logits(row)
                logits = predicted_logits(self.model, row.packed)
            for placed, teacher_part in zip(row.lessons, teacher_logits, strict=True):
                student_part = logits[torch.tensor(placed.rows, device=self._device)]
                total += float(divergence(student_part, teacher_part, k=lessons.k, kind=lessons.kind).sum())
                count += len(placed.rows)
        return total / count if count else float("nan")

    def weights(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Names and full tensors of the Hugging Face model. Every rank must iterate over all of them."""
        for name, tensor in self.model.state_dict().items():
            yield name, self.ranks.full_tensor(tensor.detach())

    def with_checkpoint_names(self, weights: Iterable[tuple[str, torch.Tensor]]) -> Iterator[tuple[str, torch.Tensor]]:
        """Convert weights to the names and shapes of the model's safetensors files (one tensor per expert)."""
        from transformers.core_model_loading import revert_weight_conversion

        for name, tensor in weights:
            yield from revert_weight_conversion(self.model, {name: tensor}).items()


@contextlib.contextmanager
def _deterministic() -> Iterator[None]:
    """Use deterministic algorithms only; operations that have none raise."""
    was_on = torch.are_deterministic_algorithms_enabled()
    only_warned = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(was_on, warn_only=only_warned)


def _count_lesson_tokens(sequences: Iterable[TrainingSequence]) -> dict[str, int]:
    """Kind of lesson to its number of tokens in the batch. Each kind's loss is a mean of its own."""
    found: dict[str, int] = {}
    for sequence in sequences:
        for lesson in sequence.lessons:
            found[lesson.kind] = found.get(lesson.kind, 0) + len(lesson.positions)
    return found


def _metrics(sums: dict[str, float], counts: LessonCounts, num_sequences: int) -> dict[str, float]:
    """Metrics from sums over tokens; those of the policy gradient only if it had tokens."""
    metrics = {
        "trained_tokens": sums.get("row_tokens", 0.0),
        "sequences": float(num_sequences),
        "loss": sums.get("loss_policy", 0.0) + sums.get("loss_lessons", 0.0),
    }
    if tokens := sums.get("tokens", 0.0):
        metrics |= {
            "sampled_tokens": tokens,
            "loss_policy": sums["loss_policy"],
            "entropy": sums["entropy"] / tokens,
            "masked_positive": sums["masked_positive"] / tokens,
            "masked_negative": sums["masked_negative"] / tokens,
            "capped": sums["capped"] / tokens,
            "mismatch_kl": sums["kl_sampler"] / tokens,
            "logprob_difference": sums["log_ratio"] / tokens,
            "kl_reference": sums["kl_reference"] / tokens,
        }
    if fresh := sums.get("fresh_tokens", 0.0):
        metrics["logprob_difference_fresh"] = sums["fresh_difference"] / fresh
    if taught := sums.get("hint_tokens", 0.0):
        metrics |= {"hint_kl": sums["hint_kl"] / taught, "hint_tokens": taught, "loss_lessons": sums["loss_lessons"]}
    if counts.by_name:
        metrics |= {"hints_taken": float(counts.taken), "hints_skipped": float(counts.skipped)}
        metrics |= {f"hints/{name}": float(number) for name, number in sorted(counts.by_name.items())}
    return metrics
