"""What the jobs of a run cost, read from the run's logs (:mod:`excise.system.job_costs` writes them): a view in DuckDB.

Logs are not part of a snapshot. A line that a killed process left unfinished is ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from excise.datasets.schema import Table, columns_of, empty_view, sql_pattern
from excise.system.run_log import FOLDER


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """One row of the view: what one program cost in one step of one job."""

    run: str
    """Run of `generate`, `refresh` or another command: the name of its log file."""
    time: str
    """When the job ended (UTC)."""
    pid: int
    """Process that ran the job."""
    job: int
    """Number of the job in its process, counted in `process_cpu_s`."""
    source: str
    """Source, as it was given."""
    stage: str
    """Stage: `fetch`, `environment`, `model`, `baseline`, `coverage`, `find` or `prove`."""
    step: str
    """Part of a stage: in `prove` the gate, or `plan`, `split` or `build` before it."""
    program: str
    """Program in a sandbox; `excise` for the job's own process, `host commands` for its commands outside sandboxes."""
    runs: int
    """How often it ran."""
    cpu_s: float
    """CPU seconds."""
    wall_s: float
    """Wall seconds. Programs that ran at the same time count each; `host commands` are part of `excise`."""
    job_wall_s: float
    """Wall seconds of the whole job."""
    written_bytes: int
    """Bytes that the process of the job wrote during the whole job."""
    process_cpu_s: float
    """CPU seconds of the job's process from its start to the end of the job, all of its jobs included."""


COSTS = Table(
    name="costs",
    comment="What one program cost in one step of one job of a run, from `logs/` beside the snapshots.",
    columns=tuple(columns_of(CostRow)),
    sort_by=("run", "time"),
)
_FIELDS = """{
    time: 'VARCHAR', event: 'VARCHAR', source: 'VARCHAR', stage: 'VARCHAR', pid: 'BIGINT', wall_s: 'DOUBLE',
    process_cpu_s: 'DOUBLE', written_bytes: 'BIGINT',
    costs: 'STRUCT(step VARCHAR, program VARCHAR, runs BIGINT, cpu_s DOUBLE, wall_s DOUBLE)[]'
}"""


def costs_view(store: Path) -> str:
    """``CREATE VIEW costs`` over the logs of all runs of a task set; a view without rows if there are none."""
    if not any((store / FOLDER).glob("*.jsonl")):
        return empty_view(COSTS)
    pattern = sql_pattern(store, f"{FOLDER}/*.jsonl")
    return f"""\
CREATE OR REPLACE VIEW costs AS
WITH jobs AS (
    SELECT *, regexp_extract(filename, '(run-[^/]*?)(-worker-[0-9]+)?[.]jsonl$', 1) AS run,
           row_number() OVER (PARTITION BY filename, pid ORDER BY process_cpu_s) AS job
    FROM read_json({pattern}, format = 'newline_delimited', ignore_errors = true, filename = true,
                   columns = {_FIELDS})
    WHERE event = 'job measured'
), parts AS (SELECT * EXCLUDE (costs), unnest(costs) AS cost FROM jobs)
SELECT run, time, pid, job, source, stage, cost.step AS step, cost.program AS program, cost.runs AS runs,
       cost.cpu_s AS cpu_s, cost.wall_s AS wall_s, wall_s AS job_wall_s, written_bytes, process_cpu_s
FROM parts;
"""


BY_STAGE = """
WITH jobs AS (SELECT DISTINCT run, pid, job, source, stage, job_wall_s, written_bytes FROM chosen),
     sums AS (SELECT stage, sum(job_wall_s) AS wall_s, sum(written_bytes) AS written, count(*) AS jobs
              FROM jobs GROUP BY stage)
SELECT stage, jobs, round(sum(cpu_s), 1) AS cpu_s, round(any_value(sums.wall_s), 1) AS wall_s,
       round(100 * sum(cpu_s) / (SELECT sum(cpu_s) FROM chosen), 1) AS "cpu_%",
       round(any_value(written) / 1e6, 1) AS written_mb
FROM chosen JOIN sums USING (stage) GROUP BY stage, jobs ORDER BY sum(cpu_s) DESC, stage
"""
BY_STEP = """
SELECT stage, step, round(sum(cpu_s), 1) AS cpu_s, round(sum(wall_s), 1) AS wall_s,
       round(100 * sum(cpu_s) / (SELECT sum(cpu_s) FROM chosen), 1) AS "cpu_%"
FROM chosen WHERE step <> '' GROUP BY stage, step ORDER BY sum(cpu_s) DESC, stage, step
"""
BY_PROGRAM = """
SELECT program, sum(runs)::BIGINT AS runs, round(sum(cpu_s), 1) AS cpu_s, round(sum(wall_s), 1) AS wall_s,
       round(sum(cpu_s) / sum(runs), 3) AS cpu_s_per_run,
       round(100 * sum(cpu_s) / (SELECT sum(cpu_s) FROM chosen), 1) AS "cpu_%"
FROM chosen GROUP BY program ORDER BY sum(cpu_s) DESC, program
"""
BY_PROCESS = """
WITH own AS (SELECT run, pid, sum(cpu_s) FILTER (program = 'excise') AS jobs_s, max(process_cpu_s) AS all_s,
                    count(DISTINCT job) AS jobs FROM chosen GROUP BY run, pid)
SELECT pid, jobs, round(all_s, 1) AS process_cpu_s, round(jobs_s, 1) AS in_jobs_s,
       round(all_s - jobs_s, 1) AS outside_jobs_s FROM own ORDER BY all_s DESC, pid
"""
PROFILE = {"stage": BY_STAGE, "step": BY_STEP, "program": BY_PROGRAM, "process": BY_PROCESS}
"""The tables of a profile: SQL over ``chosen``, the rows of the runs in question."""


def profile(store: Path, run: str = "") -> dict[str, list[dict[str, Any]]]:
    """Where the time of a run went: the tables of :data:`PROFILE`, as rows.

    ``run`` is the name of a run, or its beginning; the latest one if it is empty. The folder need not hold a task set.
    Without any measured job, all tables are empty.
    """
    import duckdb

    with duckdb.connect() as connection:
        connection.execute(costs_view(store.absolute()))
        names = [name for (name,) in connection.execute("SELECT DISTINCT run FROM costs ORDER BY run").fetchall()]
        wanted = next((name for name in reversed(names) if name.startswith(run)), None)
        connection.execute("CREATE TEMP TABLE chosen AS SELECT * FROM costs WHERE run = ?", [wanted])
        found = {}
        for name, sql in PROFILE.items():
            result = connection.execute(sql)
            columns = [column[0] for column in result.description or []]
            found[name] = [dict(zip(columns, row, strict=True)) for row in result.fetchall()]
        return found
