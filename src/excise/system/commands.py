"""Running commands on the host, with a time limit after which the command and its children are killed.

Commands inside a sandbox run through :meth:`excise.protocols.Session.exec` instead.
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
    """Run a command to its end and return it, whatever its exit code.

    The command gets a process group of its own. The whole group is killed after ``timeout_s`` seconds, or when this
    call is interrupted, so that no grandchild with an open pipe prolongs the wait. An earlier deadline of the caller
    (:mod:`excise.system.deadline`) shortens the time limit. ``env`` replaces the environment. ``stdout`` is a file for
    the output; without one it is captured.

    Raises :class:`CommandTimeout`, and ``OSError`` if the program cannot be started.
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
