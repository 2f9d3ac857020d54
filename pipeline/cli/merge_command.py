"""``excise merge``: joins task sets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from excise.pipeline.cli.options import Config, Json, Out, exit_codes_for_errors, settings_of
from excise.types import to_dict

if TYPE_CHECKING:
    from excise.datasets.comparison.merge import MergeReport

MAX_CONFLICTS = 20
"""Conflicts that are printed; ``--json`` has all."""


def merge(
    sets: Annotated[list[str], typer.Argument(help="Folders of task sets, or FOLDER@NUMBER for an earlier snapshot.")],
    out: Out = None,
    as_json: Json = False,
    config: Config = None,
) -> None:
    """Join task sets of several machines into the set --out, with their sources, environments and grading kits.

    Of a task that several sets have, the first stays. The joined set is published once, at the end.
    """
    from excise.datasets.comparison.merge import merge as join
    from excise.datasets.storage.set_reference import open_reference

    with exit_codes_for_errors():
        settings = settings_of(config, None, out=out)
        found = join([open_reference(text, settings.out, settings.cache) for text in sets], settings.out)
        print(json.dumps(_as_dict(found), indent=2) if as_json else _text(found))


def _as_dict(found: MergeReport) -> dict[str, Any]:
    return {
        "report": to_dict(found.report),
        "repeated": found.num_repeated,
        "conflicts": [to_dict(conflict) for conflict in found.conflicts],
        "versions": found.versions,
        "blobs": found.num_blobs,
        "near_duplicates": [to_dict(pair) for pair in found.near_duplicates],
    }


def _text(found: MergeReport) -> str:
    lines = [
        f"{len(found.report.came)} tasks added, {found.num_repeated} were there already, "
        f"{len(found.conflicts)} of them with other contents; {found.num_blobs} archives and kits taken along."
    ]
    if found.near_duplicates:
        lines.append(f"{len(found.near_duplicates)} are near-duplicates of others (view near_duplicates).")
    lines += [f"  kept twice, with other sources: {name}" for name in found.versions]
    for conflict in found.conflicts[:MAX_CONFLICTS]:
        lines.append(f"  {conflict.instance_id}: {conflict.set} differs in {', '.join(conflict.columns)}")
    if len(found.conflicts) > MAX_CONFLICTS:
        lines.append(f"  … and {len(found.conflicts) - MAX_CONFLICTS} more")
    return "\n".join(lines)
