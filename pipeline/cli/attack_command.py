"""``excise attack``: runs every known attack on the grader."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from excise.pipeline.cli.options import (
    Cache,
    Config,
    Json,
    Out,
    Set,
    Workers,
    chosen_ids,
    exit_codes_for_errors,
    require_sandbox,
    settings_of,
)
from excise.pipeline.exit_codes import FAILED, OK
from excise.types import to_dict

ATTACK_CODES = "Exit code: 0 no attack succeeded and every honest solution passed; 1 otherwise; 2 usage."


def attack(
    instance_id: Annotated[list[str] | None, typer.Argument(help="Tasks to attack.")] = None,
    out: Out = None,
    every: Annotated[bool, typer.Option("--all", help="All tasks of the set.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="Only this attack; repeatable.")] = None,
    config: Config = None,
    set_: Set = None,
    cache: Cache = None,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Attack the grader on tasks of a set with every known way to a reward without a solution."""
    from excise.datasets.taskset import TaskSet
    from excise.pipeline.services.attack_suite import attack_tasks, summary
    from excise.verifiers.attacks.all_attacks import named

    with exit_codes_for_errors():
        settings = settings_of(config, set_, out=out, cache=cache, workers=workers)
        taskset = TaskSet.open(settings.out)
        ids = chosen_ids(taskset, instance_id, every, "Name the tasks to attack, or say --all.")
        named(only)  # raises for unknown names
        require_sandbox(settings)
        results = attack_tasks(settings, taskset, ids, only, lambda text: None if as_json else print(text, flush=True))
        total = summary(results)
        print(json.dumps({**total, "results": [to_dict(r) for r in results]}, indent=2) if as_json else total["text"])
        raise typer.Exit(OK if total["ok"] else FAILED)
