"""Evaluation of a policy: unbiased pass@k, and its score as a function of completion tokens."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from excise.trainer.concurrency import gather_or_cancel
from excise.trainer.rollout_types import Ending, Group, Rollout

KS = (1, 2, 4, 8, 16)
"""Values of k that pass@k is computed for."""
CURVE_POINTS = 40
"""Maximum number of points of an effort curve."""


class GroupMaker(Protocol):
    """Makes attempts: :class:`excise.trainer.rollouts.rollout_maker.Rollouts`."""

    async def group(self, instance_id: str, size: int) -> Group:
        """Make ``size`` attempts at one task."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskScore:
    """Results of the attempts at one task."""

    instance_id: str
    """The task."""
    num_attempts: int
    """Number of attempts that were completed and graded, without infrastructure failures."""
    num_solved: int
    """Number of attempts with full reward that the monitor did not flag."""
    num_lost: int = 0
    """Number of attempts that failed because of the infrastructure."""
    num_flagged: int = 0
    """Number of attempts that the monitor flagged; none of them counts as solved."""
    tokens: tuple[int, ...] = ()
    """Completion tokens of each completed attempt."""
    solved_tokens: tuple[int, ...] = ()
    """Completion tokens of each attempt that solved the task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A policy's scores on a set of tasks."""

    name: str
    """Name of the policy."""
    samples: int
    """Number of attempts at each task."""
    tasks: tuple[TaskScore, ...]
    """Scores of the tasks, sorted by instance id."""
    pass_at: dict[int, float]
    """k to pass@k: mean over tasks of the probability that at least one of k attempts solves the task."""
    error: dict[int, float]
    """k to the standard error of pass@k, with tasks as the sample."""
    effort: tuple[tuple[int, float], ...]
    """(Token limit, share of attempts that solve their task within that many completion tokens), mean over tasks."""
    endings: dict[str, int] = field(default_factory=dict)
    """Ending to number of attempts."""
    mean_tokens: float = 0.0
    """Mean completion tokens of an attempt."""
    wall_s: float = 0.0
    """Wall seconds of the whole evaluation."""

    @property
    def num_attempts(self) -> int:
        """Number of completed attempts at all tasks."""
        return sum(task.num_attempts for task in self.tasks)


def pass_at_k(n: int, c: int, k: int) -> float:
    """Probability that one of ``k`` of ``n`` attempts is among the ``c`` that solved it: 1 - C(n-c, k) / C(n, k).

    The unbiased estimator of Chen et al. 2021 (arXiv 2107.03374), section 2.1. ``k`` is at most ``n``.
    """
    return 1.0 - math.comb(n - c, k) / math.comb(n, k)


async def evaluate(
    maker: GroupMaker,
    ids: Sequence[str],
    *,
    name: str = "policy",
    samples: int = 16,
    listener: Callable[[TaskScore], None] = lambda _: None,
) -> Evaluation:
    """Make ``samples`` attempts at each task and score them; ``listener`` is called with each finished task."""
    began = time.monotonic()
    endings: Counter[str] = Counter()

    async def one(instance_id: str) -> TaskScore:
        group = await maker.group(instance_id, samples)
        endings.update(str(rollout.ending) for rollout in group.rollouts)
        scored = score(group)
        listener(scored)
        return scored

    tasks = tuple(sorted(await gather_or_cancel(map(one, ids)), key=lambda task: task.instance_id))
    return summarise(
        name, samples, tasks, endings=dict(endings.most_common()), wall_s=round(time.monotonic() - began, 1)
    )


def score(group: Group) -> TaskScore:
    """The score of one group."""
    completed = [r for r in group.rollouts if r.ending is not Ending.INFRA and (r.grade is None or r.grade.decided)]
    solved = [r for r in completed if r.task_reward >= 1 and not r.flags]
    return TaskScore(
        instance_id=group.instance_id,
        num_attempts=len(completed),
        num_solved=len(solved),
        num_lost=len(group.rollouts) - len(completed),
        num_flagged=sum(bool(r.flags) for r in completed),
        tokens=tuple(map(completion_tokens, completed)),
        solved_tokens=tuple(map(completion_tokens, solved)),
    )


def completion_tokens(rollout: Rollout) -> int:
    """Number of tokens that the model sampled."""
    return rollout.usage.thinking + rollout.usage.calls + rollout.usage.final


def summarise(name: str, samples: int, tasks: Sequence[TaskScore], **more: Any) -> Evaluation:
    """Combine the scores of tasks; ``more`` are further fields. pass@k leaves out tasks with fewer than k attempts."""
    pass_at: dict[int, float] = {}
    error: dict[int, float] = {}
    for k in KS:
        values = [pass_at_k(t.num_attempts, t.num_solved, k) for t in tasks if t.num_attempts >= k]
        if values:
            pass_at[k] = math.fsum(values) / len(values)
            error[k] = _standard_error(values)
    tokens = [amount for task in tasks for amount in task.tokens]
    return Evaluation(
        name=name,
        samples=samples,
        tasks=tuple(tasks),
        pass_at=pass_at,
        error=error,
        effort=effort_curve(tasks),
        mean_tokens=sum(tokens) / len(tokens) if tokens else 0.0,
        **more,
    )


def effort_curve(tasks: Sequence[TaskScore]) -> tuple[tuple[int, float], ...]:
    """(Token limit, score) pairs: the share of attempts that solve their task within the limit, mean over tasks."""
    tried = [task for task in tasks if task.num_attempts]
    amounts = sorted({amount for task in tried for amount in task.tokens})
    if not amounts:
        return ()
    step = max(1, math.ceil(len(amounts) / CURVE_POINTS))
    chosen = sorted({*amounts[::step], amounts[-1]})
    return tuple(
        (limit, sum(sum(s <= limit for s in t.solved_tokens) / t.num_attempts for t in tried) / len(tried))
        for limit in chosen
    )


def table(found: Sequence[Evaluation]) -> list[list[str]]:
    """A table of evaluations: a header row, then one row each."""
    ks = sorted({k for one in found for k in one.pass_at})
    rows = [["policy", "tasks", "attempts", *(f"pass@{k}" for k in ks), "tokens", "lost", "flagged"]]
    for one in found:
        shares = [f"{one.pass_at[k]:.3f} ± {one.error[k]:.3f}" if k in one.pass_at else "" for k in ks]
        lost, flagged = (sum(getattr(t, name) for t in one.tasks) for name in ("num_lost", "num_flagged"))
        counts = [str(len(one.tasks)), str(one.num_attempts)]
        rows.append([one.name, *counts, *shares, f"{one.mean_tokens:.0f}", str(lost), str(flagged)])
    return rows


def draw(found: Sequence[Evaluation], path: Path) -> bool:
    """Plot pass@k and effort curves to an SVG or PNG file. Returns false if matplotlib is not installed."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        return False
    mpl.rcParams["svg.hashsalt"] = "excise"
    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for one in found:
        ks = sorted(one.pass_at)
        left.errorbar(
            ks, [one.pass_at[k] for k in ks], yerr=[one.error[k] for k in ks], marker="o", capsize=3, label=one.name
        )
        if one.effort:
            limits, scores = zip(*one.effort, strict=True)
            right.step(limits, scores, where="post", label=one.name)
    left.set(xlabel="k", ylabel="pass@k", ylim=(-0.02, 1.02), xscale="log", xticks=KS, xticklabels=KS)
    left.minorticks_off()
    right.set(xlabel="completion tokens", ylabel="solved within them", ylim=(-0.02, 1.02))
    left.legend(frameon=False)
    figure.savefig(path, format=path.suffix.lstrip("."), metadata={"Date": None} if path.suffix == ".svg" else None)
    return True


def _standard_error(values: Sequence[float]) -> float:
    if len(values) < 2:
        return 0.0
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1) / len(values))
