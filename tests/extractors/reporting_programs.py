"""Running the compiled form of lifted tests outside a sandbox, and reading the values that it reports."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

AT_THE_DESCRIPTOR_OF_RESULTS = 'exec "$@" 101>&1 >/dev/null 2>&1'
"""Bash code that runs a program whose descriptor 101 is the standard output. Only the shell may have that descriptor
opened: in the process of the tests, another file or socket may have that number."""


def reported(program: Path, arguments: Sequence[str]) -> list[str]:
    """What a program reports at the descriptor of results: one text per value, ``OPAQUE`` where there is none."""
    command = ["/bin/bash", "-c", AT_THE_DESCRIPTOR_OF_RESULTS, "bash", str(program), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    return [f"{words[1]} {bytes.fromhex(words[3]).decode()}" if len(words) > 1 else words[0] for words in lines]
