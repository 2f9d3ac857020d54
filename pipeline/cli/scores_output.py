"""Scores as ``excise eval`` and ``excise solve`` print, store, draw and read them."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from excise.datasets.queries.scores import Evaluation, draw, table
from excise.errors import ConfigError
from excise.pipeline.cli.options import print_message
from excise.types import from_json, to_dict, to_json


def read_evaluation(path: Path) -> Evaluation:
    """Read what an earlier ``excise eval`` or ``excise solve`` stored. Raises :class:`ConfigError`."""
    try:
        return from_json(Evaluation, path.read_bytes())
    except ValueError as error:
        raise ConfigError(f"{path}: not the result of an evaluation: {error}") from error


def show_evaluations(found: Sequence[Evaluation], into: Path | None, name: str, as_json: object = None) -> None:
    """Print a table, or the record ``as_json``; with a folder ``into``, also write NAME.json and NAME.svg there."""
    from rich.console import Console
    from rich.table import Table

    if as_json is not None:
        print(json.dumps(to_dict(as_json), indent=2))
    else:
        head, *rows = table(found)
        shown = Table(*head)
        for row in rows:
            shown.add_row(*row)
        Console(width=None if sys.stdout.isatty() else 160).print(shown)
    if into is not None:
        into.mkdir(parents=True, exist_ok=True)
        (into / f"{name}.json").write_bytes(to_json(found[-1], indent=2))
        if not draw(found, into / f"{name}.svg"):
            print_message("No picture was drawn, there is no matplotlib: pip install matplotlib")
