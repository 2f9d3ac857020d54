"""Tasks made by excise, for verifiers. This file is the package of every export for it.

The agent works in a container of the project's environment, whose image `images/build.sh` builds; with
`--taskset.containers false` in any runtime, which then has the checkout alone. Its changes are graded elsewhere, so
that the hidden tests are never in the runtime. `--taskset.grader` says how:

- `sandbox`: in a fresh sandbox of excise, the tests must pass (a solution can forge their report);
- `excise`: by excise's own grader, from the task set in the folder `--taskset.task-set`.

Both call the command `excise`, or what the variable EXCISE names, of any Python.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import verifiers.v1 as vf

HERE = Path(__file__).resolve().parent
ARCHIVE, SCRIPT = ".excise-checkout.tar.gz", ".excise-checkout.sh"


class ExciseData(vf.TaskData):  # type: ignore[misc]
    """One task."""

    environment: str
    """The image of the environment in which solutions are graded."""
    commit: str
    """The commit of the checkout that the agent gets."""
    solution_paths: list[str]
    """Files that the gold patch changes."""
    timeout_s: float
    """Seconds for the tests."""
    grader: str = "sandbox"
    """How solutions are graded."""
    task_set: str = ""
    """Folder of the task set, for the grader ``excise``."""


class ExciseTask(vf.Task[ExciseData]):  # type: ignore[misc]
    """Writing one feature of a project again."""

    @property
    def key(self) -> str:
        """The instance id."""
        return str(self.data.id)

    async def setup(self, trace: vf.Trace, runtime: vf.Runtime) -> None:
        """Lay the checkout into the runtime's working directory."""
        await runtime.write(ARCHIVE, (HERE / "checkouts" / f"{self.data.id}.tar.gz").read_bytes())
        await runtime.write(SCRIPT, (HERE / "checkouts" / "checkout.sh").read_bytes())
        await self._run(runtime, f"EXCISE_CHECKOUT=. sh {SCRIPT}")

    async def validate(self, runtime: vf.Runtime) -> bool:
        """Whether the gold patch solves the task."""
        await runtime.write(".excise-gold.patch", (HERE / "gold" / f"{self.data.id}.patch").read_bytes())
        await self._run(runtime, "git apply --whitespace=nowarn .excise-gold.patch && rm .excise-gold.patch")
        return await self._reward(runtime) == 1.0

    @vf.reward(weight=1.0)  # type: ignore[untyped-decorator]
    async def solved(self, trace: vf.Trace, runtime: vf.Runtime) -> float:
        """1 if the changes in the checkout bring the feature back."""
        return await self._reward(runtime)

    async def _reward(self, runtime: vf.Runtime) -> float:
        paths = " ".join(shlex.quote(path) for path in self.data.solution_paths)
        added = f'for path in {paths}; do [ ! -e "$path" ] || git add --force -- "$path"; done'
        options = "--cached --binary --no-color --no-ext-diff --no-textconv --no-renames"
        text = await self._run(runtime, f"git add --all && {added} && git diff {options} {self.data.commit} | base64")
        diff = base64.b64decode(text)
        grade = _grade_by_excise if self.data.grader == "excise" else _grade_in_sandbox
        return await asyncio.to_thread(grade, self.data, diff)

    @staticmethod
    async def _run(runtime: vf.Runtime, command: str) -> str:
        done = await runtime.run(["sh", "-c", command], {})
        if done.exit_code != 0:
            raise RuntimeError(f"{command}: {done.stderr[-2000:]}")
        return str(done.stdout)


def _excise(*arguments: str, stdin: bytes) -> subprocess.CompletedProcess[bytes]:
    command = [*shlex.split(os.environ.get("EXCISE", "excise")), *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, check=False)


def _grade_by_excise(data: ExciseData, diff: bytes) -> float:
    if not data.task_set:
        raise RuntimeError("Say --taskset.task-set FOLDER: the grader `excise` needs the task set.")
    done = _excise("grade", str(data.id), "--out", data.task_set, "--diff", "-", "--json", stdin=diff)
    grade = json.loads(done.stdout) if done.stdout.strip() else {}
    if not grade.get("decided"):
        raise RuntimeError(f"Not graded: {done.stderr.decode(errors='replace')[-2000:] or grade.get('reasons')}")
    return float(grade["reward"])


def _grade_in_sandbox(data: ExciseData, diff: bytes) -> float:
    """Unpack the checkout in a fresh sandbox, add the tests, apply the changes, and run the plain grader."""
    limit = data.timeout_s
    steps = [
        (f"cat > /testbed/{ARCHIVE}", (HERE / "checkouts" / f"{data.id}.tar.gz").read_bytes(), 60.0),
        (f"cat > /testbed/{SCRIPT}", (HERE / "checkouts" / "checkout.sh").read_bytes(), 60.0),
        (f"sh /testbed/{SCRIPT}", b"", 120.0),
        ("tar -xzf - -C /tests", (HERE / "graders" / f"{data.id}.tar.gz").read_bytes(), 60.0),
        ("mkdir /tmp/work && cat > /tmp/solution.patch", diff, 60.0),
        (f"/opt/env/bin/python /tests/plain_grader.py /tests /tmp/solution.patch /tmp/work {limit}", b"", limit + 60),
    ]
    requests = [
        {"argv": ["sh", "-c", command], "timeout_s": seconds, "stdin": base64.b64encode(stdin).decode()}
        for command, stdin, seconds in steps
    ]
    image = HERE / "images" / data.environment.replace(":", "-").replace("/", "-")
    lines = "".join(json.dumps({**request, "cwd": "/testbed"}) + "\n" for request in requests)
    done = _excise("sandbox", str(image), stdin=lines.encode())
    answers = [json.loads(line) for line in done.stdout.splitlines()[1:]]
    if len(answers) != len(steps) or any("error" in answer for answer in answers):
        raise RuntimeError(f"excise's sandbox failed: {answers[-1:]} {done.stderr.decode(errors='replace')[-2000:]}")
    for (command, _, _), answer in zip(steps[:-1], answers, strict=False):
        if answer["rc"] != 0:
            raise RuntimeError(f"{command}: {base64.b64decode(answer['stderr']).decode(errors='replace')[-2000:]}")
    return 1.0 if answers[-1]["rc"] == 0 else 0.0


class ExciseConfig(vf.TasksetConfig):  # type: ignore[misc]
    """Settings."""

    containers: bool = True
    """Whether the agent's runtime is a container of the project's environment, without network."""
    grader: Literal["sandbox", "excise"] = "sandbox"
    """How solutions are graded."""
    task_set: str = ""
    """Folder of the task set, for the grader ``excise``."""


class ExciseTaskset(vf.Taskset[ExciseTask, ExciseConfig]):  # type: ignore[misc]
    """The tasks of one export."""

    def load(self) -> Iterator[ExciseTask]:
        """Read the tasks, one at a time."""
        with (HERE / "tasks.jsonl").open(encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                if self.config.containers:
                    row |= {"image": row["environment"], "workdir": "/testbed", "network_allow": []}
                data = ExciseData(**row, grader=self.config.grader, task_set=self.config.task_set)
                yield ExciseTask(data, self.config.task)


__all__ = ["ExciseTaskset"]
