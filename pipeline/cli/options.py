"""Options, error messages and settings that all commands share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from excise.config import Settings, load
from excise.errors import ConfigError, ExciseError
from excise.pipeline.exit_codes import FAILED, INTERRUPTED, OK, USAGE
from excise.types import StatementStyle

if TYPE_CHECKING:
    from excise.datasets.taskset import TaskSet

stderr = Console(stderr=True, width=None if sys.stderr.isatty() else 160, markup=False, emoji=False, highlight=False)

Config = Annotated[list[Path] | None, typer.Option("--config", "-c", help="TOML file with settings; repeatable.")]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="A setting as key=value, for example verdict.gold_runs=5.")
]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Folder of the task set, or s3://bucket/folder.")]
AsOf = Annotated[
    str, typer.Option("--as-of", help="An earlier state: number of a snapshot, or a date or time. [default: current]")
]
Cache = Annotated[Path | None, typer.Option("--cache", help="Folder for mirrors, environments and finished stages.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]
ModelWritten = Annotated[
    bool, typer.Option("--model-written", help="Statements that a model wrote, where the set has them in this style.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
Scheduler = Annotated[str | None, typer.Option(help="Address of a Dask scheduler, tcp://host:8786; else a local one.")]
Style = Annotated[StatementStyle, typer.Option(help="Style of the statements.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print the log of the run on stderr as well.")]
Workers = Annotated[int | None, typer.Option(help="Local worker processes; default: one per core.")]


def print_message(text: str, style: str = "") -> None:
    """Print a message for users on stderr, without markup and without inserted line breaks."""
    stderr.print(text, style=style, soft_wrap=True)


@contextmanager
def exit_codes_for_errors() -> Iterator[None]:
    """Turn errors of excise and of the file system into a message and an exit code instead of a traceback."""
    try:
        yield
    except ExciseError as error:
        print_message(f"excise: {error}", "red")
        by_the_caller = isinstance(error, ConfigError) or error.reason == "unknown_id"
        raise typer.Exit(USAGE if by_the_caller else FAILED) from None
    except KeyboardInterrupt:
        print_message("excise: interrupted.", "yellow")
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        sys.stderr.close()
        raise typer.Exit(OK) from None
    except OSError as error:
        where = " to ".join(str(path) for path in (error.filename, error.filename2) if path)
        text = f"{where}: {error.strerror}" if where else str(error)
        advice = "Is it there, is it yours to read and write, and is there room on the disk?"
        print_message(f"excise: {text}. {advice}", "red")
        raise typer.Exit(FAILED) from None


def settings_of(config: list[Path] | None, set_: list[str] | None, as_of: str = "", **direct: Any) -> Settings:
    """Settings from files, environment and options; ``limit`` as an option applies to every source.

    ``out`` is a folder: of a set in an object store, the working copy, with the state ``as_of`` in it.
    """
    settings = load(config or [], set_ or [], **direct)
    if str(settings.out).startswith("s3:/"):
        from excise.datasets.storage.working_copy import local_folder

        settings = settings.model_copy(update={"out": local_folder(settings.out, settings.cache, as_of)})
    if direct.get("limit") is None:
        return settings
    return settings.model_copy(update={"sources": tuple(replace(source, limit=None) for source in settings.sources)})


def chosen_ids(taskset: TaskSet, named: list[str] | None, every: bool, if_none: str) -> list[str]:
    """Return the ids that a command names, or all of the set. Raises :class:`ConfigError` (``if_none``) without any."""
    ids = list(taskset.ids()) if every else list(named or ())
    if not ids:
        raise ConfigError("The set has no tasks." if every else if_none)
    return ids


def require_model(settings: Settings) -> None:
    """Raise :class:`ConfigError` if the settings want a model's attempts, proposals or statements and name no model."""
    for name in ("solve_attempts", "propose_features", "write_statements"):
        if getattr(settings.model, name) and not settings.model.is_configured:
            raise ConfigError(f"model.{name} needs a model: set model.base_url and model.model, too.")


def require_sandbox(settings: Settings) -> None:
    """Raise :class:`ConfigError` with advice if the chosen sandbox cannot be used on this machine."""
    from excise.envs.sandboxes import get_sandbox

    can = get_sandbox(settings.sandbox, lenient=settings.lenient_sandbox, docker=settings.docker).capabilities()
    if not can.available:
        raise ConfigError(
            f"The sandbox {settings.sandbox} cannot be used here: {can.detail} {can.advice} See `excise doctor`."
        )
