"""``excise schedule``: runs ``excise refresh`` regularly, by a systemd timer or, without systemd, by a line for cron.

No process keeps running between refreshes. Each configuration file has one schedule; another schedule for it replaces
the first.

A scheduled refresh has the same result as ``excise refresh CONFIG`` called by hand in the folder where it was
scheduled: it gets the environment variables that it needs, and runs in that folder unless the settings name the task
set's folder.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from excise.config import Settings, environment_settings
from excise.errors import ConfigError
from excise.system.commands import run_command

TOOL_TIMEOUT_S = 60.0
"""Seconds for one call of ``systemctl`` or ``crontab``."""
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

_NEEDED_VARIABLES = re.compile(
    r"PATH|HOME|XDG_(CACHE|CONFIG|DATA)_HOME|PYENV_ROOT|UV_PYTHON_INSTALL_DIR|PIP_(INDEX_URL|CONFIG_FILE|CERT)"
    r"|UV_(DEFAULT_INDEX|INDEX|INDEX_URL|EXTRA_INDEX_URL|INDEX_STRATEGY|FIND_LINKS)|SSL_CERT_(FILE|DIR)"
    r"|(REQUESTS|CURL)_CA_BUNDLE|(http|https|all|no)_proxy|(HTTP|HTTPS|ALL|NO)_PROXY"
)
"""Environment variables that a refresh may need but a timer lacks, in addition to those that are settings of excise."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PASSWORD = re.compile(r"://[^/\s]*@")


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshTime:
    """A regular time that both systemd and cron can express."""

    minute: int
    """0 to 59."""
    hour: int | None
    """0 to 23; ``None`` every hour."""
    day: str
    """One of ``DAYS``; empty every day."""

    def calendar(self) -> str:
        """Return the time in the format of systemd's ``OnCalendar``."""
        hour = "*" if self.hour is None else f"{self.hour:02}"
        return f"{self.day} *-*-* {hour}:{self.minute:02}:00".strip()

    def cron(self) -> str:
        """Return the time as the five fields of cron."""
        hour = "*" if self.hour is None else str(self.hour)
        day = str((DAYS.index(self.day) + 1) % 7) if self.day else "*"
        return f"{self.minute} {hour} * * {day}"


def parse_when(text: str) -> RefreshTime:
    """Parse ``03:30``, ``Sun 03:30``, ``hourly``, ``daily`` or ``weekly``. Raises :class:`ConfigError` otherwise."""
    named = {"hourly": (0, None, ""), "daily": (0, 0, ""), "weekly": (0, 0, "Mon")}
    if text.lower() in named:
        minute, hour, day = named[text.lower()]
        return RefreshTime(minute=minute, hour=hour, day=day)
    match = re.fullmatch(r"(?:([A-Za-z]{3})[a-z]* )?([01]?\d|2[0-3]):([0-5]\d)", text.strip())
    day = (match[1] or "").capitalize() if match else ""
    if match is None or (day and day not in DAYS):
        raise ConfigError(f"{text!r} is no time: write 03:30, 'Sun 03:30', hourly, daily or weekly.")
    return RefreshTime(minute=int(match[3]), hour=int(match[2]), day=day)


def schedule_name(config: Path) -> str:
    """Return the name of a configuration file's systemd units; it also ends the cron line, as a comment."""
    path = str(_located(config))
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", config.stem)[:40]
    return f"excise-refresh-{stem}-{hashlib.sha256(path.encode()).hexdigest()[:8]}"


def this_program() -> Path:
    """Return the path of the ``excise`` program that runs now, which is the one to schedule."""
    started = Path(sys.argv[0])
    beside = Path(sys.executable).with_name("excise")
    return beside if started.suffix == ".py" and beside.exists() else started.absolute()


def folder_of(config: Path, settings: Settings) -> Path:
    """Return the folder to run in: that of the file, or the working directory if the settings name no task set."""
    return _located(config).parent if "out" in settings.model_fields_set else Path.cwd()


def systemd_units(
    config: Path, when: str, executable: Path, environ: Mapping[str, str] | None = None, folder: Path | None = None
) -> dict[str, str]:
    """Return the file names and texts of a service and its timer.

    The service runs with the variables ``environ`` in ``folder``, or in the folder of ``config`` if none is given.
    """
    name, config = schedule_name(config), _checked(config)
    folder = _checked(folder or config.parent)
    command = " ".join(
        _systemd_quoted(arg, dollars=True) for arg in (str(_checked(executable)), "refresh", str(config))
    )
    settings = "".join(f"Environment={_systemd_quoted(f'{k}={v}')}\n" for k, v in sorted((environ or {}).items()))
    service = (
        f"[Unit]\nDescription=excise refresh of {config.name.replace('%', '%%')}\n"
        "Wants=network-online.target\nAfter=network-online.target\n\n"
        f"[Service]\nType=oneshot\nWorkingDirectory={str(folder).replace('%', '%%')}\n"
        f"{settings}ExecStart=/usr/bin/env {command}\n"
        "# 3: some sources gave nothing today; the others were published.\nSuccessExitStatus=3\nNice=10\n"
    )
    timer = (
        f"[Unit]\nDescription=When {name} runs\n\n"
        f"[Timer]\nOnCalendar={parse_when(when).calendar()}\nPersistent=true\n\n"
        "[Install]\nWantedBy=timers.target\n"
    )
    return {f"{name}.service": service, f"{name}.timer": timer}


def cron_line(
    config: Path, when: str, executable: Path, environ: Mapping[str, str] | None = None, folder: Path | None = None
) -> str:
    """Return a line for a crontab, which ends with the schedule's name as a comment."""
    name, config = schedule_name(config), _checked(config)
    folder = _checked(folder or config.parent)
    settings = [f"{key}={value}" for key, value in sorted((environ or {}).items())]
    command = shlex.join(["env", *settings, str(_checked(executable)), "refresh", str(config)])
    line = f"cd {shlex.quote(str(folder))} && {command} # {name}"
    return f"{parse_when(when).cron()} " + line.replace("%", r"\%")


def scheduled_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment variables that the scheduled run needs, except passwords, which others could read there.

    Raises :class:`ConfigError` for a value with control characters, which neither systemd nor cron accepts.
    """
    needed = {key: value for key, value in environ.items() if value and _NEEDED_VARIABLES.fullmatch(key)}
    needed = {key: value for key, value in needed.items() if not _PASSWORD.search(value)} | environment_settings(
        environ
    )
    for key, value in needed.items():
        if _CONTROL.search(value):
            raise ConfigError(f"{key}={value!r} cannot be scheduled. Write it into the configuration file instead.")
    return needed


def password_variables(environ: Mapping[str, str] = os.environ, key: str = "") -> list[str]:
    """Return the names of variables with passwords, which are not scheduled; ``key`` is added unless it is empty."""
    found = {name for name, value in environ.items() if _NEEDED_VARIABLES.fullmatch(name) and _PASSWORD.search(value)}
    return sorted(found | {key} if key else found)


def schedule_text(config: Path, when: str, executable: Path, folder: Path | None = None) -> str:
    """Return the texts that :func:`install` would install."""
    environ = scheduled_environment()
    units = systemd_units(config, when, executable, environ, folder)
    line = cron_line(config, when, executable, environ, folder)
    texts = [f"# {name}\n{text}" for name, text in units.items()]
    return "\n".join([*texts, f"# or, without systemd, one line for crontab:\n{line}"])


def install(config: Path, when: str, executable: Path, unit_dir: Path | None = None, folder: Path | None = None) -> str:
    """Install or replace the schedule of ``config``; return a sentence that says where.

    If the machine has neither systemd nor cron, raises :class:`ConfigError`; its message contains the cron line.
    """
    if not config.is_file():
        raise ConfigError(f"{config}: no such file. Give the path of the configuration to refresh.")
    environ = scheduled_environment()
    line = cron_line(config, when, executable, environ, folder)
    if _systemd_runs():
        units = _write_units(systemd_units(config, when, executable, environ, folder), unit_dir)
        _systemctl("daemon-reload")
        _systemctl("enable", "--now", f"{schedule_name(config)}.timer")
        _systemctl("restart", f"{schedule_name(config)}.timer")
        return f"Installed {units / schedule_name(config)}.timer.{_linger_advice()}"
    if shutil.which("crontab"):
        _replace_cron_line(schedule_name(config), line)
        return f"Installed a line in the crontab: {line}"
    raise ConfigError(f"This machine runs neither systemd nor cron. For another scheduler, this is the line:\n{line}")


def uninstall(config: Path, unit_dir: Path | None = None) -> str:
    """Remove the schedule of ``config`` from systemd and cron; return a sentence that says what was removed."""
    name, removed = schedule_name(config), []
    units = [(unit_dir or _unit_dir()) / f"{name}.{kind}" for kind in ("timer", "service")]
    if any(unit.exists() for unit in units):
        if _systemd_runs():
            _systemctl("disable", "--now", f"{name}.timer")
        for unit in units:
            unit.unlink(missing_ok=True)
        if _systemd_runs():
            _systemctl("daemon-reload")
        removed.append(str(units[0]))
    if shutil.which("crontab") and _replace_cron_line(name, None):
        removed.append("the line in the crontab")
    return f"Removed {' and '.join(removed)}." if removed else f"There is no schedule for {config}."


def _located(path: Path) -> Path:
    """The path with links in its folders resolved; the file itself may be a link."""
    return path.parent.resolve() / path.name


def _checked(path: Path) -> Path:
    absolute = _located(path)
    if _CONTROL.search(str(absolute)):
        raise ConfigError(f"{str(absolute)!r}: a path with control characters cannot be scheduled. Rename it.")
    return absolute


def _systemd_quoted(text: str, *, dollars: bool = False) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return '"' + (escaped.replace("$", "$$") if dollars else escaped) + '"'


def _unit_dir() -> Path:
    if os.geteuid() == 0:
        return Path("/etc/systemd/system")
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "systemd" / "user"


def _write_units(units: Mapping[str, str], unit_dir: Path | None) -> Path:
    folder = unit_dir or _unit_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file_name, text in units.items():
            (folder / file_name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"Cannot write units to {folder}: {error.strerror}. Check who owns it.") from error
    return folder


def _systemctl_command(*args: str) -> list[str]:
    return ["systemctl", *([] if os.geteuid() == 0 else ["--user"]), *args]


def _run_tool(command: Sequence[str], stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return run_command(command, timeout_s=TOOL_TIMEOUT_S, stdin=stdin)


def _systemd_runs() -> bool:
    if not shutil.which("systemctl"):
        return False
    state = _run_tool(_systemctl_command("is-system-running"))
    return state.stdout.decode().strip() in {"running", "degraded", "starting", "initializing"}


def _systemctl(*args: str) -> None:
    done = _run_tool(_systemctl_command(*args))
    if done.returncode != 0:
        command = shlex.join(_systemctl_command(*args))
        raise ConfigError(f"`{command}` failed: {(done.stderr.strip() or done.stdout.strip()).decode()}")


def _linger_advice() -> str:
    if os.geteuid() == 0:
        return ""
    return " It runs while you are logged in; for all nights: loginctl enable-linger"


def _replace_cron_line(name: str, line: str | None) -> bool:
    """Replace the line of this schedule (``None``: remove it); return whether there was one."""
    listed = _run_tool(["crontab", "-l"])
    if listed.returncode != 0 and b"no crontab" not in listed.stderr:
        advice = f" This is the line to add by hand:\n{line}" if line else ""
        raise ConfigError(f"`crontab -l` failed: {listed.stderr.decode().strip()}.{advice}")
    before = listed.stdout.decode().splitlines() if listed.returncode == 0 else []
    others = [entry for entry in before if not entry.endswith(f"# {name}")]
    after = [*others, line] if line else others
    if after != before:
        text = "".join(f"{entry}\n" for entry in after)
        put = _run_tool(["crontab", "-"], stdin=text.encode())
        if put.returncode != 0:
            raise ConfigError(f"`crontab -` failed: {put.stderr.decode().strip()}")
    return len(others) != len(before)
