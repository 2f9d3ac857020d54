"""The command line. Data goes to stdout, everything else to stderr.

Exit codes: 0 done; 1 failed (no source gave a task, a task did not verify, a file cannot be read or written);
2 usage or configuration; 3 partly done (some sources gave no task); 4 not graded (the infrastructure failed);
130 interrupted.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

import excise
from excise.config import Settings, load, with_sources
from excise.errors import ConfigError, ExciseError
from excise.pipeline.cli.audit_command import audit, recover
from excise.pipeline.cli.env_command import env
from excise.pipeline.cli.eval_command import EVAL_CODES, evaluate
from excise.pipeline.cli.grade_command import ATTACK_CODES, GRADE_CODES, attack, grade
from excise.pipeline.cli.options import (
    FAILED,
    INTERRUPTED,
    OK,
    PARTIAL,
    Cache,
    Config,
    Json,
    Out,
    Quiet,
    Scheduler,
    Set,
    Workers,
    chosen_ids,
    errors,
    guarded,
    require_sandbox,
    settings_of,
    tell,
)
from excise.pipeline.cli.train_command import TRAIN_CODES, train
from excise.types import to_dict

if TYPE_CHECKING:
    from excise.pipeline.run.selection import Plan
    from excise.pipeline.run.source_state import SourceState

CODES = "Exit code: 0 every source gave tasks; 3 some gave none; 1 none gave any; 2 usage; 130 interrupted."

app = typer.Typer(
    help="Turn well-tested repositories into verified coding tasks by deleting features.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


class Format(StrEnum):
    """How ``excise query`` prints."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"


@app.command(epilog=CODES)
def generate(
    sources: Annotated[
        list[str] | None, typer.Argument(help="pypi:name, a git URL or path, a folder, an archive.")
    ] = None,
    out: Out = None,
    config: Config = None,
    set_: Set = None,
    limit: Annotated[
        int | None, typer.Option(help="At most this many tasks per source, whatever the files say.")
    ] = None,
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
) -> None:
    """Make tasks from repositories. Run it again to go on where it stopped."""
    with guarded():
        settings = settings_of(config, set_, out=out, limit=limit, scheduler=scheduler, workers=workers, cache=cache)
        settings, plan = with_sources(settings, sources or []), None
        if request is not None:
            from excise.pipeline.services.request_selection import prepare_request, read_request

            settings, plan = prepare_request(settings, read_request(request))
        if print_config:
            print(settings.model_dump_json(indent=2))
            return
        if not settings.sources:
            raise ConfigError(
                "No sources. Name some (pypi:boltons, a git URL, a folder), or give --config with [[sources]]."
            )
        if dry_run:
            raise typer.Exit(_dry_run(settings, as_json))
        raise typer.Exit(_run(settings, as_json=as_json, quiet=quiet, refresh=False, plan=plan))


@app.command(epilog=CODES)
def refresh(
    config: Annotated[Path, typer.Argument(help="TOML file with sources and settings.")],
    out: Out = None,
    set_: Set = None,
    scheduler: Scheduler = None,
    workers: Workers = None,
    cache: Cache = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The same job, incremental: redo what changed, publish once at the end, report what came, changed and went."""
    with guarded():
        settings = settings_of([config], set_, out=out, scheduler=scheduler, workers=workers, cache=cache)
        if not settings.sources:
            raise ConfigError(f"{config}: no [[sources]].")
        raise typer.Exit(_run(settings, as_json=as_json, quiet=quiet, refresh=True))


def _run(settings: Settings, *, as_json: bool, quiet: bool, refresh: bool, plan: Plan | None = None) -> int:
    from excise.pipeline.run.graph import run
    from excise.pipeline.run.progress import Progress, caps, ending, funnel

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a service that is stopped keeps what is done, too
    require_sandbox(settings)
    if not quiet and not as_json and caps(settings):
        tell(caps(settings))
    with Progress(errors, quiet=quiet or as_json) as progress:
        result = run(settings, progress, refresh=refresh, plan=plan)
    if as_json:
        body = {
            "out": str(settings.out),
            "tasks": sum(len(state.tasks) for state in result.states),
            "interrupted": result.interrupted,
            "report": to_dict(result.report),
            "sources": [to_dict(state.report()) | {"spec": state.name} for state in result.states],
        }
        print(json.dumps(body, indent=2))
    elif not quiet:
        errors.print(funnel(result.states))
        print(ending(result.states, settings.out, result.report if refresh else None))
    if result.interrupted and not quiet and not as_json:
        tell("Interrupted. The same command goes on from here.")
    return INTERRUPTED if result.interrupted else code_of(result.states)


def code_of(states: Sequence[SourceState]) -> int:
    """Exit code of a run: every source gave tasks, some did, none did. Why a source gave none makes no difference."""
    return _share([bool(state.tasks) for state in states])


def _share(good: Sequence[bool]) -> int:
    return OK if all(good) else PARTIAL if any(good) else FAILED


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
    return _share([not row["problem"] for row in rows])


@app.command()
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
    config: Config = None,
    set_: Set = None,
    scheduler: Scheduler = None,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Prove tasks again from the set's files and the packages of its lock; says which gate failed if one does."""
    import tempfile

    from excise.datasets.taskset import TaskSet
    from excise.pipeline.services.verify import Verified, verify_tasks

    with guarded():
        settings = settings_of(config, set_, out=out, scheduler=scheduler, workers=workers)
        taskset = TaskSet.open(settings.out)
        ids = chosen_ids(taskset, instance_id, every, "Name the tasks to verify, or say --all.")
        require_sandbox(settings)

        def report(result: Verified) -> None:
            if not as_json:
                said = f"FAILED {result.gate}: {result.detail}"
                if result.ok:
                    said = f"ok ({result.detail})" if result.detail else "ok"
                print(f"{result.instance_id}: {said}", flush=True)

        with tempfile.TemporaryDirectory(prefix="excise-verify-") as scratch:
            folder = settings.cache if reuse else work or Path(scratch)
            results = verify_tasks(settings.model_copy(update={"cache": folder.absolute()}), taskset, ids, report)
        good = sum(result.ok for result in results)
        if as_json:
            print(json.dumps([to_dict(result) for result in results], indent=2))
        else:
            print(f"{good} of {len(results)} tasks verified.")
        raise typer.Exit(OK if good == len(results) else FAILED)


@app.command()
def query(
    sql: Annotated[
        str,
        typer.Argument(
            help="SQL over tasks, verdicts, rejections, repos, environments, quarantines, funnel, gates, rollouts."
        ),
    ],
    out: Out = None,
    format_: Annotated[Format, typer.Option("--format", "-f", help="How to print.")] = Format.TABLE,
    as_json: Json = False,
    config: Config = None,
) -> None:
    """Ask the task set a question in DuckDB's SQL."""
    from excise.datasets.catalogue import query as ask

    with guarded():
        settings = settings_of(config, None, out=out)
        width = Console().width if sys.stdout.isatty() else None
        print(ask(settings.out, sql, Format.JSON if as_json else format_, width=width).rstrip("\n"))


@app.command()
def show(
    instance_id: Annotated[str, typer.Argument(help="Task.")],
    out: Out = None,
    all_tests: Annotated[bool, typer.Option("--all-tests", help="List every test.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="As Markdown, for reports.")] = False,
    as_json: Json = False,
    config: Config = None,
) -> None:
    """Print a task: statement, diff, tests, certificate."""
    from excise.datasets.show import render
    from excise.datasets.taskset import TaskSet
    from excise.verifiers.gates.all_gates import CLAIMS

    with guarded():
        settings = settings_of(config, None, out=out)
        options = {"as_markdown": as_markdown, "all_tests": all_tests}
        render(TaskSet.open(settings.out), instance_id, Console(), as_json, claims=CLAIMS, **options)


@app.command()
def checkout(
    instance_id: Annotated[str, typer.Argument(help="Task.")],
    into: Annotated[Path, typer.Argument(help="New folder for the tree.")],
    out: Out = None,
    solved: Annotated[bool, typer.Option("--solved", help="With the gold patch and the hidden tests.")] = False,
    config: Config = None,
) -> None:
    """Write the sources that an agent gets into a folder, with a fresh git history of one commit.

    Files that an installation makes (metadata, compiled extensions, version files) are not among them.
    """
    from excise.datasets.taskset import TaskSet
    from excise.pipeline.services.checkout import write_tree

    with guarded():
        settings = settings_of(config, None, out=out)
        write_tree(TaskSet.open(settings.out), instance_id, into, solved=solved)


@app.command()
def export(
    name: Annotated[str, typer.Argument(help="Format: jsonl.")],
    into: Annotated[Path, typer.Argument(help="Folder to write.")],
    out: Out = None,
    repo: Annotated[str | None, typer.Option(help="Only this project.")] = None,
    config: Config = None,
) -> None:
    """Write the tasks in another tool's format."""
    from excise.datasets.exports import export as write
    from excise.datasets.taskset import TaskSet

    with guarded():
        settings = settings_of(config, None, out=out)
        count = write(TaskSet.open(settings.out), name, into, repo)
        print(f"{count} tasks written to {into}.")


@app.command()
def doctor(as_json: Json = False) -> None:
    """Say what this machine can do, and how to mend what it cannot."""
    from excise.pipeline.services.doctor import examine

    with guarded():
        checks = examine()
        if as_json:
            print(json.dumps([to_dict(check) for check in checks], indent=2))
        else:
            for check in checks:
                mark = "ok  " if check.ok else "no  " if check.needed else "-   "
                print(f"{mark}{check.name}: {check.detail}" + (f"\n    {check.advice}" if check.advice else ""))
        raise typer.Exit(OK if all(check.ok or not check.needed for check in checks) else FAILED)


@app.command()
def schedule(
    config: Annotated[Path, typer.Argument(help="TOML file that `excise refresh` is to run with.")],
    when: Annotated[str, typer.Option(help="03:30, 'Sun 03:30', hourly, daily or weekly.")] = "03:30",
    install: Annotated[bool, typer.Option("--install", help="Install it; otherwise it is only printed.")] = False,
    uninstall: Annotated[bool, typer.Option("--uninstall", help="Take it away again.")] = False,
) -> None:
    """Print, or install, a nightly refresh as by hand in this folder: a systemd timer, else a line for cron."""
    from excise.pipeline.services import refresh_schedule as schedules

    with guarded():
        if uninstall:
            print(schedules.uninstall(config))
            return
        settings = load([config])
        if not settings.sources:
            raise ConfigError(f"{config}: no [[sources]].")
        program, folder = schedules.this_program(), schedules.folder_of(config, settings)
        print((schedules.install if install else schedules.shown)(config, when, program, folder=folder))
        tell(f"It publishes to {settings.out}.")
        if left_out := schedules.passwords(key=settings.model.api_key_env):
            tell(
                f"Not taken along, since they hold passwords that others could read there: {', '.join(left_out)}. "
                "Set them for the service yourself (systemd: EnvironmentFile= in a drop-in; cron: at the line's start)."
            )


app.command()(env)
app.command()(recover)
app.command()(audit)
app.command(epilog=GRADE_CODES)(grade)
app.command(epilog=ATTACK_CODES)(attack)
app.command(epilog=TRAIN_CODES)(train)
app.command("eval", epilog=EVAL_CODES)(evaluate)


def _version(value: bool) -> None:
    if value:
        print(excise.__version__)
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Turn well-tested repositories into verified coding tasks by deleting features."""


def main() -> None:
    """Entry point."""
    run: Callable[[], None] = app
    run()
