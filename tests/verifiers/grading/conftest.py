"""A grader of the set of ``shapes``, and one of its tasks."""

from __future__ import annotations

from typing import Any

import pytest

from excise.pipeline.services.task_grader import Grader
from excise.types import Task
from excise.verifiers.workbench import Workbench


@pytest.fixture(scope="module")
def graders(shapes: Any) -> Grader:
    return Grader(shapes.taskset, shapes.settings)


@pytest.fixture(scope="module")
def task(shapes: Any) -> Task:
    """The task about ``spiral``, a generator in its own file."""
    return next(t for t in shapes.taskset.tasks() if "src/shapes/walk.py" in t.removed)


@pytest.fixture(scope="module")
def ready(graders: Grader, task: Task) -> Workbench:
    found = graders.environment_of(task)
    assert isinstance(found, tuple)
    return found[0]
