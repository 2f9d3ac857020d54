"""Scores of agents and policies on tasks: unbiased pass@k, and the share solved within an amount of tokens or money."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Amount = TypeVar("Amount", int, float)

KS = (1, 2, 4, 8, 16)
"""Values of k that pass@k is computed for."""
CURVE_POINTS = 40
"""Maximum number of points of an effort curve."""


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
    costs: tuple[float, ...] = ()
    """Cost of each completed attempt; empty if no prices are known."""
    solved_costs: tuple[float, ...] = ()
    """Cost of each attempt that solved the task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The scores of an agent or a policy on a set of tasks."""

    name: str
    """Name of the agent or the policy."""
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
    cost_effort: tuple[tuple[float, float], ...] = ()
    """(Cost limit, share of attempts that solve their task within that cost), mean over tasks; empty without prices."""
    endings: dict[str, int] = field(default_factory=dict)
    """Ending to number of attempts."""
    mean_tokens: float = 0.0
    """Mean completion tokens of an attempt."""
    mean_cost: float | None = None
    """Mean cost of an attempt; ``None`` if no prices are known."""
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
    costs = [amount for task in tasks for amount in task.costs]
    return Evaluation(
        name=name,
        samples=samples,
        tasks=tuple(tasks),
        pass_at=pass_at,
        error=error,
        effort=effort_curve(tasks),
        cost_effort=cost_curve(tasks),
        mean_tokens=sum(tokens) / len(tokens) if tokens else 0.0,
        mean_cost=sum(costs) / len(costs) if costs else None,
        **more,
    )


def effort_curve(tasks: Sequence[TaskScore]) -> tuple[tuple[int, float], ...]:
    """(Token limit, score) pairs: the share of attempts that solve their task within the limit, mean over tasks."""
    return tuple(_curve([(task.num_attempts, task.tokens, task.solved_tokens) for task in tasks]))


def cost_curve(tasks: Sequence[TaskScore]) -> tuple[tuple[float, float], ...]:
    """(Cost limit, score) pairs, as :func:`effort_curve` has them for tokens."""
    return tuple(_curve([(task.num_attempts, task.costs, task.solved_costs) for task in tasks]))


def _curve(
    tasks: Sequence[tuple[int, Sequence[Amount], Sequence[Amount]]],
) -> Iterator[tuple[Amount, float]]:
    """Points of a curve; of each task the number of attempts, what each used, and what each used that solved it."""
    tried = [task for task in tasks if task[0]]
    amounts: list[Amount] = sorted({amount for _, used, _ in tried for amount in used})
    step = max(1, math.ceil(len(amounts) / CURVE_POINTS))
    for limit in sorted(set(amounts[::step]) | set(amounts[-1:])):
        yield limit, sum(sum(used <= limit for used in solved) / count for count, _, solved in tried) / len(tried)


def table(found: Sequence[Evaluation]) -> list[list[str]]:
    """A table of evaluations: a header row, then one row each."""
    ks = sorted({k for one in found for k in one.pass_at})
    priced = any(one.mean_cost is not None for one in found)
    columns = ["name", "tasks", "attempts", *(f"pass@{k}" for k in ks), "tokens", *(["cost"] if priced else [])]
    rows = [[*columns, "lost", "flagged"]]
    for one in found:
        shares = [f"{one.pass_at[k]:.3f} ± {one.error[k]:.3f}" if k in one.pass_at else "" for k in ks]
        lost, flagged = (sum(getattr(t, name) for t in one.tasks) for name in ("num_lost", "num_flagged"))
        amounts = [f"{one.mean_tokens:.0f}"]
        if priced:
            amounts.append("" if one.mean_cost is None else f"{one.mean_cost:.4f}")
        counts = [str(len(one.tasks)), str(one.num_attempts)]
        rows.append([one.name, *counts, *shares, *amounts, str(lost), str(flagged)])
    return rows


def draw(found: Sequence[Evaluation], path: Path) -> bool:
    """Plot pass@k, and the score within tokens and (with prices) within cost, to an SVG or PNG file.

    Returns false if matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        return False
    mpl.rcParams["svg.hashsalt"] = "excise"
    priced = any(one.cost_effort for one in found)
    figure = Figure(figsize=(13 if priced else 9, 4), layout="constrained")
    first, *others = figure.subplots(1, 3 if priced else 2)
    for one in found:
        ks = sorted(one.pass_at)
        first.errorbar(
            ks, [one.pass_at[k] for k in ks], yerr=[one.error[k] for k in ks], marker="o", capsize=3, label=one.name
        )
    first.set(xlabel="k", ylabel="pass@k", ylim=(-0.02, 1.02), xscale="log", xticks=KS, xticklabels=KS)
    first.minorticks_off()
    first.legend(frameon=False)
    _draw_curves(others[0], [one.effort for one in found], "completion tokens")
    if priced:
        _draw_curves(others[1], [one.cost_effort for one in found], "cost")
    figure.savefig(path, format=path.suffix.lstrip("."), metadata={"Date": None} if path.suffix == ".svg" else None)
    return True


def _draw_curves(axes: Axes, curves: Sequence[Sequence[tuple[float, float]]], amount: str) -> None:
    """Plot one curve per evaluation; those without one keep their colour."""
    for number, curve in enumerate(curves):
        if curve:
            limits, scores = zip(*curve, strict=True)
            axes.step(limits, scores, where="post", color=f"C{number % 10}")
    axes.set(xlabel=amount, ylabel="solved within it", ylim=(-0.02, 1.02))


def _standard_error(values: Sequence[float]) -> float:
    if len(values) < 2:
        return 0.0
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1) / len(values))
