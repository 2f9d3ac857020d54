"""Training sequences: token sequences with advantages and lessons, made from groups of rollouts. Without torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from excise.trainer.rollout_types import Group, Rollout, Segment, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """A distillation target: the teacher sees the same tokens with a hint, gold patch or demonstration inserted."""

    at: int
    """Position in the sequence where the context is inserted."""
    context: tuple[int, ...]
    """The tokens that only the teacher sees."""
    positions: tuple[int, ...]
    """Positions of the sampled tokens with a distillation loss, ascending, none before :attr:`at`."""
    kind: str = "hint"
    """``hint``, ``privileged`` or ``demonstration``."""
    name: str = ""
    """Name of the detector that found the fault, if any."""

    def teacher_ids(self, ids: Sequence[int]) -> tuple[int, ...]:
        """The teacher's sequence, up to the last token with a loss."""
        return (*ids[: self.at], *self.context, *ids[self.at : self.positions[-1] + 1])

    @property
    def teacher_positions(self) -> tuple[int, ...]:
        """Positions of the tokens with a loss in the teacher's sequence."""
        return tuple(position + len(self.context) for position in self.positions)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSequence:
    """One segment in the form that is trained on."""

    rollout_id: str
    """The rollout that it belongs to."""
    ids: tuple[int, ...]
    """All token ids."""
    positions: tuple[int, ...]
    """Positions of the sampled tokens, without the sequence's first token."""
    logprobs: tuple[float, ...]
    """The sampler's log-probability of each sampled token."""
    versions: tuple[int, ...]
    """The policy version that sampled each of them."""
    advantage: float | None
    """The rollout's advantage; ``None`` if the sequence is trained on for its lessons only."""
    lessons: tuple[Lesson, ...] = ()
    """Distillation targets of the sequence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonLimits:
    """``[learner.lessons.limits]``. Longer lessons are skipped, never truncated: a cut context has another meaning."""

    context: int = 512
    """Maximum number of tokens of a hint."""
    privileged: int = 4096
    """Maximum number of tokens of privileged context or of a demonstration."""
    sequence: int = 32768
    """Maximum number of tokens of the teacher's sequence."""


@dataclass(slots=True)
class LessonCounts:
    """Numbers of lessons."""

    taken: int = 0
    """Number of lessons that are trained on."""
    skipped: int = 0
    """Number of lessons that were longer than the limits."""
    by_name: dict[str, int] = field(default_factory=dict)
    """Detector (or kind of lesson) to number of lessons found, including skipped ones."""


def training_sequences(
    groups: Iterable[Group],
    advantage_of: Mapping[str, float],
    *,
    limits: LessonLimits | None = None,
) -> tuple[list[TrainingSequence], LessonCounts]:
    """The segments with an advantage or a lesson, in order, and the numbers of lessons.

    ``advantage_of`` has the rollouts of groups with a signal. A rollout with advantage 0 is included: its tokens still
    take part in the term that keeps the policy near the sampler. ``limits`` switches lessons on: hints of detectors,
    and privileged context for rollouts whose whole group failed, which is inserted before the first answer of the first
    segment, for that segment only. Rollouts that are not valid are left out.
    """
    counts = LessonCounts()
    found = []
    for group in groups:
        for rollout in group.valid_rollouts:
            privileged = rollout.privileged if group.all_failed else ()
            advantage = advantage_of.get(rollout.rollout_id)
            for number, segment in enumerate(rollout.segments):
                lessons = _lessons(segment, privileged if number == 0 else (), limits, counts) if limits else ()
                if advantage is not None or lessons:
                    found.append(_sequence(rollout, segment, advantage, lessons))
    return found, counts


def _sequence(
    rollout: Rollout, segment: Segment, advantage: float | None, lessons: tuple[Lesson, ...]
) -> TrainingSequence:
    positions = _sampled_positions(segment, 0, len(segment.ids))
    return TrainingSequence(
        rollout_id=rollout.rollout_id,
        ids=segment.ids,
        positions=positions,
        logprobs=tuple(segment.logprobs[position] for position in positions),
        versions=tuple(segment.versions[position] for position in positions),
        advantage=advantage,
        lessons=lessons,
    )


def _sampled_positions(segment: Segment, start: int, end: int) -> tuple[int, ...]:
    """Positions of sampled tokens in ``[start, end)``, without the sequence's first token: it is never predicted."""
    return tuple(position for position in range(max(1, start), end) if segment.sampled[position])


def _lessons(
    segment: Segment, privileged: tuple[int, ...], limits: LessonLimits, counts: LessonCounts
) -> tuple[Lesson, ...]:
    """The lessons of a segment that are within the limits; adds to ``counts``."""
    found = [lesson for turn in segment.turns if (lesson := _hint(segment, turn))]
    for turn in segment.turns:
        if turn.detector and not turn.hint_ids:  # longer than rollouts.hint_tokens
            counts.by_name[turn.detector] = counts.by_name.get(turn.detector, 0) + 1
            counts.skipped += 1
    sampled = _sampled_positions(segment, 0, len(segment.ids))
    if privileged and segment.turns and sampled:
        found.append(Lesson(at=segment.turns[0].prompt_end, context=privileged, positions=sampled, kind="privileged"))
    taken = []
    for lesson in found:
        counts.by_name[lesson.name or lesson.kind] = counts.by_name.get(lesson.name or lesson.kind, 0) + 1
        longest = limits.context if lesson.kind == "hint" else limits.privileged
        if len(lesson.context) > longest or lesson.teacher_positions[-1] >= limits.sequence:
            counts.skipped += 1
        else:
            counts.taken += 1
            taken.append(lesson)
    return tuple(taken)


def _hint(segment: Segment, turn: Turn) -> Lesson | None:
    positions = _sampled_positions(segment, turn.start, turn.end)
    if not turn.hint_ids or not positions:
        return None
    kind = "demonstration" if turn.detector == "demonstration" else "hint"
    return Lesson(at=turn.prompt_end, context=turn.hint_ids, positions=positions, kind=kind, name=turn.detector)
