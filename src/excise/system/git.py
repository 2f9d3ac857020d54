"""Running git: isolated from the host's configuration, with a time limit.

A verdict must not depend on ``/etc/gitconfig``, ``~/.gitconfig``, ``GIT_*`` variables, templates or hooks, so
:func:`run_git` starts git with none of them. Fetching a user's repository is the exception: credentials, proxies and
``insteadOf`` rules are in that configuration (:mod:`excise.extractors.fetch.git_mirror`).
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from excise.errors import ExciseError
from excise.system.commands import CommandTimeout, run_command
from excise.system.deadline import time_limit
from excise.system.files import tells_full_disk

TIMEOUT_S = 60.0
"""Default limit of one git command in seconds; applying a patch or making a commit takes well under one."""

SAFE_OPTIONS: Mapping[str, str] = {
    "core.attributesFile": os.devnull,
    "core.autocrlf": "false",
    "core.excludesFile": os.devnull,
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.symlinks": "true",
    "gc.auto": "0",
    "maintenance.auto": "false",
}
"""Settings of every isolated command. ``git -c`` sets them, which takes precedence over a repository's own too."""


class GitError(ExciseError):
    """A git command failed; the message holds what git wrote to its standard error."""

    reason = "git_failed"


def isolated_environment(root: Path) -> dict[str, str]:
    """All environment variables of an isolated git command in ``root``; git looks for no repository above it."""
    return {
        "PATH": os.environ.get("PATH") or os.defpath,
        "HOME": "/nonexistent",
        "XDG_CONFIG_HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TEMPLATE_DIR": "",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_CEILING_DIRECTORIES": str(root.absolute().parent),
        "LC_ALL": "C",
        "TZ": "UTC",
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class GitOptions:
    """How one isolated git command runs."""

    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings for ``git -c``, in addition to :data:`SAFE_OPTIONS`."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables, in addition to those of :func:`isolated_environment`: an author, a date."""
    accepted: Sequence[int] = (0,)
    """Exit codes that are no failure."""
    timeout_s: float = TIMEOUT_S
    """Time limit in wall seconds."""


def run_git(
    arguments: Sequence[str],
    *,
    cwd: Path,
    stdin: bytes = b"",
    stdout: IO[bytes] | None = None,
    options: GitOptions | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run ``git ARGUMENTS`` in ``cwd``, isolated from the host's configuration.

    ``stdout`` is a file for the output; without one it is captured. Raises :class:`GitError` with reason ``git_failed``
    (an exit code that is not accepted), ``disk_full`` (the same, and git says so; never of a patch, which may name
    files as it likes), ``git_timeout`` (the time limit has passed) or ``git_missing`` (this machine has no git).
    """
    options = options or GitOptions()
    settings = {**SAFE_OPTIONS, **options.settings}
    flags = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
    env = {**isolated_environment(cwd), **options.variables}
    name = next((word for word in arguments if not word.startswith("-")), "")
    try:
        done = run_command(
            ["git", *flags, *arguments], cwd=cwd, env=env, stdin=stdin, stdout=stdout, timeout_s=options.timeout_s
        )
    except CommandTimeout:
        raise GitError(f"git {name} did not end within {options.timeout_s:.0f} s.", reason="git_timeout") from None
    except FileNotFoundError as error:
        if not cwd.is_dir():
            raise
        raise GitError("git is not installed; install it, or run `excise doctor`.", reason="git_missing") from error
    if done.returncode not in options.accepted:
        errors = done.stderr.decode(errors="replace").strip("\0 \n\t")
        reason = "disk_full" if name != "apply" and tells_full_disk(errors) else None
        raise GitError(f"git {name} failed: {errors or f'exit code {done.returncode}'}", reason=reason)
    return done


def run_git_as_user(
    arguments: Sequence[str],
    *,
    cwd: Path,
    variables: Mapping[str, str],
    options: Mapping[str, str],
    timeout_s: float,
    stdin: bytes = b"",
) -> str:
    """Run ``git ARGUMENTS`` in ``cwd`` with the user's configuration and environment; return its standard output.

    ``variables`` (of the environment) and ``options`` (settings for ``git -c``) take precedence over the user's own.
    Raises :class:`GitError`: git failed or was killed after ``timeout_s`` seconds (``git_failed``), or there is no git
    on this machine (``git_missing``).
    """
    from git import Git
    from git.exc import GitCommandError, GitCommandNotFound

    settings = [part for key, value in options.items() for part in ("-c", f"{key}={value}")]
    with tempfile.TemporaryFile() as source, time_limit(timeout_s) as limit_s:
        source.write(stdin)
        source.seek(0)
        try:
            output = Git(str(cwd)).execute(
                ["git", *settings, *arguments],
                istream=source,
                env=dict(variables),
                kill_after_timeout=limit_s,
                strip_newline_in_stdout=False,
            )
        except GitCommandNotFound as error:
            raise GitError("git is not installed; install it, or run `excise doctor`.", reason="git_missing") from error
        except GitCommandError as error:
            errors = str(error.stderr or error).strip().removeprefix("stderr: ").strip("'\n\0 ")
            raise GitError(errors) from error
    return str(output)
