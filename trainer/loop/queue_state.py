"""What the queue of groups is told, what it hands out, and what a checkpoint keeps of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from excise.trainer.rollout_types import Group, Rollout


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSettings:
    """How many, how old, how long."""

    batch: int = 16
    """Groups of a step."""
    group_size: int = 8
    """Rollouts of a group."""
    staleness: int = 1
    """Steps that sampling may be ahead; 0 samples only from the newest policy, and repeats exactly."""
    window: float = 0.3
    """Share of a batch that may overtake; none does at staleness 0."""
    drop_after: int = 8
    """A group with a token older than this many versions is left out."""
    group_deadline_s: float = 3600.0
    """For one group, from its first attempt's start; beyond, it is given up and tried again."""
    batch_deadline_s: float = 7200.0
    """For one batch; beyond, training goes on with what is there."""
    retries: int = 2
    """A group that failed more often is given up, unless everything fails. Failed has one, too, of which attempts were
    lost to the infrastructure: these are made again. In the end half of them may be missing."""
    retry_delay_s: float = 5.0
    """Wait before the second try, twice as long before each further one, a minute at most."""
    seed: int = 0
    """Makes the groups' seeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one step is trained on."""

    numbers: tuple[int, ...]
    """Of the groups."""
    groups: tuple[Group, ...]
    """Those with a signal, and others with lessons alone."""
    stale: tuple[int, ...] = ()
    """Groups that were too old."""


@dataclass(slots=True)
class Tally:
    """Counts since the last batch."""

    settled: list[Group] = field(default_factory=list)
    """Groups, whatever became of them."""
    replaced: int = 0
    """Those without anything to learn from."""
    failed: int = 0
    """Tries that ended in an error or past the deadline."""
    lost: int = 0
    """Groups that were given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """Everything that a checkpoint holds of a queue; groups by number."""

    next: int = 0
    """Number of the next group."""
    begun: dict[int, str] = field(default_factory=dict)
    """Number to task of groups that are not settled: those that are not finished, either, begin again."""
    made: dict[int, tuple[Rollout, ...]] = field(default_factory=dict)
    """Attempts of groups that are not finished."""
    finished: dict[int, Group | None] = field(default_factory=dict)
    """Finished, their turn not yet come."""
    ready: dict[int, Group] = field(default_factory=dict)
    """Wait to be trained on."""
    along: dict[int, Group] = field(default_factory=dict)
    """Wait to go along, for their lessons."""
    tally: Tally = field(default_factory=Tally)
    """For the next report."""
