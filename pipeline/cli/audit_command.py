"""The commands that look for leaks in a finished set: ``recover`` attacks its tasks, ``audit`` reads trajectories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from excise.config import Settings
from excise.errors import ConfigError
from excise.pipeline.cli.options import (
    FAILED,
    OK,
    Cache,
    Config,
    Json,
    Out,
    Scheduler,
    Set,
    Workers,
    chosen_ids,
    guarded,
    require_sandbox,
    settings_of,
)
from excise.types import to_dict

if TYPE_CHECKING:
    from excise.pipeline.services.audit import Judge


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
    """Let a scripted adversary try to get the deleted code back from inside the agent's sandbox; rate per strategy."""
    from excise.datasets.taskset import TaskSet
    from excise.pipeline.services.recovery_attacks import Attacked, attack_tasks, rates_of

    with guarded():
        settings = settings_of(config, set_, out=out, scheduler=scheduler, workers=workers, cache=cache)
        require_sandbox(settings)
        taskset = TaskSet.open(settings.out)
        ids = chosen_ids(taskset, instance_id, every, f"Name tasks of {settings.out}, or say --all.")

        def report(answer: Attacked) -> None:
            if not as_json:
                found = (
                    f"RECOVERED {answer.share:.0%} from {', '.join(answer.where)}" if answer.recovered else "nothing"
                )
                print(f"{answer.instance_id}: {found if answer.tried else 'not tried: ' + answer.problem}", flush=True)

        answers = attack_tasks(settings, taskset, ids, report, thorough=thorough)
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


def audit(
    taskset: Annotated[Path, typer.Argument(metavar="SET", help="Folder of the task set.")],
    trajectories: Annotated[
        list[Path] | None,
        typer.Option("--trajectories", "-t", help="File or folder: excise events, transcripts, mini-swe-agent, ATIF."),
    ] = None,
    task: Annotated[str, typer.Option(help="The task of trajectories whose file does not name one.")] = "",
    release: Annotated[list[str] | None, typer.Option(help="End the quarantine of this task; repeatable.")] = None,
    judge: Annotated[bool, typer.Option("--judge", help="Ask the model of [model] for its opinion, too.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Put nothing into quarantine.")] = False,
    config: Config = None,
    set_: Set = None,
    workers: Workers = None,
    cache: Cache = None,
    as_json: Json = False,
) -> None:
    """Review trajectories; put tasks whose code leaked, and those beside them that are hit, into quarantine."""
    from dataclasses import replace

    from excise.datasets.store import Store
    from excise.datasets.taskset import TaskSet
    from excise.pipeline.services.audit import audit as review_all
    from excise.verifiers.monitor.findings import Review
    from excise.verifiers.monitor.trajectory_readers import read_trajectories

    with guarded():
        settings = settings_of(config, set_, out=taskset, workers=workers, cache=cache)
        opened = TaskSet.open(settings.out)
        if release:
            with Store(settings.out).writer() as writer:
                for instance_id in release:
                    writer.release(instance_id)
                writer.publish()
            return
        if not trajectories:
            raise ConfigError("Name files with trajectories: --trajectories FILE.")
        read = [found for path in trajectories for found in read_trajectories(path)]
        read = [
            found if found.instance_id in opened.ids() or not task else replace(found, instance_id=task)
            for found in read
        ]

        def report(answer: object) -> None:
            if isinstance(answer, Review) and not as_json:
                print(f"{answer.instance_id}: {answer.label} ({answer.severity.name.lower()})", flush=True)
                for finding in answer.findings:
                    steps = f" [step {', '.join(map(str, finding.steps))}]" if finding.steps else ""
                    print(f"  {finding.severity.name.lower():<7}{finding.label}: {finding.detail}{steps}")

        opinion = _judge(settings) if judge else None
        done = review_all(settings, opened, read, judge=opinion, dry_run=dry_run, listener=report)
        if as_json:
            print(json.dumps(to_dict(done), indent=2))
        else:
            for row in done.quarantined:
                print(f"{'would be ' if dry_run else ''}quarantined: {row.instance_id}: {row.level} {row.detail}")
            for answer in done.rescanned:
                if answer.problem:
                    print(f"not rescanned: {answer.instance_id}: {answer.problem}")
            if done.unknown:
                print(f"Not in this set: {', '.join(name or '(no name)' for name in done.unknown)}. See --task.")
            print(
                f"{len(done.reviews)} trajectories, {len(done.leaks)} leaks, {len(done.quarantined)} times quarantine."
            )
        raise typer.Exit(FAILED if done.leaks or not done.reviews else OK)


def _judge(settings: Settings) -> Judge:
    from excise.pipeline.services.opinion import judge_of

    if not settings.model.on:
        raise ConfigError("--judge needs a model: set model.base_url and model.model.")
    return judge_of(settings)
