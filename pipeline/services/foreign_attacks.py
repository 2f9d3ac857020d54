"""Attacks on the grading of an imported task: against a grader that reads pytest's log, and against excise's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from excise.errors import ExciseError
from excise.types import GradingKit, Task
from excise.verifiers.attacks.all_attacks import attacks_of
from excise.verifiers.attacks.attack import Attack, attack_target
from excise.verifiers.attacks.log_grader import log_reward
from excise.verifiers.grading.grader import GradeRequest, find_conditions, grade
from excise.verifiers.workbench import Workbench


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackedGraders:
    """How many attacks on one task got the reward."""

    num_tried: int = 0
    """Number of attacks."""
    by_log: tuple[str, ...] = ()
    """Attacks that the grader that reads the log rewards."""
    by_excise: tuple[str, ...] = ()
    """Attacks that excise's grader rewards."""
    wrong: tuple[str, ...] = ()
    """Honest solutions without a reward, and empty ones with one: ``gold (log)``, ``nothing (excise)``."""


def attack_graders(
    bench: Workbench,
    task: Task,
    kit: GradingKit | None,
    each: int,
    attacks: Iterable[Attack] | None = None,
) -> AttackedGraders:
    """Grade the first ``each`` attacks of every vector, the gold patch, and nothing; raises :class:`ExciseError`."""
    conditions = find_conditions(bench, bench.baseline.passing())

    def excise_reward(diff: str) -> bool:
        found = grade(bench, GradeRequest(task=task, kit=kit, diff=diff, conditions=conditions))
        if not found.decided:
            raise ExciseError(found.evidence.get("error", "The grade is not decided."), reason="infra_error")
        return found.reward == 1.0

    wrong = []
    for name, diff, expected in (("gold", task.patch, True), ("nothing", "", False)):
        graders = (("log", log_reward(bench, task, diff)), ("excise", excise_reward(diff)))
        wrong += [f"{name} ({grader})" for grader, rewarded in graders if rewarded is not expected]
    target = attack_target(bench, task)
    tried: Counter[str] = Counter()
    by_log, by_excise = [], []
    for attack in attacks_of(task.language).values() if attacks is None else attacks:
        if tried[attack.vector] >= each:
            continue
        try:
            diff = attack.diff(target)
        except ExciseError:  # this attack does not fit the task
            continue
        tried[attack.vector] += 1
        if log_reward(bench, task, diff):
            by_log.append(attack.name)
        if excise_reward(diff):
            by_excise.append(attack.name)
    return AttackedGraders(
        num_tried=sum(tried.values()), by_log=tuple(by_log), by_excise=tuple(by_excise), wrong=tuple(wrong)
    )
