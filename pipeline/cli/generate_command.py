"""``excise generate``: tasks from repositories. Parts of its output are shared with ``excise refresh``."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from excise.config import Settings, specs_in, with_sources
from excise.errors import ConfigError, ExciseError
from excise.pipeline.cli.options import (
    Cache,
    Config,
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
    require_sandbox,
    settings_of,
    stderr,
)
from excise.pipeline.exit_codes import FAILED, INTERRUPTED, OK, PARTIAL
from excise.types import to_dict

if TYPE_CHECKING:
    from excise.datasets.queries.refreshes import RefreshReport
    from excise.pipeline.run.graph import RunResult
    from excise.pipeline.run.progress import Progress
    from excise.pipeline.run.source_state import SourceState

GENERATE_CODES = "Exit code: 0 every source gave tasks; 3 some gave none; 1 none gave any; 2 usage; 130 interrupted."


def generate(
    sources: Annotated[
        list[str] | None,
        typer.Argument(help="pypi:name, debsrc:name, npm:name, crate:name, a git URL or path, a folder, an archive."),
    ] = None,
    from_: Annotated[
        list[Path] | None, typer.Option("--from", help="File with sources, one a line, # for comments; repeatable.")
    ] = None,
    out: Out = None,
    config: Config = None,
    set_: Set = None,
    limit: Annotated[
        int | None, typer.Option(help="At most this many tasks per source, whatever the files say.")
    ] = None,
    total: Annotated[int | None, typer.Option(help="End when all sources together have given this many tasks.")] = None,
    request: Annotated[
        Path | None, typer.Option(help="JSON file that says which rungs are wanted; sources: those of the set.")
    ] = None,
    scheduler: Scheduler = None,
    workers: Workers = None,
    cache: Cache = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Resolve the sources and print what would be done.")
    ] = False,
    print_config: Annotated[bool, typer.Option("--print-config", help="Print the settings as JSON and stop.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Make tasks from repositories. An interrupted run continues when the command is run again."""
    with exit_codes_for_errors():
        direct: dict[str, Any] = {
            "out": out,
            "limit": limit,
            "total": total,
            "scheduler": scheduler,
            "workers": workers,
            "cache": cache,
        }
        settings = settings_of(config, set_, **direct)
        require_model(settings)
        specs = [*(sources or ()), *(spec for path in from_ or () for spec in specs_in(path))]
        settings, selection = with_sources(settings, specs), None
        if request is not None:
            from excise.pipeline.services.request_selection import prepare_request, read_request

            settings, selection = prepare_request(settings, read_request(request))
        if print_config:
            print(settings.model_dump_json(indent=2))
            return
        if not settings.sources:
            raise ConfigError(
                "No sources. Name some (pypi:boltons, a git URL, a folder), or give --config with [[sources]]."
            )
        if dry_run:
            raise typer.Exit(_dry_run(settings, as_json))
        from excise.pipeline.run.graph import run

        output = RunOutput(as_json, quiet, verbose)
        with open_progress(settings, output) as (progress, _):
            result = run(settings, progress, selection=selection, notify=progress.note)
        raise typer.Exit(show_run(settings, output, result))


class RunOutput:
    """The output options of a run."""

    def __init__(self, as_json: bool, quiet: bool, verbose: bool) -> None:
        self.as_json, self.silent, self.verbose = as_json, quiet or as_json, verbose


@contextmanager
def open_progress(settings: Settings, output: RunOutput) -> Iterator[tuple[Progress, Path]]:
    """Prepare a run: check the sandbox, name the limits, open the log. Yields the listener and the file of the log."""
    from excise.pipeline.run.progress import Progress, limits_text
    from excise.system.run_log import run_log

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a service that is stopped publishes what is done, too
    if not settings.scheduler or settings.artifacts == "shared":
        require_sandbox(settings)  # workers of a cluster say themselves what they have
    if not output.silent and limits_text(settings):
        print_message(limits_text(settings))
    with (
        run_log(settings.out, verbose=output.verbose) as log,
        Progress(stderr, quiet=output.silent) as progress,
    ):
        yield progress, log


def show_run(settings: Settings, output: RunOutput, result: RunResult, report: RefreshReport | None = None) -> int:
    """Print the result of a run, or of a refresh with its ``report``; return the exit code."""
    from excise.pipeline.run.progress import funnel, near_duplicates_text, result_text

    if output.as_json:
        body = {
            "out": str(settings.out),
            "tasks": sum(state.num_tasks for state in result.states),
            "interrupted": result.interrupted,
            "report": to_dict(result.report),
            "near_duplicates": [to_dict(found) for found in result.near_duplicates],
            "sources": [to_dict(state.report()) | {"spec": state.name} for state in result.states],
        }
        print(json.dumps(body | ({"refresh": to_dict(report)} if report else {}), indent=2))
    elif not output.silent:
        stderr.print(funnel(result.states))
        print(result_text(result.states, settings.out, result.report if report else None))
        if result.near_duplicates:
            print(near_duplicates_text(result.near_duplicates))
    else:
        for state in result.states:
            if (failure := state.failure) is not None:
                print_message(f"{state.name}: refused at {failure.stage}: {failure.reason}: {failure.detail}")
    if result.interrupted and not output.silent:
        print_message("Interrupted. The same command goes on from here.")
    return INTERRUPTED if result.interrupted else run_exit_code(result.states)


def run_exit_code(states: Sequence[SourceState]) -> int:
    """Return the exit code of a run: whether all, some or none of the sources gave tasks."""
    return _exit_code_of_all([state.num_tasks > 0 for state in states])


def _exit_code_of_all(succeeded: Sequence[bool]) -> int:
    return OK if all(succeeded) else PARTIAL if any(succeeded) else FAILED


def _dry_run(settings: Settings, as_json: bool) -> int:
    from excise.extractors.sources import resolve_source
    from excise.pipeline.run.graph import unique

    rows: list[dict[str, str]] = []
    for spec in unique(settings.sources):
        try:
            rows.append(
                {"spec": spec.name, "pinned": resolve_source(spec).resolve(spec, settings.cache), "problem": ""}
            )
        except (ExciseError, OSError) as error:
            rows.append({"spec": spec.name, "pinned": "", "problem": str(error)})
    if as_json:
        print(json.dumps(rows, indent=2))
    else:
        for row in rows:
            print(f"{row['spec']}: {row['pinned'] or row['problem']}")
    return _exit_code_of_all([not row["problem"] for row in rows])
