"""Fixtures of the trainer's tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from transformers import PreTrainedTokenizerFast

from excise.pipeline.services.arena import ArenaOptions, TaskArena
from excise.trainer.rollouts.stub_context import is_stub
from excise.types import Task

from .byte_model import byte_tokenizer


@pytest.fixture
def tokenizer() -> PreTrainedTokenizerFast:
    return byte_tokenizer()


@pytest.fixture
def run_async() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """A function that runs a coroutine to its end, within ten minutes."""

    def run(work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run(asyncio.wait_for(work, 600))

    return run


@pytest.fixture(scope="session")
def arena(stored: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TaskArena]:
    """The tasks of ``shapes``, with a folder for suspicious trajectories."""
    made = TaskArena(stored.taskset, stored.settings, ArenaOptions(flagged=tmp_path_factory.mktemp("suspicious")))
    yield made
    made.close()


@pytest.fixture
def stub(arena: TaskArena) -> Task:
    """A task of one stubbed function: ``parse`` in ``src/shapes/text.py``."""
    return next(t for t in arena.tasks().values() if is_stub(t) and t.removed[0].endswith("text.py::parse"))
