"""From groups of rollouts to what is trained on: token sequences with advantages and lessons. Without torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from excise.trainer.rollout_types import Group, Rollout, Segment, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """What a teacher who knows more says about sampled tokens: its context has further tokens spliced in."""

    at: int
    """Place in the sequence where they go."""
    context: tuple[int, ...]
    """The tokens that only the teacher sees."""
    places: tuple[int, ...]
    """Places in the sequence of the sampled tokens that are learned from it, rising, none before :attr:`at`."""
    kind: str = "hint"
    """``hint``, ``privileged`` or ``demonstration``."""
    name: str = ""
    """Detector that found the fault, where there is one."""

    def teacher_ids(self, ids: Sequence[int]) -> tuple[int, ...]:
        """The teacher's sequence, up to the last token that is learned from."""
        return (*ids[: self.at], *self.context, *ids[self.at : self.places[-1] + 1])

    @property
    def teacher_places(self) -> tuple[int, ...]:
        """Where the learned tokens stand in it."""
        return tuple(place + len(self.context) for place in self.places)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSequence:
    """One segment as it is trained on."""

    rollout_id: str
    """Whose."""
    ids: tuple[int, ...]
    """All tokens."""
    places: tuple[int, ...]
    """Places of the sampled tokens."""
    logprobs: tuple[float, ...]
    """The sampler's log-probability of each of them."""
    versions: tuple[int, ...]
    """The policy version that drew each of them."""
    advantage: float | None
    """Of the rollout; ``None``: it is here for its lessons alone."""
    lessons: tuple[Lesson, ...] = ()
    """What a teacher has to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonLimits:
    """Lessons that do not fit are left out whole: a context that is cut short says something else."""

    context: int = 512
    """Most tokens that are spliced in for a hint."""
    privileged: int = 4096
    """Most tokens of privileged context or of a demonstration."""
    sequence: int = 32768
    """Most tokens of the teacher's sequence."""


@dataclass(slots=True)
class Counts:
    """What became of the lessons."""

    taken: int = 0
    """Number that are trained on."""
    skipped: int = 0
    """Number that did not fit."""
    by_name: dict[str, int] = field(default_factory=dict)
    """Detector to number of faults found, those of skipped lessons among them."""


def sequences(
    groups: Iterable[Group],
    earned: Mapping[str, float],
    *,
    hints: LessonLimits | None = None,
) -> tuple[list[TrainingSequence], Counts]:
    """Everything that is trained on, in order: segments of rollouts that have an advantage, or lessons.

    ``earned`` are the advantages, of the groups that have a signal; one of zero still holds the policy to the sampler.

    ``hints`` switches lessons on, from hints and from what the teacher is told of rollouts whose whole group failed.
    A rollout whose infrastructure failed, or that the monitor flagged, teaches nothing. Privileged context is told
    before the first answer of a rollout's first segment, and for that segment alone.
    """
    counts = Counts()
    found = []
    for group in groups:
        for rollout in group.counting:
            known = rollout.privileged if group.failed else ()
            advantage = earned.get(rollout.rollout_id)
            for number, segment in enumerate(rollout.segments):
                lessons = _lessons(segment, known if number == 0 else (), hints, counts) if hints else ()
                if advantage is not None or lessons:
                    found.append(_sequence(rollout, segment, advantage, lessons))
    return found, counts


def _sequence(
    rollout: Rollout, segment: Segment, advantage: float | None, lessons: tuple[Lesson, ...]
) -> TrainingSequence:
    places = _drawn(segment, 0, len(segment.ids))
    return TrainingSequence(
        rollout_id=rollout.rollout_id,
        ids=segment.ids,
        places=places,
        logprobs=tuple(segment.logprobs[place] for place in places),
        versions=tuple(segment.versions[place] for place in places),
        advantage=advantage,
        lessons=lessons,
    )


def _drawn(segment: Segment, start: int, end: int) -> tuple[int, ...]:
    """Places of sampled tokens; the first of a sequence is nobody's prediction."""
    return tuple(place for place in range(max(1, start), end) if segment.sampled[place])


def _lessons(segment: Segment, known: tuple[int, ...], limits: LessonLimits, counts: Counts) -> tuple[Lesson, ...]:
    wanted = [lesson for turn in segment.turns if (lesson := _hint(segment, turn))]
    for turn in segment.turns:
        if turn.detector and not turn.hint_ids:  # too long for the rollouts' limit
            counts.by_name[turn.detector] = counts.by_name.get(turn.detector, 0) + 1
            counts.skipped += 1
    drawn = _drawn(segment, 0, len(segment.ids))
    if known and segment.turns and drawn:
        wanted.append(Lesson(at=segment.turns[0].prompt_end, context=known, places=drawn, kind="privileged"))
    taken = []
    for lesson in wanted:
        counts.by_name[lesson.name or lesson.kind] = counts.by_name.get(lesson.name or lesson.kind, 0) + 1
        most = limits.context if lesson.kind == "hint" else limits.privileged
        if len(lesson.context) > most or lesson.teacher_places[-1] >= limits.sequence:
            counts.skipped += 1
        else:
            counts.taken += 1
            taken.append(lesson)
    return tuple(taken)


def _hint(segment: Segment, turn: Turn) -> Lesson | None:
    places = _drawn(segment, turn.start, turn.end)
    if not turn.hint_ids or not places:
        return None
    kind = "demonstration" if turn.detector == "demonstration" else "hint"
    return Lesson(at=turn.prompt_end, context=turn.hint_ids, places=places, kind=kind, name=turn.detector)
