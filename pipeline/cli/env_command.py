"""``excise env``: examines one source, prints the report, and writes a Dockerfile on request."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from excise.config import Settings, with_sources
from excise.pipeline.cli.options import Cache, Config, Json, Set, exit_codes_for_errors, require_sandbox, settings_of
from excise.pipeline.exit_codes import FAILED, OK
from excise.types import SourceSpec

if TYPE_CHECKING:
    from excise.pipeline.services.examine_source import ExaminedSource


def env(
    source: Annotated[str, typer.Argument(help="pypi:name, a git URL or path, a folder, an archive.")],
    dockerfile: Annotated[
        Path | None, typer.Option(help="Write a Dockerfile here, and beside it what it needs to build.")
    ] = None,
    python: Annotated[str | None, typer.Option(help="Interpreter to use, for example 3.11.")] = None,
    require: Annotated[list[str] | None, typer.Option(help="A requirement to install as well; repeatable.")] = None,
    cache: Cache = None,
    config: Config = None,
    set_: Set = None,
    as_json: Json = False,
) -> None:
    """Build the environment of one source and run its tests; report how, or why that failed."""
    with exit_codes_for_errors():
        settings = with_sources(settings_of(config, set_, cache=cache), [source])
        spec = replace(settings.sources[-1], python=python, requirements=tuple(require or ()))
        examined = run_env(settings, spec, dockerfile=dockerfile, as_json=as_json)
        raise typer.Exit(OK if examined.verified else FAILED)


def run_env(settings: Settings, spec: SourceSpec, *, dockerfile: Path | None, as_json: bool) -> ExaminedSource:
    """Examine ``spec`` and print the report.

    Raises :class:`ConfigError` if the sandbox cannot be used, and ``OSError`` if the Dockerfile cannot be written.
    """
    from excise.envs.dockerfile import write_dockerfile
    from excise.pipeline.services.examine_source import examine_source, report_as_record, report_as_text

    require_sandbox(settings)
    examined = examine_source(settings, spec)
    print(json.dumps(report_as_record(examined), indent=2) if as_json else report_as_text(examined))
    if dockerfile is not None and examined.environment is not None and examined.repo is not None:
        written = write_dockerfile(dockerfile, examined.repo, examined.environment, Path(examined.layer))
        if not as_json:
            print(f"Build it with: docker build -t {written.tag} -f {dockerfile} {dockerfile.parent}")
    return examined
