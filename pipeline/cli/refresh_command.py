"""``excise refresh``: updates a task set from a fixed list of sources, and reports what changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from excise.errors import ConfigError
from excise.pipeline.cli.generate_command import RunOutput, open_progress, show_run
from excise.pipeline.cli.options import (
    Cache,
    Json,
    Out,
    Quiet,
    Scheduler,
    Set,
    Verbose,
    Workers,
    exit_codes_for_errors,
    print_message,
    require_model,
    settings_of,
)

if TYPE_CHECKING:
    from excise.datasets.queries.refreshes import RefreshReport


def refresh(
    config: Annotated[Path, typer.Argument(help="TOML file with sources and settings.")],
    out: Out = None,
    set_: Set = None,
    reverify: Annotated[
        int | None, typer.Option(help="Prove this many published tasks again; those that fail go into quarantine.")
    ] = None,
    report_hook: Annotated[
        str | None,
        typer.Option(help="Command that gets the report as JSON on stdin; $EXCISE_REPORT_TEXT is its text."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Folder that gets the report, too: report.json and report.txt.")
    ] = None,
    scheduler: Scheduler = None,
    workers: Workers = None,
    cache: Cache = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Update a task set: redo what changed, publish once at the end, report added, changed and removed tasks."""
    with exit_codes_for_errors():
        options = {"reverify": reverify, "report_hook": report_hook}
        chosen = {name: value for name, value in options.items() if value is not None}
        settings = settings_of(
            [config], set_, out=out, scheduler=scheduler, workers=workers, cache=cache, refresh=chosen or None
        )
        require_model(settings)
        if not settings.sources:
            raise ConfigError(f"{config}: no [[sources]].")

        from excise.pipeline.services.refresh import refresh as refresh_set

        output = RunOutput(as_json, quiet, verbose)
        with open_progress(settings, output) as (progress, log):
            done = refresh_set(
                settings, progress, log=log, warn=lambda text: print_message(text, "yellow"), copy_to=report
            )
        code = show_run(settings, output, done.run, done.report)
        if not output.silent:
            _show_reverified(done.report)
        raise typer.Exit(code)


def _show_reverified(report: RefreshReport) -> None:
    held = sum(task.outcome == "holds" for task in report.reverified)
    if report.reverified or report.num_not_reverified:
        left = f", no time for {report.num_not_reverified} more" if report.num_not_reverified else ""
        print(f"{held} of {len(report.reverified)} tasks proved again{left}.")
    for task in report.reverified:
        if task.outcome != "holds":
            print_message(f"{task.outcome}: {task.instance_id}: {task.gate} {task.reason}: {task.detail}", "yellow")
