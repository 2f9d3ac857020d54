"""``excise gc``: removes what no kept snapshot needs."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from excise.pipeline.cli.options import Config, Json, Out, exit_codes_for_errors, settings_of
from excise.types import to_dict


def gc(
    out: Out = None,
    keep: Annotated[int, typer.Option(min=1, help="Newest snapshots that stay.")] = 3,
    keep_runs: Annotated[int, typer.Option(min=0, help="Newest runs whose last snapshot stays, too.")] = 0,
    grace_hours: Annotated[
        float, typer.Option(min=0, help="Archives and grading kits that nothing refers to stay for this time.")
    ] = 24.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be removed.")] = False,
    as_json: Json = False,
    config: Config = None,
) -> None:
    """Remove earlier snapshots, and archives and grading kits that no kept snapshot needs.

    Snapshots that somebody reads at the moment stay.
    """
    from excise.datasets.storage.garbage import Retention, collect

    with exit_codes_for_errors():
        settings = settings_of(config, None, out=out)
        retention = Retention(snapshots=keep, runs=keep_runs, grace_hours=grace_hours)
        found = collect(settings.out, retention, dry_run=dry_run)
        if as_json:
            print(json.dumps(to_dict(found), indent=2))
            return
        would = "would be " if dry_run else ""
        print(
            f"{len(found.removed)} snapshots and {found.num_blobs} archives and kits {would}removed "
            f"({found.freed_bytes / 1e6:.1f} MB). Kept: {', '.join(map(str, found.kept)) or 'none'}."
        )
        if found.in_use:
            print(f"Being read, and kept for that: {', '.join(map(str, found.in_use))}.")
