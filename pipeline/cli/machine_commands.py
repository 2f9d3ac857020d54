"""The commands about this machine: ``excise doctor`` and ``excise schedule``."""

from __future__ import annotations

import json
import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from excise.config import Settings, load
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


class Platform(StrEnum):
    """Where a schedule runs."""

    MACHINE = "machine"
    """Here, by systemd or cron."""
    GITHUB = "github"
    """As a workflow of GitHub Actions."""
    KUBERNETES = "kubernetes"
    """As a CronJob of Kubernetes."""


def schedule(
    config: Annotated[Path, typer.Argument(help="TOML file that `excise refresh` is to run with.")],
    when: Annotated[
        str, typer.Option(help="03:30, 'Sun 03:30', hourly, daily or weekly; UTC unless it runs on this machine.")
    ] = "03:30",
    platform: Annotated[Platform, typer.Option("--for", help="Where it runs.")] = Platform.MACHINE,
    to: Annotated[
        Path | None, typer.Option(help="File to write for github (in .github/workflows) or kubernetes; else stdout.")
    ] = None,
    package: Annotated[
        str, typer.Option(help="github: what pip installs, such as a URL. [default: this version of excise]")
    ] = "",
    image: Annotated[str, typer.Option(help="kubernetes: image with excise, git and bubblewrap.")] = "",
    install: Annotated[bool, typer.Option("--install", help="Install it; otherwise it is only printed.")] = False,
    uninstall: Annotated[bool, typer.Option("--uninstall", help="Take it away again.")] = False,
) -> None:
    """Print or install a regular refresh: systemd timer, line for cron, GitHub workflow or Kubernetes CronJob."""
    from excise.pipeline.services import refresh_schedule

    with exit_codes_for_errors():
        if platform is not Platform.MACHINE and (install or uninstall):
            raise ConfigError(f"--install and --uninstall are for this machine. For {platform}, write a file: --to.")
        if platform is Platform.MACHINE and to is not None:
            raise ConfigError("--to is for github and kubernetes; on this machine, say --install.")
        if uninstall:
            print(refresh_schedule.uninstall(config))
            return
        settings = load([config], environ=os.environ if platform is Platform.MACHINE else {})
        if not settings.sources:
            raise ConfigError(f"{config}: no [[sources]].")
        if platform is not Platform.MACHINE:
            _write_portable(config, settings, when, (platform, to), package=package, image=image)
            return
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


def _write_portable(
    config: Path, settings: Settings, when: str, where: tuple[Platform, Path | None], *, package: str, image: str
) -> None:
    """Print the file of a schedule for another machine, or write it."""
    from excise.config import environment_settings
    from excise.pipeline.services import schedule_files

    platform, to = where
    is_github = platform is Platform.GITHUB
    plan = schedule_files.portable_refresh(config, settings, when, package=package, image=image, has_checkout=is_github)
    text = (schedule_files.github_workflow if is_github else schedule_files.cron_job)(plan)
    if to is None:
        print(text, end="")
    else:
        schedule_files.write_schedule(to, text)
        print_message(f"Written: {to}.")
    if left := sorted(environment_settings(os.environ)):
        print_message(f"Not taken along, since they are of this machine: {', '.join(left)}.")
