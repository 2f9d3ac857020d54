"""``excise diff``: compares two snapshots."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from excise.pipeline.cli.options import Config, Json, Out, exit_codes_for_errors, settings_of
from excise.types import to_dict

if TYPE_CHECKING:
    from excise.datasets.comparison.set_diff import Difference, SetDiff
    from excise.datasets.storage.snapshot import Snapshot

MAX_NAMES = 50
"""Tasks of one kind that are printed; ``--json`` has all."""


def diff(
    first: Annotated[
        str, typer.Argument(help="A snapshot: its number, a date or time, another set's folder, or FOLDER@NUMBER.")
    ],
    second: Annotated[str, typer.Argument(help="The snapshot to compare with. [default: the current one]")] = "",
    out: Out = None,
    as_json: Json = False,
    config: Config = None,
) -> None:
    """Print which tasks and projects were added, removed or changed between two snapshots, and in which columns."""
    from excise.datasets.comparison.set_diff import compare
    from excise.datasets.storage.set_reference import open_reference

    with exit_codes_for_errors():
        settings = settings_of(config, None, out=out)
        old, new = (open_reference(text, settings.out, settings.cache) for text in (first, second))
        found = compare(old, new)
        if as_json:
            print(json.dumps({"first": _name(old), "second": _name(new)} | to_dict(found), indent=2))
        else:
            print("\n".join(_lines(old, new, found)))


def _name(snapshot: Snapshot) -> str:
    return f"{snapshot.root.parent.parent}@{snapshot.manifest.number}"


def _lines(old: Snapshot, new: Snapshot, found: SetDiff) -> Iterator[str]:
    for sign, snapshot in (("---", old), ("+++", new)):
        yield f"{sign} {_name(snapshot)}, {snapshot.manifest.created_at}"
    yield (
        f"tasks: {len(found.added)} added, {len(found.removed)} removed, {len(found.changed)} changed, "
        f"{found.unchanged} unchanged"
    )
    yield from _named("+", found.added)
    yield from _named("-", found.removed)
    yield from _named("~", [_difference(entry) for entry in found.changed])
    if found.projects_added or found.projects_removed or found.projects_changed:
        yield "projects:"
        yield from _named("+", found.projects_added)
        yield from _named("-", found.projects_removed)
        yield from _named("~", [_difference(entry) for entry in found.projects_changed])


def _difference(entry: Difference) -> str:
    note = " (proven again)" if entry.is_only_costs else ""
    return f"{entry.name}: {', '.join(entry.columns)}{note}"


def _named(sign: str, names: tuple[str, ...] | list[str]) -> Iterator[str]:
    yield from (f"  {sign} {name}" for name in names[:MAX_NAMES])
    if len(names) > MAX_NAMES:
        yield f"  {sign} … and {len(names) - MAX_NAMES} more"
