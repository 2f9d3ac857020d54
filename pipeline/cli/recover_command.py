"""``excise recover``: runs the recovery agent on tasks."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from excise.pipeline.cli.options import (
    Cache,
    Config,
    Json,
    Out,
    Scheduler,
    Set,
    Workers,
    chosen_ids,
    exit_codes_for_errors,
    require_sandbox,
    settings_of,
)
from excise.pipeline.exit_codes import FAILED, OK
from excise.types import to_dict


def recover(
    instance_id: Annotated[list[str] | None, typer.Argument(help="Tasks to attack.")] = None,
    out: Out = None,
    every: Annotated[bool, typer.Option("--all", help="All tasks of the set.")] = False,
    thorough: Annotated[bool, typer.Option("--thorough", help="Read the system's files too; minutes a task.")] = False,
    config: Config = None,
    set_: Set = None,
    scheduler: Scheduler = None,
    workers: Workers = None,
    cache: Cache = None,
    as_json: Json = False,
) -> None:
    """Run the recovery agent, which tries to get deleted code back in the agent's sandbox; report rates by strategy."""
    from excise.datasets.taskset import TaskSet
    from excise.pipeline.services.recovery_attacks import RecoveryResult, rates_of, recover_from_tasks

    with exit_codes_for_errors():
        settings = settings_of(config, set_, out=out, scheduler=scheduler, workers=workers, cache=cache)
        require_sandbox(settings)
        taskset = TaskSet.open(settings.out)
        ids = chosen_ids(taskset, instance_id, every, f"Name tasks of {settings.out}, or say --all.")

        def report(answer: RecoveryResult) -> None:
            if not as_json:
                found = (
                    f"RECOVERED {answer.share:.0%} from {', '.join(answer.where)}" if answer.recovered else "nothing"
                )
                print(f"{answer.instance_id}: {found if answer.tried else 'not tried: ' + answer.problem}", flush=True)

        answers = recover_from_tasks(settings, taskset, ids, report, thorough=thorough)
        rates = rates_of(answers)
        bad = sum(answer.recovered for answer in answers)
        if as_json:
            body = {"tasks": [to_dict(answer) for answer in answers], "strategies": [to_dict(rate) for rate in rates]}
            print(json.dumps(body, indent=2))
        else:
            for rate in rates:
                print(f"{rate.strategy:<18} {rate.num_recovered:>4} of {rate.num_tasks}  {rate.looks_at}")
            print(f"{bad} of {len(answers)} tasks gave something back.")
        raise typer.Exit(OK if not bad and all(answer.tried for answer in answers) else FAILED)
