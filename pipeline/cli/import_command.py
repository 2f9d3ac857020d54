"""``excise import``: other tools' task sets."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from excise.errors import ConfigError
from excise.pipeline.cli.options import (
    Cache,
    Config,
    Json,
    Out,
    Scheduler,
    Set,
    Workers,
    exit_codes_for_errors,
    require_sandbox,
    settings_of,
)
from excise.pipeline.exit_codes import FAILED, OK, PARTIAL

if TYPE_CHECKING:
    from excise.datasets.queries.imports import ImportRow

IMPORT_CODES = "Exit code: 0 every row became a task; 3 some did not; 1 none did; 2 usage; 130 interrupted."


def import_(
    name: Annotated[str, typer.Argument(metavar="FORMAT", help="Format; docs/formats.md lists all.")],
    path: Annotated[Path, typer.Argument(help="File or folder of the set: JSON lines, JSON, Parquet, task folders.")],
    out: Out = None,
    repos: Annotated[
        Path | None,
        typer.Option(help="Folder of local git repositories, OWNER/NAME; the network is then not used for sources."),
    ] = None,
    attacks: Annotated[int, typer.Option(min=0, help="Attacks of each vector on the grading of each task.")] = 1,
    limit: Annotated[int | None, typer.Option(min=1, help="Check at most this many rows.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Only the task with this id; repeatable.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Check rows again that were imported or refused.")] = False,
    set_name: Annotated[str, typer.Option("--name", help="Name of the set in the report. [default: the file's]")] = "",
    config: Config = None,
    set_: Set = None,
    scheduler: Scheduler = None,
    workers: Workers = None,
    cache: Cache = None,
    as_json: Json = False,
) -> None:
    """Check the tasks of another tool's set with gates, leak scan, recovery agent and attacks; store those that pass.

    The report is the table `imports` of the set (`excise query`). An interrupted import continues when the command is
    run again. An export of excise is restored instead, into a new set.
    """
    from excise.datasets.exports.registry import EXPORTERS, is_export
    from excise.pipeline.services.import_run import ImportOptions, import_set

    with exit_codes_for_errors():
        settings = settings_of(config, set_, out=out, scheduler=scheduler, workers=workers, cache=cache)
        if repos is not None and not repos.is_dir():
            raise ConfigError(f"--repos: {repos} is no folder.")
        if name in EXPORTERS and is_export(name, path):
            _restore(name, path, settings.out, as_json)
            return
        require_sandbox(settings)
        options = ImportOptions(
            format=name,
            path=path,
            name=set_name,
            repos=repos,
            attacks=attacks,
            limit=limit,
            only=frozenset(only or ()),
            again=again,
        )
        rows: list[ImportRow] = []

        def report(row: ImportRow) -> None:
            rows.append(row)
            if not as_json:
                print(line_of(row), flush=True)

        result = import_set(settings, options, report)
        counts = dict(result.counts)
        if as_json:
            print(json.dumps({"name": result.name, "counts": counts, "rows": [asdict(row) for row in rows]}, indent=1))
        else:
            text = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in sorted(counts.items()))
            print(f"{text or 'nothing to do'}. {result.report} has the table.")
        bad = sum(result.counts[status] for status in ("refused", "not_run", "bad_row"))
        good = result.counts["imported"] + result.counts["done_before"]
        raise typer.Exit(OK if not bad else PARTIAL if good else FAILED)


def _restore(name: str, path: Path, into: Path, as_json: bool) -> None:
    from excise.pipeline.services.restore_export import restore

    count = len(restore(name, path, into).ids())
    print(json.dumps({"restored": count}) if as_json else f"{count} tasks of an export of excise restored in {into}.")


def line_of(row: ImportRow) -> str:
    """One line about a row."""
    name = row.instance_id or row.place
    if row.status != "imported":
        name = f"{name} ({row.place})" if row.instance_id else name
        return f"{name}: {row.status.replace('_', ' ')}, {row.reason}: {row.detail} {row.advice}".rstrip()
    parts = [f"{row.num_f2p_confirmed} FAIL_TO_PASS, {row.num_p2p_confirmed} PASS_TO_PASS confirmed"]
    if row.unconfirmed:
        parts.append(", ".join(f"{count} {why.replace('_', ' ')}" for why, count in row.unconfirmed.items()))
    failed = [check for check, text in row.checks.items() if text.startswith("failed")]
    parts += [f"{check}: {row.checks[check].removeprefix('failed: ')}" for check in failed]
    if row.num_attacks:
        log, ours = len(row.attacks_on_log), len(row.attacks_on_excise)
        parts.append(f"{row.num_attacks} attacks: {log} deceive a log's reader, {ours} excise")
    return f"{name}: imported; {'; '.join(parts)}"
