"""Which columns of which files the viewer keeps in memory: all that lists, filters and sums need, and no long text."""

from __future__ import annotations

from excise.datasets.queries.imports import IMPORTS
from excise.datasets.queries.rollouts import ROLLOUTS
from excise.datasets.schema import TABLES, Column, Table
from excise.datasets.viewer.file_table import Shape


def _same(*names: str) -> dict[str, str]:
    return {name: f'"{name}"' for name in names}


TASKS = Shape(
    name="task_rows",
    source=TABLES["tasks"],
    select=_same(
        "instance_id", "repo", "version", "kind", "tier", "loc", "num_files", "num_symbols", "fan_in", "complexity",
        "num_f2p", "num_p2p", "deleter", "visibility", "feature_id", "env_id", "created_at", "cpu_s", "wall_s",
        "removed", "certificate_id",
    )
    | {"haystack": "lower(concat_ws(' ', instance_id, repo, array_to_string(removed, ' ')))"},
)  # fmt: skip
REJECTIONS = Shape(
    name="rejection_rows",
    source=TABLES["rejections"],
    select=_same("repo", "stage", "subject", "reason", "kind", "worker_outcome")
    | {
        "detail": "left(detail, 400)",
        "haystack": "lower(concat_ws(' ', subject, repo, reason, array_to_string(symbols, ' '), left(detail, 400)))",
    },
)
REPOS = Shape(
    name="repo_rows",
    source=TABLES["repos"],
    select=_same(
        "repo", "tree", "version", "license", "source", "status", "num_tests", "num_passing", "num_flaky",
        "num_symbols", "num_covered", "num_features", "num_candidates", "num_valid", "not_proposed", "cpu_s", "wall_s",
    )
    | {"detail": "left(detail, 400)"},
)  # fmt: skip
QUARANTINES = Shape(
    name="quarantine_rows",
    source=TABLES["quarantines"],
    select=_same("instance_id", "leak_id", "label", "level", "gate", "reason") | {"detail": "left(detail, 400)"},
)
GATES = Shape(
    name="gate_sums",
    source=TABLES["verdicts"],
    select={
        "gate": "gate",
        "num_runs": "count(*)",
        "num_passed": "count(*) FILTER (outcome = 'PASSED')",
        "num_failed": "count(*) FILTER (outcome = 'FAILED')",
        "num_undecided": "count(*) FILTER (outcome = 'UNDECIDED')",
        "cpu_s": "sum(cpu_s)",
        "wall_s": "sum(wall_s)",
    },
    group_by="gate",
)

IMPORT_ROWS = Shape(
    name="import_rows",
    source=IMPORTS,
    select=_same(
        "imported_set", "format", "place", "instance_id", "repo", "status", "reason", "num_f2p", "num_f2p_confirmed",
        "num_p2p", "num_p2p_confirmed", "num_attacks", "wall_s",
    )
    | {
        "failed": "[name for name in map_keys(checks) if not starts_with(checks[name], 'passed')]",
        "num_on_log": "len(attacks_on_log)",
        "num_on_excise": "len(attacks_on_excise)",
        "haystack": "lower(concat_ws(' ', place, instance_id, repo, reason, left(detail, 400)))",
    },
)  # fmt: skip

_ATTEMPT_KINDS = {
    "run": "string", "attempt_id": "string", "instance_id": "string", "number": "int", "agent": "string",
    "model": "string", "style": "string", "solved": "bool", "reward": "float", "flags": "list<string>",
    "reasons": "list<string>", "ending": "string", "steps": "int", "completion_tokens": "int", "cost": "float",
    "wall_s": "float",
}  # fmt: skip
ATTEMPTS = Shape(
    name="attempt_rows",
    source=Table(
        name="attempts",
        comment="Graded attempts of agents.",
        columns=tuple(Column(name=name, kind=kind) for name, kind in _ATTEMPT_KINDS.items()),
        sort_by=("run", "attempt_id"),
    ),
    select=_same(
        "run", "instance_id", "reward", "flags", "ending", "wall_s", "cost", "agent", "model", "style", "solved"
    )
    | {
        "try_id": "attempt_id",
        "step": "number",
        "hints": "[]::VARCHAR[]",
        "turns": "steps",
        "tokens": "completion_tokens",
    },
)
ROLLOUT_ROWS = Shape(
    name="rollout_rows",
    source=ROLLOUTS,
    select=_same("run", "step", "instance_id", "tier", "reward", "flags", "hints", "ending", "wall_s", "counts")
    | {
        "try_id": "rollout_id",
        "group_id": "group_id",
        "turns": "num_turns",
        "tokens": "thinking_tokens + call_tokens + final_tokens",
        "solved": "task_reward >= 1",
    },
)

SCORED = """\
CREATE OR REPLACE VIEW attempts AS
SELECT run, agent, model, style, instance_id, solved, tokens AS completion_tokens, cost, wall_s
FROM attempt_rows QUALIFY row_number() OVER (PARTITION BY run, try_id ORDER BY file) = 1;
"""
"""Attempts as the views of their scores read them: a row that is also in a merged file counts once."""

TRIES = """\
CREATE OR REPLACE VIEW tries AS
SELECT 'rollout' AS origin, run, try_id, instance_id, step, reward, solved, flags, hints, ending, turns, tokens,
       wall_s, NULL::DOUBLE AS cost, 'policy' AS agent, tier, counts, file, row FROM rollout_rows
UNION ALL
SELECT 'attempt', run, try_id, instance_id, step, reward, solved, flags, hints, ending, turns, tokens,
       wall_s, cost, agent, NULL, NULL, file, row FROM attempt_rows
QUALIFY row_number() OVER (PARTITION BY run, try_id ORDER BY file) = 1
"""
"""Rollouts of training runs and attempts of ``excise solve`` in one form."""
