"""``excise audit``: reviews trajectories and quarantines leaked tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from excise.config import Settings
from excise.errors import ConfigError
from excise.pipeline.cli.options import Cache, Config, Json, Set, Workers, exit_codes_for_errors, settings_of
from excise.pipeline.exit_codes import FAILED, OK
from excise.types import to_dict

if TYPE_CHECKING:
    from excise.pipeline.services.audit import Judge


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
    """Review trajectories; quarantine the tasks whose code leaked, and related tasks with the same leak."""
    from dataclasses import replace

    from excise.datasets.storage.store import Store
    from excise.datasets.taskset import TaskSet
    from excise.pipeline.services.audit import audit as review_all
    from excise.verifiers.monitor.findings import Review
    from excise.verifiers.monitor.trajectory_readers import read_trajectories

    with exit_codes_for_errors():
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
    from excise.pipeline.services.audit import model_judge

    if not settings.model.is_configured:
        raise ConfigError("--judge needs a model: set model.base_url and model.model.")
    return model_judge(settings)
