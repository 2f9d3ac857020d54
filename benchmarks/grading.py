"""Benchmark of grading: what a grade costs, compared with one plain run of the project's suite.

Run: ``python benchmarks/grading.py SET [--tasks 12] [--rounds 2] [--graders 64]`` (uses the usual cache). Tasks are
drawn by a seed, one of each project in turn. Each is graded as trainers do (FAIL_TO_PASS tests first), with

right      the original code; every round is another text, since grades of equal texts are stored
wrong      the same with bodies that return ``None``
equal      the right text of the last round once more

First one after the other, in CPU seconds of all processes: median, 95th percentile, the same ÷ one plain run of the
suite (median over tasks), grades a minute and core. Then the answers of all tasks at once by ``--graders`` threads.
Exits with 1 if a grade is not the expected one, here or there.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from pathlib import Path
from statistics import mean, median, quantiles
from typing import NamedTuple

from search import cost_of

from excise.config import load
from excise.datasets.taskset import TaskSet
from excise.deleters.patches.git_patches import touched, unified
from excise.pipeline.services.task_grader import Grader, GradingEnvironment
from excise.types import Grade, Task
from excise.verifiers.stored_tasks import candidate_of
from excise.verifiers.workbench import Edits, Workbench

SEED = 11
"""Seed of the choice of tasks."""
KINDS = {"right": 1.0, "wrong": 0.0, "equal": 1.0}
"""Kinds of answers, to the reward that they must get."""


class Answer(NamedTuple):
    """One diff to grade."""

    task: Task
    """The task."""
    kind: str
    """A name of :data:`KINDS`."""
    diff: str
    """The diff against the shipped tree."""


@dataclass
class Costs:
    """What the grades of one kind of answer cost."""

    cpu_s: list[float] = field(default_factory=list)
    """CPU seconds of each grade."""
    suites: list[float] = field(default_factory=list)
    """The same, divided by those of one plain run of the project's suite."""

    def row(self, kind: str) -> str:
        """The line of the table."""
        p95 = quantiles(self.cpu_s, n=20)[-1] if len(self.cpu_s) > 1 else self.cpu_s[0]
        return (
            f"{kind:8} {len(self.cpu_s):6} {median(self.cpu_s):8.2f} {p95:8.2f} {median(self.suites):8.2f} "
            f"{60 / max(mean(self.cpu_s), 1e-3):10.1f}"
        )


HEADER = f"{'answer':8} {'grades':>6} {'p50 s':>8} {'p95 s':>8} {'÷ suite':>8} {'a minute':>10}"


def drawn(taskset: TaskSet, count: int) -> list[Task]:
    """``count`` tasks, one of each project in turn."""
    by_repo: dict[str, list[Task]] = defaultdict(list)
    for task in sorted(taskset.tasks(), key=lambda task: task.instance_id):
        by_repo[task.repo].append(task)
    rng = random.Random(SEED)
    shuffled = [rng.sample(tasks, len(tasks)) for tasks in by_repo.values()]
    return [task for task in chain.from_iterable(zip_longest(*shuffled)) if task is not None][:count]


def diff_to(bench: Workbench, task: Task, solved: Edits, comment: str) -> str:
    """The diff from the shipped tree to the original one with the edits ``solved``, and a comment in its first file."""
    paths = touched(task.patch)
    original = bench.read(paths)
    shipped = {**original, **{p: data for p, data in bench.edits_of(task.deletion_patch).items() if p in paths}}
    wanted = {**original, **{path: data for path, data in solved.items() if path in paths}}
    wanted[paths[0]] = (wanted[paths[0]] or b"").rstrip(b"\n") + f"\n# {comment}\n".encode()
    return unified(shipped, wanted)


def answers(bench: Workbench, task: Task, rounds: int, note: str) -> Iterator[Answer]:
    """The answers of one task, all texts distinct but the last."""
    stubs = candidate_of(bench, task).edits("none")
    for number in range(rounds):
        right = diff_to(bench, task, {}, f"{note} {number}")
        yield Answer(task, "right", right)
        yield Answer(task, "wrong", diff_to(bench, task, stubs, f"{note} {number}"))
    yield Answer(task, "equal", right)


def one_after_the_other(grader: Grader, tasks: Mapping[str, GradingEnvironment], rounds: int, note: str) -> int:
    """Grade every answer of the tasks, print the table, and return the number of unexpected grades."""
    costs: dict[str, Costs] = {kind: Costs() for kind in KINDS}
    suites: dict[str, float] = {}
    unexpected = 0
    for instance_id, environment in tasks.items():
        task, bench = grader.taskset.task(instance_id), environment.bench
        if task.env_id not in suites:
            suites[task.env_id] = min(bench.run({}).cpu_s for _ in range(2))
        grader.grade(instance_id, "")  # makes what is made once for a task
        for answer in answers(bench, task, rounds, note):
            grade, cpu_s = cost_of(answer.task.repo, _grading(grader, answer))
            costs[answer.kind].cpu_s.append(cpu_s)
            costs[answer.kind].suites.append(cpu_s / suites[task.env_id])
            unexpected += _is_unexpected(answer, grade)
    print(HEADER)
    for kind, found in costs.items():
        print(found.row(kind), flush=True)
    print(
        f"suites: {min(suites.values()):.2f} to {max(suites.values()):.2f} CPU s, median {median(suites.values()):.2f}"
    )
    return unexpected


def all_at_once(grader: Grader, tasks: Mapping[str, GradingEnvironment], graders: int, note: str) -> int:
    """Grade answers by many threads at once, print how fast, and return the number of unexpected grades."""
    of_tasks = [
        list(answers(environment.bench, grader.taskset.task(instance_id), -(-graders // (2 * len(tasks))), note))[:-1]
        for instance_id, environment in tasks.items()
    ]
    every = [answer for answer in chain.from_iterable(zip_longest(*of_tasks)) if answer is not None]
    began = time.monotonic()
    with ThreadPoolExecutor(graders) as pool:
        grades = list(pool.map(lambda answer: grader.grade(answer.task.instance_id, answer.diff), every))
    wall_s = time.monotonic() - began
    print(f"{graders} graders at once: {len(every)} grades in {wall_s:.0f} s, {60 * len(every) / wall_s:.1f} a minute")
    return sum(_is_unexpected(answer, grade) for answer, grade in zip(every, grades, strict=True))


def _grading(grader: Grader, answer: Answer) -> Callable[[], Grade]:
    return lambda: grader.grade(answer.task.instance_id, answer.diff)


def _is_unexpected(answer: Answer, grade: Grade) -> bool:
    """Whether a grade is not the one that the answer must get; prints it."""
    if grade.decided and grade.reward == KINDS[answer.kind]:
        return False
    print(f"{answer.task.instance_id} {answer.kind}: {grade.reward} {grade.decided} {grade.reasons} {grade.evidence}")
    return True


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("taskset", type=Path)
    parser.add_argument("--tasks", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--graders", type=int, default=64)
    options = parser.parse_args()
    grader = Grader(TaskSet.open(options.taskset), load(), fail_fast=True)
    tasks: dict[str, GradingEnvironment] = {}
    for task in drawn(grader.taskset, options.tasks):
        environment = grader.environment_of(task)
        if isinstance(environment, GradingEnvironment):
            tasks[task.instance_id] = environment
        else:
            print(f"{task.instance_id} left out: {environment.detail}", file=sys.stderr)
    note = f"measured at {time.time():.3f}"  # grades of equal texts are stored: every run needs its own
    unexpected = one_after_the_other(grader, tasks, options.rounds, note)
    unexpected += all_at_once(grader, tasks, options.graders, f"{note} at once")
    own, others = (resource.getrusage(who).ru_maxrss / 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(f"peak memory: {own:.0f} MB of this process, {others:.0f} MB of the largest other one")
    sys.exit(unexpected > 0)


if __name__ == "__main__":
    main()
