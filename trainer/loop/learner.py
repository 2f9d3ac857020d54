"""Groups in, better weights out: one optimizer step over a batch, whatever its size."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from excise.trainer.collectives import Ranks
from excise.trainer.objective.advantages import advantages
from excise.trainer.objective.block_attention import is_in_blocks
from excise.trainer.objective.distillation import Divergence, divergence, lesson_loss
from excise.trainer.objective.losses import LossSettings, policy_loss
from excise.trainer.objective.policy_forward import entropies, keeps_apart, predicted_logits, token_logprobs
from excise.trainer.objective.row_packing import PackedIds, Row, can_share, make_row, pack_ids, pack_rows, wanted_places
from excise.trainer.objective.teachers import Teacher
from excise.trainer.objective.training_sequences import Counts, LessonLimits, TrainingSequence, sequences
from excise.trainer.optimizers.clipping import clip_gradients
from excise.trainer.rollout_types import Group


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonSettings:
    """What is learned from a teacher, and how much it weighs."""

    weight: float = 0.1
    """Of the lessons' loss beside the policy gradient's: the mean over the tokens of each kind of lesson (hints,
    privileged context, demonstrations), added up over the kinds. Divergences are those at temperature 1."""
    k: int = 100
    """Tokens of the student that are looked at one by one."""
    kind: Divergence = Divergence.REVERSE_KL
    """Which divergence."""
    cap: float = 2.0
    """Most that a token weighs for having become likelier than when it was drawn."""
    limits: LessonLimits = field(default_factory=LessonLimits)
    """What fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerSettings:
    """One step's constants."""

    loss: LossSettings = field(default_factory=LossSettings)
    """The policy gradient."""
    policy_weight: float = 1.0
    """Of the policy gradient beside the lessons; 0 for plain distillation."""
    lessons: LessonSettings | None = None
    """``None``: no lessons."""
    reference_length: int = 1024
    """Z is the number of rollouts that count, in groups with a signal, times this: about the tokens of one."""
    temperature: float = 1.0
    """That the sampler used."""
    row_tokens: int = 8192
    """Most tokens of one forward pass."""
    max_grad_norm: float = 1.0
    """Gradients are clipped to it."""
    bf16: bool = False
    """Matrix products in bfloat16; weights and optimizer stay as they are."""


class Learner:
    """The policy being trained, its optimizer, and who teaches it."""

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        settings: LearnerSettings,
        *,
        scheduler: torch.optim.lr_scheduler.LRScheduler | None = None,
        teacher: Teacher | None = None,
        reference: torch.nn.Module | None = None,
        ranks: Ranks | None = None,
    ) -> None:
        self.model = model
        self.optimizer = optimizer
        self.scheduler = scheduler
        self.settings = settings
        self.teacher = teacher
        self.ranks = ranks or Ranks()
        self._reference = reference
        self._device = next(model.parameters()).device
        packs = keeps_apart(model)
        self._blocks = is_in_blocks(model)
        self._shares = packs and (self._blocks or (can_share(model) and keeps_apart(model, share=True)))
        self._row_tokens = settings.row_tokens if packs else 1  # what is longer gets a row of its own

    def say(self, what: str, *arguments: object) -> None:
        """Announce a command to the other ranks before running it; overridden in ``loop.rank_commands``."""

    def step(self, groups: Sequence[Group], version: int) -> dict[str, float]:
        """One optimizer step on these groups, sampled by policies up to ``version``; metrics by name.

        Groups without a signal give their lessons alone. Without anything to learn from, weights stay as they are and
        ``trained_tokens`` is 0; so they do, and ``skipped`` is 1, where the gradient is not finite.
        """
        began = time.perf_counter()
        lessons = self.settings.lessons
        earned = advantages(group for group in groups if group.has_signal)
        members, counts = sequences(groups, earned, hints=lessons.limits if lessons else None)
        if not members:
            return {"trained_tokens": 0.0}
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        sums = self._accumulate(members, len(earned), version)
        norm = self._clip()
        before = time.perf_counter()
        sound = math.isfinite(norm)  # one step that is not would make all weights nan
        if sound:
            self.optimizer.step()
        if self.scheduler is not None:
            self.scheduler.step()
        if sound and self.teacher is not None:
            self.teacher.follow(self.model)
        now = time.perf_counter()
        return _metrics(sums, counts, len(members)) | {
            "grad_norm": norm,
            "skipped": float(not sound),
            "learning_rate": float(self.optimizer.param_groups[0]["lr"]),
            "optimizer_ms": 1000 * (now - before),
            "learn_s": now - began,
        }

    def _accumulate(self, members: list[TrainingSequence], num_rollouts: int, version: int) -> dict[str, float]:
        """Gradients of the whole batch, row after row; sums over all ranks."""
        normaliser = float(max(1, num_rollouts) * self.settings.reference_length)
        num_taught = _taught_tokens(members)
        rows = pack_rows(
            [member.ids for member in members],
            [wanted_places(member) for member in members],
            self._row_tokens,
            share=self._shares,
        )
        mine = self.ranks.share(rows)
        sums: dict[str, torch.Tensor] = {}
        for chosen, counts in mine:
            row = self._row([members[index] for index in chosen])
            loss, seen = self._row_loss(row, normaliser, num_taught, version)
            # FSDP averages gradients over ranks; the parts of a batch are to be added up.
            (loss * (self.ranks.world if counts else 0)).backward()
            if counts:
                for name, value in seen.items():
                    sums[name] = sums.get(name, torch.zeros((), dtype=torch.float64)) + value.double().cpu()
        return self.ranks.summed({name: float(value) for name, value in sums.items()})

    def _row_loss(
        self, row: Row, normaliser: float, num_taught: Mapping[str, int], version: int
    ) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        settings = self.settings
        with self._autocast():
            taught = self._teacher_logits(row)
            reference = self._reference_logprobs(row)
            logits = predicted_logits(self.model, row.packed)
        logprobs = token_logprobs(logits, row.packed.targets, settings.temperature)
        policy = policy_loss(logprobs, row.sampler, row.advantages, row.counted, normaliser, settings.loss, reference)
        loss = settings.policy_weight * policy.loss
        sums = policy.sums | {"loss_policy": loss.detach(), "row_tokens": torch.tensor(float(row.num_tokens))}
        with torch.no_grad():
            sums["entropy"] = (entropies(logits.detach(), settings.temperature) * row.counted).sum()
            fresh = row.versions == version
            off = (logprobs.detach() - row.sampler).abs()
            sums["fresh_tokens"] = fresh.sum()
            sums["fresh_difference"] = (off * fresh).sum()
        for placed, theirs in zip(row.lessons, taught, strict=True):
            assert settings.lessons is not None
            index = torch.tensor(placed.rows, device=self._device)
            weighted, plain = lesson_loss(
                logits[index], theirs, logprobs[index], row.sampler[index],
                k=settings.lessons.k, kind=settings.lessons.kind, cap=settings.lessons.cap,
            )  # fmt: skip
            part = settings.lessons.weight * weighted / num_taught[placed.lesson.kind]
            loss = loss + part
            for name, value in (("loss_lessons", part.detach()), ("hint_kl", plain)):
                sums[name] = sums.get(name, torch.zeros((), device=self._device)) + value
            sums["hint_tokens"] = sums.get("hint_tokens", torch.zeros(())) + len(placed.rows)
        return loss, sums

    def _teacher_logits(self, row: Row) -> list[torch.Tensor]:
        """``[N, V]`` of each lesson, before the student's own pass: FSDP allows none between it and its gradient."""
        if self.teacher is None:
            return []
        found: dict[int, torch.Tensor] = {}
        told = [placed.teacher_ids for placed in row.lessons]
        places = [placed.lesson.teacher_places for placed in row.lessons]
        passes = pack_rows(told, places, self._row_tokens, share=self._shares)
        for _ in range(len(passes), self.ranks.most(len(passes))):  # a sharded teacher needs every rank each time
            self.teacher.logits(self._packed([[0, 0]], [[1]]))
        for chosen in passes:
            packed = self._packed([told[index] for index in chosen], [places[index] for index in chosen])
            parts = self.teacher.logits(packed).split([len(places[index]) for index in chosen])
            found |= dict(zip(chosen, parts, strict=True))
        return [found[index] for index in range(len(row.lessons))]

    @torch.no_grad()
    def _reference_logprobs(self, row: Row) -> torch.Tensor | None:
        if self._reference is None or self.settings.loss.beta == 0:
            return None
        logits = predicted_logits(self._reference, row.packed)
        return token_logprobs(logits, row.packed.targets, self.settings.temperature)

    def _row(self, members: Sequence[TrainingSequence]) -> Row:
        return make_row(members, self._device, share=self._shares, blocks=self._blocks)

    def _packed(self, ids: Sequence[Sequence[int]], places: Sequence[Sequence[int]]) -> PackedIds:
        return pack_ids(ids, places, self._device, share=self._shares, blocks=self._blocks)

    def _autocast(self) -> contextlib.AbstractContextManager[object]:
        if not self.settings.bf16 or self.ranks.world > 1:  # sharded models do it themselves
            return contextlib.nullcontext()
        return torch.autocast(self._device.type, torch.bfloat16)

    def _clip(self) -> float:
        parameters = [parameter for parameter in self.model.parameters() if parameter.grad is not None]
        return float(clip_gradients(parameters, self.settings.max_grad_norm))

    @torch.no_grad()
    def score(self, token_ids: Sequence[Sequence[int]], temperature: float = 1.0) -> list[list[float]]:
        """Log-probability of each token given those before it (the first is 0), as an engine's ``score`` gives it.

        Sequences stand in rows, as they do in training.
        """
        self.model.eval()
        found: list[list[float]] = [[] for _ in token_ids]
        places = [range(1, len(ids)) for ids in token_ids]
        for chosen in pack_rows(token_ids, places, self._row_tokens, share=self._shares):
            told, wanted = [token_ids[index] for index in chosen], [places[index] for index in chosen]
            packed = self._packed(told, wanted)
            with self._autocast():
                logits = predicted_logits(self.model, packed)
            parts = token_logprobs(logits, packed.targets, temperature).split([len(some) for some in wanted])
            for index, part in zip(chosen, parts, strict=True):
                found[index] = [0.0, *part.tolist()]
        return found

    @torch.no_grad()
    def lesson_kl(self, groups: Sequence[Group]) -> float:
        """Mean divergence from the teacher over all lesson tokens of these groups, in nats; nan without any."""
        lessons = self.settings.lessons
        if lessons is None or self.teacher is None:
            return float("nan")
        members, _ = sequences(groups, {}, hints=lessons.limits)
        far, count = 0.0, 0
        for member in members:
            row = self._row([member])
            with self._autocast():
                taught = self._teacher_logits(row)
                logits = predicted_logits(self.model, row.packed)
            for placed, theirs in zip(row.lessons, taught, strict=True):
                ours = logits[torch.tensor(placed.rows, device=self._device)]
                far += float(divergence(ours, theirs, k=lessons.k, kind=lessons.kind).sum())
                count += len(placed.rows)
        return far / count if count else float("nan")

    def weights(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Names and whole tensors of the Hugging Face model, for an engine. Every rank goes through all of them."""
        for name, tensor in self.model.state_dict().items():
            yield name, self.ranks.whole(tensor.detach())

    def as_saved(self, weights: Iterable[tuple[str, torch.Tensor]]) -> Iterator[tuple[str, torch.Tensor]]:
        """The same by the names and shapes of the model's files, which keep each expert of a layer by itself."""
        from transformers.core_model_loading import revert_weight_conversion

        for name, tensor in weights:
            yield from revert_weight_conversion(self.model, {name: tensor}).items()


def _taught_tokens(members: Iterable[TrainingSequence]) -> dict[str, int]:
    """Tokens that are learned from lessons, by the lessons' kind: hints are few beside privileged context."""
    found: dict[str, int] = {}
    for member in members:
        for lesson in member.lessons:
            found[lesson.kind] = found.get(lesson.kind, 0) + len(lesson.places)
    return found


def _metrics(sums: dict[str, float], counts: Counts, num_sequences: int) -> dict[str, float]:
    """Means over tokens from sums over tokens; those of the policy gradient where there was one."""
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
