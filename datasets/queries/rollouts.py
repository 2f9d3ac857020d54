"""Rollouts of training runs, stored beside the snapshots of a task set.

::

    DIR/rollouts/<run>/step-00000012.parquet      rollouts completed before this optimizer step of the run

They are not part of a snapshot: a run adds files as it proceeds, and a repeated step replaces its file.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from excise.datasets.schema import Table, arrow_schema, columns_of, empty_view, sql_pattern
from excise.system.files import replacement, store_errors

FOLDER = "rollouts"
"""Name of the folder in the folder of a task set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutRow:
    """One row of the table: one attempt at a task by a policy in training."""

    run: str
    """Name of the training run: the name of its folder, with a random suffix if another run has it (`stored-as`)."""
    step: int
    """Optimizer step before which the group was completed, trained on or not."""
    group_id: str
    """Id of the group; its rollouts share one advantage baseline."""
    rollout_id: str
    """Id of the rollout."""
    instance_id: str
    """Id of the task."""
    tier: float | None
    """Difficulty of the task: its level (0 line, 1 expression, 2 stub, ...) plus 0.2 per step of visibility."""
    counts: bool
    """Whether it counts in the group's advantage baseline: no infrastructure failure and no flag of the monitor."""
    reward: float
    """Reward used by the objective: task_reward - penalty."""
    task_reward: float
    """Reward from the grade."""
    penalty: float
    """Effort penalty for the resources used, subtracted from task_reward."""
    advantage: float | None
    """Reward - mean reward of the group; null where `counts` is false."""
    ending: str
    """`finished`, `turn_limit`, `token_limit`, `time_limit`, `malformed_calls`, `infra_error`."""
    detail: str
    """Error message for users."""
    version_min: int | None
    """Oldest policy version that sampled a token."""
    version_max: int | None
    """Newest policy version that sampled a token."""
    num_segments: int
    """Number of contexts: 1 + number of summaries."""
    num_turns: int
    """Number of model replies."""
    num_calls: int
    """Number of tool calls."""
    num_summaries: int
    """Number of summaries that the agent wrote of its own context."""
    prompt_tokens: int
    """Number of tokens of the first prompt."""
    thinking_tokens: int
    """Number of sampled thinking tokens."""
    call_tokens: int
    """Number of sampled tokens in tool calls."""
    tool_output_tokens: int
    """Number of tokens of tool output."""
    final_tokens: int
    """Number of all other sampled tokens."""
    wall_s: float
    """Wall seconds from the first prompt to the grade."""
    engine_s: float
    """Part of wall_s spent in the engine."""
    sandbox_s: float
    """Part of wall_s spent in tools."""
    grade_s: float
    """Part of wall_s spent in the grader."""
    hints: tuple[str, ...]
    """Names of the detectors that found a bad turn, in order."""
    flags: tuple[str, ...]
    """Labels assigned by the monitor."""
    reasons: tuple[str, ...]
    """Reason codes of the grade."""
    decided: bool | None
    """Whether the grade is valid; null if nothing was graded."""
    diff: str
    """The submitted diff."""
    text: str
    """The whole conversation as text, segments concatenated."""
    segments: str
    """Tokens, log-probabilities of the sampler, policy versions and turns as JSON."""


ROLLOUTS = Table(
    name="rollouts",
    comment="One attempt at a task by a policy in training, in `rollouts/<run>/`. Not part of a snapshot.",
    columns=tuple(columns_of(RolloutRow)),
    sort_by=("run", "step", "rollout_id"),
)


def write_rollouts(store: Path, run: str, step: int, rows: Iterable[RolloutRow]) -> Path:
    """Write the rollouts of a step atomically, replacing an earlier file of the step. Returns its path.

    Raises :class:`StoreError` if the folder cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    target = store / FOLDER / run / f"step-{step:08d}.parquet"
    table = pa.Table.from_pylist([asdict(row) for row in rows], schema=arrow_schema(ROLLOUTS, comments=True))
    with store_errors("store rollouts"), replacement(target) as file:
        pq.write_table(table, file, compression="zstd", compression_level=3)
    return target


def claim_run(store: Path, name: str) -> str:
    """Create the folder of a run and return its unique name: ``name``, with a random suffix if it is taken.

    Raises :class:`StoreError` if the folder cannot be created.
    """
    with store_errors("store rollouts"):
        (store / FOLDER).mkdir(parents=True, exist_ok=True)
        unique = name
        while True:
            try:
                (store / FOLDER / unique).mkdir()
            except FileExistsError:
                unique = f"{name}-{secrets.token_hex(4)}"
            else:
                return unique


def rollouts_view(store: Path) -> str:
    """``CREATE VIEW rollouts`` over all runs of a task set; a view without rows if there are none."""
    if not any((store / FOLDER).glob("*/step-*.parquet")):
        return empty_view(ROLLOUTS)
    pattern = sql_pattern(store, f"{FOLDER}/*/step-*.parquet")
    return f"CREATE OR REPLACE VIEW rollouts AS SELECT * FROM read_parquet({pattern}, union_by_name = true);\n"
