"""The commands that read a finished set: ``excise query``, ``show`` and ``checkout``."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from excise.pipeline.cli.options import AsOf, Config, Json, Out, exit_codes_for_errors, settings_of


class Format(StrEnum):
    """How ``excise query`` prints."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"


def query(
    sql: Annotated[
        str,
        typer.Argument(
            help="SQL over tasks, verdicts, rejections, repos, environments, quarantines, funnel, gates, needs, "
            "lifting, rollouts, costs and near_duplicates."
        ),
    ],
    out: Out = None,
    as_of: AsOf = "",
    format_: Annotated[Format, typer.Option("--format", "-f", help="How to print.")] = Format.TABLE,
    as_json: Json = False,
    config: Config = None,
) -> None:
    """Query the task set in DuckDB's SQL."""
    from excise.datasets.queries.catalogue import query as ask

    with exit_codes_for_errors():
        settings = settings_of(config, None, as_of, out=out)
        width = Console().width if sys.stdout.isatty() else None
        print(ask(settings.out, sql, Format.JSON if as_json else format_, width, as_of).rstrip("\n"))


def show(
    instance_id: Annotated[str, typer.Argument(help="Task.")],
    out: Out = None,
    as_of: AsOf = "",
    all_tests: Annotated[bool, typer.Option("--all-tests", help="List every test.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="As Markdown, for reports.")] = False,
    as_json: Json = False,
    config: Config = None,
) -> None:
    """Print a task: statement, diff, tests, certificate."""
    from excise.datasets.show import ShowOptions, render
    from excise.datasets.taskset import TaskSet
    from excise.verifiers.gates.all_gates import ALL_CLAIMS

    with exit_codes_for_errors():
        settings = settings_of(config, None, as_of, out=out)
        options = ShowOptions(as_json=as_json, as_markdown=as_markdown, claims=ALL_CLAIMS, all_tests=all_tests)
        render(TaskSet.open(settings.out, as_of), instance_id, Console(), options)


def checkout(
    instance_id: Annotated[str, typer.Argument(help="Task.")],
    into: Annotated[Path, typer.Argument(help="New folder for the tree.")],
    out: Out = None,
    as_of: AsOf = "",
    solved: Annotated[bool, typer.Option("--solved", help="With the gold patch and the hidden tests.")] = False,
    config: Config = None,
) -> None:
    """Write the sources that an agent gets into a folder, with a fresh git history of one commit.

    Files that an installation makes (metadata, compiled extensions, version files) are not among them.
    """
    from excise.datasets.taskset import TaskSet
    from excise.pipeline.services.checkout import write_tree

    with exit_codes_for_errors():
        settings = settings_of(config, None, as_of, out=out)
        write_tree(TaskSet.open(settings.out, as_of), instance_id, into, solved=solved)
