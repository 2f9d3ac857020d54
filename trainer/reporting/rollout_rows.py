"""Rollouts as rows of the table ``rollouts`` of a set: :class:`excise.datasets.queries.rollouts.RolloutRow`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from excise.datasets.queries.rollouts import RolloutRow, claim_run
from excise.system.files import replace_lines
from excise.trainer.objective.rewards import group_advantages
from excise.trainer.rollout_types import Group, Rollout
from excise.types import to_json

Decode = Callable[[Sequence[int]], str]


def stored_as(folder: Path, store: Path) -> str:
    """The unique name of a folder's run in a task set, claimed once (:func:`claim_run`) and kept in ``stored-as``."""
    name_file = folder / "stored-as"
    if not name_file.exists():
        is_old = (folder / "metrics.jsonl").exists()  # older programs named runs by their folders
        folder.mkdir(parents=True, exist_ok=True)
        replace_lines(name_file, [folder.name if is_old else claim_run(store, folder.name)])
    return name_file.read_text(encoding="utf-8").strip()


def rollout_rows(
    run: str,
    step: int,
    groups: Sequence[Group],
    decode: Decode,
    tier_of: Callable[[str], float | None] | None = None,
) -> Iterator[RolloutRow]:
    """One row for each rollout of the groups, valid or not."""
    for group in groups:
        advantage_of = group_advantages(group)
        tier = tier_of(group.instance_id) if tier_of else None
        for rollout in group.rollouts:
            yield _row(run, step, rollout, tier, advantage_of.get(rollout.rollout_id), decode)


def _row(
    run: str, step: int, rollout: Rollout, tier: float | None, advantage: float | None, decode: Decode
) -> RolloutRow:
    usage, grade = rollout.usage, rollout.grade
    versions = [version for segment in rollout.segments for version in segment.versions if version >= 0]
    return RolloutRow(
        run=run,
        step=step,
        group_id=rollout.group_id,
        rollout_id=rollout.rollout_id,
        instance_id=rollout.instance_id,
        tier=tier,
        counts=rollout.is_valid,
        reward=rollout.reward,
        task_reward=rollout.task_reward,
        penalty=rollout.penalty,
        advantage=advantage,
        ending=str(rollout.ending),
        detail=rollout.detail,
        version_min=min(versions, default=None),
        version_max=max(versions, default=None),
        num_segments=len(rollout.segments),
        num_turns=usage.num_turns,
        num_calls=usage.num_calls,
        num_summaries=usage.num_summaries,
        prompt_tokens=usage.prompt,
        thinking_tokens=usage.thinking,
        call_tokens=usage.calls,
        tool_output_tokens=usage.tool_output,
        final_tokens=usage.final,
        wall_s=usage.wall_s,
        engine_s=usage.engine_s,
        sandbox_s=usage.sandbox_s,
        grade_s=usage.grade_s,
        hints=tuple(turn.detector for segment in rollout.segments for turn in segment.turns if turn.hint),
        flags=rollout.flags,
        reasons=grade.reasons if grade else (),
        decided=grade.decided if grade else None,
        diff=rollout.diff,
        text="\n".join(decode(segment.ids) for segment in rollout.segments),
        segments=to_json(rollout.segments).decode(),
    )
