"""``excise profile``: says where the time of a run went."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from excise.pipeline.cli.options import Config, Json, Out, exit_codes_for_errors, settings_of
from excise.pipeline.exit_codes import FAILED


def profile(
    out: Out = None,
    run: Annotated[
        str, typer.Option("--run", help="Name of a run (of its file in logs/), or its beginning. [default: latest]")
    ] = "",
    as_json: Json = False,
    config: Config = None,
) -> None:
    """Print where the CPU time, the wall time and the bytes of a run went: by stage, step, program and process."""
    from excise.datasets.queries.costs import profile as measure

    with exit_codes_for_errors():
        settings = settings_of(config, None, out=out)
        tables = measure(settings.out, run)
        if not tables["stage"]:
            named = f" whose name begins with {run}" if run else ""
            print(f"No run in {settings.out / 'logs'}{named} has measured jobs.", file=sys.stderr)
            raise typer.Exit(FAILED)
        if as_json:
            print(json.dumps(tables))
            return
        console = Console()
        for name, rows in tables.items():
            if rows:
                console.print(_as_table(name, rows))


def _as_table(name: str, rows: list[dict[str, object]]) -> Table:
    """The rows as a table; numbers are aligned to the right."""
    table = Table(title=f"by {name}", title_justify="left", box=None, pad_edge=False)
    for column in rows[0]:
        number = isinstance(rows[0][column], int | float)
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    return table
