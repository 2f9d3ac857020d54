from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from excise.pipeline.services.arena import ArenaOptions, TaskArena
from excise.verifiers.workbench import Prepared

from .solving import Bench


@pytest.fixture(scope="session")
def solving_arena(stored: Any, prepared: Prepared) -> Iterator[TaskArena]:
    """The tasks of the stored set; ``prepared`` has their environment in the cache."""
    made = TaskArena(stored.taskset, stored.settings, ArenaOptions())
    yield made
    made.close()


@pytest.fixture
def bench(solving_arena: TaskArena, stored: Any, tmp_path: Path) -> Bench:
    return Bench(arena=solving_arena, settings=stored.settings, out=tmp_path)
