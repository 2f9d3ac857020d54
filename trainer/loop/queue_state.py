"""The settings of the group queue, the batches that it hands out, and its state in a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from excise.trainer.rollout_types import Group, Rollout


def _share(value: float) -> float:
    """Raise an error of type ``not_a_share`` for a number that is not from 0 to 1."""
    if not 0 <= value <= 1:
        raise PydanticCustomError("not_a_share", "Input should be from 0 to 1")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSettings:
    """``[loop.schedule]``: batch size, staleness, deadlines and retries of groups."""

    batch: Annotated[int, Field(gt=0)] = 16
    """Number of groups of one step."""
    group_size: Annotated[int, Field(gt=0)] = 8
    """Number of rollouts of one group."""
    staleness: Annotated[int, Field(ge=0)] = 1
    """Steps that sampling may be ahead of training. With 0 only the newest policy samples, and a run is repeatable."""
    window: Annotated[float, AfterValidator(_share)] = 0.3
    """Share of a batch that may overtake an older group; none may at staleness 0."""
    drop_after: Annotated[int, Field(gt=0)] = 8
    """A group with a token that is older than this many versions is dropped."""
    group_deadline_s: Annotated[float, Field(gt=0)] = 3600.0
    """Timeout of one group in seconds, from the start of its first attempt; then it is cancelled and retried."""
    batch_deadline_s: Annotated[float, Field(gt=0)] = 7200.0
    """Seconds to wait for a full batch; then the step is made with the groups that are ready."""
    retries: Annotated[int, Field(ge=0)] = 2
    """Retries of a failed group before it is abandoned (during an outage, when all groups fail, it never is).

    A group has failed if an attempt failed because of the infrastructure; only such attempts are made again. The last
    try is accepted if at most half of its attempts are missing.
    """
    retry_delay_s: Annotated[float, Field(ge=0)] = 5.0
    """Seconds before the first retry; doubled for each further one, up to a minute."""
    seed: int = 0
    """Seed from which the groups' own seeds are derived."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The groups of one step."""

    numbers: tuple[int, ...]
    """Numbers of the groups."""
    groups: tuple[Group, ...]
    """Groups that fill the batch, then auxiliary ones."""


@dataclass(slots=True)
class QueueCounts:
    """Counts of events since the last batch. Part of the checkpoint format."""

    settled: list[Group] = field(default_factory=list)
    """Groups that the curriculum was told of since the last batch, trained on or not."""
    replaced: int = 0
    """Number of groups that were replaced because they had no signal."""
    failed: int = 0
    """Number of tries that ended in an error or at the deadline."""
    lost: int = 0
    """Number of groups that were abandoned, or dropped because they were too old."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """The queue's state in a checkpoint, by group number. The field names are part of the checkpoint format."""

    next: int = 0
    """Number of the next group."""
    begun: dict[int, str] = field(default_factory=dict)
    """Number to task of the groups that are waiting, running or finished."""
    made: dict[int, tuple[Rollout, ...]] = field(default_factory=dict)
    """Finished attempts of waiting and running groups."""
    finished: dict[int, Group | None] = field(default_factory=dict)
    """Finished groups, not yet settled; ``None`` for an abandoned one."""
    ready: dict[int, Group] = field(default_factory=dict)
    """Groups that will be part of a coming batch."""
    along: dict[int, Group] = field(default_factory=dict)
    """Groups that do not count towards a batch but are trained on for their lessons."""
    tally: QueueCounts = field(default_factory=QueueCounts)
    """Counts for the next step's metrics."""
