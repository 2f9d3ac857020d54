"""Sandboxes of tasks, for servers of other tools; this file is copied into every export that has one.

Standard library only. It calls the command ``excise``, or what the variable EXCISE names, of any Python. A solution is
graded in a fresh sandbox by the tests' report, which it can forge; where the variable EXCISE_SET names the task set,
excise grades it.
"""

from __future__ import annotations

import base64
import json
import os
import shlex
import subprocess
import threading
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ARCHIVE, SCRIPT = ".excise-checkout.tar.gz", ".excise-checkout.sh"
COMMAND_S = 60.0
"""Seconds for a command of an agent."""
OUTPUT_CHARS = 20_000
"""Characters of a command's output; of a longer one, the beginning and the end are kept."""


def load_tasks() -> dict[str, dict[str, Any]]:
    """The tasks of the export by id."""
    with (HERE / "index.jsonl").open(encoding="utf-8") as lines:
        return {row["instance_id"]: row for row in map(json.loads, lines)}


class TaskSession:
    """One agent's sandbox of a task: the checkout in ``/testbed``, no network."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.task = task
        self._lock = threading.Lock()
        self._server = subprocess.Popen(
            [*_excise(), "sandbox", str(_image(task))], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._answer()
        for command, data in _checkout(task):
            self._checked(command, data)

    def run(self, command: str) -> dict[str, Any]:
        """Run a command in a shell; return its ``output`` and ``returncode``."""
        answer = self._run(f"exec 2>&1\n{command}", COMMAND_S)
        text = base64.b64decode(answer["stdout"]).decode("utf-8", "replace")
        if len(text) > OUTPUT_CHARS:
            text = f"{text[: OUTPUT_CHARS // 2]}\n[…]\n{text[-OUTPUT_CHARS // 2 :]}"
        if answer["worker"] == "timeout":
            return {"output": f"{text}\nThe command took more than {COMMAND_S:.0f} seconds.", "returncode": -1}
        return {"output": text, "returncode": answer["rc"]}

    def reward(self) -> float:
        """1 if the changes in the checkout bring the feature back, else 0."""
        return grade(self.task, self.diff())

    def diff(self) -> bytes:
        """The changes in the checkout."""
        paths = " ".join(shlex.quote(path) for path in self.task["solution_paths"])
        added = f'for path in {paths}; do [ ! -e "$path" ] || git add --force -- "$path"; done'
        options = "--cached --binary --no-color --no-ext-diff --no-textconv --no-renames"
        answer = self._checked(f"git add --all && {added} && git diff {options} {self.task['commit']}", b"")
        return base64.b64decode(answer["stdout"])

    def close(self) -> None:
        """End the sandbox; safe to call twice."""
        assert self._server.stdin is not None
        if not self._server.stdin.closed:
            self._server.stdin.close()
            self._server.wait(20)

    def _checked(self, command: str, stdin: bytes) -> dict[str, Any]:
        answer = self._run(command, 120.0, stdin)
        if answer["rc"] != 0:
            raise RuntimeError(f"{command}: {base64.b64decode(answer['stderr']).decode(errors='replace')[-2000:]}")
        return answer

    def _run(self, command: str, timeout_s: float, stdin: bytes = b"") -> dict[str, Any]:
        assert self._server.stdin is not None
        with self._lock:
            self._server.stdin.write(_request(command, timeout_s, stdin))
            self._server.stdin.flush()
            return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"error": "it ended"}
        if "error" in answer:
            raise RuntimeError(f"excise's sandbox failed: {answer['error']}")
        return answer


def grade(task: dict[str, Any], diff: bytes) -> float:
    """The reward of a diff. Raises ``RuntimeError`` if nothing can be graded here."""
    if task_set := os.environ.get("EXCISE_SET"):
        command = [*_excise(), "grade", task["instance_id"], "--out", task_set, "--diff", "-", "--json"]
        done = subprocess.run(command, input=diff, capture_output=True, check=False)
        found = json.loads(done.stdout) if done.stdout.strip() else {}
        if not found.get("decided"):
            raise RuntimeError(f"Not graded: {done.stderr.decode(errors='replace')[-2000:] or found.get('reasons')}")
        return float(found["reward"])
    limit = float(task["timeout_s"])
    steps = [
        *((command, data, 120.0) for command, data in _checkout(task)),
        ("tar -xzf - -C /tests", (HERE / "graders" / f"{task['instance_id']}.tar.gz").read_bytes(), 60.0),
        ("mkdir /tmp/work && cat > /tmp/solution.patch", diff, 60.0),
        (f"/opt/env/bin/python /tests/plain_grader.py /tests /tmp/solution.patch /tmp/work {limit}", b"", limit + 60),
    ]
    lines = b"".join(_request(command, seconds, data) for command, data, seconds in steps)
    done = subprocess.run([*_excise(), "sandbox", str(_image(task))], input=lines, capture_output=True, check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines()[1:]]
    if len(answers) != len(steps) or any("error" in answer for answer in answers):
        raise RuntimeError(f"excise's sandbox failed: {answers[-1:]} {done.stderr.decode(errors='replace')[-2000:]}")
    return 1.0 if answers[-1]["rc"] == 0 else 0.0


def _excise() -> list[str]:
    return shlex.split(os.environ.get("EXCISE", "excise"))


def _image(task: dict[str, Any]) -> Path:
    return HERE / "images" / str(task["environment"]).replace(":", "-").replace("/", "-")


def _checkout(task: dict[str, Any]) -> list[tuple[str, bytes]]:
    """Commands that lay the checkout into the sandbox, each with its input."""
    return [
        (f"cat > /testbed/{ARCHIVE}", (HERE / "checkouts" / f"{task['instance_id']}.tar.gz").read_bytes()),
        (f"cat > /testbed/{SCRIPT}", (HERE / "checkouts" / "checkout.sh").read_bytes()),
        (f"sh /testbed/{SCRIPT}", b""),
    ]


def _request(command: str, timeout_s: float, stdin: bytes = b"") -> bytes:
    request = {"argv": ["bash", "-c", command], "cwd": "/testbed", "env": {}, "timeout_s": timeout_s}
    return json.dumps(request | {"stdin": base64.b64encode(stdin).decode()}).encode() + b"\n"
