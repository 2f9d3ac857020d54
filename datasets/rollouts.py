"""Rollouts beside a task set: what agents that are being trained did on its tasks.

::

    DIR/rollouts/<run>/step-00000012.parquet      the rollouts that were settled before this step of the run

They are no part of a snapshot: a run adds files while it goes on, and a step that is made again writes its file again.
"""

from __future__ import annotations

import glob
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from excise.datasets.schema import Table, arrow_schema, columns_of, empty_view
from excise.system.files import store_errors, sync

FOLDER = "rollouts"


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutRow:
    """One attempt at a task by a policy in training, as the table has it."""

    run: str
    """Name of the training run: its folder's, with an ending where another run had that one (`stored-as`)."""
    step: int
    """Optimizer step before which its group was settled, trained on or not."""
    group_id: str
    """Attempts with the same baseline."""
    rollout_id: str
    """Attempt."""
    instance_id: str
    """Task."""
    tier: float | None
    """Height of the task on the ladder: its level (0 line, 1 expression, 2 stub, ...), and a fifth for each step of
    visibility."""
    counts: bool
    """Part of its group's baseline: neither the infrastructure failed nor did the monitor flag it."""
    reward: float
    """What the objective saw: task_reward less penalty."""
    task_reward: float
    """From the grade."""
    penalty: float
    """For effort."""
    advantage: float | None
    """Reward less the mean of the group's; empty where it does not count."""
    ending: str
    """`finished`, `turn_limit`, `token_limit`, `time_limit`, `malformed_calls`, `infra_error`."""
    detail: str
    """What went wrong, for people."""
    version_min: int | None
    """Oldest policy version that drew a token."""
    version_max: int | None
    """Newest."""
    num_segments: int
    """Contexts: one, and one more for each summary."""
    num_turns: int
    """Answers."""
    num_calls: int
    """Tool calls."""
    num_summaries: int
    """Summaries of itself."""
    prompt_tokens: int
    """Of the first prompt."""
    thinking_tokens: int
    """Sampled, of thinking."""
    call_tokens: int
    """Sampled, in tool calls."""
    tool_output_tokens: int
    """Said by tools."""
    final_tokens: int
    """Sampled, everything else."""
    wall_s: float
    """Seconds from the first prompt to the grade."""
    engine_s: float
    """Of that in the engine."""
    sandbox_s: float
    """Of that in tools."""
    grade_s: float
    """Of that in the grader."""
    hints: tuple[str, ...]
    """Detectors that found a bad turn, in order."""
    flags: tuple[str, ...]
    """Labels of the monitor."""
    reasons: tuple[str, ...]
    """The grade's codes of what was wrong."""
    decided: bool | None
    """The grade means something; empty if nothing was graded."""
    diff: str
    """What was handed in."""
    text: str
    """The whole conversation as text, segments one after the other."""
    segments: str
    """Tokens, sampler's log-probabilities, policy versions and turns, as JSON."""


ROLLOUTS = Table(
    name="rollouts",
    comment="One attempt at a task by a policy in training. Not part of a snapshot: `rollouts/<run>/` beside them.",
    columns=tuple(columns_of(RolloutRow)),
    sort_by=("run", "step", "rollout_id"),
)


def write_rollouts(store: Path, run: str, step: int, rows: Iterable[RolloutRow]) -> Path:
    """Put the rollouts of a step beside a task set, in one go; what was there of this step is replaced.

    Raises :class:`StoreError` if the folder cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    target = store / FOLDER / run / f"step-{step:08d}.parquet"
    table = pa.Table.from_pylist([asdict(row) for row in rows], schema=arrow_schema(ROLLOUTS, comments=True))
    with store_errors("store rollouts"), _in_one_go(target) as temporary:
        pq.write_table(table, temporary, compression="zstd", compression_level=3)
    return target


def claim_run(store: Path, wanted: str) -> str:
    """A name for a run that no other of the set has: ``wanted``, or that with a random ending; its folder is made.

    Raises :class:`StoreError` if it cannot be made.
    """
    with store_errors("store rollouts"):
        (store / FOLDER).mkdir(parents=True, exist_ok=True)
        name = wanted
        while True:
            try:
                (store / FOLDER / name).mkdir()
            except FileExistsError:
                name = f"{wanted}-{secrets.token_hex(4)}"
            else:
                return name


@contextmanager
def _in_one_go(target: Path) -> Iterator[Path]:
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        sync(temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    sync(target.parent)


def rollouts_view(store: Path) -> str:
    """``CREATE VIEW rollouts`` over all runs of a task set; without rows where there is none."""
    if not any((store / FOLDER).glob("*/step-*.parquet")):
        return empty_view(ROLLOUTS)
    pattern = f"{glob.escape(str(store))}/{FOLDER}/*/step-*.parquet".replace("'", "''")
    return f"CREATE OR REPLACE VIEW rollouts AS SELECT * FROM read_parquet('{pattern}', union_by_name = true);\n"
