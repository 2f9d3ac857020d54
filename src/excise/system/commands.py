"""Commands of the host, each with a time limit after which it and its children are killed.

Commands inside a sandbox are :mod:`excise.envs`' concern.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from excise.errors import ExciseError
from excise.system.deadline import time_limit


class CommandTimeout(ExciseError):
    """A command ran past its time limit and was killed."""

    reason = "command_timeout"


def run_command(
    line: Sequence[str | Path],
    *,
    timeout_s: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    stdout: IO[bytes] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end; ``returncode``, ``stdout`` and ``stderr`` are the caller's to judge.

    The command leads a process group of its own, which is killed whole when ``timeout_s`` seconds have passed or when
    this call is interrupted: a grandchild that keeps a pipe open does not prolong the wait. A deadline of the caller
    (:mod:`excise.system.deadline`) that comes earlier ends the command, too. ``env`` replaces the environment.
    ``stdout`` is a file for the output; without one it is captured.

    Raises :class:`CommandTimeout`, and ``OSError`` where the program cannot be started.
    """
    words = [os.fspath(word) for word in line]
    with time_limit(timeout_s) as limit_s:
        process = subprocess.Popen(
            words,
            cwd=cwd,
            env=env,
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=stdout if stdout is not None else subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            output, errors = process.communicate(stdin or None, limit_s)
        except subprocess.TimeoutExpired:
            raise CommandTimeout(
                f"`{' '.join(words[:3])}` did not end within {limit_s:.0f} s and was killed."
            ) from None
        finally:
            if process.returncode is None:
                _kill_group(process)
        return subprocess.CompletedProcess(words, process.returncode, output or b"", errors or b"")


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    process.wait()
