"""Runs one shell command in the sandbox of an attempt; the program behind ``{run}``. Standard library only.

Arguments: the socket, a time limit in seconds (0: the attempt's own), then the command, as one word of shell or several
words. Prints what the command prints and ends with its exit code; 124 if it ran past its time limit.
"""

from __future__ import annotations

import base64
import json
import shlex
import socket
import sys
from typing import Any


def run(path: str, command: str, timeout_s: float = 0.0, cwd: str = "") -> dict[str, Any]:
    """Run a command in the sandbox: ``returncode``, ``timed_out``, and ``stdout`` and ``stderr`` as bytes."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        request = {"command": command, "timeout_s": timeout_s, "cwd": cwd}
        connection.sendall(json.dumps(request).encode() + b"\n")
        with connection.makefile("rb") as answers:
            answer: dict[str, Any] = json.loads(answers.readline() or b'{"error": "the attempt is over"}')
    if "error" in answer:
        raise OSError(answer["error"])
    return answer | {name: base64.b64decode(answer[name]) for name in ("stdout", "stderr")}


def main(path: str, timeout_s: str, *words: str) -> int:
    """Run the words as a command and print its output."""
    if not words:
        sys.stderr.write("usage: run COMMAND, a shell command that is run in the sandbox\n")
        return 2
    answer = run(path, words[0] if len(words) == 1 else shlex.join(words), float(timeout_s))
    sys.stdout.buffer.write(answer["stdout"])
    sys.stdout.flush()
    sys.stderr.buffer.write(answer["stderr"])
    return 124 if answer["timed_out"] else int(answer["returncode"])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
