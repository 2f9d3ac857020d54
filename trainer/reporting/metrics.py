"""Metrics of a run: computed from groups, written to files, trackers and a plot.

Each step is one line of ``metrics.jsonl`` and one point of every TensorBoard curve. Names:

=========================  ========================================================================================
``pass@1``, ``pass@k``     share of valid rollouts with full task reward; share of groups with at least one
``reward``                 mean reward of the objective (task reward minus effort penalty)
``zero_variance``          share of groups without a signal (equal rewards, or all failed)
``infra_errors``           share of rollouts that failed for the infrastructure or could not be graded
``hacks``                  share of rollouts that the monitor flagged
``staleness``              mean number of versions between sampling a token and the step that trains on it
``staleness_max``          the same for the oldest token
``tier``                   mean difficulty of the attempted tasks: 0 line, 1 expression, 2 stub, ...
``pool/…``                 the curriculum: tasks by status, pass rate, level, requests
``mismatch_kl``            KL(sampler ‖ policy), estimated over all trained tokens, in nats
``logprob_difference_fresh``  mean absolute difference of log-probabilities of answers sampled by the same weights
``masked_positive``, ``masked_negative``  share of tokens masked by the trust region, by sign of advantage
``entropy``                mean entropy of the policy at sampled tokens, in nats
``hint_kl``                mean divergence from the teacher at lesson tokens, before the step, in nats
``hint_kl_after``          the same after it
``wait_s``, ``learn_s``    seconds that the trainer waited for a batch, and seconds of the step itself
``load_s``, ``checkpoint_s``  seconds to load weights and to write a checkpoint, after the step before
``engine_idle``            share of the step's time in which the engine had no prompt
``engine_occupancy``       mean number of prompts in flight, over that time
``optimizer_ms``           milliseconds of the optimizer alone
``mfu``                    share of the machine's peak performance that training used, if ``peak_tflops`` is set
=========================  ========================================================================================
"""

from __future__ import annotations

import importlib
import json
import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from excise.errors import ConfigError
from excise.system.files import replace_lines
from excise.trainer.rollout_types import Ending, Group


def group_metrics(groups: Sequence[Group], tier_of: Callable[[str], float | None] | None = None) -> dict[str, float]:
    """Metrics of the groups settled since the last step, trained on or not; empty if there are none."""
    if not groups:
        return {}
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    valid_groups = [group.valid_rollouts for group in groups if group.valid_rollouts]
    valid = [rollout for group in valid_groups for rollout in group]
    failed = [r for r in rollouts if r.ending is Ending.INFRA or (r.grade is not None and not r.grade.decided)]
    found = {
        "groups": float(len(groups)),
        "rollouts": float(len(rollouts)),
        "zero_variance": _share([not group.has_signal for group in groups if group.valid_rollouts]),
        "infra_errors": len(failed) / max(1, len(rollouts)),
        "hacks": _share([bool(rollout.flags) for rollout in rollouts]),
    }
    if valid:
        found |= {
            "pass@1": _share([rollout.task_reward >= 1 for rollout in valid]),
            "pass@k": _share([any(rollout.task_reward >= 1 for rollout in group) for group in valid_groups]),
            "reward": _mean([rollout.reward for rollout in valid]),
            "task_reward": _mean([rollout.task_reward for rollout in valid]),
            "penalty": _mean([rollout.penalty for rollout in valid]),
            "turns": _mean([rollout.usage.num_turns for rollout in valid]),
            "tokens": _mean([sum(sum(segment.sampled) for segment in r.segments) for r in valid]),
            "summaries": _mean([rollout.usage.num_summaries for rollout in valid]),
            "rollout_s": _mean([rollout.usage.wall_s for rollout in valid]),
            "sandbox_s": _mean([rollout.usage.sandbox_s for rollout in valid]),
            "grade_s": _mean([rollout.usage.grade_s for rollout in valid]),
        }
        for ending in Ending:
            if share := _share([rollout.ending is ending for rollout in rollouts]):
                found[f"endings/{ending}"] = share
    tiers = [tier for group in groups if tier_of and (tier := tier_of(group.instance_id)) is not None]
    return found | ({"tier": _mean(tiers)} if tiers else {})


def staleness(groups: Sequence[Group], version: int) -> dict[str, float]:
    """Age of a batch's tokens in versions, at the step from ``version`` to ``version + 1``."""
    ages = [
        version - sampled_by
        for group in groups
        for rollout in group.valid_rollouts
        for segment in rollout.segments
        for sampled_by in segment.versions
        if sampled_by >= 0
    ]
    return {"staleness": _mean(ages), "staleness_max": float(max(ages))} if ages else {}


def model_flops(num_parameters: int, tokens: float) -> float:
    """Floating-point operations of a forward and backward pass: ``6 N`` per token, without attention."""
    return 6.0 * num_parameters * tokens


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def _share(facts: Sequence[bool]) -> float:
    return sum(facts) / len(facts) if facts else 0.0


class MetricsWriter:
    """Writes metrics to ``metrics.jsonl``, to TensorBoard events and, if configured, to a tracker."""

    def __init__(self, folder: Path, *, tensorboard: bool = True, tracker: str = "", after: int = 0) -> None:
        """Continue after step ``after``: rows of later steps are removed, since these steps will be repeated.

        ``tracker`` is ``wandb`` or ``trackio``; raises :class:`ConfigError` if it is not installed.
        """
        self._path = folder / "metrics.jsonl"
        folder.mkdir(parents=True, exist_ok=True)
        kept = [row for row in read_metrics(self._path) if row["step"] <= after]
        replace_lines(self._path, [json.dumps(row) for row in kept])
        self._board: Any = None
        if tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            self._board = SummaryWriter(str(folder / "tensorboard"), purge_step=after + 1)
        self._tracker = _tracker(tracker, folder) if tracker else None

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Write the metrics of one step, without nan and infinite values."""
        row = {"step": step} | {name: value for name, value in values.items() if math.isfinite(value)}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        if self._board is not None:
            for name, value in row.items():
                if name != "step":
                    self._board.add_scalar(name if "/" in name else f"train/{name}", value, step)
            self._board.flush()
        if self._tracker is not None:
            self._tracker.log({name: value for name, value in row.items() if name != "step"}, step=step)

    def close(self) -> None:
        """Close the files and the tracker."""
        if self._board is not None:
            self._board.close()
        if self._tracker is not None:
            self._tracker.finish()


def _tracker(name: str, folder: Path) -> Any:
    """Start or continue the run of this folder in the tracker's project ``excise``, under a unique name."""
    try:
        module = importlib.import_module(name)
    except ImportError:
        raise ConfigError(f"{name} is not installed: pip install {name}, or leave loop.tracker empty.") from None
    name_file = folder / "tracked-as"
    if not name_file.exists():
        replace_lines(name_file, [f"{folder.name}-{secrets.token_hex(4)}"])
    run = name_file.read_text(encoding="utf-8").strip()
    options = {"id": run, "dir": str(folder)} if name == "wandb" else {}
    module.init(project="excise", name=run, resume="allow", **options)
    return module


def read_metrics(path: Path) -> list[dict[str, float]]:
    """The rows of a ``metrics.jsonl``, in order of steps; a line that was cut off by a kill is ignored."""
    if not path.exists():
        return []
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        rows.append(row)
    return rows


def plot_progress(rows: Sequence[dict[str, float]], path: Path, title: str = "") -> bool:
    """Plot rows of ``metrics.jsonl`` (rewards and task difficulty over steps) to an SVG or PNG file.

    Returns false if there is nothing to plot or matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
    except ImportError:
        return False
    rows = [row for row in rows if "pass@1" in row or "reward" in row]
    if not rows:
        return False
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "excise"
    figure = Figure(figsize=(8, 6), layout="constrained")
    rewards, tasks = figure.subplots(2, 1, sharex=True)
    for name, style in (("pass@1", "-"), ("pass@k", "--"), ("reward", ":")):
        _curve(rewards, rows, name, style)
    rewards.set(ylabel="share of attempts, reward", ylim=(-0.05, 1.05))
    rewards.legend(loc="best", frameon=False)
    for name, style in (("tier", "-"), ("zero_variance", ":")):
        _curve(tasks, rows, name, style)
    tasks.set(ylabel="tier of tasks tried", xlabel="step")
    if tasks.lines:
        tasks.legend(loc="best", frameon=False)
    figure.suptitle(title)
    temporary = path.with_name(f".{path.name}")
    metadata = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(temporary, format=path.suffix.lstrip("."), metadata=metadata)
    temporary.replace(path)
    return True


def _curve(axes: Any, rows: Sequence[dict[str, float]], name: str, style: str) -> None:
    points = [(row["step"], row[name]) for row in rows if name in row]
    if points:
        steps, values = zip(*points, strict=True)
        axes.plot(steps, values, style, label=name, marker="." if len(points) < 30 else None)
