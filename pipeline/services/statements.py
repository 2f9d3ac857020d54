"""The statements that agents and exports get: those of the set in the chosen style, or derived where it has none."""

from __future__ import annotations

from dataclasses import dataclass, replace

from excise.datasets.taskset import TaskSet
from excise.deleters.statement.styles import deterministic
from excise.types import DETERMINISTIC, StatementStyle, Task, TaskStatement


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementChoice:
    """Which statement of a task is wanted."""

    style: StatementStyle = StatementStyle.SPECIFICATION
    """Its style. Specifications and issues are complete; terse and ambiguous statements leave things out."""
    model_written: bool = False
    """Whether one that a model wrote is preferred, where the set has one in this style."""

    @property
    def label(self) -> str:
        """The style, with a mark if a model's statement is preferred; for names and for what identifies a run."""
        return f"{self.style}-by-model" if self.model_written else str(self.style)

    @property
    def is_default(self) -> bool:
        """Whether the wanted statement is the one in the table ``tasks``."""
        return self == StatementChoice()


class Statements:
    """The chosen statements of one state of a set."""

    def __init__(self, taskset: TaskSet, choice: StatementChoice) -> None:
        self.choice = choice
        self._stored: dict[str, TaskStatement] = {}
        if not choice.is_default:
            for found in taskset.statements(style=choice.style):
                known = self._stored.get(found.instance_id)
                if known is None or self._rank(found) < self._rank(known):
                    self._stored[found.instance_id] = found

    def _rank(self, statement: TaskStatement) -> tuple[bool, str]:
        """The smallest is used: of the wanted kind of author, the first by name."""
        return (statement.author == DETERMINISTIC) is self.choice.model_written, statement.author

    def of(self, task: Task) -> TaskStatement:
        """The statement of a task: a stored one, or for tasks of older sets the deterministic one."""
        found = self._stored.get(task.instance_id)
        if found is None or (not self.choice.model_written and found.author != DETERMINISTIC):
            return deterministic(task, self.choice.style)
        return found

    def restated(self, task: Task) -> Task:
        """The task with the chosen statement in place of its specification."""
        return task if self.choice.is_default else replace(task, problem_statement=self.of(task).text)
