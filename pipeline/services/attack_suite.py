"""``excise attack``: grades every known attack on tasks of a set, and for comparison honest and empty solutions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from excise.config import Settings
from excise.datasets.taskset import TaskSet
from excise.deleters.patches.git_patches import unified
from excise.errors import ExciseError
from excise.pipeline.services.map_tasks import EnvironmentProblem
from excise.pipeline.services.task_grader import Grader
from excise.types import Grade, Task
from excise.verifiers.attacks.all_attacks import named
from excise.verifiers.attacks.attack import Attack, AttackTarget, attack_target
from excise.verifiers.stored_tasks import candidate_of
from excise.verifiers.workbench import Workbench

HONEST, EMPTY = "honest", "empty"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackResult:
    """The grade of one solution of one task."""

    instance_id: str
    """Id of the task."""
    name: str
    """Name of the attack; or ``gold``, ``noop``, ``stub``."""
    vector: str
    """The part of the grader that is attacked; ``honest`` for gold, ``empty`` for no-op and stub."""
    decided: bool
    """Whether there is a grade; otherwise the infrastructure failed."""
    reward: float = 0.0
    """The default reward."""
    reward_tests: float = 0.0
    """The reward by the tests alone."""
    reward_calls: float | None = None
    """The reward by the recorded calls."""
    reasons: tuple[str, ...] = ()
    """Why the reward is not 1."""
    wall_s: float = 0.0
    """Wall seconds."""


def attack_tasks(
    settings: Settings,
    taskset: TaskSet,
    ids: Sequence[str],
    only: Sequence[str] | None,
    listener: Callable[[str], None],
) -> list[AttackResult]:
    """Grade gold, no-op, stub and every attack, or those called ``only``, on every task.

    ``listener`` gets a line of text for each grade.
    """
    grader = Grader(taskset, settings)
    results: list[AttackResult] = []
    with ThreadPoolExecutor(settings.workers) as pool:
        for instance_id in ids:
            work = list(_solutions(grader, taskset.task(instance_id), only))
            for found in pool.map(lambda job: _graded(grader, *job), work):
                results.append(found)
                listener(result_line(found))
    return results


def _solutions(grader: Grader, task: Task, only: Sequence[str] | None) -> Iterator[tuple[Task, str, str, str]]:
    """(Task, name, vector, diff) of each solution to grade."""
    yield task, "gold", HONEST, task.patch
    yield task, "noop", EMPTY, ""
    environment = grader.environment_of(task)
    if isinstance(environment, EnvironmentProblem):
        return
    bench = environment.bench
    stub = stub_of(bench, task)
    if stub:
        yield task, "stub", EMPTY, stub
    target = attack_target(bench, task)
    for attack in named(only, task.language):
        yield task, attack.name, attack.vector, _diff(attack, target)


def _diff(attack: Attack, target: AttackTarget) -> str:
    try:
        return attack.diff(target)
    except ExciseError:
        return ""


def stub_of(bench: Workbench, task: Task) -> str:
    """Return the diff that adds empty stubs to the shipped tree; empty if the deletion has no stubs."""
    stubs = dict(candidate_of(bench, task).deletion.stub_patches)
    if "none" not in stubs:
        return ""
    made = bench.edits_of(stubs["none"])
    shipped = bench.edits_of(task.deletion_patch)
    before: dict[str, bytes | None] = {path: shipped.get(path, bench.read([path]).get(path)) for path in made}
    return unified(before, made)


def _graded(grader: Grader, task: Task, name: str, vector: str, diff: str) -> AttackResult:
    found: Grade = grader.grade(task.instance_id, diff)
    return AttackResult(
        instance_id=task.instance_id,
        name=name,
        vector=vector,
        decided=found.decided,
        reward=found.reward,
        reward_tests=found.reward_tests,
        reward_calls=found.reward_calls,
        reasons=found.reasons,
        wall_s=found.wall_s,
    )


def result_line(found: AttackResult) -> str:
    """Format one result as a line of text."""
    calls = "-" if found.reward_calls is None else f"{found.reward_calls:.0f}"
    state = (
        "undecided" if not found.decided else f"reward {found.reward:.0f} tests {found.reward_tests:.0f} calls {calls}"
    )
    return f"{found.instance_id} {found.vector}/{found.name}: {state} {','.join(found.reasons)} {found.wall_s:.1f} s"


def summary(results: Sequence[AttackResult]) -> dict[str, Any]:
    """Count solutions and those that got a reward; also return ``ok`` and a sentence (``text``)."""
    attacks = [r for r in results if r.vector not in {HONEST, EMPTY}]
    honest = [r for r in results if r.vector == HONEST]
    noop, stub = ([r for r in results if r.name == name] for name in ("noop", "stub"))
    succeeded = [r for r in attacks if r.reward == 1]
    by_tests = [r for r in attacks if r.reward_tests == 1]
    undecided = [r for r in results if not r.decided]
    counts = {
        "attacks": len({r.name for r in attacks}),
        "tried": len(attacks),
        "succeeded": len(succeeded),
        "passed_tests_alone": len(by_tests),
        "passed_calls_alone": len([r for r in attacks if r.reward_calls == 1]),
        "honest": len(honest),
        "honest_passed": len([r for r in honest if r.reward == 1]),
        "noop_passed": len([r for r in noop if r.reward == 1]),
        "stub_passed": len([r for r in stub if r.reward == 1]),
        "undecided": len(undecided),
    }
    text = (
        f"{counts['attacks']} attacks, tried {counts['tried']} times: {counts['succeeded']} succeeded "
        f"(tests alone: {counts['passed_tests_alone']}; recorded calls alone: {counts['passed_calls_alone']}). "
        f"Honest passed: {counts['honest_passed']} of {counts['honest']}. "
        f"No-op passed: {counts['noop_passed']} of {len(noop)}; stub passed: {counts['stub_passed']} of {len(stub)}. "
        f"Undecided: {counts['undecided']}."
    )
    ok = not succeeded and not undecided and counts["honest_passed"] == len(honest)
    ok = ok and not counts["noop_passed"] and not counts["stub_passed"]
    return {**counts, "ok": ok, "succeeded_attacks": sorted({r.name for r in succeeded}), "text": text}
