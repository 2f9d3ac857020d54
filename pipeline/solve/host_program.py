"""Runs an agent's program on the host, with a time limit and other reasons to end it, and kills all that it started.

The program runs below a supervisor process (:mod:`excise.system.supervisor`), which also ends it if this process is
killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from excise.system import supervisor

GRACE_S = 2.0
"""Seconds between SIGTERM and SIGKILL."""
END_S = 20.0
"""Seconds to wait for the supervisor, after which its session is killed."""
POLL_S = 0.1
MAX_OUTPUT = 256 << 10
"""Number of bytes of the output's end that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostProgram:
    """A program to run."""

    argv: Sequence[str]
    """Its arguments; the first is the program."""
    cwd: Path
    """Its working folder."""
    env: Mapping[str, str]
    """Its whole environment."""
    log: Path
    """File for stdout and stderr."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramEnd:
    """How a program ended."""

    returncode: int
    """Its exit code; negative for a signal."""
    stopped: bool
    """Whether it was ended from outside."""
    output: str
    """The end of its output."""


def run_host_program(program: HostProgram, should_stop: Callable[[], bool]) -> ProgramEnd:
    """Run a program until it ends or ``should_stop`` is true. Raises ``OSError`` if it cannot be started."""
    line = [sys.executable, "-I", "-S", supervisor.__file__, str(GRACE_S), *program.argv]
    with open(program.log, "wb") as log:
        process = subprocess.Popen(
            line, cwd=program.cwd, env=dict(program.env), stdin=subprocess.PIPE, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
        stopped = False
        try:
            while not stopped:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(POLL_S)
                    break
                stopped = should_stop()
        finally:
            _end(process)
    return ProgramEnd(returncode=process.returncode, stopped=stopped, output=_tail(program.log))


def _end(process: subprocess.Popen[bytes]) -> None:
    """Tell the supervisor to end everything, and wait for it."""
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    until = time.monotonic() + END_S
    while process.poll() is None and time.monotonic() < until:
        time.sleep(POLL_S / 2)
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _tail(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - MAX_OUTPUT))
        return file.read().decode("utf-8", "replace")
