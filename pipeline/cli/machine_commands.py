"""The commands about this machine: ``excise doctor`` and ``excise schedule``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from excise.config import load
from excise.errors import ConfigError
from excise.pipeline.cli.options import Json, exit_codes_for_errors, print_message
from excise.pipeline.exit_codes import FAILED, OK
from excise.types import to_dict


def doctor(as_json: Json = False) -> None:
    """Check this machine: report what excise can use, and how to get what is missing."""
    from excise.pipeline.services.doctor import check_machine

    with exit_codes_for_errors():
        checks = check_machine()
        if as_json:
            print(json.dumps([to_dict(check) for check in checks], indent=2))
        else:
            for check in checks:
                mark = "ok  " if check.ok else "no  " if check.needed else "-   "
                print(f"{mark}{check.name}: {check.detail}" + (f"\n    {check.advice}" if check.advice else ""))
        raise typer.Exit(OK if all(check.ok or not check.needed for check in checks) else FAILED)


def schedule(
    config: Annotated[Path, typer.Argument(help="TOML file that `excise refresh` is to run with.")],
    when: Annotated[str, typer.Option(help="03:30, 'Sun 03:30', hourly, daily or weekly.")] = "03:30",
    install: Annotated[bool, typer.Option("--install", help="Install it; otherwise it is only printed.")] = False,
    uninstall: Annotated[bool, typer.Option("--uninstall", help="Take it away again.")] = False,
) -> None:
    """Print or install a regular refresh in this folder: a systemd timer or, without systemd, a line for cron."""
    from excise.pipeline.services import refresh_schedule

    with exit_codes_for_errors():
        if uninstall:
            print(refresh_schedule.uninstall(config))
            return
        settings = load([config])
        if not settings.sources:
            raise ConfigError(f"{config}: no [[sources]].")
        program, folder = refresh_schedule.this_program(), refresh_schedule.folder_of(config, settings)
        print(
            (refresh_schedule.install if install else refresh_schedule.schedule_text)(
                config, when, program, folder=folder
            )
        )
        print_message(f"It publishes to {settings.out}.")
        if passwords := refresh_schedule.password_variables(key=settings.model.api_key_env):
            print_message(
                f"Not taken along, since they hold passwords that others could read there: {', '.join(passwords)}. "
                "Set them for the service yourself (systemd: EnvironmentFile= in a drop-in; cron: at the line's start)."
            )
