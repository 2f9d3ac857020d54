"""Attempts of agents at tasks (``excise solve``), stored beside the snapshots of a task set.

::

    DIR/attempts/<run>/run                       what identifies the run; a resumed run must be the same
    DIR/attempts/<run>/<attempt>.jsonl           the trajectory: what `excise audit` reads
    DIR/attempts/<run>/<attempt>.parquet         one row; with it the attempt is complete
    DIR/attempts/<run>/parts/000001.parquet      rows of many attempts, merged when a run begins or ends

They are not part of a snapshot. A row is written after its trajectory and replaces nothing, so a killed run loses at
most the attempts in progress.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from excise.datasets.queries.scores import KS, Evaluation, TaskScore, summarise
from excise.datasets.schema import Table, arrow_schema, columns_of, empty_view, sql_pattern
from excise.errors import StoreError
from excise.system.files import replacement, store_errors
from excise.types import DETERMINISTIC

FOLDER = "attempts"
"""Name of the folder in the folder of a task set."""
PARTS = "parts"
"""Name of the folder of merged rows in the folder of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRow:
    """One row of the table: one graded attempt of an agent at a task. Infrastructure failures have no row."""

    run: str
    """Name of the run: by default agent, model and style."""
    attempt_id: str
    """Id of the attempt, unique in its run: task and number."""
    instance_id: str
    """Id of the task."""
    number: int
    """Number of the attempt at this task, counted from 1."""
    agent: str
    """`model`, `command`, `mini`, or a reference agent: `gold`, `noop`, `stub`."""
    agent_detail: str
    """Version of the agent or its command line."""
    model: str
    """Name of the model at its endpoint; empty if the agent uses none that excise knows of."""
    style: str
    """Style of the statement: `specification`, `issue`, `terse` or `ambiguous`."""
    solved: bool
    """Whether the reward is 1 and the monitor flags nothing."""
    reward: float
    """Reward of the grade; 0 if nothing was graded because nothing was changed."""
    partial: float
    """Share of the task's tests that passed before the grade was known."""
    reasons: tuple[str, ...]
    """Reason codes of the grade."""
    flags: tuple[str, ...]
    """Labels assigned by the monitor."""
    ending: str
    """`finished`, `step_limit`, `token_limit`, `cost_limit`, `time_limit`, `context_full`, `malformed_calls`, or
    `failed`: the agent's program ended with an error."""
    detail: str
    """Explanation of the ending."""
    steps: int | None
    """Number of replies of the model; null if excise saw none."""
    prompt_tokens: int | None
    """Prompt tokens of all requests; null if excise saw none."""
    completion_tokens: int | None
    """Completion tokens of all replies; null if excise saw none."""
    cost: float | None
    """Cost of the tokens in the currency of the prices; null without prices."""
    wall_s: float
    """Wall seconds of the agent, without opening the sandbox and grading."""
    grade_s: float
    """Wall seconds until the grade was known."""
    started_at: str
    """Start of the attempt (UTC)."""
    statement: str
    """The statement that the agent got."""
    diff: str
    """The graded diff; only the beginning of one that is too large to be graded."""
    transcript: str
    """The agent's own record: requests and replies as JSON lines, mini-swe-agent's trajectory, or the command's
    output."""
    excise_version: str
    """Version of excise."""
    statement_author: str = DETERMINISTIC
    """Author of the statement: `deterministic`, or the name of a model."""


ATTEMPTS = Table(
    name="attempts",
    comment="One graded attempt of an agent at a task (`excise solve`), in `attempts/<run>/`. Not part of a snapshot.",
    columns=tuple(columns_of(AttemptRow)),
    sort_by=("run", "instance_id", "number"),
)

PASS_AT_K = f"""\
CREATE OR REPLACE VIEW pass_at_k AS
WITH per_task AS (
    SELECT run, any_value(agent) AS agent, any_value(model) AS model, any_value(style) AS style, instance_id,
           count(*) AS n, count(*) FILTER (solved) AS c
    FROM attempts GROUP BY run, instance_id
), estimates AS (
    SELECT *, 1 - list_product([greatest(n - c - i, 0) / (n - i) FOR i IN range(k)]) AS p
    FROM per_task CROSS JOIN (SELECT unnest({list(KS)}) AS k) WHERE n >= k
)
SELECT run, any_value(agent) AS agent, any_value(model) AS model, any_value(style) AS style, k,
       avg(p) AS pass_at_k, coalesce(stddev_samp(p) / sqrt(count(*)), 0) AS standard_error, count(*) AS num_tasks,
       sum(n)::BIGINT AS num_attempts
FROM estimates GROUP BY run, k ORDER BY run, k;
"""
"""Unbiased pass@k of each run (:func:`excise.datasets.queries.scores.pass_at_k`)."""

EFFORT = """\
CREATE OR REPLACE VIEW effort AS
WITH amounts AS (
    UNPIVOT (
        SELECT run, instance_id, solved, completion_tokens::DOUBLE AS tokens, cost, wall_s AS seconds FROM attempts
    ) ON tokens, cost, seconds INTO NAME kind VALUE amount
), shares AS (
    SELECT *, solved::INT / count(*) OVER (PARTITION BY run, kind, instance_id) AS share FROM amounts
), counted AS (
    SELECT run, kind, count(DISTINCT instance_id) AS num_tasks FROM amounts GROUP BY run, kind
), summed AS (
    SELECT run, kind, amount, sum(share) AS share FROM shares GROUP BY run, kind, amount
)
SELECT run, kind, amount,
       sum(share) OVER (PARTITION BY run, kind ORDER BY amount) / num_tasks AS score
FROM summed JOIN counted USING (run, kind) ORDER BY run, kind, amount;
"""
"""The score of each run within each amount of completion tokens, cost and seconds: the curves of the picture."""


def run_folder(store: Path, run: str) -> Path:
    """Folder of a run's attempts."""
    return store / FOLDER / run


def row_path(store: Path, run: str, attempt_id: str) -> Path:
    """File of an attempt's row; it exists if the attempt is complete."""
    return run_folder(store, run) / f"{attempt_id}.parquet"


def trajectory_path(store: Path, run: str, attempt_id: str) -> Path:
    """File of an attempt's trajectory, in the format of :mod:`excise.verifiers.monitor.trajectory`."""
    return run_folder(store, run) / f"{attempt_id}.jsonl"


def write_attempt(store: Path, row: AttemptRow) -> Path:
    """Write the row of a finished attempt durably. Returns its path. Raises :class:`StoreError`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    target = row_path(store, row.run, row.attempt_id)
    table = pa.Table.from_pylist([asdict(row)], schema=arrow_schema(ATTEMPTS, comments=True))
    with store_errors("store an attempt"), replacement(target) as file:
        pq.write_table(table, file, compression="zstd", compression_level=3)
    return target


def finished_attempts(store: Path, run: str) -> frozenset[str]:
    """Ids of the attempts of a run that are complete."""
    return frozenset(path.stem for path in _single_rows(store, run)) | _merged_ids(store, run)


def merge_rows(store: Path, run: str) -> None:
    """Merge the files of single rows of a run into one file, since thousands of files are slow to query.

    Only for the process that holds the run's lock. After a crash, the views show each row once, and the next call
    removes the files of rows that were merged. Raises :class:`StoreError`.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    merged = _merged_ids(store, run)
    singles = _single_rows(store, run)
    new = [path for path in singles if path.stem not in merged]
    with store_errors("store attempts"):
        if len(new) > 1:
            number = 1 + max((int(path.stem) for path in _parts(store, run)), default=0)
            table = pa.concat_tables([pq.read_table(path) for path in new], promote_options="default")
            with replacement(run_folder(store, run) / PARTS / f"{number:06d}.parquet") as file:
                pq.write_table(table, file, compression="zstd", compression_level=3)
        for path in singles:
            if path.stem in merged or len(new) > 1:
                path.unlink()


def _single_rows(store: Path, run: str) -> list[Path]:
    return sorted(path for path in run_folder(store, run).glob("*.parquet") if not path.name.startswith("."))


def _parts(store: Path, run: str) -> list[Path]:
    return sorted(p for p in (run_folder(store, run) / PARTS).glob("*.parquet") if not p.name.startswith("."))


def _merged_ids(store: Path, run: str) -> frozenset[str]:
    import pyarrow.parquet as pq

    tables = (pq.read_table(path, columns=["attempt_id"]) for path in _parts(store, run))
    return frozenset(name for table in tables for name in table["attempt_id"].to_pylist())


def attempts_views(store: Path) -> str:
    """``CREATE VIEW attempts`` over all runs of a task set (without rows if there are none), and views of scores."""
    sources = []
    for pattern in (f"*/{PARTS}/*.parquet", "*/*.parquet"):
        if any((store / FOLDER).glob(pattern)):
            sources.append(f"read_parquet({sql_pattern(store, f'{FOLDER}/{pattern}')}, union_by_name = true)")
    if not sources:
        return empty_view(ATTEMPTS) + PASS_AT_K + EFFORT
    rows = f"SELECT * FROM {sources[0]}"
    if len(sources) > 1:  # rows that were merged by a process that was killed then are in both
        merged = f"SELECT run || '/' || attempt_id FROM {sources[0]}"
        rows += f" UNION ALL BY NAME SELECT * FROM {sources[1]} WHERE run || '/' || attempt_id NOT IN ({merged})"
    return f"CREATE OR REPLACE VIEW attempts AS {rows};\n" + PASS_AT_K + EFFORT


def score_run(
    store: Path,
    run: str,
    ids: Sequence[str] | None = None,
    *,
    lost: Mapping[str, int] | None = None,
    wall_s: float = 0.0,
) -> Evaluation:
    """The scores of a run, or of its attempts at some tasks; ``lost`` maps tasks to numbers of lost attempts.

    Raises :class:`StoreError` if the run has no attempts.
    """
    import duckdb

    with duckdb.connect() as connection:
        connection.execute(attempts_views(store.absolute()))
        rows = connection.execute(
            "SELECT instance_id, solved, flags <> [], completion_tokens, cost, ending FROM attempts WHERE run = ? "
            "ORDER BY instance_id, number",
            [run],
        ).fetchall()
    wanted = None if ids is None else frozenset(ids)
    rows = [row for row in rows if wanted is None or row[0] in wanted]
    if not rows and ids is None:
        known = sorted(path.name for path in (store / FOLDER).glob("*") if path.is_dir())
        raise StoreError(f"The set has no attempts of a run {run!r}. Runs: {', '.join(known) or 'none'}.")
    by_task: dict[str, list[_Attempted]] = {name: [] for name in lost or ()}
    for instance_id, solved, flagged, tokens, cost, _ in rows:
        by_task.setdefault(instance_id, []).append((solved, flagged, tokens, cost))
    scores = [_score(name, by_task[name], (lost or {}).get(name, 0)) for name in sorted(by_task)]
    samples = max((score.num_attempts for score in scores), default=0)
    endings = Counter(str(row[5]) for row in rows)
    return summarise(run, samples, scores, endings=dict(endings.most_common()), wall_s=wall_s)


_Attempted = tuple[bool, bool, int | None, float | None]
"""Whether an attempt solved its task, whether it was flagged, its completion tokens and its cost."""


def _score(instance_id: str, found: Sequence[_Attempted], num_lost: int) -> TaskScore:
    return TaskScore(
        instance_id=instance_id,
        num_attempts=len(found),
        num_solved=sum(solved for solved, *_ in found),
        num_lost=num_lost,
        num_flagged=sum(flagged for _, flagged, *_ in found),
        tokens=tuple(tokens for *_, tokens, _ in found if tokens is not None),
        solved_tokens=tuple(tokens for solved, _, tokens, _ in found if solved and tokens is not None),
        costs=tuple(cost for *_, cost in found if cost is not None),
        solved_costs=tuple(cost for solved, *_, cost in found if solved and cost is not None),
    )
