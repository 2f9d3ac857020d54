"""Numbers of a run: what groups came to, and where they are written.

Each step is one line of ``metrics.jsonl`` and one point of every TensorBoard curve. Names:

=========================  ========================================================================================
``pass@1``, ``pass@k``     share of counting rollouts with full task reward; share of groups with at least one
``reward``                 mean of what the objective sees, effort taken off
``zero_variance``          share of groups whose counting rollouts all earned the same
``infra_errors``           share of rollouts that failed for the infrastructure or could not be graded
``hacks``                  share of rollouts that the monitor flagged
``staleness``              mean number of versions between a drawn token and the step that trains on it
``staleness_max``          the oldest
``tier``                   mean height on the ladder of the tasks tried: 0 line, 1 expression, 2 stub, ...
``pool/…``                 what the curriculum knows: tasks by standing, pass rate, level, requests
``mismatch_kl``            KL(sampler ‖ policy), estimated over all trained tokens, in nats
``logprob_difference_fresh``  mean absolute difference of log-probabilities of answers that the same weights wrote
``masked_positive``, ``masked_negative``  share of tokens beyond the trust region, by the sign of their advantage
``entropy``                mean entropy of the policy at drawn tokens, in nats
``hint_kl``                mean divergence from the teacher at lesson tokens, before the step, in nats
``hint_kl_after``          the same after it
``wait_s``, ``learn_s``    seconds that the trainer waited for a batch, and that the step itself took
``load_s``, ``checkpoint_s``  of handing over the weights of the step before, and of writing the checkpoint behind it
``engine_idle``            share of the step's time in which the engine had no question
``engine_occupancy``       mean number of prompts that the engine had at once, over that time
``optimizer_ms``           of the optimizer alone
``mfu``                    share of the machine's peak that training used, if ``peak_tflops`` is given
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
    """What the groups settled since the last step came to, trained on or not; empty without any."""
    if not groups:
        return {}
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    counting = [group.counting for group in groups if group.counting]
    everyone = [rollout for group in counting for rollout in group]
    failed = [r for r in rollouts if r.ending is Ending.INFRA or (r.grade is not None and not r.grade.decided)]
    found = {
        "groups": float(len(groups)),
        "rollouts": float(len(rollouts)),
        "zero_variance": _share([not group.has_signal for group in groups if group.counting]),
        "infra_errors": len(failed) / max(1, len(rollouts)),
        "hacks": _share([bool(rollout.flags) for rollout in rollouts]),
    }
    if everyone:
        found |= {
            "pass@1": _share([rollout.task_reward >= 1 for rollout in everyone]),
            "pass@k": _share([any(rollout.task_reward >= 1 for rollout in group) for group in counting]),
            "reward": _mean([rollout.reward for rollout in everyone]),
            "task_reward": _mean([rollout.task_reward for rollout in everyone]),
            "penalty": _mean([rollout.penalty for rollout in everyone]),
            "turns": _mean([rollout.usage.num_turns for rollout in everyone]),
            "tokens": _mean([sum(sum(segment.sampled) for segment in r.segments) for r in everyone]),
            "summaries": _mean([rollout.usage.num_summaries for rollout in everyone]),
            "rollout_s": _mean([rollout.usage.wall_s for rollout in everyone]),
            "sandbox_s": _mean([rollout.usage.sandbox_s for rollout in everyone]),
            "grade_s": _mean([rollout.usage.grade_s for rollout in everyone]),
        }
        for ending in Ending:
            if share := _share([rollout.ending is ending for rollout in rollouts]):
                found[f"endings/{ending}"] = share
    tiers = [tier for group in groups if tier_of and (tier := tier_of(group.instance_id)) is not None]
    return found | ({"tier": _mean(tiers)} if tiers else {})


def staleness(groups: Sequence[Group], version: int) -> dict[str, float]:
    """How old the tokens of a batch are at the step that makes ``version + 1`` of ``version``."""
    ages = [
        version - drawn
        for group in groups
        for rollout in group.counting
        for segment in rollout.segments
        for drawn in segment.versions
        if drawn >= 0
    ]
    return {"staleness": _mean(ages), "staleness_max": float(max(ages))} if ages else {}


def model_flops(num_parameters: int, tokens: float) -> float:
    """Floating-point operations of a forward and backward pass: ``6 N`` a token, attention left out."""
    return 6.0 * num_parameters * tokens


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def _share(facts: Sequence[bool]) -> float:
    return sum(facts) / len(facts) if facts else 0.0


class MetricsWriter:
    """``metrics.jsonl`` and TensorBoard events of a run's folder, and a tracker's copy of them."""

    def __init__(self, folder: Path, *, tensorboard: bool = True, tracker: str = "", after: int = 0) -> None:
        """Goes on behind step ``after``; what is there of later steps is taken back (they will be made again).

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
        """One step; values that are no number are left out."""
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
        """Finish the files."""
        if self._board is not None:
            self._board.close()
        if self._tracker is not None:
            self._tracker.finish()


def _tracker(name: str, folder: Path) -> Any:
    """A run of the project ``excise``, told from other folders of the same name; one that is there goes on."""
    try:
        module = importlib.import_module(name)
    except ImportError:
        raise ConfigError(f"{name} is not installed: pip install {name}, or leave loop.tracker empty.") from None
    kept = folder / "tracked-as"
    if not kept.exists():
        replace_lines(kept, [f"{folder.name}-{secrets.token_hex(4)}"])
    run = kept.read_text(encoding="utf-8").strip()
    own = {"id": run, "dir": str(folder)} if name == "wandb" else {}
    module.init(project="excise", name=run, resume="allow", **own)
    return module


def read_metrics(path: Path) -> list[dict[str, float]]:
    """Rows of a ``metrics.jsonl``, by step; a line that was cut off by a kill is left out."""
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
