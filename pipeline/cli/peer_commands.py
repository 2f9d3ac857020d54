"""The commands that work with other tools: ``excise export``, ``push``, ``pull`` and ``sandbox``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from excise.pipeline.cli.options import (
    AsOf,
    Cache,
    Config,
    ModelWritten,
    Out,
    Set,
    Style,
    exit_codes_for_errors,
    require_sandbox,
    settings_of,
)
from excise.types import StatementStyle


def export(
    name: Annotated[str, typer.Argument(help="Format; docs/formats.md lists all.")],
    into: Annotated[Path, typer.Argument(help="Folder to write.")],
    out: Out = None,
    as_of: AsOf = "",
    repo: Annotated[str | None, typer.Option(help="Only this project.")] = None,
    style: Style = StatementStyle.SPECIFICATION,
    model_written: ModelWritten = False,
    config: Config = None,
) -> None:
    """Write the tasks in another tool's format; EXPORT.md in the folder says how to use it."""
    from excise.datasets.exports.registry import REPORT
    from excise.datasets.exports.registry import export as write
    from excise.datasets.taskset import TaskSet
    from excise.pipeline.services.export_materials import SetMaterials
    from excise.pipeline.services.statements import StatementChoice, Statements

    with exit_codes_for_errors():
        settings = settings_of(config, None, as_of, out=out)
        taskset = TaskSet.open(settings.out, as_of)
        statements = Statements(taskset, StatementChoice(style=style, model_written=model_written))
        with SetMaterials(taskset, settings) as materials:
            report = write(taskset, name, into, materials, repo=repo, restated=statements.restated)
        print(f"{report.num_tasks} tasks written to {into}; {into / REPORT} says how to use them.")
        if report.not_carried:
            print("Not carried:", *(f"- {text}" for text in report.not_carried), sep="\n")


def sandbox(
    image: Annotated[Path, typer.Argument(help="Folder of an image in an export.")],
    memory_mb: Annotated[int | None, typer.Option(help="Memory limit in MiB.")] = None,
    cache: Cache = None,
    config: Config = None,
    set_: Set = None,
) -> None:
    """Open the sandbox of an exported environment and run the commands on stdin, one JSON object per line.

    Other tools' environment classes call this; see docs/formats.md.
    """
    from excise.pipeline.peers.sandbox_server import opened, serve

    with exit_codes_for_errors():
        settings = settings_of(config, set_, cache=cache)
        require_sandbox(settings)
        with opened(settings, image, memory_mb) as session:
            serve(session, sys.stdin.buffer, sys.stdout.buffer)


def push(
    repo_id: Annotated[str, typer.Argument(help="Dataset on the hub, OWNER/NAME.")],
    out: Out = None,
    private: Annotated[bool, typer.Option("--private", help="Make a new dataset private.")] = False,
    message: Annotated[str, typer.Option(help="Message of the commit.")] = "Task set by excise",
    config: Config = None,
) -> None:
    """Upload the task set to HuggingFace's hub, with a card. HF_TOKEN is the token, HF_ENDPOINT another hub."""
    from excise.datasets.taskset import TaskSet
    from excise.pipeline.services.hub import push as upload

    with exit_codes_for_errors():
        settings = settings_of(config, None, out=out)
        print(upload(TaskSet.open(settings.out), repo_id, private=private, message=message))


def pull(
    repo_id: Annotated[str, typer.Argument(help="Dataset on the hub, OWNER/NAME.")],
    out: Out = None,
    revision: Annotated[str | None, typer.Option(help="Commit, branch or tag; default: the newest commit.")] = None,
    config: Config = None,
) -> None:
    """Download a task set that was pushed to HuggingFace's hub into a new folder."""
    from excise.pipeline.services.hub import pull as download

    with exit_codes_for_errors():
        settings = settings_of(config, None, out=out)
        taskset = download(repo_id, settings.out, revision)
        print(f"{len(taskset.ids())} tasks in {settings.out}.")
