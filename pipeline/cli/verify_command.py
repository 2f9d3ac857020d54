"""``excise verify``: proves tasks again from the files of their set."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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

if TYPE_CHECKING:
    from excise.pipeline.services.verify import VerifyResult


def verify(
    instance_id: Annotated[list[str] | None, typer.Argument(help="Tasks to prove again.")] = None,
    out: Out = None,
    every: Annotated[bool, typer.Option("--all", help="All tasks of the set.")] = False,
    work: Annotated[
        Path | None, typer.Option(help="Work directory; empty: prove from nothing. Default: a new one.")
    ] = None,
    reuse: Annotated[
        bool, typer.Option("--reuse-environments", help="Use the cache's environments and baselines.")
    ] = False,
    cache: Cache = None,
    config: Config = None,
    set_: Set = None,
    scheduler: Scheduler = None,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Prove tasks again from the set's files and the packages of its lock; report the gate that failed, if any."""
    from excise.datasets.taskset import TaskSet
    from excise.pipeline.services.verify import verify_tasks

    with exit_codes_for_errors():
        settings = settings_of(config, set_, out=out, scheduler=scheduler, workers=workers, cache=cache)
        taskset = TaskSet.open(settings.out)
        ids = chosen_ids(taskset, instance_id, every, "Name the tasks to verify, or say --all.")
        require_sandbox(settings)

        def report(result: VerifyResult) -> None:
            if not as_json:
                text = f"FAILED {result.gate}: {result.detail}"
                if result.ok:
                    text = f"ok ({result.detail})" if result.detail else "ok"
                print(f"{result.instance_id}: {text}", flush=True)

        with tempfile.TemporaryDirectory(prefix="excise-verify-") as scratch:
            folder = settings.cache if reuse else work or Path(scratch)
            results = verify_tasks(settings.model_copy(update={"cache": folder.absolute()}), taskset, ids, report)
        good = sum(result.ok for result in results)
        if as_json:
            print(json.dumps([to_dict(result) for result in results], indent=2))
        else:
            print(f"{good} of {len(results)} tasks verified.")
        raise typer.Exit(OK if good == len(results) else FAILED)
