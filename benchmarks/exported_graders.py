"""Benchmark of exported graders: how many attacks get a reward from each, and from excise's own.

Run: ``python benchmarks/exported_graders.py SET [--tasks 2] [--each 2]`` (uses the usual cache; set EXCISE_PEERS to the
folder of ``scripts/peers.sh`` if it is not ``.venv-peers``). Of every vector, the first ``--each`` attacks are tried
(0: all), on tasks of different projects, as a solution's diff:

plain      ``plain_grader.py`` in a fresh sandbox, as in the exports for Harbor and verifiers
swebench   ``eval.sh`` in the sandbox of the solution, graded by SWE-bench's own ``get_eval_report``
excise     ``excise grade``

Gold patches and empty solutions are graded, too. Exits with 1 if one of these gets the wrong reward.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from excise.config import Settings, load
from excise.datasets.exports.checkout_script import ARCHIVE, CHECKOUT_SCRIPT, SCRIPT
from excise.datasets.exports.grader_files import grader_files, packed
from excise.datasets.exports.registry import export
from excise.datasets.taskset import TaskSet
from excise.errors import ExciseError
from excise.pipeline.peers.sandbox_server import open_prepared
from excise.pipeline.services.export_materials import SetMaterials
from excise.pipeline.services.task_grader import Grader, GradingEnvironment
from excise.protocols import Session
from excise.types import Task
from excise.verifiers.attacks.all_attacks import attacks_of
from excise.verifiers.attacks.attack import attack_target

ROOT = Path(__file__).resolve().parents[1]
GRADERS = ("plain", "swebench", "excise")
SWEBENCH = """
import json, sys
from swebench.harness.grading import get_eval_report
from swebench.harness.utils import make_test_spec
from swebench.task.repo import load_task
for line in sys.stdin:
    folder, instance_id, log = json.loads(line)
    prediction = {"instance_id": instance_id, "model_patch": "x", "model_name_or_path": "x"}
    report = get_eval_report(make_test_spec(load_task(folder)), prediction, log, False)
    print(json.dumps(report[instance_id]["resolved"]))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """A diff to grade."""

    task: Task
    """The task."""
    name: str
    """Name of the attack, ``gold`` or ``noop``."""
    vector: str
    """The part of grading that is attacked."""
    diff: str
    """The diff against the shipped tree."""


class Benchmark:
    """Grades solutions in three ways."""

    def __init__(self, settings: Settings, taskset: TaskSet, folder: Path) -> None:
        self.settings, self.folder = settings, folder
        self.grader = Grader(taskset, settings)
        self.materials = SetMaterials(taskset, settings)
        export(taskset, "swebench", folder / "swebench", self.materials)
        self.swebench_logs: list[tuple[str, str, str]] = []

    def environment(self, task: Task) -> GradingEnvironment:
        """The environment of a task. Raises ``SystemExit`` if it cannot be made."""
        found = self.grader.environment_of(task)
        if not isinstance(found, GradingEnvironment):
            raise SystemExit(found.detail)
        return found

    def solutions(self, task: Task, each: int) -> Iterator[Solution]:
        """Gold, nothing, and the first ``each`` attacks of every vector (0: all)."""
        yield Solution(task=task, name="gold", vector="honest", diff=task.patch)
        yield Solution(task=task, name="noop", vector="empty", diff="")
        target = attack_target(self.environment(task).bench, task)
        tried: Counter[str] = Counter()
        for attack in attacks_of(task.language).values():
            tried[attack.vector] += 1
            if each and tried[attack.vector] > each:
                continue
            try:
                yield Solution(task=task, name=attack.name, vector=attack.vector, diff=attack.diff(target))
            except ExciseError:
                continue

    def plain(self, solution: Solution) -> bool:
        """Whether the plain grader gives the reward."""
        grading = self.materials.grading(solution.task.instance_id)
        command = "mkdir /tmp/work; tar -xzf - -C /tests && /opt/env/bin/python /tests/plain_grader.py /tests "
        command += f"/logs/solution.patch /tmp/work {grading.timeout_s}"
        with self._checkout(solution) as session:
            session.put("/logs/solution.patch", _bytes(solution.diff))
            files = packed(grader_files(grading))
            return session.exec(["sh", "-c", command], timeout_s=grading.timeout_s + 60, stdin=files).rc == 0

    def swebench(self, solution: Solution) -> bool | None:
        """Run SWE-bench's script; its log is graded later. False if the diff does not apply."""
        folder = self.folder / "swebench" / "tasks" / solution.task.instance_id
        with self._checkout(solution) as session:
            if solution.diff:
                applied = session.exec(["git", "apply", "--verbose", "-"], timeout_s=60, stdin=_bytes(solution.diff))
                if applied.rc != 0:
                    return False
            session.put("/logs/eval.sh", (folder / "eval.sh").read_bytes())
            log = session.exec(["/bin/bash", "-c", "bash /logs/eval.sh 2>&1"], timeout_s=600).stdout
        path = self.folder / f"{solution.task.instance_id}-{solution.name}.log"
        path.write_bytes(log)
        done = subprocess.run(
            [str(Path(os.environ.get("EXCISE_PEERS", ROOT / ".venv-peers")) / "data/bin/python"), "-c", SWEBENCH],
            input=json.dumps([str(folder), solution.task.instance_id, str(path)]),
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return json.loads(done.stdout.splitlines()[-1]) is True

    def excise(self, solution: Solution) -> bool:
        """Whether excise's own grader gives the reward. Raises ``SystemExit`` if its infrastructure failed."""
        found = self.grader.grade(solution.task.instance_id, solution.diff)
        if not found.decided:
            raise SystemExit(f"{solution.name}: not graded: {found.evidence}")
        return found.reward == 1

    def _checkout(self, solution: Solution) -> Session:
        """A fresh sandbox with the task's checkout."""
        session = open_prepared(self.settings, self.environment(solution.task).bench.prepared)
        session.put(f"/testbed/{ARCHIVE}", self.materials.checkout(solution.task.instance_id).archive)
        session.put(f"/testbed/{SCRIPT}", CHECKOUT_SCRIPT.encode())
        session.exec(["sh", f"/testbed/{SCRIPT}"], timeout_s=120)
        return session

    def grade(self, solution: Solution) -> tuple[Solution, dict[str, bool]]:
        """The reward of every grader."""
        return solution, {name: bool(getattr(self, name)(solution)) for name in GRADERS}


def _bytes(diff: str) -> bytes:
    return diff.encode("utf-8", "surrogateescape")


def different_projects(taskset: TaskSet, count: int) -> list[Task]:
    """``count`` tasks, of different projects as far as there are some."""
    by_repo: dict[str, list[Task]] = defaultdict(list)
    for task in taskset.tasks():
        by_repo[task.repo].append(task)
    rounds = max(map(len, by_repo.values()), default=0)
    found = [tasks[number] for number in range(rounds) for tasks in by_repo.values() if number < len(tasks)]
    return found[:count]


def main() -> int:
    """Grade and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", type=Path)
    parser.add_argument("--tasks", type=int, default=2)
    parser.add_argument("--each", type=int, default=2)
    options = parser.parse_args()
    settings = load([], [], out=options.set)
    taskset = TaskSet.open(settings.out)
    results: list[tuple[Solution, dict[str, bool]]] = []
    with tempfile.TemporaryDirectory(prefix="excise-graders-") as folder, ThreadPoolExecutor(settings.workers) as pool:
        benchmark = Benchmark(settings, taskset, Path(folder))
        chosen = different_projects(taskset, options.tasks)
        work = [solution for task in chosen for solution in benchmark.solutions(task, options.each)]
        for solution, rewards in pool.map(benchmark.grade, work):
            results.append((solution, rewards))
            got = ", ".join(name for name, reward in rewards.items() if reward) or "-"
            print(f"{solution.task.instance_id} {solution.vector}/{solution.name}: {got}", flush=True)
    return report(results)


def report(results: list[tuple[Solution, dict[str, bool]]]) -> int:
    """Print a row for each vector, and return the exit code."""
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for solution, rewards in results:
        for row in (solution.vector, *(["all attacks"] if solution.vector not in {"honest", "empty"} else [])):
            table[row]["tried"] += 1
            table[row].update(name for name, reward in rewards.items() if reward)
    print(f"\n| vector | tried | {' | '.join(GRADERS)} |\n|---|--:|{'--:|' * len(GRADERS)}")
    for vector, counts in sorted(table.items(), key=lambda item: (item[0] == "all attacks", item[0])):
        print(f"| {vector} | {counts['tried']} | {' | '.join(str(counts[name]) for name in GRADERS)} |")
    honest: Any = [rewards[name] for solution, rewards in results if solution.vector == "honest" for name in GRADERS]
    empty: Any = [rewards[name] for solution, rewards in results if solution.vector == "empty" for name in GRADERS]
    return 0 if all(honest) and not any(empty) else 1


if __name__ == "__main__":
    sys.exit(main())
